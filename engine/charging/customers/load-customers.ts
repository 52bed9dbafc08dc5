/** Reads customers, their numbers and what they spent from the database. */
import { exactSum, fromFlag } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/open.ts'
import { all, SLICE } from '../../../schema/sql/query.ts'
import type { OwnedExtension } from './payers.ts'
import { type Terms, startOfDay } from './customer.ts'

export interface StoredCustomer {
  readonly terms: Terms
  readonly balanceMicros: bigint
}

/** Undefined: all of them. */
export async function loadCustomers(
  store: Store,
  customerIds?: readonly number[],
): Promise<StoredCustomer[]> {
  const query = store.db
    .selectFrom('customer')
    .leftJoin('wallet', 'wallet.customer_id', 'customer.id')
    .leftJoin('tenant', 'tenant.id', 'customer.tenant_id')
    .selectAll('customer')
    .select([
      'wallet.id as wallet_id',
      'wallet.currency',
      exactSum('wallet.balance_micros').as('balance'),
      'tenant.is_active as is_tenant_active',
    ])
  const rows = await all(store, customerIds ? query.where('customer.id', 'in', customerIds) : query)
  return rows.map((row) => ({
    terms: {
      customerId: row.id,
      tenantId: row.tenant_id,
      isActive: row.is_active === 1 && row.is_tenant_active !== 0,
      planId: row.rate_plan_id,
      walletId: row.wallet_id,
      currency: row.currency,
      creditLimitMicros: row.credit_limit_micros,
      maxConcurrentCalls: row.max_concurrent_calls,
      maxCps: row.max_cps,
      maxDailySpendMicros: row.max_daily_spend_micros,
      maxCallSeconds: row.max_call_seconds,
      lowBalanceMicros: row.low_balance_micros,
    },
    balanceMicros: BigInt(row.balance ?? 0),
  }))
}

/** The rows of their calling numbers and user names. */
export const numbersOf = (
  store: Store,
  customerIds: readonly number[],
): Promise<{ number: string; customer_id: number }[]> =>
  all(
    store,
    store.db.selectFrom('customer_number').selectAll().where('customer_id', 'in', customerIds),
  )

/** At most `SLICE` ids of customers after this one. */
export const customerIdsAfter = (store: Store, after: number): Promise<{ id: number }[]> =>
  all(
    store,
    store.db.selectFrom('customer').select('id').where('id', '>', after).orderBy('id').limit(SLICE),
  )

export const customerIdsOfTenant = async (store: Store, tenantId: number): Promise<number[]> => {
  const query = store.db.selectFrom('customer').select('id').where('tenant_id', '=', tenantId)
  return (await all(store, query)).map(({ id }) => id)
}

/** Which tenants are active; undefined: of all. */
export async function loadTenants(
  store: Store,
  tenantIds?: readonly number[],
): Promise<Map<number, boolean>> {
  const query = store.db.selectFrom('tenant').select(['id', 'is_active'])
  const rows = await all(store, tenantIds ? query.where('id', 'in', tenantIds) : query)
  return new Map(rows.map((row) => [row.id, fromFlag(row.is_active)]))
}

const extensionQuery = (store: Store) =>
  store.db.selectFrom('extension').select(['id', 'extension', 'tenant_id', 'customer_id'])

export const extensionsOf = (store: Store, ids: readonly number[]): Promise<OwnedExtension[]> =>
  all(store, extensionQuery(store).where('id', 'in', ids))

/** At most `SLICE` extensions after this id. */
export const extensionsAfter = (store: Store, after: number): Promise<OwnedExtension[]> =>
  all(store, extensionQuery(store).where('id', '>', after).orderBy('id').limit(SLICE))

const PAGE = 1_000

/** What was debited from a wallet since midnight UTC, in micro-units. Reads only entries since then. */
export async function loadSpending(store: Store, walletId: number, now: number): Promise<bigint> {
  const newestFirst = store.db
    .selectFrom('ledger_entry')
    .select(['id', 'kind', 'amount_micros', 'created_at'])
    .where('wallet_id', '=', walletId)
    .orderBy('id', 'desc')
    .limit(PAGE)
  let spentMicros = 0n
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const entries = await all(store, newestFirst.where('id', '<', before))
    for (const entry of entries) {
      if (entry.created_at < startOfDay(now)) return spentMicros
      if (entry.kind === 'debit') spentMicros -= BigInt(entry.amount_micros)
    }
    const last = entries.at(-1)
    if (last === undefined || entries.length < PAGE) return spentMicros
    before = last.id
  }
}
