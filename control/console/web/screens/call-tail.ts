/** Calls that end while their list is looked at: which are to be asked for, and which match. */
import type { CallRecordView } from '../api/views.ts'

/** An event of the stream. */
interface HeardEvent {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

interface EndedEvent {
  readonly uuid: string
  readonly start: string
  readonly heardAt: number
}

/** The record of a call is written within so much. */
const WRITTEN_MS = 1_000
/** Calls that are asked for at once; those beyond are only counted. */
const MAX_ASKED = 10
/** Calls that wait to be asked for. */
const MAX_WAITING = 50
/** New rows on top of the list. */
const MAX_FRESH = 200

export class CallTail {
  #waiting: EndedEvent[] = []
  #rows: readonly CallRecordView[] = []
  #missed = 0

  /** Newest first. */
  get rows(): readonly CallRecordView[] {
    return this.#rows
  }

  /** Calls that have ended and were not looked at: there were too many at once. */
  get missed(): number {
    return this.#missed
  }

  clear(): void {
    this.#waiting = []
    this.#rows = []
    this.#missed = 0
  }

  hear({ type, data }: HeardEvent, present: number): void {
    const { call_uuid: uuid, start_stamp: start } = data
    if (type !== 'call.ended' || typeof uuid !== 'string' || typeof start !== 'string') return
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push({ uuid, start, heardAt: present })
    else this.#missed += 1
  }

  /** Takes those whose records are there by now. */
  due(present: number): readonly Pick<EndedEvent, 'uuid' | 'start'>[] {
    const isWritten = ({ heardAt }: EndedEvent) => present - heardAt >= WRITTEN_MS
    const due = this.#waiting.filter(isWritten).slice(0, MAX_ASKED)
    this.#waiting = this.#waiting.filter((event) => !due.includes(event))
    return due
  }

  add(record: CallRecordView): void {
    if (this.#rows.some(({ call_uuid: uuid }) => uuid === record.call_uuid)) return
    this.#rows = [record, ...this.#rows].slice(0, MAX_FRESH)
  }
}
