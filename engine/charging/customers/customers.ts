/** All customers in memory: the payer of a call is found by id, calling number or extension. */
import type { Store } from '../../../schema/open.ts'
import { Customer } from './customer.ts'
import {
  extensionKey,
  loadCustomers,
  loadExtensions,
  loadNumbers,
  spendingReader,
  type StoredCustomer,
} from './load-customers.ts'

/** One tenant, several, or (null) all. */
type Tenants = number | readonly number[] | null

/** Whether `tenantId` (null: the platform) is one of `tenants`. */
export const isAmong = (tenantId: number | null, tenants: Tenants): boolean =>
  tenants === null ||
  (typeof tenants === 'number' ? [tenants] : tenants).some((id) => id === tenantId)

export class Customers {
  readonly #store: Store
  readonly #readSpending: (walletId: number, now: number) => bigint
  readonly #customers = new Map<number, Customer>()
  #numbers = new Map<string, number>()
  #extensions = new Map<string, number>()

  constructor(store: Store, now: number) {
    this.#store = store
    this.#readSpending = spendingReader(store)
    this.reload(now)
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
  differencesFrom(stored: Customers): string[] {
    return [...stored.all()].flatMap(({ terms: { customerId }, balanceMicros }) => {
      const inMemory = this.byId(customerId)?.balanceMicros
      return inMemory === balanceMicros
        ? []
        : [`customer ${customerId} has ${balanceMicros} micro-units, memory says ${inMemory}`]
    })
  }

  /** Takes over what is stored now. Reservations and counts of live calls stay. */
  reload(now: number): void {
    this.#numbers = loadNumbers(this.#store)
    this.#extensions = loadExtensions(this.#store)
    const gone = new Set(this.#customers.keys())
    for (const customer of loadCustomers(this.#store)) {
      gone.delete(customer.terms.customerId)
      this.#take(customer, now)
    }
    for (const customerId of gone) this.#forget(customerId)
  }

  /** Live calls still refer to the customer, so it turns inactive. */
  #forget(customerId: number): void {
    const customer = this.#customers.get(customerId)
    if (customer !== undefined) customer.terms = { ...customer.terms, isActive: false }
    this.#customers.delete(customerId)
  }

  #take({ terms, balanceMicros }: StoredCustomer, now: number): void {
    const known = this.#customers.get(terms.customerId)
    const customer = known ?? new Customer(terms, balanceMicros)
    const isNewlyLimited =
      terms.maxDailySpendMicros > 0 &&
      (known === undefined || known.terms.maxDailySpendMicros === 0)
    customer.terms = terms
    customer.balanceMicros = balanceMicros
    if (isNewlyLimited && terms.walletId !== null)
      customer.setSpending(this.#readSpending(terms.walletId, now), now)
    this.#customers.set(terms.customerId, customer)
  }
}
