/**
 * The journal of calls, so that a crash loses none. It has the start of each call, its answer, the
 * state with which it continues, its last heartbeat and its end, until the database has its record.
 * It is a file, because a caller waits for the line of the answer (D130). Lines that come while one
 * write goes on are the next one.
 */
import type { DialledCall, OpenCall, CallRecord } from '../contracts/call-record.ts'
import {
  type EndTerms,
  JOURNAL_WAIT_MS,
  type JournalEntry,
  type SavedCallState,
} from './journal-entries.ts'
import type { Tariff } from '../contracts/charging.ts'
import type { Boot, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { DamagedLine, EarlierLines, JournalFile } from './journal-file.ts'
import { LineBuffer } from './line-buffer.ts'
import type { Storage } from '../storage/storage.ts'
import { addState, bootText, callsIn, OpenCalls, type OpenLines, toText } from './open-calls.ts'

/** Answers of one turn of the event loop are one write. */
const ANSWER_WAIT_MS = 0
/** Answers wait until the last write began so long ago: under load several are one write (D536). */
const PAUSE_MS = 2
/** No caller waits for other lines. */
const OTHER_WAIT_MS = 10
const RETRY_MS = 100
/**
 * The end of `JOURNAL_WAIT_MS`, on a timer of its own: a process that stood still runs timers
 * first, and only then the callback of a write that has ended meanwhile.
 */
const LAST_WAIT_MS = 250
/**
 * When the file is larger than this, and than twice the lines of open calls, these are written to a
 * new file.
 */
const FILE_BYTES = 4 * 1024 * 1024
/**
 * Room for the ends of open calls, which is written ahead: on a full disk no call begins, and those
 * that go on end in it. A small part while a new file takes over what is open: the older ones are
 * still there.
 */
const RESERVED_BYTES = 64 * 1024
const RESERVED_BYTES_OF_CALL = 2 * 1024
const MOST_RESERVED_BYTES = 4 * 1024 * 1024
/**
 * Bytes of open calls that each write moves to the new file, and the time between two such writes.
 */
const MOVED_BYTES = 256 * 1024
const MOVE_WAIT_MS = 1

/** Callers that wait for the same write have one deadline. */
interface Waiting {
  readonly done: ((isDurable: boolean) => void)[]
  /** Callbacks of ends, which may be written on their own. */
  readonly ends: (() => void)[]
  /** Cancels the deadline. */
  readonly cancel: () => void
}

export interface CallJournalDeps {
  readonly storage: Storage
  readonly schedule: Schedule
  readonly log: Log
  /** Absent where it is unknown: times of other processes are taken as they are. */
  readonly boot?: Boot | undefined
  /** The files of the last run are gone. */
  readonly isLost?: boolean
}

export class CallJournal {
  readonly #file: JournalFile
  readonly #deps: CallJournalDeps
  readonly #boot: string | undefined
  readonly #open: OpenCalls
  /** Lines for the next write, and the calls that wait for it. */
  readonly #next = new LineBuffer()
  #waiting: Waiting | undefined
  /** The newest heartbeat, for the next write, and the newest sign that this process runs. */
  #beat: string | undefined
  #running: string | undefined
  /** How long the next write may wait. */
  #nextWaitMs = Infinity
  /** Lines and calls of the write that goes on, or has failed. */
  readonly #inWrite = new LineBuffer()
  readonly #waitingInWrite: Waiting[] = []
  #isWriting = false
  #isFailing = false
  /** How many writes have begun, and the last one that the disk has taken. */
  #writes = 0
  #lastDurable = 0
  readonly #ends = new LineBuffer()
  #isClosed = false
  /** Open calls that are not yet in the new file. */
  #toMove: Iterator<OpenLines> | undefined
  #isMoved = false
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined
  /** A write began less than `PAUSE_MS` ago. */
  #isPausing = false

  constructor(file: JournalFile, deps: CallJournalDeps) {
    this.#file = file
    this.#deps = deps
    this.#boot = deps.boot && bootText(deps.boot)
    this.#open = new OpenCalls(this.#boot)
    this.#takeIn(file.read(), this.#open)
    this.#toMove = this.#open.values()
  }

  #takeIn({ lines, foreign }: EarlierLines, open: OpenCalls): void {
    for (const line of lines)
      if (typeof line === 'string') open.restore(line)
      else this.#leaveOut(line, open)
    for (const name of foreign)
      this.#deps.log('error', 'journal: a file of another database is kept aside', { file: name })
  }

  /**
   * The state of a call that the line names is dropped: the call may have changed or ended since.
   */
  #leaveOut({ text, isTorn, ...place }: DamagedLine, open: OpenCalls): void {
    const callUuids = callsIn(text)
    const fields = { ...place, callUuid: callUuids.join(' ') }
    if (isTorn) this.#deps.log('warn', 'journal: a line is cut off and left out', fields)
    else this.#deps.log('error', 'journal: a line is damaged and left out', fields)
    for (const callUuid of isTorn ? [] : callUuids)
      if (open.takesState(callUuid)) open.forgetState(callUuid)
  }

  /** Resolves when all lines are written; false: they cannot be written now. */
  written(): Promise<boolean> {
    const isWaiting = this.#isWaiting
    if (!isWaiting && this.#inWrite.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      if (isWaiting) {
        this.#await(resolve)
        this.#writeWithin(ANSWER_WAIT_MS)
      } else {
        const waiting = this.#newWaiting()
        waiting.done.push(resolve)
        this.#waitingInWrite.push(waiting)
      }
    })
  }

  /** Calls that the last run left open, oldest first. Times are steady time of this process. */
  left(): readonly JournalEntry[] {
    return this.#open.entries()
  }

  /** The call is dialled. After a crash before its answer it is left as `unanswered`. */
  begun(call: DialledCall): void {
    const line = this.#next.add(toText({ begun: call }))
    this.#open.note(call.callUuid, 'begun', line)
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /**
   * Once this resolves with true, no crash can lose the call; false: it was not written in time,
   * and is forgotten. Safe to repeat. `answeredMs` is steady time.
   */
  answered(
    call: OpenCall,
    tariff: Tariff | null,
    answeredMs: number,
    state?: SavedCallState,
  ): Promise<boolean> {
    const { callUuid } = call
    const text = toText({ answered: call, tariff, answeredMs, boot: this.#boot })
    this.#open.note(callUuid, 'answered', this.#next.add(text))
    this.#open.noteAnswered(callUuid, answeredMs)
    if (state !== undefined) this.#addState(callUuid, state)
    return new Promise((resolve) => {
      this.#await((isDurable) => {
        if (!isDurable) this.gone(callUuid)
        resolve(isDurable)
      })
      this.#writeWithin(ANSWER_WAIT_MS)
    })
  }

  /** Replaces the state of an answered call, or the change since that of its answer. */
  changed(callUuid: string, state: SavedCallState): void {
    if (!this.#open.takesState(callUuid)) return
    this.#addState(callUuid, state)
    this.#writeWithin(OTHER_WAIT_MS)
  }

  #addState(callUuid: string, state: SavedCallState): void {
    const line = addState(this.#next, callUuid, state, this.#boot)
    if (state.isChange === true) this.#open.noteChange(callUuid, line)
    else this.#open.note(callUuid, 'state', line)
  }

  #await(done: (isDurable: boolean) => void): void {
    this.#waiting ??= this.#newWaiting()
    this.#waiting.done.push(done)
  }

  #newWaiting(): Waiting {
    const done: Waiting['done'] = []
    const ends: Waiting['ends'] = []
    const { schedule } = this.#deps
    let cancel = schedule(() => {
      cancel = schedule(() => {
        for (const tell of done.splice(0)) tell(false)
        for (const tell of ends.splice(0)) tell()
      }, LAST_WAIT_MS)
    }, JOURNAL_WAIT_MS - LAST_WAIT_MS)
    return { done, ends, cancel: () => cancel() }
  }

  /** These calls are alive. */
  alive(callUuids: readonly string[], nowMs: number): void {
    if (!this.#isWriting && this.#file.isGone()) this.#replaceFile()
    this.#open.noteAlive(callUuids, nowMs)
    this.#beat = toText({ alive: callUuids, at: nowMs, boot: this.#boot })
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /** This process runs, since `sinceMs`, and with it every call that it has heard of since then. */
  running(nowMs: number, sinceMs: number): void {
    this.#open.noteRunning(nowMs, sinceMs)
    this.#running = toText({ running: nowMs, since: sinceMs, boot: this.#boot })
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /**
   * The record and what it costs, until `gone`. `safe` is called when no crash can lose it, or
   * after 2 s.
   */
  ended(record: CallRecord, terms: EndTerms, safe?: () => void): void {
    const line = this.#next.add(toText({ ended: record, terms }))
    this.#open.note(record.callUuid, 'ended', line)
    this.#open.noteEnd(record.callUuid, this.#writes + 1)
    if (safe !== undefined) (this.#waiting ??= this.#newWaiting()).ends.push(safe)
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /**
   * The database has the record. The end stays until `gone`, because the server may lose the
   * record. False: there is no end.
   */
  keepEnd(callUuid: string): boolean {
    return this.#open.keepEnd(callUuid)
  }

  /** The entry of a call, as a start would read it. Undefined: the journal does not have it. */
  entryOf(callUuid: string): JournalEntry | undefined {
    return this.#open.entryOf(callUuid)
  }

  /** The call is stored for good, or refused. */
  gone(callUuid: string): void {
    if (!this.#open.forget(callUuid)) return
    this.#next.add(toText({ gone: callUuid }))
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /**
   * Stops writing. Lines of calls that are not stored stay for the next start.
   *
   * @param hasServed every call has ended with this process, whatever the disk has taken of it:
   * none goes on.
   */
  async close(hasServed: boolean): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    // A start that fails leaves what it has found to the next one.
    const isDone = this.#open.size === 0 && (hasServed || this.#deps.isLost !== true)
    if (isDone) await this.#file.close('remove')
    else await this.#file.close(hasServed ? 'mark' : 'keep')
  }

  /** The number of calls in the journal. */
  get size(): number {
    return this.#open.size
  }

  // ---- the writes ------------------------------------------------------------------------------

  get #isWaiting(): boolean {
    return this.#next.length > 0 || this.#beat !== undefined || this.#running !== undefined
  }

  #writeWithin(waitMs: number): void {
    this.#nextWaitMs = Math.min(this.#nextWaitMs, waitMs)
    if (this.#isClosed || this.#isWriting || this.#isFailing) return
    if (this.#isPausing && waitMs < PAUSE_MS) return
    if (this.#timer !== undefined && this.#timer.waitMs <= waitMs) return
    this.#timer?.cancel()
    this.#timer = { waitMs, cancel: this.#deps.schedule(() => this.#write(), waitMs) }
  }

  /** The lines of a failed write come first and unchanged: the disk may have some of them. */
  #write(): void {
    this.#timer = undefined
    this.#nextWaitMs = Infinity
    if (this.#beat !== undefined) this.#next.add(this.#beat)
    if (this.#running !== undefined) this.#next.add(this.#running)
    this.#beat = undefined
    this.#running = undefined
    this.#addMoved()
    this.#inWrite.append(this.#next.bytes)
    this.#next.clear()
    if (this.#waiting !== undefined) this.#waitingInWrite.push(this.#waiting)
    this.#waiting = undefined
    this.#isWriting = true
    this.#pause()
    this.#writes += 1
    const written = (error: unknown): void => {
      this.#isWriting = false
      if (error === undefined) this.#durable()
      else this.#failed(error)
    }
    this.#file.append(this.#inWrite.bytes, written, this.#reservedBytes)
  }

  #pause(): void {
    if (this.#isPausing) return
    this.#isPausing = true
    this.#deps.schedule(() => {
      this.#isPausing = false
      if (this.#nextWaitMs < Infinity) this.#writeWithin(this.#nextWaitMs)
    }, PAUSE_MS)
  }

  get #reservedBytes(): number {
    if (this.#toMove !== undefined) return RESERVED_BYTES
    return Math.min(RESERVED_BYTES + RESERVED_BYTES_OF_CALL * this.#open.size, MOST_RESERVED_BYTES)
  }

  #durable(): void {
    if (this.#isFailing) this.#deps.storage.working(this)
    this.#isFailing = false
    this.#lastDurable = this.#writes
    this.#inWrite.clear()
    for (const { done, ends, cancel } of this.#waitingInWrite.splice(0)) {
      cancel()
      for (const tell of done) tell(true)
      for (const tell of ends) tell()
    }
    if (this.#isClosed) return
    if (this.#isMoved) void this.#file.removeOlder()
    this.#isMoved = false
    const most = Math.max(FILE_BYTES, 2 * this.#open.bytes)
    if (this.#file.size > most / 2) this.#file.prepareNew(most + this.#reservedBytes)
    if (this.#file.size > most && this.#toMove === undefined) this.#startNewFile()
    if (this.#isWaiting) this.#writeWithin(this.#nextWaitMs)
    if (this.#toMove !== undefined) this.#writeWithin(MOVE_WAIT_MS)
  }

  #failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    this.#deps.storage.failing(this, new Error(`the disk takes no journal of calls: ${reason}`))
    if (!this.#isFailing) this.#deps.log('error', 'journal: calls cannot be written', { error })
    this.#isFailing = true
    this.#writeEnds(() => {
      if (this.#isClosed) return
      this.#timer = { waitMs: 0, cancel: this.#deps.schedule(() => this.#write(), RETRY_MS) }
    })
  }

  /**
   * The ends that the failed writes have, and those since, into the room that is reserved for them.
   */
  #writeEnds(then: () => void): void {
    const calls = this.#open.addEnds(this.#ends, this.#lastDurable)
    if (calls.length === 0) return then()
    this.#isWriting = true
    return this.#file.appendReserved(this.#ends.bytes, (error) => {
      this.#isWriting = false
      this.#ends.clear()
      if (error === undefined) {
        for (const call of calls) call.endWrite = 0
        for (const { ends } of [...this.#waitingInWrite, ...(this.#waiting ? [this.#waiting] : [])])
          for (const tell of ends.splice(0)) tell()
      }
      then()
    })
  }

  #replaceFile(): void {
    this.#deps.log('error', 'journal: its file is gone; open calls are written to a new one')
    this.#startNewFile()
  }

  #startNewFile(): void {
    this.#file.startNew()
    for (const lines of this.#open.values()) lines.isOld = true
    this.#toMove = this.#open.values()
  }

  /**
   * Adds lines of open calls that are in older files, some with each write; after the last, those
   * files can go.
   */
  #addMoved(): void {
    const most = this.#next.length + MOVED_BYTES
    while (this.#toMove !== undefined && this.#next.length < most) {
      const next = this.#toMove.next()
      if (next.done === true) {
        this.#toMove = undefined
        this.#isMoved = true
      } else if (next.value.isOld) {
        next.value.isOld = false
        this.#open.addTo(this.#next, next.value)
      }
    }
  }
}
