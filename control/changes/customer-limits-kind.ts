/** Customers: how much they may owe, and how much they may call at once. Balances are not among it. */
import { z } from 'zod'
import { first } from '../../schema/sql/query.ts'
import { CustomerStore } from '../billing/customer-store.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import { everywhere } from '../provisioning/references.ts'
import type { ChangeWorld, Json } from './change-world.ts'
import type { RestorableKind } from './restorable-kind.ts'

const limits = z.strictObject({
  credit_limit_micros: z.int(),
  max_concurrent_calls: z.int(),
  max_cps: z.int(),
  max_daily_spend_micros: z.int(),
})

export type CustomerLimits = z.output<typeof limits>

export const customerLimitsKind: RestorableKind = {
  isRow: true,
  read: async (id, { store }) => (await readLimits(Number(id), store)) ?? null,
  restore: (id, state, world) => setLimits(Number(id), limitsIn(state), world),
  async admit(id, _, { tenantId }, { store }) {
    if (tenantId === null) return
    const query = store.db
      .selectFrom('customer')
      .select('id')
      .where('id', '=', Number(id))
      .where('tenant_id', '=', tenantId)
    if ((await first(store, query)) === undefined) throw notFound('Customer')
  },
  follow: async ({ ocs }) => ocs?.reloadCustomers(),
}

export function readLimits(
  id: number,
  store: ChangeWorld['store'],
): Promise<CustomerLimits | undefined> {
  const query = store.db
    .selectFrom('customer')
    .select(['credit_limit_micros', 'max_concurrent_calls', 'max_cps', 'max_daily_spend_micros'])
    .where('id', '=', id)
  return first(store, query)
}

/** As a PATCH does it. */
export async function setLimits(
  id: number,
  wanted: CustomerLimits,
  { store, now, ocs }: Pick<ChangeWorld, 'store' | 'now' | 'ocs'>,
): Promise<void> {
  if (ocs === undefined)
    throw new ApiError(503, 'charging_elsewhere', 'Another system charges the calls')
  const customers = new CustomerStore(store, ocs.ledger)
  const scope = { ...everywhere, now: now() }
  const document = await customers.document(scope, id)
  if (document === undefined) throw notFound('Customer')
  const { credit_limit_micros, max_daily_spend_micros, ...counts } = wanted
  const changed = { credit_limit: credit_limit_micros, max_daily_spend: max_daily_spend_micros }
  await customers.replace(id, { ...document, ...counts, ...changed }, scope)
}

function limitsIn(state: Json | null): CustomerLimits {
  const read = limits.safeParse(state)
  if (read.success) return read.data
  throw notFound('Customer')
}
