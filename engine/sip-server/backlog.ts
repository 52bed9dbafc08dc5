/**
 * How long a datagram waits until it is read. Under overload the event loop itself turns quickly: a
 * turn reads a few datagrams, and thousands wait in the kernel's buffer, where the process cannot
 * see them. So a datagram of our own is sent through the same queue ten times a second, and its age
 * is the delay.
 */

/**
 * No SIP message begins so; neither does a keep-alive of a NAT binding that holds only such bytes.
 */
const mark = 0x01

/**
 * The kernel has dropped a datagram that was not read by then: its buffer is full. Milliseconds.
 */
const lostAfterMs = 2_000

/** One queue: a socket of ours. */
export class Backlog {
  /** Milliseconds of a clock that does not jump. */
  readonly #now: () => number
  readonly #prefix: string
  /** Datagrams that were sent and not read yet, oldest first: text and time. */
  readonly #underway = new Map<string, number>()
  #sent = 0
  #measuredMs: number | undefined
  #isLosing = false

  /** @param token unguessable letters and digits */
  constructor(now: () => number, token: string) {
    this.#now = now
    this.#prefix = `${String.fromCharCode(mark)}${token}-`
  }

  /** The next datagram to send to this queue. */
  next(): string {
    const now = this.#now()
    for (const [text, sentAt] of this.#underway)
      if (now - sentAt >= lostAfterMs) {
        this.#underway.delete(text)
        this.#isLosing = true
      }
    const text = `${this.#prefix}${++this.#sent}`
    this.#underway.set(text, now)
    return text
  }

  /** Whether the datagram is one of ours; notes its age. */
  takes(bytes: Buffer): boolean {
    if (bytes[0] !== mark) return false
    const text = bytes.toString('latin1')
    if (!text.startsWith(this.#prefix)) return false
    const sentAt = this.#underway.get(text)
    if (sentAt === undefined) return true
    this.#underway.delete(text)
    this.#measuredMs = this.#now() - sentAt
    this.#isLosing = false
    return true
  }

  /** Milliseconds; 0 as long as nothing has ever come back: a queue that cannot be measured. */
  get delayMs(): number {
    if (this.#measuredMs === undefined) return 0
    if (this.#isLosing) return lostAfterMs
    const [oldest] = this.#underway.values()
    const age = oldest === undefined ? 0 : this.#now() - oldest
    return Math.max(this.#measuredMs, age)
  }
}
