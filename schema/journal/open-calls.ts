/** The calls that are not stored yet, each with its lines as they are written. */
import { ReleasingMap } from '../../engine/sip-server/message/index.ts'
import type { JournalEntry, LeftState } from './call-journal.ts'
import type { CallRecord } from '../call-record.ts'
import { checked, textOf } from './journal-file.ts'
import {
  callForm,
  grantForm,
  isStateLine,
  type KeptLine,
  type Line,
  LineMemory,
  noLine,
  readAnswered,
  readLine,
  readStateLine,
  shiftMs,
  toLine,
} from './lines.ts'

const lineKinds = ['begun', 'answered', 'state', 'ended'] as const
type LineKind = (typeof lineKinds)[number]

/** Empty lines: there is none, or it does not count any more. */
export interface OpenLines extends Record<LineKind, KeptLine> {
  readonly callUuid: string
  /** 0: before the first heartbeat. */
  aliveAt: number
  /** They are in a file that is to be removed. */
  isOld: boolean
}

export class OpenCalls {
  readonly #boot: string | undefined
  readonly #memory = new LineMemory()
  readonly #calls = new ReleasingMap<string, OpenLines>()
  #bytes = 0

  /** @param boot of the times that are noted, and of those that `left` returns. */
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

  /** Takes in a line of an earlier run. */
  takeIn(text: string): void {
    if (isStateLine(text)) {
      const { saved: callUuid } = readStateLine(text).head
      if (this.takesState(callUuid)) this.note(callUuid, 'state', checked(text), true)
      return
    }
    const line = JSON.parse(text) as Line
    if ('gone' in line) this.forget(line.gone)
    else if ('stopped' in line)
      for (const lines of this.#calls.values()) this.#set(lines, 'state', noLine)
    else if ('alive' in line) this.noteAlive(line.alive, line.at + shiftMs(line.boot, this.#boot))
    else if ('ended' in line) this.note(line.ended.callUuid, 'ended', checked(text), true)
    else if ('begun' in line) this.note(String(line.begun[0]), 'begun', checked(text), true)
    else if ('answered' in line)
      this.note(readAnswered(line).call.callUuid, 'answered', checked(text), true)
  }

  /** `line` becomes one of the lines of a call. */
  note(callUuid: string, kind: LineKind, line: Buffer, isOld = false): void {
    let lines = this.#calls.get(callUuid)
    if (lines === undefined) {
      const none = { begun: noLine, answered: noLine, state: noLine, ended: noLine }
      lines = { callUuid, ...none, aliveAt: 0, isOld }
      this.#calls.set(callUuid, lines)
    }
    this.#set(lines, kind, this.#memory.keep(line))
    if (kind === 'answered') this.#set(lines, 'begun', noLine)
    if (kind === 'ended') this.#set(lines, 'state', noLine)
  }

  /** The call is not restored from a state that it had before. */
  forgetState(callUuid: string): void {
    const lines = this.#calls.get(callUuid)
    if (lines !== undefined) this.#set(lines, 'state', noLine)
  }

  #set(lines: OpenLines, kind: LineKind, line: KeptLine): void {
    this.#bytes += line.length - lines[kind].length
    this.#memory.release(lines[kind])
    lines[kind] = line
  }

  /** It is answered and has not ended. */
  takesState(callUuid: string): boolean {
    const lines = this.#calls.get(callUuid)
    return lines !== undefined && isThere(lines.answered) && !isThere(lines.ended)
  }

  noteAlive(callUuids: readonly string[], at: number): void {
    for (const callUuid of callUuids) {
      const lines = this.#calls.get(callUuid)
      if (lines !== undefined) lines.aliveAt = at
    }
  }

  /** Of its lines only the end is of use any more. False: there is none. */
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

  /** What a start has found, oldest first. */
  left(): readonly JournalEntry[] {
    return [...this.#calls.values()].map((lines) => this.#entryOf(lines))
  }

  #entryOf({ callUuid, begun, answered, state, ended, aliveAt }: OpenLines): JournalEntry {
    if (isThere(ended)) {
      const { ended: record, terms } = readLine<Extract<Line, { ended: CallRecord }>>(ended)
      return { kind: 'ended', callUuid, record, terms }
    }
    if (!isThere(answered)) {
      const { begun: call } = readLine<Extract<Line, { begun: unknown }>>(begun)
      return { kind: 'unanswered', callUuid, call: callForm.read(call) }
    }
    const line = readAnswered(readLine<Extract<Line, { answered: unknown }>>(answered))
    const answeredMs = line.answeredMs + shiftMs(line.boot, this.#boot)
    return {
      kind: 'cut',
      callUuid,
      call: line.call,
      tariff: line.tariff,
      talkedMs: Math.max(0, aliveAt - answeredMs),
      ...(isThere(state) && { state: this.#stateOf(state, answeredMs) }),
    }
  }

  #stateOf({ slot, length }: KeptLine, answeredMs: number): LeftState {
    const { head, text } = readStateLine(textOf(slot, length))
    const grant = head.grant && grantForm.read(head.grant)
    return { text, grant, answeredMs, shiftMs: shiftMs(head.boot, this.#boot) }
  }

  /** Copies: its memory may have another line when they are written. */
  asWritten({ callUuid, aliveAt, ...lines }: OpenLines): readonly Buffer[] {
    const written = lineKinds
      .map((kind) => lines[kind])
      .filter(isThere)
      .map(({ slot, length }) => Buffer.from(slot.subarray(0, length)))
    // Of an ended call it no longer counts how long it lived.
    if (isThere(lines.ended) || aliveAt === 0) return written
    return [...written, toLine({ alive: [callUuid], at: aliveAt, boot: this.#boot })]
  }
}

const isThere = ({ length }: KeptLine): boolean => length > 0
