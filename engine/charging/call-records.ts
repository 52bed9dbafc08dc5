/**
 * Calls that must not be lost, for either OCS: the journal until they are stored, then records,
 * written in groups. Where another server may take over without the last commits, the journal keeps
 * them for a while longer.
 */
import type { DialledCall, OpenCall, CallRecord } from '../../schema/contracts/call-record.ts'
import type {
  CutCall,
  EndTerms,
  JournalEntry,
  SavedState,
} from '../../schema/journal/journal-entries.ts'
import type {
  Tariff,
  RecoveredCalls,
  Quality,
  SavedEntry,
} from '../../schema/contracts/charging.ts'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { CallQuality } from '../../schema/contracts/field-values.ts'
import type { OutgoingEvent } from '../../schema/contracts/engine.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { CallStore } from './call-store.ts'
import type { EndedCall, StoredCall } from './settlement/batch.ts'

/** New calls are refused while more writes than this wait for the database. */
const maxWaitingWrites = 10_000

/** How often stored calls are forgotten. */
const FORGET_MS = 1_000
/** Another server may have lost some calls. A search that failed is repeated after this time. */
const SEARCH_AGAIN_MS = 1_000
/** So many lost calls are stored before others are. */
const AT_ONCE = 1_000

/** How long the journal has stored calls, for a server that takes over without them. */
export interface EndRetention {
  readonly keepMs: number
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Steady time of the server's last answer. */
  readonly lastAnswerAt: () => number
  /** Calls `check` when another server may answer than before. */
  readonly onGap: (check: () => void) => Cancel
}

/** What becomes of calls that the server does not have any more. */
export interface LostCalls {
  /** Before any of them is stored again. Empty: none is lost. */
  readonly found: (lost: readonly JournalEntry[]) => void
  /** Never rejects. */
  readonly store: (entry: JournalEntry) => Promise<void>
}

/** What follows an ended call. */
export interface Following {
  /** Follows its commit at once. */
  readonly committed: (stored: StoredCall) => void
  readonly refused?: () => void
  /** No crash can lose the end, or the journal could not be written in time; called once. */
  readonly safe?: (() => void) | undefined
  /** It is not in the journal before it is stored, and kept there afterwards. */
  readonly storedTerms?: EndTerms
  /** The database waits for it; with `terms` only. */
  readonly quality?: Quality | undefined
}

/** An answered call of the last run that may go on. */
export type SavedCall = CutCall & { readonly state: NonNullable<CutCall['state']> }

export interface OpenCalls {
  readonly toClose: readonly JournalEntry[]
  readonly saved: readonly SavedCall[]
}

export class CallRecords {
  readonly #store: CallStore
  readonly #journal: CallJournal
  /** Each queues a record that waits for its quality. */
  readonly #unmeasured = new Set<(quality?: CallQuality) => void>()
  /** Neither resumed nor abandoned. */
  readonly #saved = new Map<string, SavedCall>()

  /** Stored, with the steady time of it; oldest first. */
  readonly #storedAt = new Map<string, number>()
  readonly #keeping: EndRetention | undefined
  readonly #search = new OneAtATime(() => this.#findLost())
  #lost: LostCalls | undefined
  /** The server that answers now may lack calls. */
  #isUnsure = false
  #cancelForget: Cancel | undefined
  #cancelGap: Cancel = () => undefined
  #cancelSearch: Cancel = () => undefined

  constructor(store: CallStore, journal: CallJournal, keeping?: EndRetention) {
    this.#store = store
    this.#journal = journal
    this.#keeping = keeping !== undefined && keeping.keepMs > 0 ? keeping : undefined
  }

  /** From now on calls that a server has lost are stored again. */
  watch(lost: LostCalls): void {
    this.#lost = lost
    this.#cancelGap =
      this.#keeping?.onGap(() => {
        this.#isUnsure = true
        void this.#search.request()
      }) ?? this.#cancelGap
  }

  /**
   * Stores what waits, for no quality any more. Resolves with the records that neither the database
   * nor the journal has. Forgets none from then on: the next start does.
   */
  async stop(): Promise<readonly CallRecord[]> {
    for (const addNow of this.#unmeasured) addNow()
    const unstored = await this.#store.stop()
    this.#cancelGap()
    this.#cancelSearch()
    this.#cancelForget?.()
    return unstored.length > 0 && (await this.#journal.written()) ? [] : unstored
  }

  /** Never rejects. */
  async #findLost(): Promise<void> {
    const { schedule } = this.#keeping ?? {}
    this.#cancelSearch()
    try {
      const uuids = [...this.#storedAt.keys()]
      const stored = await this.#store.stored(uuids)
      const missing = uuids.filter(
        (callUuid) => !stored.has(callUuid) && this.#storedAt.has(callUuid),
      )
      const lost = missing.flatMap((callUuid) => this.#journal.entryOf(callUuid) ?? [])
      this.#lost?.found(lost)
      for (let at = 0; at < lost.length; at += AT_ONCE)
        await Promise.all(lost.slice(at, at + AT_ONCE).map((entry) => this.#storeAgain(entry)))
      this.#isUnsure = false
    } catch {
      this.#cancelSearch =
        schedule?.(() => void this.#search.request(), SEARCH_AGAIN_MS) ?? this.#cancelSearch
    }
  }

  async #storeAgain(entry: JournalEntry): Promise<void> {
    this.#storedAt.delete(entry.callUuid)
    await this.#lost?.store(entry)
  }

  /** The database has its record. */
  #stored(callUuid: string): void {
    if (this.#keeping === undefined || !this.#journal.keepEnd(callUuid))
      return this.#journal.gone(callUuid)
    this.#storedAt.delete(callUuid)
    this.#storedAt.set(callUuid, this.#keeping.now())
    this.#forgetLater(this.#keeping)
  }

  #forgetLater(keeping: EndRetention): void {
    this.#cancelForget ??= keeping.schedule(() => {
      this.#cancelForget = undefined
      this.#forgetOld(keeping)
      if (this.#storedAt.size > 0) this.#forgetLater(keeping)
    }, FORGET_MS)
  }

  /** By the time of the server's last answer: while it does not answer, none is forgotten. */
  #forgetOld({ keepMs, lastAnswerAt }: EndRetention): void {
    if (this.#isUnsure) return
    const until = lastAnswerAt() - keepMs
    for (const [callUuid, storedAt] of this.#storedAt) {
      if (storedAt > until) return
      this.#storedAt.delete(callUuid)
      this.#journal.gone(callUuid)
    }
  }

  get isOverloaded(): boolean {
    return this.#store.waiting + this.#unmeasured.size > maxWaitingWrites
  }

  /** The calls that the last run left open: those to be closed, and those that may go on. */
  async leftOpen(nowMs: number): Promise<OpenCalls> {
    const entries = this.#journal.left()
    return this.#sort(entries, await this.#storedOf(entries), nowMs)
  }

  #storedOf(entries: readonly JournalEntry[]): Promise<ReadonlySet<string>> {
    return this.#store.stored(entries.map(({ callUuid }) => callUuid))
  }

  #sort(entries: readonly JournalEntry[], stored: ReadonlySet<string>, nowMs: number): OpenCalls {
    const left = entries.filter(({ callUuid }) => {
      if (stored.has(callUuid)) this.#stored(callUuid)
      return !stored.has(callUuid)
    })
    for (const entry of left)
      if (hasState(entry)) this.#saved.set(entry.callUuid, notAhead(entry, nowMs))
    return {
      toClose: left.filter((entry) => !hasState(entry)),
      saved: [...this.#saved.values()],
    }
  }

  /** Undefined: the last run left no such call, or it was taken. */
  takeSaved(callUuid: string): SavedCall | undefined {
    const call = this.#saved.get(callUuid)
    this.#saved.delete(callUuid)
    return call
  }

  begun(call: DialledCall): void {
    this.#journal.begun(call)
  }

  /**
   * Stores an answered call; its event follows. Once this resolves with true, no crash can lose the
   * call; false: it is not stored.
   */
  answered(
    call: OpenCall,
    tariff: Tariff | null,
    nowMs: number,
    state?: SavedState,
    event?: OutgoingEvent,
  ): Promise<boolean> {
    const written = this.#journal.answered(call, tariff, nowMs, state)
    if (event === undefined) return written
    return written.then((isWritten) => {
      if (isWritten) this.#store.announce(event)
      return isWritten
    })
  }

  changed(callUuid: string, state: SavedState): void {
    this.#journal.changed(callUuid, state)
  }

  alive(callUuids: readonly string[], nowMs: number): void {
    this.#journal.alive(callUuids, nowMs)
  }

  running(nowMs: number, sinceMs: number): void {
    this.#journal.running(nowMs, sinceMs)
  }

  /**
   * Queues an ended call. Rejects only when the database can never store this record. With `terms`
   * the journal has the end meanwhile, so that it may wait. Resolves with what `committed` was
   * given.
   */
  queue(
    call: EndedCall,
    terms: EndTerms | undefined,
    { committed, refused, safe, storedTerms, quality }: Following,
  ): Promise<StoredCall> {
    const { record } = call
    const tellSafe = safe && once(safe)
    if (terms !== undefined) this.#journal.ended(record, terms, tellSafe)
    return new Promise((resolve, reject) => {
      const add = (whole: EndedCall): void =>
        this.#store.add(whole, {
          mayWait: terms !== undefined,
          done: (stored) => {
            if (this.#keeping !== undefined && storedTerms !== undefined)
              this.#journal.ended(record, storedTerms)
            this.#stored(record.callUuid)
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
      if (quality === undefined || terms === undefined) add(call)
      else this.#afterQuality(call, terms, quality, add)
    })
  }

  #afterQuality(
    call: EndedCall,
    terms: EndTerms,
    quality: Quality,
    add: (call: EndedCall) => void,
  ): void {
    const addOnce = (known?: CallQuality): void => {
      if (!this.#unmeasured.delete(addOnce)) return
      if (known === undefined) return add(call)
      const record = { ...call.record, quality: known }
      if (this.#keeping !== undefined) this.#journal.ended(record, terms)
      return add({ ...call, record })
    }
    this.#unmeasured.add(addOnce)
    void quality.then(addOnce)
  }
}

export function toLeftCalls({ toClose, saved }: OpenCalls): RecoveredCalls {
  const unansweredCalls = toClose.filter(({ kind }) => kind === 'unanswered').length
  const recoveredCalls = toClose.length - unansweredCalls
  return { recoveredCalls, unansweredCalls, saved: saved.map(savedEntry) }
}

const hasState = (entry: JournalEntry): entry is SavedCall =>
  entry.kind === 'cut' && entry.state !== undefined

/**
 * The clock of another boot may have been ahead of this one: a sign of life is never later than
 * now.
 */
function notAhead(call: SavedCall, nowMs: number): SavedCall {
  const { answeredMs, shiftMs } = call.state
  const aheadMs = Math.max(0, answeredMs + call.talkedMs - nowMs)
  const state = { answeredMs: answeredMs - aheadMs, shiftMs: shiftMs - aheadMs }
  return { ...call, state: { ...call.state, ...state } }
}

const savedEntry = ({ callUuid, call, talkedMs, state }: SavedCall): SavedEntry => ({
  callUuid,
  call,
  state: state.text,
  shiftMs: state.shiftMs,
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
