/** The call records that a principal may see, as reports show them. */
import type { Store } from '../../../schema/open.ts'
import { first } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import { recordingOfCall } from '../recordings/recording-column.ts'
import type { CdrRow } from './cdr-store.ts'

export interface RecordReader {
  readonly store: Store
  readonly principal: Pick<Principal, 'tenantId'>
}

export function findRecord(uuid: string, reader: RecordReader): Promise<CdrRow | undefined> {
  return first(reader.store, records(reader).where('cdr.call_uuid', '=', uuid))
}

export function records({ store, principal: { tenantId } }: RecordReader) {
  const query = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select(['tenant.slug as tenant_slug', recordingOfCall])
  return tenantId === null ? query : query.where('cdr.tenant_id', '=', tenantId)
}
