/** Turns an ended call into its record, its ledger entry and its debit: in one transaction, and once. */
import {
  callJournal,
  JOURNAL_WAIT_MS,
  type JournalEntry,
  type OpenCall,
  type Tariff,
} from '../../../schema/call-journal.ts'
import { type CallRecord, insertCallRecord } from '../../../schema/call-record.ts'
import type { GroupCommit } from '../../../schema/group-commit.ts'
import type { Store } from '../../../schema/open.ts'
import { SignOfLife } from '../../../schema/storage/sign-of-life.ts'
import type { Ledger, Posting } from '../ledger/ledger.ts'
import type { MoneySums } from '../ledger/money-sums.ts'
import type { AccountingEvents } from '../accounting-events.ts'
import type { Charge } from './charge.ts'
import type { Reservations } from '../authorization/reservations.ts'

interface SettlementDeps {
  readonly store: Store
  readonly ledger: Ledger
  readonly group: GroupCommit
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
  readonly #insert: ReturnType<typeof insertCallRecord>
  readonly #journal: ReturnType<typeof callJournal>
  readonly #signOfLife: SignOfLife

  constructor(deps: SettlementDeps) {
    this.#deps = deps
    this.#insert = insertCallRecord(deps.store)
    this.#journal = callJournal(deps.store)
    this.#signOfLife = new SignOfLife(deps.group, this.#journal)
  }

  /** Stores a call; resolves when it is durable. A call that is already stored changes nothing. */
  settle(record: CallRecord, charge: Charge): Promise<void> {
    return this.queue(record, charge, () => ({
      answer: undefined,
      posting: this.#write(record, charge),
    }))
  }

  /**
   * Queues the statements of one ended call; memory follows when they are committed. Rejects only when
   * the database can never store this record.
   */
  queue<T>(record: CallRecord, charge: Charge, run: () => Written<T>): Promise<T> {
    const { group, reservations } = this.#deps
    const { callUuid } = record
    reservations.end(callUuid, charge.costMicros)
    return new Promise((resolve, reject) => {
      group.add({
        content: record,
        run,
        done: ({ answer, posting }) => {
          this.#apply(callUuid, charge, posting)
          resolve(answer)
        },
        refused: (error) => {
          reservations.release(callUuid)
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
    })
  }

  #write(record: CallRecord, charge: Charge): Posting | undefined {
    return this.store(record, charge) ? this.debit(record.callUuid, charge) : undefined
  }

  /** Stores the record, inside the open transaction. False: the call has one already. */
  store(record: CallRecord, charge: Charge): boolean {
    const { tariff, costMicros } = charge
    this.#journal.close(record.callUuid)
    const currency = tariff?.currency ?? record.currency
    const isFirst = this.#insert(record, { costMicros, currency })
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
      this.#deps.sums.add('debit', tariff?.currency ?? payer.terms.currency ?? '', costMicros)
      payer.balanceMicros = posting.balanceMicros
      payer.addSpending(costMicros, this.#deps.now())
    }
    this.#deps.reservations.release(callUuid)
  }

  /** Stores an answered call. Once this resolves with true, no crash can lose the call; false: it is not stored. */
  open(call: OpenCall, tariff: Tariff | null): Promise<boolean> {
    const answeredMs = this.#deps.now()
    return this.#deps.group.written(() => {
      this.#journal.open(call, tariff, answeredMs)
      this.#deps.events.answered(call)
    }, JOURNAL_WAIT_MS)
  }

  alive(callUuids: readonly string[], now: number): void {
    this.#signOfLife.tell(callUuids, now)
  }

  /** The calls that the last run left open. */
  leftOpen(): JournalEntry[] {
    return this.#journal.entries()
  }
}
