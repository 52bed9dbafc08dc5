/**
 * The last SIP messages as they passed between server and call control, received and sent. On the way
 * of a call they are only copied into one block of memory outside the garbage-collected heap; they are parsed
 * when a trace is asked for.
 */

import type { MessageFlow } from '../../sip-server/application.ts'

export interface LoggedMessage {
  /** Milliseconds UTC. */
  readonly at: number
  /** `received` or `sent`, protocol, address and port on the first line, then the message. */
  readonly payload: string
}

/** About 11 seconds of 200 calls/s, 18 minutes of two. Taken from the system as it fills. */
const BYTES = 32 * 1_048_576
/** Few messages are shorter. */
const BYTES_OF_A_MESSAGE = 512
/** Searched in one go: about a millisecond. */
const SLICE_BYTES = 2 * 1_048_576
/** UTF-8 of a string takes at most this many bytes per character. */
const WIDEST = 3

export class MessageLog {
  readonly #now: () => number
  readonly #bytes: Buffer
  /** How many there may be, however short. */
  readonly #slots: number
  /** By message number, modulo `#slots`. */
  readonly #starts: Uint32Array
  readonly #lengths: Uint32Array
  readonly #times: Float64Array
  /** Numbers of the oldest message and of the next. */
  #oldest = 0
  #next = 0
  /** Where the next message goes. */
  #position = 0

  /** `now` in milliseconds UTC. */
  constructor(now: () => number, bytes = BYTES) {
    this.#now = now
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
    this.#slots = Math.max(100, Math.ceil(bytes / BYTES_OF_A_MESSAGE))
    this.#starts = new Uint32Array(this.#slots)
    this.#lengths = new Uint32Array(this.#slots)
    this.#times = new Float64Array(this.#slots)
  }

  add(direction: 'received' | 'sent', flow: MessageFlow, text: string): void {
    const head = headOf(direction, flow)
    const room = (head.length + text.length) * WIDEST
    if (room > this.#bytes.length) return
    this.#makeRoom(room)
    const slot = this.#next++ % this.#slots
    const headBytes = this.#bytes.write(head, this.#position)
    const length = headBytes + this.#bytes.write(text, this.#position + headBytes)
    this.#starts[slot] = this.#position
    this.#lengths[slot] = length
    this.#times[slot] = this.#now()
    this.#position += length
  }

  /** How many messages are kept. */
  get size(): number {
    return this.#next - this.#oldest
  }

  /** Time of the oldest message that is still kept; undefined: there is none. */
  get since(): number | undefined {
    return this.size === 0 ? undefined : this.#times[this.#oldest % this.#slots]
  }

  /** Those of these Call-IDs, oldest first. `pause` lets calls go on between two slices. */
  async find(
    callIds: readonly string[],
    from: number,
    pause: () => Promise<void>,
  ): Promise<readonly LoggedMessage[]> {
    const hits: number[] = []
    for (const callId of callIds)
      for (let start = 0; start < this.#bytes.length; start += SLICE_BYTES) {
        this.#search(callId, start, hits)
        await pause()
      }
    // Calls went on meanwhile: a hit may lie in another message by now, which is looked at again.
    const found = this.#at(
      hits.toSorted((a, b) => a - b),
      from,
    )
    return found.filter(({ payload }) => callIds.some((callId) => payload.includes(callId)))
  }

  #search(callId: string, start: number, hits: number[]): void {
    const slice = this.#bytes.subarray(start, start + SLICE_BYTES + callId.length)
    for (let hit = slice.indexOf(callId); hit !== -1; hit = slice.indexOf(callId, hit + 1))
      hits.push(start + hit)
  }

  /** The messages that lie at these places. */
  #at(hits: readonly number[], from: number): LoggedMessage[] {
    const found: LoggedMessage[] = []
    for (let number = this.#oldest; number < this.#next; number++) {
      const slot = number % this.#slots
      const start = this.#starts[slot] ?? 0
      const end = start + (this.#lengths[slot] ?? 0)
      const at = this.#times[slot] ?? 0
      if (at < from || !hasBetween(hits, start, end)) continue
      found.push({ at, payload: this.#bytes.toString('utf8', start, end) })
    }
    return found
  }

  /** The oldest messages are those behind the position where is written. */
  #makeRoom(room: number): void {
    if (this.#position + room > this.#bytes.length) {
      this.#forgetUpTo(this.#bytes.length)
      this.#position = 0
    }
    this.#forgetUpTo(this.#position + room)
    if (this.size === this.#slots) this.#oldest += 1
  }

  #forgetUpTo(end: number): void {
    while (this.size > 0) {
      const start = this.#starts[this.#oldest % this.#slots] ?? 0
      if (start < this.#position || start >= end) return
      this.#oldest += 1
    }
  }
}

/** Whether one of these ascending numbers is at least `start` and below `end`. */
function hasBetween(numbers: readonly number[], start: number, end: number): boolean {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[middle] ?? 0) < start) low = middle + 1
    else high = middle
  }
  return (numbers[low] ?? end) < end
}

/** A message that was sent by UDP shows our listener, one by a stream its far end. */
function headOf(direction: 'received' | 'sent', { listener, address, port }: MessageFlow): string {
  const { protocol, advertisedHost, advertisedPort } = listener
  const isOwn = direction === 'sent' && protocol === 'udp'
  const place = isOwn ? `${advertisedHost}|${advertisedPort}` : `${address}|${port}`
  return `${direction}|${protocol}|${place}\r\n`
}
