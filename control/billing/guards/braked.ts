/**
 * What the platform brakes a tenant does not delete or rename: made anew, it would be without the brake, because a spend
 * guard is bound to the row and not to its name.
 */
import type { Store } from '../../../schema/open.ts'
import { first } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import type { RequestScope } from '../../provisioning/resource.ts'

/**
 * Throws 409 while the platform brakes it, unless the platform asks. In the transaction that deletes or renames it: a guard
 * that another node sets meanwhile is seen then, or finds nothing to brake.
 */
export async function refuseBraked(
  store: Store,
  owner: 'customer' | 'extension',
  id: number,
  { tenantId, now }: RequestScope,
): Promise<void> {
  if (tenantId === null) return
  const guard = store.db
    .selectFrom('spend_guard')
    .select('guard_uuid')
    .where(`${owner}_id`, '=', id)
    .where('set_by_tenant_id', 'is', null)
    .where('ended_at', 'is', null)
    .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .limit(1)
  const row = await first(store, guard)
  if (row === undefined) return
  throw new ApiError(
    409,
    'spend_guard_holds',
    `The platform has set the spend guard ${row.guard_uuid} on this ${owner}. Nothing was changed: while it holds, only the platform can delete or rename the ${owner}`,
  )
}
