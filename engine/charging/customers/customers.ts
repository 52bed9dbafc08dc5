/** All customers in memory: the payer of a call is found by id, calling number or extension. */
import type { Store } from '../../../schema/open.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import { Lease } from '../leases/lease.ts'
import { Customer, type SharedLimits, type Terms } from './customer.ts'
import {
  extensionKey,
  loadCustomers,
  loadExtensions,
  loadNumbers,
  loadSpending,
  type StoredCustomer,
} from './load-customers.ts'

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
  /** Where other nodes count against the same limits. */
  readonly shared?: SharedLimits | undefined
  /** Called when a load begins. What it returns is called in the step in which the load is taken over. */
  readonly whenLoaded?: () => (() => void) | undefined
  /** Less may be spent than before. */
  readonly onLowered?: (customer: Customer) => void
}

export class Customers {
  readonly #deps: CustomersDeps
  readonly #reloads = new OneAtATime(() => this.#load())
  readonly #customers = new Map<number, Customer>()
  #numbers = new Map<string, number>()
  #extensions = new Map<string, number>()

  constructor(deps: CustomersDeps) {
    this.#deps = deps
  }

  /**
   * The customer that has this calling number (with or without `+`), else the customer of the extension
   * in one of `tenants`. A customer found by number may belong to another tenant.
   */
  byNumber(caller: string, tenants: Tenants = null): Customer | undefined {
    // `++1` is no spelling of `+1`.
    const otherSpelling = caller.startsWith('+') ? caller.replace(/^\+(?!\+)/, '') : `+${caller}`
    const owner = this.byId(this.#numbers.get(caller) ?? this.#numbers.get(otherSpelling))
    if (owner !== undefined && isAmong(owner.terms.tenantId, tenants)) return owner
    return this.byId(this.#ownerOfExtension(caller, tenants)) ?? owner
  }

  #ownerOfExtension(extension: string, tenants: Tenants): number | undefined {
    const among = typeof tenants === 'object' && tenants !== null ? tenants : [tenants]
    const owners = new Set(
      among.flatMap((tenantId) => this.#extensions.get(extensionKey(extension, tenantId)) ?? []),
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

  /** Takes over what is stored now: there are none before. Reservations and counts of live calls stay. */
  reload(): Promise<void> {
    return this.#reloads.request()
  }

  async #load(): Promise<void> {
    const { store, whenLoaded } = this.#deps
    // Another process debits, too: what it has debited counts for daily limits.
    const takeMore = whenLoaded?.()
    for (const customer of this.#customers.values()) customer.beginLoad()
    const customers = await loadCustomers(store)
    const numbers = await loadNumbers(store)
    const extensions = await loadExtensions(store)
    const spendings = new Map<number, Spending>()
    for (const { terms } of customers)
      if (
        !store.statements.isShared &&
        (takeMore === undefined ? this.#isNewlyLimited(terms) : terms.maxDailySpendMicros > 0)
      )
        spendings.set(terms.customerId, await this.#spendingOf(terms))
    // From here on in one step: calls see either all of it, or nothing.
    this.#numbers = numbers
    this.#extensions = extensions
    const gone = new Set(this.#customers.keys())
    for (const customer of customers) {
      const { customerId } = customer.terms
      gone.delete(customerId)
      this.#take(customer, spendings.get(customerId))
    }
    for (const customerId of gone) this.#forget(customerId)
    takeMore?.()
  }

  /** Live calls still refer to the customer, so it turns inactive. */
  #forget(customerId: number): void {
    const customer = this.#customers.get(customerId)
    if (customer !== undefined) customer.terms = { ...customer.terms, isActive: false }
    this.#customers.delete(customerId)
  }

  #take({ terms, balanceMicros }: StoredCustomer, spending: Spending | undefined): void {
    const known = this.#customers.get(terms.customerId)
    const { store, shared } = this.#deps
    const lease = store.statements.isShared ? new Lease() : undefined
    const customer = known ?? new Customer(terms, balanceMicros, lease, shared)
    const isLowered = known !== undefined && allowsLess(terms, known.terms)
    customer.take(terms, balanceMicros)
    customer.noteCalls()
    if (isLowered) this.#deps.onLowered?.(customer)
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

  /** A debit while the ledger is read may be in what was read, or not: it is read again, or else counted twice. */
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

/** What the ledger says, and what memory had counted before it was read. */
interface Spending {
  readonly spentMicros: bigint
  readonly debitedBefore: bigint
  readonly at: number
}
