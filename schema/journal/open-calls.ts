/** Calls that are not stored yet, each with its lines as they are written. */
import { ReleasingMap } from '../sip/index.ts'
import type {
  JournalEntry,
  RestorableState,
  EndTerms,
  SavedGrant,
  SavedCallState,
} from './journal-entries.ts'
import type { DialledCall, OpenCall, CallRecord } from '../contracts/call-record.ts'
import type { Tariff } from '../contracts/charging.ts'
import { checked, type LineBuffer, textOf } from './line-buffer.ts'
import type { Boot } from '../clock.ts'
import { type StoredLine, LineMemory } from './line-memory.ts'

/** `change`: what has changed since `state`. */
const lineKinds = ['begun', 'answered', 'state', 'change', 'ended'] as const
type LineKind = (typeof lineKinds)[number]

/** Lines of length 0 do not exist, or do not count any more. */
export interface OpenLines extends Record<LineKind, StoredLine> {
  readonly callUuid: string
  /** Its last heartbeat of its own; 0: there was none. */
  aliveAt: number
  /** Steady time of the answer; 0: it is not answered. */
  answeredAt: number
  /** The number of the write that has its end; 0: it is durable. */
  endWrite: number
  /** The lines are in a file that is to be removed. */
  isOld: boolean
}

export class OpenCalls {
  readonly #boot: string | undefined
  readonly #memory = new LineMemory()
  readonly #calls = new ReleasingMap<string, OpenLines>()
  /** Processes that have written the lines, oldest first, each with its last sign of life. */
  readonly #processes: { readonly since: number; at: number }[] = []
  #bytes = 0

  /** @param boot of the times that are noted, and of those that `entries` returns. */
  constructor(boot: string | undefined) {
    this.#boot = boot
  }

  get size(): number {
    return this.#calls.size
  }

  get bytes(): number {
    return this.#bytes
  }

  values(): IterableIterator<OpenLines> {
    return this.#calls.values()
  }

  /** Reads a line of an earlier run. */
  restore(text: string): void {
    if (isStateLine(text)) {
      const { saved: callUuid, isChange } = readStateLine(text).head
      const line = checked(text)
      if (isChange === true) this.noteChange(callUuid, line, true)
      // A move to another file writes it again; a crash may have cut off its change there.
      else if (this.takesState(callUuid) && !this.#hasState(callUuid, line))
        this.note(callUuid, 'state', line, true)
      return
    }
    const line = JSON.parse(text) as Line
    if ('gone' in line) this.forget(line.gone)
    else if ('stopped' in line) for (const lines of this.#calls.values()) this.#dropState(lines)
    else if ('alive' in line) this.noteAlive(line.alive, line.at + shiftMs(line.boot, this.#boot))
    else if ('running' in line) {
      const ms = shiftMs(line.boot, this.#boot)
      this.noteRunning(line.running + ms, line.since + ms)
    } else if ('ended' in line) this.note(line.ended.callUuid, 'ended', checked(text), true)
    else if ('begun' in line) this.note(line.begun.callUuid, 'begun', checked(text), true)
    else if ('answered' in line) {
      this.note(line.answered.callUuid, 'answered', checked(text), true)
      this.noteAnswered(line.answered.callUuid, line.answeredMs + shiftMs(line.boot, this.#boot))
    }
  }

  /** `line` becomes one of the lines of a call. */
  note(callUuid: string, kind: LineKind, line: Buffer, isOld = false): void {
    let lines = this.#calls.get(callUuid)
    if (lines === undefined) {
      lines = {
        callUuid,
        begun: noLine,
        answered: noLine,
        state: noLine,
        change: noLine,
        ended: noLine,
        aliveAt: 0,
        answeredAt: 0,
        endWrite: 0,
        isOld,
      }
      this.#calls.set(callUuid, lines)
    }
    this.#set(lines, kind, this.#memory.keep(line))
    if (kind === 'answered') this.#set(lines, 'begun', noLine)
    if (kind === 'state') this.#set(lines, 'change', noLine)
    if (kind === 'ended') this.#dropState(lines)
  }

  /** `line` says what has changed since the state of the call; without one it says nothing. */
  noteChange(callUuid: string, line: Buffer, isOld = false): void {
    const { state = noLine } = this.#calls.get(callUuid) ?? {}
    if (isThere(state)) this.note(callUuid, 'change', line, isOld)
  }

  #hasState(callUuid: string, line: Buffer): boolean {
    const { slot, length } = this.#calls.get(callUuid)?.state ?? noLine
    return slot.subarray(0, length).equals(line)
  }

  /** The call is not restored from a state that it had before. */
  forgetState(callUuid: string): void {
    const lines = this.#calls.get(callUuid)
    if (lines !== undefined) this.#dropState(lines)
  }

  #dropState(lines: OpenLines): void {
    this.#set(lines, 'state', noLine)
    this.#set(lines, 'change', noLine)
  }

  #set(lines: OpenLines, kind: LineKind, line: StoredLine): void {
    this.#bytes += line.length - lines[kind].length
    this.#memory.release(lines[kind])
    lines[kind] = line
  }

  /** Whether the call is answered and has not ended. */
  takesState(callUuid: string): boolean {
    const lines = this.#calls.get(callUuid)
    return lines !== undefined && isThere(lines.answered) && !isThere(lines.ended)
  }

  noteAnswered(callUuid: string, at: number): void {
    const lines = this.#calls.get(callUuid)
    if (lines !== undefined) lines.answeredAt = at
  }

  noteEnd(callUuid: string, write: number): void {
    const lines = this.#calls.get(callUuid)
    if (lines !== undefined) lines.endWrite = write
  }

  /** Adds the ends of answered calls that writes after this one have; returns those calls. */
  addEnds(buffer: LineBuffer, afterWrite: number): readonly OpenLines[] {
    const calls: OpenLines[] = []
    for (const lines of this.#calls.values()) {
      const { answered, ended, endWrite } = lines
      if (endWrite <= afterWrite || !isThere(answered) || !isThere(ended)) continue
      buffer.append(ended.slot.subarray(0, ended.length))
      calls.push(lines)
    }
    return calls
  }

  /**
   * The process that began at `since` runs. With it live the calls that it has had answered, and
   * those of earlier processes that have given a sign of life since.
   */
  noteRunning(at: number, since: number): void {
    const last = this.#processes.at(-1)
    if (last?.since === since) last.at = at
    else this.#processes.push({ since, at })
  }

  #aliveAt({ aliveAt, answeredAt }: Pick<OpenLines, 'aliveAt' | 'answeredAt'>): number {
    let last = aliveAt
    for (const { since, at } of this.#processes)
      if (Math.max(last, answeredAt) >= since) last = Math.max(last, at)
    return last
  }

  noteAlive(callUuids: readonly string[], at: number): void {
    for (const callUuid of callUuids) {
      const lines = this.#calls.get(callUuid)
      if (lines !== undefined) lines.aliveAt = at
    }
  }

  /** Drops all lines of a call but its end. False: it has no end. */
  keepEnd(callUuid: string): boolean {
    const lines = this.#calls.get(callUuid)
    if (lines === undefined || !isThere(lines.ended)) return false
    for (const kind of lineKinds) if (kind !== 'ended') this.#set(lines, kind, noLine)
    return true
  }

  entryOf(callUuid: string): JournalEntry | undefined {
    const lines = this.#calls.get(callUuid)
    return lines && this.#entryOf(lines)
  }

  /** False: it is not open. */
  forget(callUuid: string): boolean {
    const lines = this.#calls.get(callUuid)
    if (lines === undefined) return false
    for (const kind of lineKinds) this.#set(lines, kind, noLine)
    return this.#calls.delete(callUuid)
  }

  /** All calls, oldest first. */
  entries(): readonly JournalEntry[] {
    return [...this.#calls.values()].map((lines) => this.#entryOf(lines))
  }

  #entryOf(lines: OpenLines): JournalEntry {
    const { callUuid, begun, answered, state, change, ended } = lines
    if (isThere(ended)) {
      const { ended: record, terms } = readLine<EndedLine>(ended)
      return { kind: 'ended', callUuid, record, terms }
    }
    if (!isThere(answered)) {
      const line = readLine<Extract<Line, { begun: unknown }>>(begun)
      return { kind: 'unanswered', callUuid, call: line.begun }
    }
    const { answered: call, tariff, ...line } = readLine<AnsweredLine>(answered)
    const answeredMs = line.answeredMs + shiftMs(line.boot, this.#boot)
    const aliveAt = this.#aliveAt(lines)
    return {
      kind: 'cut',
      callUuid,
      call,
      tariff,
      talkedMs: Math.max(0, aliveAt - answeredMs),
      ...(isThere(state) && { state: this.#stateOf(state, change, answeredMs) }),
    }
  }

  #stateOf(state: StoredLine, change: StoredLine, answeredMs: number): RestorableState {
    const { head, text } = readStateLine(textOf(state.slot, state.length))
    const changed = isThere(change) ? readStateLine(textOf(change.slot, change.length)) : undefined
    const { grant, boot } = changed?.head ?? head
    const restorable = { text, grant, answeredMs, shiftMs: shiftMs(boot, this.#boot) }
    return changed === undefined ? restorable : { ...restorable, change: changed.text }
  }

  /** Adds the lines of a call as they were written. */
  addTo(buffer: LineBuffer, lines: OpenLines): void {
    const { callUuid } = lines
    const aliveAt = this.#aliveAt(lines)
    for (const kind of lineKinds) {
      const { slot, length } = lines[kind]
      if (length > 0) buffer.append(slot.subarray(0, length))
    }
    // The last heartbeat of an ended call no longer counts.
    if (!isThere(lines.ended) && aliveAt !== 0)
      buffer.add(toText({ alive: [callUuid], at: aliveAt, boot: this.#boot }))
  }
}

const isThere = ({ length }: StoredLine): boolean => length > 0

// ---- the lines: their form, and by whose clock their times are ---------------------------

/**
 * Lines that are JSON. `boot` identifies the steady clock of the times of a line. The first field
 * names the call.
 */
export type Line =
  /** `callUuid` is the first field of a call: a damaged line is named by it. */
  | { readonly begun: DialledCall }
  | AnsweredLine
  | { readonly alive: readonly string[]; readonly at: number; readonly boot?: string | undefined }
  /** The process that began at `since` runs: one line for all its calls (`noteRunning`). */
  | { readonly running: number; readonly since: number; readonly boot?: string | undefined }
  | EndedLine
  /** The database has its record, or its caller was refused. */
  | { readonly gone: string }
  /** The process has stopped, and with it every call. */
  | { readonly stopped: true }

interface AnsweredLine {
  readonly answered: OpenCall
  readonly tariff: Tariff | null
  readonly answeredMs: number
  readonly boot?: string | undefined
}

interface EndedLine {
  readonly ended: CallRecord
  readonly terms: EndTerms
}

export const toText = (line: Line): string => JSON.stringify(line)

/** Only the journal writes them, so each is of the kind that it was noted as. */
const readLine = <L extends Line>({ slot, length }: StoredLine): L =>
  JSON.parse(textOf(slot, length)) as L

interface StateHead {
  readonly saved: string
  readonly grant?: SavedGrant | undefined
  readonly boot?: string | undefined
  readonly isChange?: true | undefined
}

/**
 * Adds a state, as a line of its own, so that damage to it costs the state alone. The text follows
 * the head as it is: as one of its values it would be escaped and read a second time.
 */
export function addState(
  buffer: LineBuffer,
  callUuid: string,
  { text, grant, isChange }: SavedCallState,
  boot: string | undefined,
): Buffer {
  const head: StateHead = { saved: callUuid, grant, boot, isChange }
  return buffer.add(JSON.stringify(head), '\t', text)
}

function readStateLine(text: string): { readonly head: StateHead; readonly text: string } {
  const end = text.indexOf('\t')
  // Only `addState` writes them.
  return { head: JSON.parse(text.slice(0, end)) as StateHead, text: text.slice(end + 1) }
}

const isStateLine = (text: string): boolean => text.startsWith('{"saved":')

/**
 * The uuids of the calls that the heads of a damaged line, or of lines that damage has joined,
 * name.
 */
export function callsIn(damaged: string): readonly string[] {
  const heads = damaged.replaceAll(/\t.*?(?=[\da-f]{8} \{"|$)/gs, '')
  const found = heads.matchAll(/"(?:callUuid|gone|saved)":"([^"]*)"/g)
  return [...new Set([...found].flatMap(([, uuid]) => uuid ?? []))]
}

export const bootText = ({ id, at }: Boot): string => `${id.slice(0, 8)} ${at}`

/**
 * Milliseconds to add to times of the process that wrote `from`. After a reboot 0: both are near
 * UTC.
 */
function shiftMs(from: string | undefined, to: string | undefined): number {
  if (from === undefined || to === undefined) return 0
  const [fromId, fromAt] = from.split(' ')
  const [toId, toAt] = to.split(' ')
  return fromId === toId ? Number(toAt) - Number(fromAt) : 0
}

const noLine: StoredLine = { slot: Buffer.alloc(0), length: 0 }
