/**
 * All deadlines of the stack. Nearly every timer of SIP has one of a dozen fixed delays, and time
 * only moves forward, so one chain per delay is always sorted: starting and cancelling cost a few
 * nanoseconds whatever the number of calls. A cancelled deadline leaves its chain at once: most are
 * cancelled, and some would otherwise stay in memory for minutes.
 */
export interface Timed<Name extends string> {
  onTimer(name: Name, now: number): void
}

/** Many things that end without a deadline each. */
export interface Expiring {
  /** When the first of them ends. */
  readonly nextExpiry: number | undefined
  expire(now: number): void
}

/** Deadlines of one delay, earliest first. */
interface Chain {
  first: Deadline | undefined
  last: Deadline | undefined
  size: number
}

export class Deadline<Name extends string = string> {
  readonly at: number
  readonly name: Name
  /** Absent once it has fired or was cancelled. */
  target: Timed<Name> | undefined
  readonly chain: Chain
  before: Deadline | undefined = undefined
  after: Deadline | undefined = undefined

  constructor(at: number, name: Name, target: Timed<Name>, chain: Chain) {
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

/** Empty chains that are kept; a delay that is not one of the usual ones does not stay for ever. */
const MAX_CHAINS = 32

export class Deadlines {
  readonly #chains = new Map<number, Chain>()
  readonly #watched: Expiring[] = []

  /** For ever. */
  watch(expiring: Expiring): void {
    this.#watched.push(expiring)
  }

  /** Calls `target.onTimer(name, …)` once, `delayMs` after `now`. */
  start<Name extends string>(
    target: Timed<Name>,
    name: Name,
    delayMs: number,
    now: number,
  ): Deadline<Name> {
    const chain = this.#chains.get(delayMs) ?? this.#newChain(delayMs)
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
    for (const { size } of this.#chains.values()) waiting += size
    return waiting
  }

  #earliest(): Deadline | undefined {
    let best: Deadline | undefined
    for (const { first } of this.#chains.values())
      if (first && (best === undefined || first.at < best.at)) best = first
    return best
  }

  #newChain(delayMs: number): Chain {
    if (this.#chains.size >= MAX_CHAINS)
      for (const [delay, { first }] of this.#chains) if (!first) this.#chains.delete(delay)
    const chain: Chain = { first: undefined, last: undefined, size: 0 }
    this.#chains.set(delayMs, chain)
    return chain
  }
}

/** How much too early it may come. */
const QUANTUM_MS = 250

export class LongDeadline implements Timed<'step'> {
  readonly #deadlines: Deadlines
  readonly #onDue: (now: number) => void
  #at = 0
  #step: Deadline<'step'> | undefined

  constructor(deadlines: Deadlines, onDue: (now: number) => void) {
    this.#deadlines = deadlines
    this.#onDue = onDue
  }

  /** Takes the place of what was set before. */
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
