/** A seeded network in virtual time that loses, delays, doubles and reorders datagrams. */

export interface Weather {
  /** Parts of all datagrams, 0 to 1. */
  readonly loss: number
  readonly doubling: number
  /** Milliseconds; each datagram takes its own time up to this, so they overtake each other. */
  readonly maxDelayMs: number
  /** After so long nothing arrives any more; Infinity: never. */
  readonly diesAfterMs: number
}

/** A participant with deadlines of its own: a stack. */
export interface Timed {
  nextDeadline(): number | undefined
  handleTimeout(now: number): void
}

interface Event {
  readonly at: number
  readonly run: () => void
}

const startMs = 1_000_000

/** Longer than any timer of a stack: what is not quiet by then never will be. */
const longestMs = 3_600_000

export class VirtualNetwork {
  now = startMs
  readonly random: () => number
  readonly #weather: Weather
  readonly #timed: Timed[] = []
  readonly #events: Event[] = []

  constructor(random: () => number, weather: Weather) {
    this.random = random
    this.#weather = weather
  }

  /** How long nothing has arrived any more; 0 while it does. */
  get deadForMs(): number {
    return Math.max(0, this.now - startMs - this.#weather.diesAfterMs)
  }

  join(timed: Timed): void {
    this.#timed.push(timed)
  }

  /** Runs `work` after `delayMs` of virtual time. */
  after(delayMs: number, work: () => void): void {
    const event = { at: this.now + delayMs, run: work }
    let index = this.#events.length
    while (index > 0 && (this.#events[index - 1]?.at ?? 0) > event.at) index -= 1
    this.#events.splice(index, 0, event)
  }

  /** Sends one datagram into the weather. */
  carry(deliver: () => void): void {
    const { loss, doubling, maxDelayMs, diesAfterMs } = this.#weather
    if (this.now - startMs > diesAfterMs) return
    const copies = this.random() < doubling ? 2 : 1
    for (let copy = 0; copy < copies; copy++)
      if (this.random() >= loss) this.after(this.random() * maxDelayMs, deliver)
  }

  /** Lets time pass until nothing is in flight and no deadline is pending. */
  runUntilQuiet(): void {
    const end = this.now + longestMs
    for (;;) {
      const event = this.#events[0]
      const waiting = this.#earliestTimed()
      const at = Math.min(event?.at ?? Infinity, waiting?.at ?? Infinity)
      if (at === Infinity) return
      if (at > end) throw new Error('the stacks never become quiet')
      this.now = Math.max(this.now, at)
      if (event && event.at <= (waiting?.at ?? Infinity)) {
        this.#events.shift()
        event.run()
      } else waiting?.timed.handleTimeout(this.now)
    }
  }

  #earliestTimed(): { timed: Timed; at: number } | undefined {
    let best: { timed: Timed; at: number } | undefined
    for (const timed of this.#timed) {
      const at = timed.nextDeadline()
      if (at !== undefined && (best === undefined || at < best.at)) best = { timed, at }
    }
    return best
  }
}
