/** Who pays for a call: all customers in memory, found by id, calling number or extension. */
import type { Store } from '../../../schema/open.ts'
import { Account } from './customer.ts'
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

/** Whether what belongs to `tenantId` (null: to the platform) belongs to one of `tenants`. */
export const isAmong = (tenantId: number | null, tenants: Tenants): boolean =>
  tenants === null ||
  (typeof tenants === 'number' ? [tenants] : tenants).some((id) => id === tenantId)

export class Customers {
  readonly #store: Store
  readonly #readSpending: (walletId: number, now: number) => bigint
  readonly #accounts = new Map<number, Account>()
  #numbers = new Map<string, number>()
  #extensions = new Map<string, number>()

  constructor(store: Store, now: number) {
    this.#store = store
    this.#readSpending = spendingReader(store)
    this.reload(now)
  }

  /**
   * Whose number it is (with or without `+`), or else whose extension; `tenants`: the extension of
   * one of them. The customer may belong to another tenant all the same.
   */
  byNumber(caller: string, tenants: Tenants = null): Account | undefined {
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

  byId(customerId: number | null | undefined): Account | undefined {
    return customerId === null || customerId === undefined
      ? undefined
      : this.#accounts.get(customerId)
  }

  all(): IterableIterator<Account> {
    return this.#accounts.values()
  }

  /** Takes over what is stored now. Reservations and counters of live calls stay. */
  reload(now: number): void {
    this.#numbers = loadNumbers(this.#store)
    this.#extensions = loadExtensions(this.#store)
    const gone = new Set(this.#accounts.keys())
    for (const customer of loadCustomers(this.#store)) {
      gone.delete(customer.terms.customerId)
      this.#take(customer, now)
    }
    for (const customerId of gone) this.#forget(customerId)
  }

  /** A live call of his still holds the account. */
  #forget(customerId: number): void {
    const account = this.#accounts.get(customerId)
    if (account !== undefined) account.terms = { ...account.terms, isActive: false }
    this.#accounts.delete(customerId)
  }

  #take({ terms, balanceMicros }: StoredCustomer, now: number): void {
    const known = this.#accounts.get(terms.customerId)
    const account = known ?? new Account(terms, balanceMicros)
    const isNewlyLimited =
      terms.maxDailySpendMicros > 0 &&
      (known === undefined || known.terms.maxDailySpendMicros === 0)
    account.terms = terms
    account.balanceMicros = balanceMicros
    if (isNewlyLimited && terms.walletId !== null)
      account.setSpending(this.#readSpending(terms.walletId, now), now)
    this.#accounts.set(terms.customerId, account)
  }
}
