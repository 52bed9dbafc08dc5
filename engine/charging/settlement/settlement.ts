/** An ended call becomes a record, a debit and a ledger entry: in one transaction, and once. */
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
import type { BillingEvents } from '../accounting-events.ts'
import type { Charge } from './charge.ts'
import type { Reservations } from '../authorization/reservations.ts'

interface SettlementDeps {
  readonly store: Store
  readonly ledger: Ledger
  readonly group: GroupCommit
  readonly reservations: Reservations
  readonly sums: MoneySums
  readonly events: BillingEvents
  /** Milliseconds by the steady clock: for windows and days. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
}

/** What the statements of one call did; no posting: nothing was taken. */
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

  /** Stores the call; resolves when it is durable. A call that is stored already changes nothing. */
  settle(record: CallRecord, charge: Charge): Promise<void> {
    return this.queue(record, charge, () => ({
      answer: undefined,
      posting: this.#write(record, charge),
    }))
  }

  /**
   * Queues the statements of one ended call, and lets memory follow when they are committed.
   * Rejects only when the database refuses this very record for ever.
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

  /** False: the call has a record already. Runs inside a transaction of the caller. */
  store(record: CallRecord, charge: Charge): boolean {
    const { tariff, costMicros } = charge
    this.#journal.close(record.callUuid)
    const currency = tariff?.currency ?? record.currency
    const isFirst = this.#insert(record, { costMicros, currency })
    if (isFirst) this.#deps.events.ended(record, charge)
    return isFirst
  }

  /** Takes the cost from the wallet, once per call. Runs inside a transaction of the caller. */
  debit(callUuid: string, charge: Charge): Posting | undefined {
    const posting = this.#post(callUuid, charge)
    const { account, isOutOfFunds } = charge
    if (isOutOfFunds && account !== undefined && posting?.kind !== 'duplicate') {
      const balanceMicros = this.#deps.ledger.balance(account.terms.walletId) ?? 0n
      this.#deps.events.depleted(account.terms, balanceMicros)
    }
    return posting
  }

  #post(callUuid: string, { account, costMicros }: Charge): Posting | undefined {
    const walletId = account?.terms.walletId ?? null
    if (account === undefined || walletId === null || costMicros === 0) return undefined
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
        account.terms,
        balanceMicros + BigInt(costMicros),
        balanceMicros,
      )
    }
    return posting
  }

  /** After the commit, and only then, memory follows the database. */
  #apply(callUuid: string, charge: Charge, posting: Posting | undefined): void {
    const { account, tariff, costMicros } = charge
    if (posting?.kind === 'posted' && account !== undefined) {
      this.#deps.sums.add('debit', tariff?.currency ?? account.terms.currency ?? '', costMicros)
      account.balanceMicros = posting.balanceMicros
      account.addSpending(costMicros, this.#deps.now())
    }
    this.#deps.reservations.release(callUuid)
  }

  /** The call is answered: once this resolves with true, no crash can lose it. False: it is not stored. */
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

  /** What the last run left open. */
  leftOpen(): JournalEntry[] {
    return this.#journal.entries()
  }
}
