/** Top-ups, adjustments and refunds. Calls are debited by `settlement/`. */
import { MAX_SUM_MICROS } from '../../../schema/columns.ts'
import type { MoneyMove, MoneyMoved } from '../../../schema/contracts/ocs.ts'
import { first, insert, transaction } from '../../../schema/sql/sync-query.ts'
import type { Store } from '../../../schema/open.ts'
import type { AccountingEvents } from '../accounting-events.ts'
import type { Customer } from '../customers/customer.ts'
import type { Customers } from '../customers/customers.ts'
import type { Ledger, Posting } from './ledger.ts'

interface MoneyMovesDeps {
  readonly store: Store
  readonly ledger: Ledger
  readonly customers: Customers
  readonly events: AccountingEvents
}

export class MoneyMoves {
  readonly #store: Store
  readonly #customers: Customers
  readonly #ledger: Ledger
  readonly #events: AccountingEvents

  constructor({ store, ledger, customers, events }: MoneyMovesDeps) {
    this.#store = store
    this.#customers = customers
    this.#ledger = ledger
    this.#events = events
  }

  /** Moves money, durably when the transaction around it is. Creates the wallet of a customer that has none. */
  move(move: MoneyMove, now: number): MoneyMoved {
    if (move.amountMicros === 0 || (move.amountMicros < 0 && move.kind !== 'adjust'))
      throw new RangeError(`a ${move.kind} of ${move.amountMicros} micro-units`)
    const customer = this.#customers.byId(move.customerId)
    if (customer === undefined) return { kind: 'unknown_customer' }
    const walletId = customer.terms.walletId ?? this.#createWallet(customer, now)
    const earlier = this.#ledger.find(move.kind, move.ref)
    const refusal = earlier ? undefined : refusalOf(move, customer)
    if (refusal !== undefined) return refusal
    const posting = earlier ?? this.#post(move, walletId, customer, now)
    switch (posting.kind) {
      case 'posted':
        customer.posted(posting.balanceMicros)
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

  /** Writes the entry and its event, or neither. */
  #post(move: MoneyMove, walletId: number, customer: Customer, now: number): Posting {
    return transaction(this.#store, () => {
      const posting = this.#ledger.post({ ...move, walletId, at: now })
      if (posting.kind === 'posted') this.#events.moved(customer.terms, move, posting.balanceMicros)
      return posting
    })
  }

  /** In the currency of the customer's rate plan. */
  #createWallet(customer: Customer, now: number): number {
    const { db } = this.#store
    const { customerId } = customer.terms
    const wallet = transaction(this.#store, () => {
      const plan = first(
        this.#store,
        db
          .selectFrom('customer')
          .innerJoin('rate_plan', 'rate_plan.id', 'customer.rate_plan_id')
          .select('rate_plan.currency')
          .where('customer.id', '=', customerId),
      )
      const currency = plan?.currency ?? 'USD'
      const row = { customer_id: customerId, currency, updated_at: now }
      return { id: insert(this.#store, db.insertInto('wallet').values(row)), currency }
    })
    customer.opened(wallet.id, wallet.currency)
    return wallet.id
  }
}

function refusalOf(
  { amountMicros }: MoneyMove,
  { availableMicros, balanceMicros }: Customer,
): MoneyMoved | undefined {
  if (amountMicros < 0 && BigInt(-amountMicros) > availableMicros)
    return {
      kind: 'insufficient_funds',
      availableMicros: availableMicros > 0n ? availableMicros : 0n,
    }
  return balanceMicros + BigInt(amountMicros) > MAX_SUM_MICROS
    ? { kind: 'balance_out_of_range' }
    : undefined
}
