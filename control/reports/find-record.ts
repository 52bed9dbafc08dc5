/** The call records that a principal may see, as reports show them. */
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { recordingOfCall } from './recording-column.ts'
import type { CdrRow } from './cdr-store.ts'

export interface RecordReader {
  readonly store: Store
  readonly principal: Pick<Principal, 'tenantId'>
}

export function findRecord(uuid: string, reader: RecordReader): Promise<CdrRow | undefined> {
  return first(reader.store, records(reader).where('cdr.call_uuid', '=', uuid))
}

/** In the order of the ids; those that the reader may not see, or that are gone, are left out. */
export async function recordsOf(
  ids: readonly number[],
  reader: RecordReader,
): Promise<readonly CdrRow[]> {
  if (ids.length === 0) return []
  const rows = await all(reader.store, records(reader).where('cdr.id', 'in', ids))
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

function records({ store, principal: { tenantId } }: RecordReader) {
  const query = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select(['tenant.slug as tenant_slug', recordingOfCall])
  return tenantId === null ? query : query.where('cdr.tenant_id', '=', tenantId)
}
