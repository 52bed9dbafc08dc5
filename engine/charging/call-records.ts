/** Calls that must not be lost, for either OCS: the journal until they are stored, then records, written in groups. */
import {
  type EndTerms,
  type BegunCall,
  type CutCall,
  JOURNAL_WAIT_MS,
  type JournalEntry,
  type OpenCall,
  type SavedState,
  type Tariff,
} from '../../schema/call-journal.ts'
import { type CallCost, type CallRecord, insertCallRecord } from '../../schema/call-record.ts'
import { compile, type Param } from '../../schema/sql/compiled.ts'
import type { Quality, SavedEntry } from '../../schema/contracts/charging.ts'
import type { CallQuality } from '../../schema/contracts/media.ts'
import type { GroupCommit } from '../../schema/group-commit.ts'
import { JournalRows } from '../../schema/journal-rows.ts'
import type { Store } from '../../schema/open.ts'
import type { CallJournal } from '../../schema/journal/journal.ts'

/** New calls are refused while more writes than this wait for the database. */
const maxWaitingWrites = 10_000
/** The journal has what waits, so that it is written in few, large groups. */
const RECORD_WAIT_MS = 100

/** The statements of an ended call. */
export interface Statements<T, R> {
  /** `record` has the quality, where it is known. */
  readonly run: (record: CallRecord) => T
  /** Follows their commit at once. */
  readonly committed: (result: T) => R
  readonly refused?: () => void
  /** No crash can lose the end, or the journal could not be written in time; called once. */
  readonly safe?: (() => void) | undefined
  /** The statements wait for it; with `terms` only. */
  readonly quality?: Quality | undefined
}

/** An answered call of the last run that may go on. */
export type SavedCall = CutCall & { readonly state: NonNullable<CutCall['state']> }

interface Left {
  readonly toClose: readonly JournalEntry[]
  readonly saved: readonly SavedEntry[]
}

export class CallRecords {
  readonly #group: GroupCommit
  readonly #insert: ReturnType<typeof insertCallRecord>
  readonly #journal: CallJournal
  readonly #rows: JournalRows
  readonly #isStored: (callUuid: string) => boolean
  /** Each queues a record that waits for its quality. */
  readonly #unmeasured = new Set<(quality?: CallQuality) => void>()
  /** Neither resumed nor abandoned. */
  readonly #saved = new Map<string, SavedCall>()

  constructor(store: Store, group: GroupCommit, journal: CallJournal) {
    this.#group = group
    this.#insert = insertCallRecord(store)
    this.#journal = journal
    this.#rows = new JournalRows(store)
    const find = compile(store, (db, param: Param<{ callUuid: string }>) =>
      db.selectFrom('cdr').select('id').where('call_uuid', '=', param('callUuid')),
    )
    this.#isStored = (callUuid) => find.get({ callUuid }) !== undefined
  }

  get isOverloaded(): boolean {
    return this.#group.waiting + this.#unmeasured.size > maxWaitingWrites
  }

  /** The calls that the last run left open: those to be closed, and those that may go on. */
  leftOpen(nowMs: number): Left {
    const { toClose, saved } = this.#sort(this.#journal.left(), nowMs)
    return { toClose: [...this.#rows.entries(), ...toClose], saved }
  }

  /** The same of a process beside this one that has ended. */
  leftBeside(nowMs: number): Left {
    return this.#sort(this.#journal.takeOver(), nowMs)
  }

  #sort(entries: readonly JournalEntry[], nowMs: number): Left {
    const left = entries.filter(({ callUuid }) => {
      const isStored = this.#isStored(callUuid)
      if (isStored) this.#journal.gone(callUuid)
      return !isStored
    })
    for (const entry of left)
      if (hasState(entry)) this.#saved.set(entry.callUuid, notAhead(entry, nowMs))
    return {
      toClose: left.filter((entry) => !hasState(entry)),
      saved: [...this.#saved.values()].map(savedEntry),
    }
  }

  /** Undefined: the last run left no such call, or it was taken. */
  takeSaved(callUuid: string): SavedCall | undefined {
    const call = this.#saved.get(callUuid)
    this.#saved.delete(callUuid)
    return call
  }

  begun(call: BegunCall): void {
    this.#journal.begun(call)
  }

  /**
   * Stores an answered call, and then what `event` writes. Once this resolves with true, no crash can lose
   * the call; false: it is not stored.
   */
  async answered(
    call: OpenCall,
    tariff: Tariff | null,
    nowMs: number,
    state?: SavedState,
    event?: () => void,
  ): Promise<boolean> {
    const isWritten = await this.#journal.answered(call, tariff, nowMs, state)
    if (!isWritten || event === undefined) return isWritten
    const isStored = await this.#group.written(event, JOURNAL_WAIT_MS)
    if (!isStored) this.#journal.gone(call.callUuid)
    return isStored
  }

  changed(callUuid: string, state: SavedState): void {
    this.#journal.changed(callUuid, state)
  }

  alive(callUuids: readonly string[], nowMs: number): void {
    this.#journal.alive(callUuids, nowMs)
  }

  /** Stores a record, inside the open transaction. False: the call has one. */
  insert(record: CallRecord, cost: CallCost): boolean {
    this.#rows.remove(record.callUuid)
    return this.#insert(record, cost)
  }

  /**
   * Queues the statements of an ended call. Rejects only when the database can never store this record. With
   * `terms` the journal has the end meanwhile, so that they may wait.
   */
  queue<T, R>(
    record: CallRecord,
    terms: EndTerms | undefined,
    { run, committed, refused, safe, quality }: Statements<T, R>,
  ): Promise<R> {
    const tellSafe = safe && once(safe)
    if (terms !== undefined) this.#journal.ended(record, terms, tellSafe)
    return new Promise((resolve, reject) => {
      const add = (whole: CallRecord): void => {
        this.#group.add({
          ...(terms !== undefined && { waitMs: RECORD_WAIT_MS }),
          content: whole,
          run: () => run(whole),
          done: (result) => {
            this.#journal.gone(record.callUuid)
            tellSafe?.()
            resolve(committed(result))
          },
          refused: (error) => {
            tellSafe?.()
            refused?.()
            reject(error instanceof Error ? error : new Error(String(error)))
          },
        })
      }
      if (quality === undefined) add(record)
      else this.#afterQuality(record, quality, add)
    })
  }

  #afterQuality(record: CallRecord, quality: Quality, add: (record: CallRecord) => void): void {
    const addOnce = (known?: CallQuality): void => {
      if (this.#unmeasured.delete(addOnce)) add(known ? { ...record, quality: known } : record)
    }
    this.#unmeasured.add(addOnce)
    void quality.then(addOnce)
  }

  /** Records that wait for a quality are queued without it. */
  waitNoLonger(): void {
    for (const addNow of this.#unmeasured) addNow()
  }
}

export function countLeft(closed: readonly JournalEntry[]) {
  const unansweredCalls = closed.filter(({ kind }) => kind === 'unanswered').length
  return { recoveredCalls: closed.length - unansweredCalls, unansweredCalls }
}

const hasState = (entry: JournalEntry): entry is SavedCall =>
  entry.kind === 'cut' && entry.state !== undefined

/** The clock of another boot may have been ahead of this one: a sign of life is never later than now. */
function notAhead(call: SavedCall, nowMs: number): SavedCall {
  const { answeredMs, shiftMs } = call.state
  const aheadMs = Math.max(0, answeredMs + call.talkedMs - nowMs)
  const state = { answeredMs: answeredMs - aheadMs, shiftMs: shiftMs - aheadMs }
  return { ...call, state: { ...call.state, ...state } }
}

const savedEntry = ({ callUuid, call, talkedMs, state }: SavedCall): SavedEntry => ({
  ...{ callUuid, call, state: state.text, shiftMs: state.shiftMs },
  aliveAt: state.answeredMs + talkedMs,
})

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
