/** Top-ups, adjustments and refunds. `CallWriter` debits calls. */
import { MAX_SUM_MICROS } from '../../../schema/columns.ts'
import type { LedgerEntry, MoneyMove, MoneyMoveResult } from '../../../schema/contracts/charging.ts'
import type { EventSink, OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { first, lockedTransaction } from '../../../schema/sql/query.ts'
import { isDepletion, type AccountingEvents } from '../accounting-events.ts'
import type { Customer } from '../customers/customer.ts'
import type { Customers } from '../customers/customers.ts'
import type { InstanceShares } from '../../shares/instance-shares.ts'
import type { Ledger, LockedWallet } from './ledger.ts'
import type { DuplicatePosting, MoneySums } from './posting.ts'

interface MoneyMovesDeps {
  readonly store: Store
  readonly ledger: Ledger
  readonly customers: Customers
  readonly sums: MoneySums
  readonly events: AccountingEvents
  readonly sink?: EventSink | undefined
  /** Present where other processes spend from the same wallets. */
  readonly money?: InstanceShares | undefined
  /** Milliseconds UTC. */
  readonly wallNow: () => number
}

interface Wallet {
  readonly id: number
  readonly currency: string
}

export class MoneyMoves {
  readonly #deps: MoneyMovesDeps

  constructor(deps: MoneyMovesDeps) {
    this.#deps = deps
  }

  /**
   * Moves money, in the transaction of the caller or in one of its own. Memory follows its commit.
   * Creates the wallet of a customer that has none.
   */
  async move(move: MoneyMove): Promise<MoneyMoveResult> {
    if (move.amountMicros === 0 || (move.amountMicros < 0 && move.kind !== 'adjust'))
      throw new RangeError(`a ${move.kind} of ${move.amountMicros} micro-units`)
    const customer = this.#deps.customers.byId(move.customerId)
    if (customer === undefined) return { kind: 'unknown_customer' }
    return move.amountMicros < 0 && move.mayBeOwed !== true
      ? this.#deduct(move, customer)
      : this.#write(move, customer)
  }

  /**
   * Deducts money, which no call is promised meanwhile.
   *
   * @throws {DatabaseUnavailable} whether the wallet has it is not known.
   */
  async #deduct(move: MoneyMove, customer: Customer): Promise<MoneyMoveResult> {
    const earlier = await this.#deps.ledger.find(move.kind, move.ref)
    if (earlier !== undefined) return answerAgain(move, customer.terms.walletId, earlier)
    const amountMicros = BigInt(-move.amountMicros)
    const isShort = amountMicros > customer.spendableMicros
    const hold = isShort ? await customer.money?.obtainAmount(-move.amountMicros) : undefined
    hold?.end()
    const { spendableMicros } = customer
    if (amountMicros > spendableMicros && hold?.isKnown === false)
      throw new DatabaseUnavailable('the database server does not say what the wallet has')
    if (amountMicros > spendableMicros)
      return {
        kind: 'insufficient_funds',
        availableMicros: spendableMicros > 0n ? spendableMicros : 0n,
      }
    customer.reservedMicros += amountMicros
    try {
      return await this.#write(move, customer)
    } finally {
      customer.reservedMicros -= amountMicros
    }
  }

  /** Its statements may run several times: they change no memory. */
  #write(move: MoneyMove, customer: Customer): Promise<MoneyMoveResult> {
    const { store, ledger } = this.#deps
    return lockedTransaction(store, async () => {
      const { walletId, currency } = customer.terms
      const opened = walletId === null ? await this.#createWallet(customer) : undefined
      const wallet = await ledger.lock(opened?.id ?? walletId ?? 0)
      if (wallet === undefined) return { kind: 'unknown_customer' }
      const earlier = await ledger.find(move.kind, move.ref)
      if (earlier !== undefined) return answerAgain(move, wallet.id, earlier)
      if (wallet.balanceMicros + BigInt(move.amountMicros) > MAX_SUM_MICROS)
        return { kind: 'balance_out_of_range' }
      return this.#post(
        move,
        wallet,
        customer,
        opened ?? { id: wallet.id, currency: currency ?? '' },
      )
    })
  }

  /** Writes the entry and its events. */
  async #post(
    move: MoneyMove,
    wallet: LockedWallet,
    customer: Customer,
    { id, currency }: Wallet,
  ): Promise<MoneyMoveResult> {
    const { store, ledger, sums, sink, wallNow } = this.#deps
    const { kind, amountMicros, ref, actor, note } = move
    const entry: LedgerEntry = { walletId: id, kind, amountMicros, ref, actor, note, at: wallNow() }
    const posting = await ledger.add(wallet, entry)
    if (posting.kind === 'unknown_wallet') return { kind: 'unknown_customer' }
    if (posting.kind === 'duplicate') return answerAgain(move, id, posting)
    const isOwed = amountMicros < 0 && move.mayBeOwed === true
    if (amountMicros < 0 && !isOwed) await this.#deps.money?.spend(String(id), -amountMicros)
    const events = await this.#eventsOf(move, wallet, customer, posting.balanceMicros)
    if (events.length > 0) await sink?.writeAll(events)
    store.statements.afterCommit(() => {
      if (customer.terms.walletId === null) customer.opened(id, currency)
      customer.posted(posting.balanceMicros, posting.entryId)
      sums.add(move, { currency })
      // Other instances give back what they do not use.
      if (isOwed) this.#deps.money?.settled([], [String(id)])
    })
    return { kind: 'moved', balanceMicros: posting.balanceMicros }
  }

  async #eventsOf(
    move: MoneyMove,
    wallet: LockedWallet,
    { terms }: Customer,
    afterMicros: bigint,
  ): Promise<readonly OutgoingEvent[]> {
    const { events, ledger } = this.#deps
    const { balanceMicros: beforeMicros } = wallet
    const reported = [
      events.moved(terms, move, afterMicros),
      events.lowBalance(terms, beforeMicros, afterMicros),
    ]
    if (isDepletion(terms, beforeMicros, afterMicros) && !wallet.isDepleted) {
      await ledger.deplete(wallet)
      reported.push(events.depleted(terms, afterMicros))
    }
    return reported.filter((event) => event !== undefined)
  }

  /** The wallet has the currency of the rate plan. Another move may have created it. */
  async #createWallet({ terms: { customerId } }: Customer): Promise<Wallet> {
    const { store, wallNow } = this.#deps
    const { db } = store
    const plan = await first(
      store,
      db
        .selectFrom('customer')
        .innerJoin('rate_plan', 'rate_plan.id', 'customer.rate_plan_id')
        .select('rate_plan.currency')
        .where('customer.id', '=', customerId),
    )
    const row = {
      customer_id: customerId,
      currency: plan?.currency ?? 'USD',
      updated_at: wallNow(),
    }
    const wallet = db
      .insertInto('wallet')
      .values(row)
      .onConflict((conflict) =>
        conflict.column('customer_id').doUpdateSet({ customer_id: customerId }),
      )
      .returning(['id', 'currency'])
    const made = await first(store, wallet)
    if (made === undefined) throw new Error('an INSERT returned no row')
    return made
  }
}

function answerAgain(
  move: MoneyMove,
  walletId: number | null,
  earlier: DuplicatePosting,
): MoneyMoveResult {
  const { amountMicros, balanceMicros } = earlier
  const isSame = earlier.walletId === walletId && amountMicros === move.amountMicros
  return { kind: 'duplicate', amountMicros, balanceMicros, isSame }
}
