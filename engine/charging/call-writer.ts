/**
 * Stores ended calls, each once, whatever is repeated. The journal has the end of a call first;
 * then a batch stores its record, its debit, its report and its events in one transaction.
 *
 * A batch is safe to repeat, also when the answer to a COMMIT is lost: a record has a unique call
 * uuid, a debit a unique reference, and a call that has a record is not charged again. It changes
 * no memory.
 */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Quality, ReportAnswer } from '../../schema/contracts/charging.ts'
import type { EventSink, OutgoingEvent } from '../../schema/contracts/engine.ts'
import type { CallQuality } from '../../schema/contracts/field-values.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import type { EndTerms } from '../../schema/journal/journal-entries.ts'
import { toColumns } from '../../schema/records/stored-record.ts'
import type { JsonRow } from '../../schema/sql/statements.ts'
import type { Store } from '../../schema/storage/store.ts'
import {
  type LockableRows,
  type QueuedWrite,
  WriteQueue,
} from '../../schema/storage/write-queue.ts'
import type { SpentShare } from '../shares/instance-shares.ts'
import type { ShareOwner } from '../shares/share-rows.ts'
import { type AccountingEvents, isDepletion } from './accounting-events.ts'
import { startOfDay } from './customers/customer.ts'
import { type EndRetention, KeptEnds } from './kept-ends.ts'
import type { Ledger, LockedWallet } from './ledger/ledger.ts'
import type { DuplicatePosting, Posting } from './ledger/posting.ts'
import {
  type AcceptedReport,
  answerAgain,
  answerRecorded,
  firstAnswer,
  reportRow,
} from './settlement/node-reports.ts'
import type { SettledCall } from './settlement/settlement.ts'
import { type ReportRow, settlementStatements } from './settlement/statements.ts'

/** A call after its commit. */
export interface StoredCall {
  /** Absent: nothing was debited. */
  readonly posting?: Posting | undefined
  /** Answer to a node's report. */
  readonly answer?: ReportAnswer | undefined
}

/** Handlers of the end of one call. */
export interface Following {
  /** Follows its commit at once. */
  readonly committed: (stored: StoredCall) => void
  readonly refused?: () => void
  /** No crash can lose the end, or the journal could not be written in time; called once. */
  readonly safe?: (() => void) | undefined
  /** The database waits for it, not the journal. A report of a node has none. */
  readonly quality?: Quality | undefined
}

export interface CallWriterDeps {
  readonly store: Store
  readonly journal: CallJournal
  readonly ledger: Ledger
  /** Present where another server may take over without what this one has committed last. */
  readonly keeping?: EndRetention | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  readonly events: AccountingEvents
  /** Absent: no event is written. */
  readonly sink?: EventSink | undefined
  /**
   * Calls are paid from what this process holds of wallets. Absent: no other process draws from
   * them.
   */
  readonly owner?: ShareOwner | undefined
  /**
   * Takes what a commit has spent of the shares of this process, and the wallets that have paid
   * more than was held for it.
   */
  readonly onSettled?: (spent: readonly SpentShare[], beyond: readonly string[]) => void
  /** Nothing is lost meanwhile. */
  readonly onFailure: (error: unknown, waiting: number) => void
  /**
   * Records wait for these wallets, which another transaction has locked; none: they wait no more.
   */
  readonly onLockedWallets?: (ids: readonly number[]) => void
  /**
   * Events of calls are lost. Called for the first of an outage, and for those that wait when the
   * process ends.
   */
  readonly onLostEvents?: (count: number) => void
}

/** The journal has the calls that wait, so that they are written in few, large batches. */
const RECORD_WAIT_MS = 100
/** About two milliseconds of the event loop on a file. A server gets more at once. */
const CALLS_ON_FILE = 20
/**
 * The newest of more events are dropped: they tell of calls that go on, and of calls that were
 * refused.
 */
const MAX_EVENTS = 20_000
/** New calls are refused while more writes than this wait for the database. */
const MAX_WAITING_WRITES = 10_000

interface QueuedCall extends QueuedWrite<StoredCall> {
  readonly call: SettledCall
}

interface QueuedEvent extends QueuedWrite<undefined> {
  readonly event: OutgoingEvent
}

/** A call of the batch, with its results. */
interface BatchCall {
  readonly call: SettledCall
  readonly callUuid: string
  posting?: Posting | undefined
  answer?: ReportAnswer | undefined
}

/** A locked wallet, as the calls of the batch change it. */
interface PayingWallet extends LockedWallet {
  balanceMicros: bigint
  isDepleted: boolean
  costMicros: number
  /** The part of the cost that was held for it. */
  heldMicros: number
}

export class CallWriter {
  readonly kept: KeptEnds
  readonly #deps: CallWriterDeps
  readonly #journal: CallJournal
  readonly #statements: ReturnType<typeof settlementStatements>
  readonly #calls: WriteQueue<QueuedCall, StoredCall>
  readonly #events: WriteQueue<QueuedEvent, undefined>
  /** Each queues a record that waits for its quality. */
  readonly #unmeasured = new Set<(quality?: CallQuality) => void>()
  #lostEvents = 0
  #isLosing = false

  constructor(deps: CallWriterDeps) {
    const { store, journal, keeping, sink } = deps
    this.#deps = deps
    this.#journal = journal
    this.#statements = settlementStatements(store)
    const recorded = (callUuids: readonly string[]) => this.recorded(callUuids)
    this.kept = new KeptEnds({ journal, retention: keeping, recorded })
    const groupRows = store.statements.isShared ? undefined : CALLS_ON_FILE
    this.#calls = new WriteQueue({
      ...deps,
      maxWaiting: Infinity,
      groupRows,
      run: (queued) => this.#write(queued.map(({ call }) => call)),
      rows: store.statements.isShared ? this.#payingRows() : undefined,
    })
    this.#events = new WriteQueue({
      ...deps,
      maxWaiting: MAX_EVENTS,
      groupRows,
      run: async (queued) => {
        await sink?.writeAll(queued.map(({ event }) => event))
        return () => queued.map(() => undefined)
      },
    })
  }

  /** The wallets that calls change, which other processes may lock. */
  #payingRows(): LockableRows<QueuedCall> {
    return {
      of: ({ call }) => walletOf(call),
      locked: (ids) => this.#deps.ledger.lockedElsewhere(ids),
      onChange: this.#deps.onLockedWallets ?? (() => undefined),
    }
  }

  /** Returns which of these calls have a record. */
  async recorded(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#statements.records(callUuids.map(toUuidRow))
    return new Set(rows.map((row) => row.call_uuid))
  }

  /**
   * Stores a call; one that is already stored changes nothing. Rejects only when the database can
   * never store this record. Resolves with what `committed` was given.
   */
  write(call: SettledCall, { committed, refused, safe, quality }: Following): Promise<StoredCall> {
    const { record } = call
    const { callUuid } = record
    const tellSafe = safe && once(safe)
    // A node has the call that it reports until it gets the answer: the journal does not need it.
    const isJournalled = call.report === undefined
    if (isJournalled) this.#journal.ended(record, termsOf(call), tellSafe)
    return new Promise((resolve, reject) => {
      const add = (whole: SettledCall): void => {
        this.#calls.add({
          call: whole,
          key: callUuid,
          waitMs: isJournalled ? RECORD_WAIT_MS : undefined,
          done: (stored) => {
            if (this.kept.areKept && !isJournalled) this.#journal.ended(record, termsOf(call))
            this.kept.stored(callUuid)
            tellSafe?.()
            committed(stored)
            resolve(stored)
          },
          refused: (error) => {
            tellSafe?.()
            refused?.()
            reject(error instanceof Error ? error : new Error(String(error)))
          },
        })
      }
      if (quality === undefined || !isJournalled) add(call)
      else this.#afterQuality(call, quality, add)
    })
  }

  #afterQuality(call: SettledCall, quality: Quality, add: (call: SettledCall) => void): void {
    const addOnce = (known?: CallQuality): void => {
      if (!this.#unmeasured.delete(addOnce)) return
      if (known === undefined) return add(call)
      const record = { ...call.record, quality: known }
      if (this.kept.areKept) this.#journal.ended(record, termsOf(call))
      return add({ ...call, record })
    }
    this.#unmeasured.add(addOnce)
    void quality.then(addOnce)
  }

  /** Writes an event of a call that goes on, soon. */
  announce(event: OutgoingEvent): void {
    this.#events.add({
      event,
      waitMs: RECORD_WAIT_MS,
      done: () => (this.#isLosing = false),
      refused: () => this.#lose(1),
    })
  }

  #lose(count: number): void {
    if (count === 0) return
    if (!this.#isLosing) this.#deps.onLostEvents?.(count)
    this.#isLosing = true
    this.#lostEvents += count
  }

  get isOverloaded(): boolean {
    return this.#calls.waiting + this.#unmeasured.size > MAX_WAITING_WRITES
  }

  /** Stores what waits now. False: it could not be stored, and waits on. */
  async flush(): Promise<boolean> {
    const areStored = await Promise.all([this.#calls.flush(), this.#events.flush()])
    return areStored.every(Boolean)
  }

  /**
   * Stores what waits, for no quality any more; events that cannot be stored are lost. Resolves
   * with the records that neither the database nor the journal has.
   */
  async stop(): Promise<readonly CallRecord[]> {
    for (const addNow of this.#unmeasured) addNow()
    await this.flush()
    this.#isLosing = false
    this.#lose(this.#events.waiting)
    const unstored = this.#calls.unwritten().map(({ call }) => call.record)
    this.kept.stop()
    return unstored.length > 0 && (await this.#journal.written()) ? [] : unstored
  }

  stats() {
    const { waiting, commits, failures } = this.#calls.stats()
    /** `lostEvents`: events that were not stored, and will not be, since the start. */
    return { waiting, commits, failures, lostEvents: this.#lostEvents }
  }

  /** Each call uuid is among `calls` once. Resolves with what is to be called after the commit. */
  async #write(calls: readonly SettledCall[]): Promise<() => readonly StoredCall[]> {
    const all: readonly BatchCall[] = calls.map((call) => ({
      call,
      callUuid: call.record.callUuid,
    }))
    const events: OutgoingEvent[] = []
    await this.#answerAccepted(all)
    const charged = await this.#insertRecords(all.filter(({ answer }) => answer === undefined))
    for (const { call } of charged) {
      const event = this.#deps.events.ended(call.record, call.charge)
      if (event !== undefined) events.push(event)
    }
    await this.#statements.insertOutgoing(this.#outgoingOf(charged))
    const wallets = await this.#lockWallets(calls)
    const late = await this.#reportedAgain(
      all.filter((one) => one.call.report && !charged.includes(one)),
    )
    const spent = await this.#charge([...charged, ...late], wallets, events)
    await this.#insertReports(all, wallets)
    if (events.length > 0) await this.#deps.sink?.writeAll(events)
    const beyond = [...wallets.values()].filter((wallet) => wallet.costMicros > wallet.heldMicros)
    return () => {
      this.#deps.onSettled?.(
        spent,
        beyond.map(({ id }) => String(id)),
      )
      return all
    }
  }

  /** Answers reports that repeat an accepted one. */
  async #answerAccepted(calls: readonly BatchCall[]): Promise<void> {
    const reported = calls.filter(({ call }) => call.report !== undefined)
    const rows = await this.#statements.acceptedReports(reported.map(uuidRowOf))
    const acceptedOf = new Map(rows.map((row) => [row.call_uuid, row]))
    for (const one of reported) {
      const row = acceptedOf.get(one.callUuid)
      if (row !== undefined) one.answer = answerAgain(one.call.record, toAccepted(row))
    }
  }

  /**
   * Returns the calls that had no record: a debit of one cannot come from another process from then
   * on. Inserts in the order of the uuids: two processes that store the same calls do not wait for
   * each other.
   */
  async #insertRecords(calls: readonly BatchCall[]): Promise<readonly BatchCall[]> {
    const rows = calls.map(({ call: { record, charge } }) => {
      const currency = charge.tariff?.currency ?? record.currency
      const { costMicros, tariff } = charge
      return toColumns(record, { costMicros, currency, tariff })
    })
    const sorted = rows.toSorted((a, b) => (a.call_uuid < b.call_uuid ? -1 : 1))
    const inserted = await this.#statements.insertRecords(sorted)
    const isNew = new Set(inserted.map((row) => row.call_uuid))
    return calls.filter(({ callUuid }) => isNew.has(callUuid))
  }

  #outgoingOf(calls: readonly BatchCall[]): readonly JsonRow[] {
    const at = this.#deps.now()
    return calls.flatMap(({ callUuid, call: { outgoing: body } }) =>
      body === undefined ? [] : [{ call_uuid: callUuid, body, attempts: 0, next_attempt_at: at }],
    )
  }

  /** Locks each wallet that a call may have been paid from: what a lost answer changed is seen. */
  async #lockWallets(calls: readonly SettledCall[]): Promise<ReadonlyMap<number, PayingWallet>> {
    const ids = new Set<number>()
    for (const call of calls) {
      const walletId = walletOf(call)
      if (walletId !== undefined) ids.add(walletId)
    }
    const wallets = await this.#deps.ledger.lockAll([...ids])
    return new Map(
      wallets.map((wallet) => [wallet.id, { ...wallet, costMicros: 0, heldMicros: 0 }]),
    )
  }

  /**
   * Answers reports of calls that have a record. Returns those that are not charged yet. Runs after
   * the lock: what another process has charged is seen.
   */
  async #reportedAgain(again: readonly BatchCall[]): Promise<readonly BatchCall[]> {
    const reported = again.filter(({ answer }) => answer === undefined)
    if (reported.length === 0) return []
    await this.#answerAccepted(reported)
    const debits = await this.#debitsOf(reported)
    const records = await this.#statements.records(reported.map(uuidRowOf))
    const recordOf = new Map(records.map((row) => [row.call_uuid, row]))
    for (const one of reported) {
      const stored = recordOf.get(one.callUuid)
      if (stored === undefined) continue
      const debit = debits.get(one.callUuid)
      one.answer ??= answerRecorded(one.call.record, stored, debit)
    }
    return reported.filter(({ answer }) => answer === undefined)
  }

  #debitsOf(calls: readonly BatchCall[]): Promise<ReadonlyMap<string, DuplicatePosting>> {
    const uuids = calls.map(({ callUuid }) => callUuid)
    return this.#deps.ledger.findAll('debit', uuids)
  }

  async #charge(
    calls: readonly BatchCall[],
    wallets: ReadonlyMap<number, PayingWallet>,
    events: OutgoingEvent[],
  ): Promise<readonly SpentShare[]> {
    if (wallets.size === 0) return []
    const at = this.#deps.wallNow()
    // A call without a record may have a debit: retention deletes records.
    const debits = await this.#debitsOf(calls.filter(({ call }) => call.charge.costMicros > 0))
    for (const one of calls) {
      const wallet = wallets.get(one.call.charge.payer?.terms.walletId ?? 0)
      if (wallet === undefined) continue
      one.posting = debits.get(one.callUuid) ?? this.#debit(one, wallet, events)
    }
    await this.#insertEntries(calls, at)
    const changed = [...wallets.values()]
    const spent = await this.#takeFromShares(changed)
    await this.#deps.ledger.change(changed.map((wallet) => this.#rowOf(wallet, at)))
    return spent
  }

  /** Changes the wallet of the batch, not the stored one. */
  #debit(
    { call: { charge } }: BatchCall,
    wallet: PayingWallet,
    events: OutgoingEvent[],
  ): Posting | undefined {
    const { payer, costMicros, isOutOfFunds } = charge
    if (payer === undefined) return undefined
    const { terms } = payer
    const beforeMicros = wallet.balanceMicros
    wallet.balanceMicros -= BigInt(costMicros)
    wallet.costMicros += costMicros
    const { balanceMicros } = wallet
    const low = this.#deps.events.lowBalance(terms, beforeMicros, balanceMicros)
    if (low !== undefined) events.push(low)
    if (!wallet.isDepleted && (isOutOfFunds || isDepletion(terms, beforeMicros, balanceMicros))) {
      wallet.isDepleted = true
      const depleted = this.#deps.events.depleted(terms, balanceMicros)
      if (depleted !== undefined) events.push(depleted)
    }
    return costMicros === 0 ? undefined : { kind: 'posted', balanceMicros, entryId: 0 }
  }

  async #insertEntries(calls: readonly BatchCall[], at: number): Promise<void> {
    const rows = calls.flatMap(({ call: { charge }, callUuid, posting }) =>
      posting?.kind === 'posted'
        ? [
            {
              wallet_id: charge.payer?.terms.walletId ?? null,
              kind: 'debit',
              amount_micros: -charge.costMicros,
              balance_after_micros: String(posting.balanceMicros),
              ref: callUuid,
              actor: 'ocs',
              note: null,
              created_at: at,
            },
          ]
        : [],
    )
    const idOf = await this.#deps.ledger.enter(rows)
    for (const one of calls) {
      const { posting, callUuid } = one
      if (posting?.kind === 'posted') one.posting = { ...posting, entryId: idOf.get(callUuid) ?? 0 }
    }
  }

  /**
   * Takes the cost of calls from the share that promised it; what that lacks, from the wallet
   * alone. The next process of this instance may have taken the share over. Returns what was spent
   * of each share.
   */
  async #takeFromShares(wallets: readonly PayingWallet[]): Promise<readonly SpentShare[]> {
    const { owner } = this.#deps
    if (owner === undefined) return []
    const { shares, changeShares } = this.#statements
    const held = await shares(wallets.map(({ id }) => ({ resource: String(id), node: owner.name })))
    const spent = wallets.flatMap((wallet) => {
      const resource = String(wallet.id)
      const ofWallet = held.filter((share) => share.resource === resource)
      const share = ofWallet.find(({ process }) => process === owner.process) ?? ofWallet[0]
      if (share === undefined) return []
      wallet.heldMicros = Math.min(share.amount, wallet.costMicros)
      const left = { amount: share.amount - wallet.heldMicros, version: share.version + 1 }
      return [{ ...share, ...left, spent: wallet.heldMicros }]
    })
    await changeShares(
      spent.map(({ resource, process, amount, version }) => ({
        resource,
        node: owner.name,
        process,
        amount,
        version,
      })),
    )
    return spent
  }

  #rowOf({ id, balanceMicros, isDepleted, costMicros }: PayingWallet, at: number): JsonRow {
    return {
      id,
      balance_micros: String(balanceMicros),
      is_depleted: isDepleted ? 1 : 0,
      spent_micros: costMicros,
      spent_on: startOfDay(this.#deps.now()),
      updated_at: at,
    }
  }

  async #insertReports(
    calls: readonly BatchCall[],
    wallets: ReadonlyMap<number, PayingWallet>,
  ): Promise<void> {
    const rows: JsonRow[] = []
    for (const one of calls) {
      const { record, report } = one.call
      if (report === undefined) continue
      const { answer: earlier } = one
      const answer = earlier ?? newAnswer(one, wallets)
      one.answer = answer
      if (earlier !== undefined && earlier.kind !== 'conflict') continue
      const row = reportRow(record, answer, report)
      const balance = row.balance_after_micros?.toString() ?? null
      rows.push({ ...row, balance_after_micros: balance })
    }
    await this.#statements.insertReports(rows)
  }
}

/** The terms of a call, as the journal keeps them. */
const termsOf = ({ charge: { payer, tariff, costMicros }, outgoing }: SettledCall): EndTerms => ({
  payerId: payer?.terms.customerId ?? null,
  tariff,
  costMicros,
  isReported: outgoing !== undefined,
})

/** Id of the wallet that the call may have been paid from; undefined: none. */
function walletOf({ charge, report }: SettledCall): number | undefined {
  const isPaid = charge.costMicros > 0 || charge.isOutOfFunds || report !== undefined
  return (isPaid ? charge.payer?.terms.walletId : undefined) ?? undefined
}

const toUuidRow = (callUuid: string) => ({ call_uuid: callUuid })
const uuidRowOf = ({ callUuid }: BatchCall) => toUuidRow(callUuid)

function newAnswer(
  { call: { record, charge }, posting }: BatchCall,
  wallets: ReadonlyMap<number, PayingWallet>,
): ReportAnswer {
  if (posting?.kind === 'duplicate') {
    const answer = answerRecorded(record, record, posting)
    if (answer !== undefined) return answer
  }
  const wallet = wallets.get(charge.payer?.terms.walletId ?? 0)
  const balanceMicros = posting?.kind === 'posted' ? posting.balanceMicros : wallet?.balanceMicros
  return firstAnswer(charge, balanceMicros ?? null)
}

const toAccepted = (row: ReportRow): AcceptedReport => ({
  billsec: row.billsec,
  costMicros: row.cost_micros,
  balanceAfterMicros: row.balance_after === null ? null : BigInt(row.balance_after),
  currency: row.currency,
})

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
