/** Turns an ended call into its record, its ledger entry and its debit: in one transaction, and once. */
import type { EndTerms, OpenCall, SavedState, Tariff } from '../../../schema/call-journal.ts'
import type { CallRecord } from '../../../schema/call-record.ts'
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { AccountingEvents } from '../accounting-events.ts'
import type { Reservations } from '../authorization/reservations.ts'
import type { CallRecords, Statements } from '../call-records.ts'
import type { Ledger, Posting } from '../ledger/ledger.ts'
import type { MoneySums } from '../ledger/money-sums.ts'
import type { Charge } from './charge.ts'

interface SettlementDeps {
  readonly records: CallRecords
  readonly ledger: Ledger
  readonly reservations: Reservations
  readonly sums: MoneySums
  readonly events: AccountingEvents
  /** Milliseconds by the steady clock: for days and answers. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
}

/** What the statements of one call did; no posting: nothing was debited. */
export interface Written<T> {
  readonly answer: T
  readonly posting: Posting | undefined
}

export class Settlement {
  readonly #deps: SettlementDeps

  constructor(deps: SettlementDeps) {
    this.#deps = deps
  }

  /** Stores a call; resolves when it is durable. A call that is already stored changes nothing. */
  settle(record: CallRecord, charge: Charge, safe?: () => void, quality?: Quality): Promise<void> {
    const run = (whole: CallRecord) => ({ answer: undefined, posting: this.#write(whole, charge) })
    return this.#queue(record, charge, termsOf(charge), { run, safe, quality })
  }

  /**
   * Queues the statements of one ended call; memory follows when they are committed. Rejects only when
   * the database can never store this record.
   */
  queue<T>(record: CallRecord, charge: Charge, run: () => Written<T>): Promise<T> {
    return this.#queue(record, charge, undefined, { run })
  }

  #queue<T>(
    record: CallRecord,
    charge: Charge,
    terms: EndTerms | undefined,
    statements: Pick<Statements<Written<T>, T>, 'run' | 'safe' | 'quality'>,
  ): Promise<T> {
    const { records, reservations } = this.#deps
    const { callUuid } = record
    reservations.end(callUuid, charge.costMicros)
    const committed = ({ answer, posting }: Written<T>): T => {
      this.#apply(callUuid, charge, posting)
      return answer
    }
    const refused = (): void => reservations.release(callUuid)
    return records.queue(record, terms, { ...statements, committed, refused })
  }

  #write(record: CallRecord, charge: Charge): Posting | undefined {
    return this.store(record, charge) ? this.debit(record.callUuid, charge) : undefined
  }

  /** Stores the record, inside the open transaction. False: the call has one already. */
  store(record: CallRecord, charge: Charge): boolean {
    const { tariff, costMicros } = charge
    const currency = tariff?.currency ?? record.currency
    const isFirst = this.#deps.records.insert(record, { costMicros, currency })
    if (isFirst) this.#deps.events.ended(record, charge)
    return isFirst
  }

  /** Debits the wallet, once per call, inside the open transaction. */
  debit(callUuid: string, charge: Charge): Posting | undefined {
    const posting = this.#post(callUuid, charge)
    const { payer, isOutOfFunds } = charge
    if (isOutOfFunds && payer !== undefined && posting?.kind !== 'duplicate') {
      const balanceMicros = this.#deps.ledger.balance(payer.terms.walletId) ?? 0n
      this.#deps.events.depleted(payer.terms, balanceMicros)
    }
    return posting
  }

  #post(callUuid: string, { payer, costMicros }: Charge): Posting | undefined {
    const walletId = payer?.terms.walletId ?? null
    if (payer === undefined || walletId === null || costMicros === 0) return undefined
    const posting = this.#deps.ledger.post({
      walletId,
      kind: 'debit',
      amountMicros: -costMicros,
      ref: callUuid,
      actor: 'ocs',
      note: null,
      at: this.#deps.wallNow(),
    })
    if (posting.kind === 'posted') {
      const { balanceMicros } = posting
      this.#deps.events.balanceChanged(
        payer.terms,
        balanceMicros + BigInt(costMicros),
        balanceMicros,
      )
    }
    return posting
  }

  /** Memory follows the database after the commit, never before. */
  #apply(callUuid: string, charge: Charge, posting: Posting | undefined): void {
    const { payer, tariff, costMicros } = charge
    if (posting?.kind === 'posted' && payer !== undefined) {
      this.#deps.sums.add({ kind: 'debit', amountMicros: -costMicros }, tariff ?? payer.terms)
      payer.posted(posting.balanceMicros)
      payer.addSpending(costMicros, this.#deps.now())
    }
    this.#deps.reservations.release(callUuid)
  }

  /** Stores an answered call and its event; see `CallRecords.answered`. */
  answered(call: OpenCall, tariff: Tariff | null, state?: SavedState): Promise<boolean> {
    const { records, events, now } = this.#deps
    return records.answered(call, tariff, now(), state, events.answered(call))
  }
}

/** What the journal has to know of a charge. */
const termsOf = ({ payer, tariff, costMicros }: Charge): EndTerms => ({
  payerId: payer?.terms.customerId ?? null,
  tariff,
  costMicros,
  isReported: false,
})
