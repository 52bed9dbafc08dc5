/** Carriers and inbound routes name a dispatcher set by its number or its name. */
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/query.ts'
import type { Reference } from '../provisioning/fields.ts'
import { badReference } from '../provisioning/references.ts'
import type { Reach } from '../provisioning/resource.ts'

/** The number of an existing set that the writer can see. Throws 400 at `path`. */
export function resolveSet(
  store: Store,
  path: string,
  set: Reference | null,
  owner: { readonly tenantId: number | null; readonly reach: Reach },
): number | null {
  if (set === null) return null
  const column = typeof set === 'number' ? 'set_id' : 'endpoint_name'
  const row = first(
    store,
    store.db.selectFrom('dispatcher_set').select(['set_id', 'tenant_id']).where(column, '=', set),
  )
  const isVisible = owner.reach.tenantId === null || row?.tenant_id === owner.reach.tenantId
  if (row === undefined || !isVisible)
    throw badReference(path, `there is no dispatcher set ${JSON.stringify(set)}`)
  if (row.tenant_id !== null && row.tenant_id !== owner.tenantId)
    throw badReference(path, `dispatcher set ${JSON.stringify(set)} belongs to another tenant`)
  return row.set_id
}
