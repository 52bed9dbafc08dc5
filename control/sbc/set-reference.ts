/** Carriers and inbound routes name a dispatcher set by its number or its name. */
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/query.ts'
import type { Reference } from '../provisioning/fields.ts'
import { badReference, isForeign, type Owner } from '../provisioning/references.ts'

/** The number of an existing set that the writer can see, or that the row has already. Throws 400 at `path`. */
export function resolveSet(
  store: Store,
  path: string,
  set: Reference | null,
  owner: Owner,
  current?: number | null,
): number | null {
  if (set === null) return null
  const column = typeof set === 'number' ? 'set_id' : 'endpoint_name'
  const row = first(
    store,
    store.db.selectFrom('dispatcher_set').select(['set_id', 'tenant_id']).where(column, '=', set),
  )
  if (row !== undefined && row.set_id === current) return row.set_id
  const isVisible = owner.reach.tenantId === null || row?.tenant_id === owner.reach.tenantId
  if (row === undefined || !isVisible)
    throw badReference(path, `there is no dispatcher set ${JSON.stringify(set)}`)
  if (isForeign(row.tenant_id, owner))
    throw badReference(path, `dispatcher set ${JSON.stringify(set)} belongs to another tenant`)
  return row.set_id
}
