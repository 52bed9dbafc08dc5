/**
 * A tenant cannot delete or rename a customer or an extension with a spend guard of the platform: a
 * spend guard belongs to the row, so a new row of the same name would be without it.
 */
import type { RequestScope } from '../auth/tenants.ts'
import type { Store } from '../../schema/storage/store.ts'
import { type Tables, first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'

/**
 * Throws 409 while a spend guard of the platform is on the row, unless the platform asks. Runs in
 * the transaction that deletes or renames the row, so that a spending cap of another instance is
 * either seen or refused.
 */
export async function refuseBraked(
  store: Store,
  owner: 'customer' | 'extension',
  id: number,
  { tenantId, isGlobal = false, now }: RequestScope,
): Promise<void> {
  if (tenantId === null || isGlobal) return
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
    `The platform has set the spend guard ${row.guard_uuid} on this ${owner}. Nothing ` +
      `was changed: while it holds, only the platform can delete or rename the ${owner}`,
  )
}

/** The customers with this value in this column. */
export interface CustomerFilter {
  readonly column: 'id' | 'tenant_id' | 'rate_plan_id'
  readonly value: number
}

/**
 * Throws 409 while a guard of the platform covers calls of these customers, unless the platform
 * asks: another price, currency or payer would change the amount that the guard counts. Runs in the
 * transaction of the change. `caps`: blocks do not count amounts.
 */
export async function refuseUncounted(
  store: Tables,
  { column, value }: CustomerFilter,
  which: 'all' | 'caps',
  { tenantId, isGlobal = false, now }: RequestScope,
): Promise<void> {
  if (tenantId === null || isGlobal) return
  const { db } = store
  const customers = db.selectFrom('customer').where(`customer.${column}`, '=', value)
  const ids = customers.select('customer.id')
  const tenants = customers.select('customer.tenant_id')
  const extensions = db
    .selectFrom('extension')
    .select('extension.id')
    .where(({ or, and, eb }) =>
      or([
        eb('extension.customer_id', 'in', ids),
        and([eb('extension.customer_id', 'is', null), eb('extension.tenant_id', 'in', tenants)]),
      ]),
    )
  let guards = inForce(store, now).where(({ or, eb }) =>
    or([
      eb('spend_guard.customer_id', 'in', ids),
      eb('spend_guard.tenant_id', 'in', tenants),
      eb('spend_guard.extension_id', 'in', extensions),
    ]),
  )
  if (which === 'caps') guards = guards.where('action', '=', 'cap')
  const row = await first(store, guards.limit(1))
  if (row !== undefined) throw counts(row.guard_uuid)
}

/** The same check where an extension or a carrier gets another payer. */
export async function refuseOtherPayer(
  store: Store,
  before: { readonly customer_id: number | null },
  after: { readonly customer_id: number | null },
  scope: RequestScope,
): Promise<void> {
  if (before.customer_id === after.customer_id) return
  const filter: CustomerFilter =
    before.customer_id === null
      ? { column: 'tenant_id', value: scope.tenantId ?? 0 }
      : { column: 'id', value: before.customer_id }
  await refuseUncounted(store, filter, 'all', scope)
}

/**
 * Throws 409 where a tenant on which the platform has set a cap adds a customer that the cap would
 * not count: in another currency, or by a plan of the tenant's own that no customer of it has yet.
 */
export async function refuseUncountedCustomer(
  store: Store,
  { planId, currency }: { readonly planId: number | null; readonly currency: string },
  { tenantId, isGlobal = false, now }: RequestScope,
): Promise<void> {
  if (tenantId === null || isGlobal) return
  const guard = await first(
    store,
    inForce(store, now)
      .where('spend_guard.tenant_id', '=', tenantId)
      .where('action', '=', 'cap')
      .limit(1),
  )
  if (guard === undefined) return
  if (guard.currency !== currency) throw counts(guard.guard_uuid)
  if (planId === null) return
  const { db } = store
  const own = db
    .selectFrom('rate_plan')
    .select('id')
    .where('id', '=', planId)
    .where('tenant_id', 'is not', null)
  const used = db
    .selectFrom('customer')
    .select('id')
    .where('rate_plan_id', '=', planId)
    .where('tenant_id', '=', tenantId)
    .limit(1)
  if ((await first(store, own)) !== undefined && (await first(store, used)) === undefined)
    throw counts(guard.guard_uuid)
}

const inForce = (store: Tables, now: number) =>
  store.db
    .selectFrom('spend_guard')
    .select(['guard_uuid', 'currency'])
    .where('set_by_tenant_id', 'is', null)
    .where('ended_at', 'is', null)
    .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))

const counts = (capUuid: string): ApiError =>
  new ApiError(
    409,
    'spend_guard_holds',
    `The platform has set the spend guard ${capUuid}, and this would change what it ` +
      'counts. Nothing was changed: while it holds, only the platform can change the plan, ' +
      'the prices, the currency and the payer of the calls that it covers',
  )
