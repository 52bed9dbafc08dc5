/** References of carriers and inbound routes to a dispatcher set, by number or name. */
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import type { Reference } from '../http/fields.ts'
import { chosen, type Owner } from './references.ts'

/**
 * Returns the number of an existing set that the writer can see or that the row already has. Throws 400 at
 * `path`.
 */
export async function resolveSet(
  store: Store,
  path: string,
  set: Reference | null,
  owner: Owner,
  current?: number | null,
): Promise<number | null> {
  if (set === null) return null
  const column = typeof set === 'number' ? 'set_id' : 'endpoint_name'
  const rows = await all(
    store,
    store.db
      .selectFrom('dispatcher_set')
      .select(['set_id as id', 'tenant_id'])
      .where(column, '=', set),
  )
  return chosen(rows, { path, noun: 'dispatcher set', reference: set }, owner, current).id
}
