/**
 * The journal of calls, so that a crash loses none: of each call its answer, how long it has lived, and its
 * end, until the database has its record. It is a file, because a caller waits for the answer's line
 * (D130): lines of a few milliseconds are one write.
 */
import { realpathSync } from 'node:fs'
import { billedSeconds, type CallRecord } from './call-record.ts'
import type { Schedule } from './clock.ts'
import type { Log } from './contracts/log.ts'
import {
  checked,
  CHECKSUM_LENGTH,
  type JournalFile,
  JournalFiles,
  MemoryFile,
} from './journal-file.ts'
import type { Store } from './open.ts'

/** The fields of a call record that are known at the answer. */
export type OpenCall = Omit<
  CallRecord,
  | 'answeredAt'
  | 'endedAt'
  | 'billsec'
  | 'disposition'
  | 'sipCode'
  | 'hangupCause'
  | 'hangupBy'
  | 'isRecovered'
> & { readonly answeredAt: number }

/** The price at the start of a call: later changes of the rate do not affect the call. */
export interface Tariff {
  readonly prefix: string
  readonly currency: string
  readonly connectFeeMicros: number
  readonly firstIncrementSeconds: number
  readonly firstRatePerMinuteMicros: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  /** Decimals to which a price is rounded up, 0 to 6. */
  readonly decimals: number
}

/** What was decided when a call ended. */
export interface EndTerms {
  readonly payerId: number | null
  readonly tariff: Tariff | null
  readonly costMicros: number
  /** To an external OCS. */
  readonly isReported: boolean
}

/** A call that the last run left open: it was cut off, or ended without being stored. */
export type JournalEntry =
  | {
      readonly kind: 'cut'
      readonly call: OpenCall
      readonly tariff: Tariff | null
      /** From the answer to the last heartbeat, in steady time of the process that wrote both. */
      readonly talkedMs: number
    }
  | { readonly kind: 'ended'; readonly record: CallRecord; readonly terms: EndTerms }

/** How long an answered call waits for its line; then it is rejected. */
export const JOURNAL_WAIT_MS = 2_000
/** Answers of this time are one write. */
const ANSWER_WAIT_MS = 1
/** No caller waits for other lines. */
const OTHER_WAIT_MS = 10
const RETRY_MS = 100
/** From this size on, and twice what is open, a new file is begun, and what is open is written to it. */
const FILE_BYTES = 4 * 1024 * 1024
/** So many open calls go to the new file with each write. */
const MOVED_CALLS = 256

type Line =
  /** `answeredMs` is steady time, like the heartbeats (schema/clock.ts). */
  | { readonly answered: OpenCall; readonly tariff: Tariff | null; readonly answeredMs: number }
  | { readonly alive: readonly string[]; readonly at: number }
  | { readonly ended: CallRecord; readonly terms: EndTerms }
  /** The database has its record, or its caller was refused. */
  | { readonly gone: string }

/** The lines of a call that is not stored yet, as they are written; empty: there is none. */
interface OpenLines {
  readonly callUuid: string
  answered: string
  ended: string
  /** 0: before the first heartbeat. */
  aliveAt: number
  /** They are in a file that is to be removed. */
  isOld: boolean
}

interface Waiting {
  readonly calls: { readonly callUuid: string; readonly resolve: (isDurable: boolean) => void }[]
  /** Takes back the deadline. */
  readonly cancel: () => void
}

export interface CallJournalDeps {
  readonly storage: Store['storage']
  readonly schedule: Schedule
  readonly log: Log
}

/** @param store migrated; no other process serves it. */
export function openCallJournal(store: Store, deps: Omit<CallJournalDeps, 'storage'>): CallJournal {
  const { sqlite, storage } = store
  const file = sqlite.memory
    ? new MemoryFile()
    : new JournalFiles(realpathSync(sqlite.name), databaseId(sqlite))
  return new CallJournal(file, { ...deps, storage })
}

const databaseId = (sqlite: Store['sqlite']): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())

export class CallJournal {
  readonly #file: JournalFile
  readonly #deps: CallJournalDeps
  readonly #open = new Map<string, OpenLines>()
  #openBytes = 0
  /** Lines for the next write, and the calls that wait for it. */
  #next = ''
  #waiting: Waiting | undefined
  /** The newest heartbeat, for the next write. */
  #beat = ''
  /** Lines and calls of the write that goes on, or has failed. */
  #inWrite = ''
  readonly #waitingInWrite: Waiting[] = []
  #isWriting = false
  #isFailing = false
  #isClosed = false
  /** What is open and not yet in the new file. */
  #toMove: Iterator<OpenLines> | undefined
  #isMoved = false
  #timer: { readonly waitMs: number; readonly cancel: () => void } | undefined

  constructor(file: JournalFile, deps: CallJournalDeps) {
    this.#file = file
    this.#deps = deps
    const { lines, damaged, foreign } = file.read()
    for (const text of lines) this.#takeIn(text)
    this.#toMove = this.#open.values()
    for (const name of foreign)
      deps.log('error', 'journal: a file of another database is kept aside', { file: name })
    for (const { text, ...place } of damaged) {
      const callUuid = /"(?:callUuid|gone)":"([^"]*)"/.exec(text)?.[1]
      deps.log('error', 'journal: a line is damaged and left out', { ...place, callUuid })
    }
  }

  #takeIn(text: string): void {
    const line = JSON.parse(text) as Line
    if ('gone' in line) this.#forget(line.gone)
    else if ('alive' in line) this.#noteAlive(line.alive, line.at)
    else if ('ended' in line) this.#note(line.ended.callUuid, 'ended', checked(text), true)
    else this.#note(line.answered.callUuid, 'answered', checked(text), true)
  }

  /** Calls that the last run left open, in the order of their answers. */
  left(): readonly JournalEntry[] {
    return [...this.#open.values()].map(({ answered, ended, aliveAt }) => {
      if (ended !== '') {
        const { ended: record, terms } = parse<Extract<Line, { ended: CallRecord }>>(ended)
        return { kind: 'ended', record, terms }
      }
      const line = parse<Extract<Line, { answered: OpenCall }>>(answered)
      const talkedMs = Math.max(0, aliveAt - line.answeredMs)
      return { kind: 'cut', call: line.answered, tariff: line.tariff, talkedMs }
    })
  }

  /**
   * Once this resolves with true, no crash can lose the call; false: it was not written in time, and is
   * forgotten. Safe to repeat. `answeredMs` is steady time.
   */
  answered(call: OpenCall, tariff: Tariff | null, answeredMs: number): Promise<boolean> {
    const { callUuid } = call
    const line = checked(JSON.stringify({ answered: call, tariff, answeredMs } satisfies Line))
    this.#note(callUuid, 'answered', line, false)
    return new Promise((resolve) => {
      this.#waiting ??= this.#newWaiting()
      this.#waiting.calls.push({ callUuid, resolve })
      this.#add(line, ANSWER_WAIT_MS)
    })
  }

  /** Those that wait for one write have one deadline. */
  #newWaiting(): Waiting {
    const calls: Waiting['calls'] = []
    const cancel = this.#deps.schedule(() => {
      for (const { callUuid, resolve } of calls.splice(0)) {
        this.gone(callUuid)
        resolve(false)
      }
    }, JOURNAL_WAIT_MS)
    return { calls, cancel }
  }

  /** These calls go on. */
  alive(callUuids: readonly string[], nowMs: number): void {
    if (!this.#isWriting && this.#file.isGone()) this.#replaceFile()
    this.#noteAlive(callUuids, nowMs)
    this.#beat = checked(JSON.stringify({ alive: callUuids, at: nowMs } satisfies Line))
    this.#writeWithin(OTHER_WAIT_MS)
  }

  /** The record and what it costs, until `gone`. */
  ended(record: CallRecord, terms: EndTerms): void {
    const line = checked(JSON.stringify({ ended: record, terms } satisfies Line))
    this.#note(record.callUuid, 'ended', line, false)
    this.#add(line, OTHER_WAIT_MS)
  }

  /** The call is stored, or refused. */
  gone(callUuid: string): void {
    if (this.#forget(callUuid))
      this.#add(checked(JSON.stringify({ gone: callUuid } satisfies Line)), OTHER_WAIT_MS)
  }

  /** Writes nothing any more. What is not stored is kept for the next start. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#file.close(this.#open.size > 0)
  }

  /** How many calls are not stored. */
  get size(): number {
    return this.#open.size
  }

  /** `line` becomes one of the lines of an open call. */
  #note(callUuid: string, kind: 'answered' | 'ended', line: string, isOld: boolean): void {
    let lines = this.#open.get(callUuid)
    if (lines === undefined) {
      lines = { callUuid, answered: '', ended: '', aliveAt: 0, isOld }
      this.#open.set(callUuid, lines)
    }
    this.#openBytes += line.length - lines[kind].length
    lines[kind] = line
  }

  #noteAlive(callUuids: readonly string[], at: number): void {
    for (const callUuid of callUuids) {
      const lines = this.#open.get(callUuid)
      if (lines !== undefined) lines.aliveAt = at
    }
  }

  #forget(callUuid: string): boolean {
    const lines = this.#open.get(callUuid)
    if (lines === undefined) return false
    this.#openBytes -= lines.answered.length + lines.ended.length
    return this.#open.delete(callUuid)
  }

  // ---- the writes ------------------------------------------------------------------------------

  #add(line: string, withinMs: number): void {
    this.#next += line
    this.#writeWithin(withinMs)
  }

  #writeWithin(waitMs: number): void {
    if (this.#isClosed || this.#isWriting || this.#isFailing) return
    if (this.#timer !== undefined && this.#timer.waitMs <= waitMs) return
    this.#timer?.cancel()
    this.#timer = { waitMs, cancel: this.#deps.schedule(() => this.#write(), waitMs) }
  }

  /** What a failed write had comes first and unchanged: the disk may have some of it. */
  #write(): void {
    this.#timer = undefined
    this.#inWrite += this.#next + this.#beat + this.#moved()
    this.#beat = ''
    this.#next = ''
    if (this.#waiting !== undefined) this.#waitingInWrite.push(this.#waiting)
    this.#waiting = undefined
    this.#isWriting = true
    this.#file.append(this.#inWrite, (error) => {
      this.#isWriting = false
      if (error === undefined) this.#durable()
      else this.#failed(error)
    })
  }

  #durable(): void {
    if (this.#isFailing) this.#deps.storage.working(this)
    this.#isFailing = false
    this.#inWrite = ''
    for (const { calls, cancel } of this.#waitingInWrite.splice(0)) {
      cancel()
      for (const { resolve } of calls) resolve(true)
    }
    if (this.#isClosed) return
    if (this.#isMoved) this.#file.removeOlder()
    this.#isMoved = false
    const isFull = this.#file.size > Math.max(FILE_BYTES, 2 * this.#openBytes)
    if (isFull && this.#toMove === undefined) this.#startNewFile()
    if (this.#beat !== '' || this.#next !== '' || this.#toMove !== undefined)
      this.#writeWithin(ANSWER_WAIT_MS)
  }

  #failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    this.#deps.storage.failing(this, new Error(`the disk takes no journal of calls: ${reason}`))
    if (!this.#isFailing) this.#deps.log('error', 'journal: calls cannot be written', { error })
    this.#isFailing = true
    if (this.#isClosed) return
    this.#timer = { waitMs: 0, cancel: this.#deps.schedule(() => this.#write(), RETRY_MS) }
  }

  #replaceFile(): void {
    this.#deps.log('error', 'journal: its file is gone; what is open is written to a new one')
    this.#startNewFile()
  }

  #startNewFile(): void {
    this.#file.startNew()
    for (const lines of this.#open.values()) lines.isOld = true
    this.#toMove = this.#open.values()
  }

  /** Lines of open calls that are in older files, some with each write; after the last, those files can go. */
  #moved(): string {
    let text = ''
    for (let calls = 0; this.#toMove !== undefined && calls < MOVED_CALLS; calls += 1) {
      const next = this.#toMove.next()
      if (next.done === true) {
        this.#toMove = undefined
        this.#isMoved = true
      } else if (next.value.isOld) text += asWritten(next.value)
    }
    return text
  }
}

/** Of an ended call it no longer counts how long it lived. */
function asWritten(lines: OpenLines): string {
  lines.isOld = false
  const { callUuid, answered, ended, aliveAt } = lines
  if (ended !== '' || aliveAt === 0) return answered + ended
  return answered + checked(JSON.stringify({ alive: [callUuid], at: aliveAt } satisfies Line))
}

/** Only this file writes these lines. */
const parse = <L extends Line>(line: string): L => JSON.parse(line.slice(CHECKSUM_LENGTH)) as L

/**
 * Builds the record of a call that a crash interrupted: it ended at its last heartbeat and lasted at least
 * a second.
 */
export function recoveredRecord({
  call,
  talkedMs,
}: Extract<JournalEntry, { kind: 'cut' }>): CallRecord {
  return {
    ...call,
    endedAt: call.answeredAt + talkedMs,
    billsec: billedSeconds(talkedMs),
    disposition: 'ANSWERED',
    sipCode: 200,
    hangupCause: 'PROCESS_RESTART',
    hangupBy: 'system',
    isRecovered: true,
  }
}
