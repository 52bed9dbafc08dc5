/**
 * All deadlines of the stack. Nearly every timer of SIP has one of a dozen fixed delays, and time
 * only moves forward, so one chain per delay is always sorted: starting and cancelling cost a few
 * nanoseconds whatever the number of calls. A cancelled deadline leaves its chain at once: most are
 * cancelled, and some would otherwise stay in memory for minutes.
 */

export interface TimerTarget<Name extends string> {
  onTimer(name: Name, now: number): void
}

/** A collection whose entries end without a deadline each. */
export interface ExpiringEntries {
  /** When the first of them ends. */
  readonly nextExpiry: number | undefined
  expire(now: number): void
}

/** Deadlines of one delay, earliest first. */
interface Chain {
  readonly delayMs: number
  first: Deadline | undefined
  last: Deadline | undefined
  size: number
}

export class Deadline<Name extends string = string> {
  readonly at: number
  readonly name: Name
  /** Absent once it has fired or was cancelled. */
  target: TimerTarget<Name> | undefined
  readonly chain: Chain
  before: Deadline | undefined = undefined
  after: Deadline | undefined = undefined

  constructor(at: number, name: Name, target: TimerTarget<Name>, chain: Chain) {
    this.at = at
    this.name = name
    this.target = target
    this.chain = chain
  }

  cancel(): void {
    if (this.target === undefined) return
    this.target = undefined
    const { before, after, chain } = this
    chain.size -= 1
    if (before) before.after = after
    else chain.first = after
    if (after) after.before = before
    else chain.last = before
    // Links of a dead entry would keep its neighbours in memory.
    this.before = undefined
    this.after = undefined
  }
}

/** Beyond so many chains the empty ones are deleted: unusual delays must not fill the memory. */
const MAX_CHAINS = 32

export class Deadlines {
  #chains: Chain[] = []
  readonly #watched: ExpiringEntries[] = []

  /** Calls `expiring.expire` from now on, until the process ends. */
  watch(expiring: ExpiringEntries): void {
    this.#watched.push(expiring)
  }

  /** Calls `target.onTimer(name, …)` once, `delayMs` after `now`. */
  start<Name extends string>(
    target: TimerTarget<Name>,
    name: Name,
    delayMs: number,
    now: number,
  ): Deadline<Name> {
    const chain = this.#chainOf(delayMs)
    const deadline = new Deadline(now + delayMs, name, target, chain)
    // `name` of a chained entry always goes back to the target that came with it.
    const entry = deadline as unknown as Deadline
    const { last } = chain
    entry.before = last
    if (last) last.after = entry
    else chain.first = entry
    chain.last = entry
    chain.size += 1
    return deadline
  }

  next(): number | undefined {
    let next = this.#earliest()?.at
    for (const { nextExpiry } of this.#watched)
      if (nextExpiry !== undefined && (next === undefined || nextExpiry < next)) next = nextExpiry
    return next
  }

  /** Fires everything that is due, earliest first; timers started meanwhile fire too if due. */
  expire(now: number): void {
    for (let due = this.#earliest(); due && due.at <= now; due = this.#earliest()) {
      const { target, name } = due
      due.cancel()
      target?.onTimer(name, now)
    }
    for (const expiring of this.#watched) expiring.expire(now)
  }

  /** Deadlines that are waiting. */
  get size(): number {
    let waiting = 0
    for (const { size } of this.#chains) waiting += size
    return waiting
  }

  #earliest(): Deadline | undefined {
    let best: Deadline | undefined
    for (const { first } of this.#chains)
      if (first && (best === undefined || first.at < best.at)) best = first
    return best
  }

  #chainOf(delayMs: number): Chain {
    for (const chain of this.#chains) if (chain.delayMs === delayMs) return chain
    if (this.#chains.length >= MAX_CHAINS)
      this.#chains = this.#chains.filter(({ first }) => first !== undefined)
    const chain: Chain = { delayMs, first: undefined, last: undefined, size: 0 }
    this.#chains.push(chain)
    return chain
  }
}

/** The most that a long deadline may come too early. */
const QUANTUM_MS = 250

export class LongDeadline implements TimerTarget<'step'> {
  readonly #deadlines: Deadlines
  readonly #onDue: (now: number) => void
  #at = 0
  #step: Deadline<'step'> | undefined

  constructor(deadlines: Deadlines, onDue: (now: number) => void) {
    this.#deadlines = deadlines
    this.#onDue = onDue
  }

  /** Replaces the time that was set before. */
  set(at: number, now: number): void {
    this.cancel()
    this.#at = at
    this.#advance(now)
  }

  cancel(): void {
    this.#step?.cancel()
    this.#step = undefined
  }

  onTimer(_timer: 'step', now: number): void {
    this.#step = undefined
    if (this.#at - now < QUANTUM_MS) return this.#onDue(now)
    this.#advance(now)
  }

  /** The longest step that does not go too far: 250 ms, 1 s, 4 s, 16 s … */
  #advance(now: number): void {
    const leftMs = this.#at - now
    let stepMs = QUANTUM_MS
    while (stepMs * 4 <= leftMs) stepMs *= 4
    const delayMs = leftMs < QUANTUM_MS ? 0 : stepMs
    this.#step = this.#deadlines.start(this, 'step', delayMs, now)
  }
}
