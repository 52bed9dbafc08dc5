/** Reads customers, their numbers and what they spent from the database. */
import { exactSum } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/sql/query.ts'
import { numberOrText } from '../../../schema/rules/phone-number.ts'
import { type Terms, startOfDay } from './customer.ts'

export interface StoredCustomer {
  readonly terms: Terms
  readonly balanceMicros: bigint
}

export async function loadCustomers(store: Store): Promise<StoredCustomer[]> {
  const rows = await all(
    store,
    store.db
      .selectFrom('customer')
      .leftJoin('wallet', 'wallet.customer_id', 'customer.id')
      .leftJoin('tenant', 'tenant.id', 'customer.tenant_id')
      .selectAll('customer')
      .select([
        'wallet.id as wallet_id',
        'wallet.currency',
        exactSum('wallet.balance_micros').as('balance'),
        'tenant.is_active as is_tenant_active',
      ]),
  )
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

/** Calling numbers in their normal form, and user names → customer. */
export async function loadNumbers(store: Store): Promise<Map<string, number>> {
  const numbers = new Map<string, number>()
  for (const row of await all(store, store.db.selectFrom('customer_number').selectAll())) {
    const number = numberOrText(row.number)
    // Rows of earlier versions may hold the same number in another spelling.
    if (number === row.number || !numbers.has(number)) numbers.set(number, row.customer_id)
  }
  return numbers
}

/** The key of an extension in `loadExtensions`: in one tenant, or (null) in all. */
export const extensionKey = (extension: string, tenantId: number | null): string =>
  tenantId === null ? extension : `${extension} ${tenantId}`

/**
 * Extension number → customer, in all tenants and in each. Extensions of several domains may share a
 * number: if they have different customers, the number has none.
 */
export async function loadExtensions(store: Store): Promise<Map<string, number>> {
  const extensions = store.db.selectFrom('extension')
  const rows = await all(store, extensions.select(['extension', 'tenant_id', 'customer_id']))
  const owners = new Map<string, number | null>()
  for (const { extension, tenant_id: tenantId, customer_id: owner } of rows)
    for (const key of [extensionKey(extension, null), extensionKey(extension, tenantId)]) {
      const known = owners.get(key)
      owners.set(key, known === undefined || known === owner ? owner : null)
    }
  return new Map(
    [...owners].flatMap(([number, owner]) => (owner === null ? [] : [[number, owner]])),
  )
}

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
