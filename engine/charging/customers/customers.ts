/** All customers in memory: the payer of a call is found by id, calling number or extension. */
import { Buckets } from '../../../schema/buckets.ts'
import { exactSum, fromFlag } from '../../../schema/columns.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, inSlices, slicesOf, SLICE } from '../../../schema/sql/query.ts'
import { Customer, type SharedWith, startOfDay, type Terms } from './customer.ts'
import type { ChangedPayers } from '../../../schema/contracts/changed-rows.ts'
import { lossTermsOf } from '../../../schema/rules/loss-protection.ts'
import { NumberTable } from '../../../schema/rules/number-table.ts'

/** One tenant, several, or (null) all. */
type Tenants = number | readonly number[] | null

/** Whether `tenantId` (null: the platform) is one of `tenants`. */
export const isAmong = (tenantId: number | null, tenants: Tenants): boolean =>
  tenants === null ||
  (typeof tenants === 'number' ? [tenants] : tenants).some((id) => id === tenantId)

interface CustomersDeps {
  readonly store: Store
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Present where other instances draw from the same wallets and limits. */
  readonly shared?: SharedWith | undefined
}

export class Customers {
  readonly #deps: CustomersDeps
  readonly #reloads = new OneAtATime(() => this.#load())
  readonly #customers = new Map<number, Customer>()
  readonly #numbers = new OwnedNumbers()
  readonly #extensions = new OwnedExtensions()
  /** Whether they are active. */
  #tenants: ReadonlyMap<number, boolean> = new Map()

  constructor(deps: CustomersDeps) {
    this.#deps = deps
  }

  /**
   * The customer that has this calling number (with or without `+`), else the customer of the
   * extension in one of `tenants`. A customer found by number may belong to another tenant.
   */
  byNumber(caller: string, tenants: Tenants = null): Customer | undefined {
    const owner = this.byId(this.#numbers.ownerOf(caller))
    if (owner !== undefined && isAmong(owner.terms.tenantId, tenants)) return owner
    return this.byId(this.#ownerOfExtension(caller, tenants)) ?? owner
  }

  #ownerOfExtension(extension: string, tenants: Tenants): number | undefined {
    const among = typeof tenants === 'object' && tenants !== null ? tenants : [tenants]
    const owners = new Set(
      among.flatMap((tenantId) => this.#extensions.ownerOf(extension, tenantId) ?? []),
    )
    const [only, another] = owners
    return another === undefined ? only : undefined
  }

  byId(customerId: number | null | undefined): Customer | undefined {
    return customerId === null || customerId === undefined
      ? undefined
      : this.#customers.get(customerId)
  }

  all(): IterableIterator<Customer> {
    return this.#customers.values()
  }

  /** One line for each balance that is not the stored one. */
  async differences(): Promise<string[]> {
    const stored = await loadCustomers(this.#deps.store)
    return stored.flatMap(({ terms: { customerId }, balanceMicros }) => {
      const inMemory = this.byId(customerId)?.balanceMicros
      return inMemory === balanceMicros
        ? []
        : [`customer ${customerId} has ${balanceMicros} micro-units, memory says ${inMemory}`]
    })
  }

  /**
   * Takes over what is stored now: there are none before. Reservations and counts of live calls
   * stay. Undefined: of all customers and extensions.
   */
  reload(changed?: ChangedPayers): Promise<void> {
    if (changed === undefined) return this.#reloads.request()
    const { of, ids } = changed
    return this.#reloads.between(async () => {
      if (of === 'tenant') return this.#takeTenants(ids)
      for await (const slice of inSlices(ids))
        if (of === 'customer') await this.#takeCustomers(slice)
        else await this.#takeExtensions(slice)
    })
  }

  async #load(): Promise<void> {
    const { store } = this.#deps
    this.#tenants = await loadTenants(store)
    const gone = new Set(this.#customers.keys())
    for await (const rows of slicesOf((after) => customerIdsAfter(store, after))) {
      const ids = rows.map(({ id }) => id)
      for (const id of ids) gone.delete(id)
      await this.#takeCustomers(ids)
    }
    for (const customerId of gone) this.#forget(customerId)
    const goneExtensions = new Set(this.#extensions.ids())
    for await (const rows of slicesOf((after) => extensionsAfter(store, after)))
      for (const row of rows) {
        goneExtensions.delete(row.id)
        this.#extensions.set(row)
      }
    for (const id of goneExtensions) this.#extensions.delete(id)
  }

  async #takeCustomers(ids: readonly number[]): Promise<void> {
    const { store, shared } = this.#deps
    for (const id of ids) this.#customers.get(id)?.beginLoad()
    const customers = await loadCustomers(store, ids)
    const numbers = new Buckets<number, OwnedNumber>()
    for (const row of await numbersOf(store, ids)) numbers.add(row.customerId, row)
    const spendings = new Map<number, Spending>()
    for (const { terms } of customers)
      if (shared?.money === undefined && this.#isNewlyLimited(terms))
        spendings.set(terms.customerId, await this.#spendingOf(terms))
    // From here on in one step: calls see either all of a customer, or nothing.
    const gone = new Set(ids)
    for (const customer of customers) {
      const { customerId } = customer.terms
      gone.delete(customerId)
      this.#take(customer, spendings.get(customerId))
      this.#numbers.set(customerId, numbers.of(customerId))
    }
    for (const customerId of gone) this.#forget(customerId)
  }

  async #takeExtensions(ids: readonly number[]): Promise<void> {
    const rows = await extensionsOf(this.#deps.store, ids)
    for (const id of ids) this.#extensions.delete(id)
    for (const row of rows) this.#extensions.set(row)
  }

  /** Only where a tenant is switched on or off its customers are read again. */
  async #takeTenants(ids: readonly number[]): Promise<void> {
    const { store } = this.#deps
    const stored = await loadTenants(store, ids)
    const switched = ids.filter((id) => this.#tenants.get(id) !== stored.get(id))
    this.#tenants = new Map([...this.#tenants, ...stored])
    for (const tenantId of switched)
      for await (const slice of inSlices(await customerIdsOfTenant(store, tenantId)))
        await this.#takeCustomers(slice)
  }

  /** Live calls still refer to the customer, so it turns inactive. */
  #forget(customerId: number): void {
    const customer = this.#customers.get(customerId)
    if (customer !== undefined) customer.terms = { ...customer.terms, isActive: false }
    this.#customers.delete(customerId)
    this.#numbers.set(customerId, [])
  }

  #take({ terms, balanceMicros }: StoredCustomer, spending: Spending | undefined): void {
    const known = this.#customers.get(terms.customerId)
    const customer = known ?? new Customer(terms, balanceMicros, this.#deps.shared)
    const isLowered = known !== undefined && allowsLess(terms, known.terms)
    customer.take(terms, balanceMicros)
    customer.limits.note()
    if (isLowered) customer.money?.lowered()
    if (spending !== undefined) {
      const since = customer.debitedMicros - spending.debitedBefore
      customer.setSpending(spending.spentMicros + since, spending.at)
    }
    this.#customers.set(terms.customerId, customer)
  }

  #isNewlyLimited({ customerId, maxDailySpendMicros }: Terms): boolean {
    const known = this.#customers.get(customerId)?.terms.maxDailySpendMicros ?? 0
    return maxDailySpendMicros > 0 && known === 0
  }

  /**
   * A debit while the ledger is read may be in what was read, or not: it is read again, or else
   * counted twice.
   */
  async #spendingOf({ customerId, walletId }: Terms): Promise<Spending> {
    const { store, now } = this.#deps
    const debited = (): bigint => this.#customers.get(customerId)?.debitedMicros ?? 0n
    for (let tries = 1; ; tries += 1) {
      const [at, debitedBefore] = [now(), debited()]
      const spentMicros = walletId === null ? 0n : await loadSpending(store, walletId, at)
      if (debited() === debitedBefore || tries === MAX_TRIES)
        return { spentMicros, debitedBefore, at }
    }
  }
}

/** A limit of a day of 0 is none. */
const allowsLess = (now: Terms, before: Terms): boolean =>
  now.creditLimitMicros < before.creditLimitMicros ||
  (now.maxDailySpendMicros || Infinity) < (before.maxDailySpendMicros || Infinity)

const MAX_TRIES = 5

/** The debits of the ledger, and those that memory had counted before they were read. */
interface Spending {
  readonly spentMicros: bigint
  readonly debitedBefore: bigint
  readonly at: number
}

export interface StoredCustomer {
  readonly terms: Terms
  readonly balanceMicros: bigint
}

/** Reads customers from the database. `customerIds` undefined: all of them. */
async function loadCustomers(
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
      name: row.name,
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
      ...(row.time_zone !== null && { zone: { zone: row.time_zone, tenantId: row.tenant_id } }),
      ...(row.loss_protection !== null && { lossTerms: lossTermsOf(row) }),
    },
    balanceMicros: BigInt(row.balance ?? 0),
  }))
}

/** Reads their calling numbers and user names. */
async function numbersOf(store: Store, customerIds: readonly number[]): Promise<OwnedNumber[]> {
  const query = store.db
    .selectFrom('phone_number')
    .select(['number', 'first_number', 'last_number', 'customer_id'])
    .where('customer_id', 'in', customerIds)
    .orderBy('id')
  const rows = await all(store, query)
  return rows.flatMap(({ number, first_number, last_number, customer_id: customerId }) => {
    if (customerId === null) return []
    const last = first_number === last_number ? number : last_number
    return [{ first: number, last, customerId }]
  })
}

/** Returns at most `SLICE` ids of customers after this one. */
const customerIdsAfter = (store: Store, after: number): Promise<{ id: number }[]> =>
  all(
    store,
    store.db.selectFrom('customer').select('id').where('id', '>', after).orderBy('id').limit(SLICE),
  )

const customerIdsOfTenant = async (store: Store, tenantId: number): Promise<number[]> => {
  const query = store.db.selectFrom('customer').select('id').where('tenant_id', '=', tenantId)
  return (await all(store, query)).map(({ id }) => id)
}

/** Which tenants are active; undefined: of all. */
async function loadTenants(
  store: Store,
  tenantIds?: readonly number[],
): Promise<Map<number, boolean>> {
  const query = store.db.selectFrom('tenant').select(['id', 'is_active'])
  const rows = await all(store, tenantIds ? query.where('id', 'in', tenantIds) : query)
  return new Map(rows.map((row) => [row.id, fromFlag(row.is_active)]))
}

const extensionQuery = (store: Store) =>
  store.db.selectFrom('extension').select(['id', 'extension', 'tenant_id', 'customer_id'])

const extensionsOf = (store: Store, ids: readonly number[]): Promise<OwnedExtension[]> =>
  all(store, extensionQuery(store).where('id', 'in', ids))

/** Returns at most `SLICE` extensions after this id. */
const extensionsAfter = (store: Store, after: number): Promise<OwnedExtension[]> =>
  all(store, extensionQuery(store).where('id', '>', after).orderBy('id').limit(SLICE))

const PAGE = 1_000

/**
 * Returns the debits of a wallet since midnight UTC, in micro-units. Reads only entries since then.
 */
async function loadSpending(store: Store, walletId: number, now: number): Promise<bigint> {
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

/**
 * Who pays for calls of which number: the calling numbers of customers, and the extensions of
 * tenants.
 */
interface OwnedNumber {
  /** The stored numbers: rows of earlier versions may not have the normal form. */
  readonly first: string
  readonly last: string
  readonly customerId: number
}

/** Calling numbers and blocks of them, and user names. */
class OwnedNumbers {
  readonly #table = new NumberTable<OwnedNumber>()
  readonly #ofCustomer = new Map<number, readonly OwnedNumber[]>()

  ownerOf(number: string): number | undefined {
    return this.#table.find(number)?.customerId
  }

  /** All numbers of a customer, instead of those before. */
  set(customerId: number, numbers: readonly OwnedNumber[]): void {
    for (const before of this.#ofCustomer.get(customerId) ?? []) this.#table.delete(before)
    if (numbers.length === 0) this.#ofCustomer.delete(customerId)
    else this.#ofCustomer.set(customerId, numbers)
    for (const each of numbers) this.#table.add(each)
  }
}

export interface OwnedExtension {
  readonly id: number
  readonly extension: string
  readonly tenant_id: number
  readonly customer_id: number | null
}

/** Extensions by number, in each tenant and in all. */
class OwnedExtensions {
  readonly #byId = new Map<number, OwnedExtension>()
  readonly #byNumber = new Buckets<string, OwnedExtension>()

  /**
   * Extensions of several domains, or (null) of several tenants, may share a number: if they have
   * different customers, or one has none, the number has none.
   */
  ownerOf(extension: string, tenantId: number | null): number | undefined {
    const sharers = this.#byNumber.of(keyOf(extension, tenantId))
    const owner = sharers[0]?.customer_id ?? undefined
    return sharers.every(({ customer_id }) => customer_id === owner) ? owner : undefined
  }

  ids(): IterableIterator<number> {
    return this.#byId.keys()
  }

  set(row: OwnedExtension): void {
    this.delete(row.id)
    this.#byId.set(row.id, row)
    this.#byNumber.add(keyOf(row.extension, null), row)
    this.#byNumber.add(keyOf(row.extension, row.tenant_id), row)
  }

  delete(id: number): void {
    const row = this.#byId.get(id)
    if (row === undefined) return
    this.#byId.delete(id)
    this.#byNumber.delete(keyOf(row.extension, null), row)
    this.#byNumber.delete(keyOf(row.extension, row.tenant_id), row)
  }
}

const keyOf = (extension: string, tenantId: number | null): string =>
  tenantId === null ? extension : `${extension} ${tenantId}`
