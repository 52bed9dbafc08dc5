/**
 * The last SIP messages between server and call control, received and sent. During a call they are
 * only copied into one block of memory outside the garbage-collected heap. They are parsed for a
 * trace.
 */
import type { MessageFlow } from '../../sip-server/application.ts'

export interface LoggedMessage {
  /** Milliseconds UTC. */
  readonly at: number
  /** `received` or `sent`, protocol, address and port on the first line, then the message. */
  readonly payload: string
}

/**
 * Holds about 11 seconds of 200 calls/s, or 18 minutes of two. The system gives the memory as it
 * fills.
 */
const BYTES = 32 * 1_048_576
/** Few messages are shorter. */
const BYTES_OF_A_MESSAGE = 512
/** Searched in one go: about a millisecond. */
const SLICE_BYTES = 2 * 1_048_576
/** UTF-8 of a string takes at most this many bytes per character. */
const WIDEST = 3

export class MessageLog {
  readonly #now: () => number
  /** The log is complete since then if it has dropped none; Infinity: one exceeded the memory. */
  #completeSince: number
  readonly #bytes: Buffer
  /** The most messages that are stored, however short they are. */
  readonly #slots: number
  /** Start of each message in `#bytes`, by message number modulo `#slots`. */
  readonly #starts: Uint32Array
  readonly #lengths: Uint32Array
  readonly #times: Float64Array
  /** Numbers of the oldest message and of the next. */
  #oldest = 0
  #next = 0
  /** The position of the next message. */
  #position = 0
  /** First lines by peer, or by the listener that has sent; only UDP has one object for each. */
  readonly #heads = new WeakMap<object, string>()

  /** `now` in milliseconds UTC. */
  constructor(now: () => number, bytes = BYTES) {
    this.#now = now
    this.#completeSince = now()
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
    this.#slots = Math.max(100, Math.ceil(bytes / BYTES_OF_A_MESSAGE))
    this.#starts = new Uint32Array(this.#slots)
    this.#lengths = new Uint32Array(this.#slots)
    this.#times = new Float64Array(this.#slots)
  }

  add(direction: 'received' | 'sent', flow: MessageFlow, text: string): void {
    const head = this.#headOf(direction, flow)
    const room = (head.length + text.length) * WIDEST
    if (room > this.#bytes.length) {
      this.#completeSince = Infinity
      return
    }
    this.#makeRoom(room)
    const slot = this.#next++ % this.#slots
    const headBytes = this.#bytes.write(head, this.#position)
    const length = headBytes + this.#bytes.write(text, this.#position + headBytes)
    this.#starts[slot] = this.#position
    this.#lengths[slot] = length
    this.#times[slot] = this.#now()
    this.#position += length
  }

  #headOf(direction: 'received' | 'sent', flow: MessageFlow): string {
    const { listener } = flow
    if (listener.protocol !== 'udp') return headOf(direction, flow)
    const sender = direction === 'sent' ? listener : flow
    const known = this.#heads.get(sender)
    if (known !== undefined) return known
    const head = headOf(direction, flow)
    this.#heads.set(sender, head)
    return head
  }

  /** How many messages are stored. */
  get size(): number {
    return this.#next - this.#oldest
  }

  /** The log has every message from this time on. */
  get since(): number {
    if (this.#oldest === 0) return this.#completeSince
    return this.#times[this.#oldest % this.#slots] ?? 0
  }

  /**
   * Returns the messages of these Call-IDs, oldest first. `pause` lets calls continue between two
   * slices.
   */
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
    // A hit may have been overwritten by another message since the search: the text is checked
    // again.
    const candidates = this.#at(
      hits.toSorted((a, b) => a - b),
      from,
    )
    return candidates.filter(({ payload }) => callIds.some((callId) => payload.includes(callId)))
  }

  #search(callId: string, start: number, hits: number[]): void {
    const slice = this.#bytes.subarray(start, start + SLICE_BYTES + callId.length)
    for (let hit = slice.indexOf(callId); hit !== -1; hit = slice.indexOf(callId, hit + 1))
      hits.push(start + hit)
  }

  /** The messages that lie at these places. */
  #at(hits: readonly number[], from: number): LoggedMessage[] {
    const messages: LoggedMessage[] = []
    for (let number = this.#oldest; number < this.#next; number++) {
      const slot = number % this.#slots
      const start = this.#starts[slot] ?? 0
      const end = start + (this.#lengths[slot] ?? 0)
      const at = this.#times[slot] ?? 0
      if (at < from || !hasBetween(hits, start, end)) continue
      messages.push({ at, payload: this.#bytes.toString('utf8', start, end) })
    }
    return messages
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
