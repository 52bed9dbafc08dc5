/** Money that people and payments move: top-ups, adjustments, refunds. Calls are debited by settlement. */
import { first, insert, transaction } from '../../../schema/query.ts'
import type { Store } from '../../../schema/open.ts'
import type { Customers } from './customers.ts'
import type { Ledger } from './ledger.ts'
import type { MoneySums } from './money-sums.ts'

export interface MoneyMove {
  readonly customerId: number
  readonly kind: 'topup' | 'adjust' | 'refund'
  /** Added to the balance. Only an adjustment may be negative; never 0. */
  readonly amountMicros: number
  /** Unique per kind: repeating a move changes nothing. */
  readonly ref: string
  /** `key:<uuid>`, `user:<name>`, `payment`. */
  readonly actor: string
  readonly note: string | null
}

export type MoneyMoved =
  | { readonly kind: 'moved'; readonly balanceMicros: number }
  /** The kind and reference were used before: the numbers of that move. */
  | {
      readonly kind: 'duplicate'
      readonly amountMicros: number
      readonly balanceMicros: number
      /** The earlier move was of the same customer and amount. */
      readonly isSame: boolean
    }
  | { readonly kind: 'unknown_customer' }
  /** A deduction beyond what is available: the rest is owed for calls, or promised to live ones. */
  | { readonly kind: 'insufficient_funds'; readonly availableMicros: number }

export class MoneyMoves {
  readonly #store: Store
  readonly #customers: Customers
  readonly #ledger: Ledger
  readonly #sums: MoneySums

  constructor(store: Store, ledger: Ledger, customers: Customers, sums: MoneySums) {
    this.#store = store
    this.#customers = customers
    this.#ledger = ledger
    this.#sums = sums
  }

  /** Durable, and in memory, when it returns. Creates the wallet of a customer that has none. */
  move(move: MoneyMove, now: number): MoneyMoved {
    if (move.amountMicros === 0 || (move.amountMicros < 0 && move.kind !== 'adjust'))
      throw new RangeError(`a ${move.kind} of ${move.amountMicros} micro-units`)
    const account = this.#customers.byId(move.customerId)
    if (account === undefined) return { kind: 'unknown_customer' }
    const walletId = account.terms.walletId ?? this.#createWallet(move.customerId, now)
    const earlier = this.#ledger.find(move.kind, move.ref)
    if (
      earlier === undefined &&
      move.amountMicros < 0 &&
      -move.amountMicros > account.availableMicros
    )
      return { kind: 'insufficient_funds', availableMicros: account.availableMicros }
    const posting = earlier ?? this.#ledger.post({ ...move, walletId, at: now })
    switch (posting.kind) {
      case 'posted':
        account.balanceMicros = posting.balanceMicros
        this.#sums.add(move.kind, account.terms.currency ?? '', move.amountMicros)
        return { kind: 'moved', balanceMicros: posting.balanceMicros }
      case 'duplicate':
        return {
          kind: 'duplicate',
          amountMicros: posting.amountMicros,
          balanceMicros: posting.balanceMicros,
          isSame: posting.walletId === walletId && posting.amountMicros === move.amountMicros,
        }
      case 'unknown_wallet':
        return { kind: 'unknown_customer' }
    }
  }

  /** In the currency of the customer's rate plan. */
  #createWallet(customerId: number, now: number): number {
    const { db } = this.#store
    const walletId = transaction(this.#store, () => {
      const plan = first(
        this.#store,
        db
          .selectFrom('customer')
          .innerJoin('rate_plan', 'rate_plan.id', 'customer.rate_plan_id')
          .select('rate_plan.currency')
          .where('customer.id', '=', customerId),
      )
      const wallet = { customer_id: customerId, currency: plan?.currency ?? 'USD', updated_at: now }
      return insert(this.#store, db.insertInto('wallet').values(wallet))
    })
    this.#customers.reload(now)
    return walletId
  }
}
