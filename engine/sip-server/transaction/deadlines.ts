/**
 * All deadlines of the stack. Nearly every timer of SIP has one of a dozen fixed delays, and time
 * only moves forward, so one first-in-first-out queue per delay is always sorted: starting and
 * cancelling cost a few nanoseconds whatever the number of calls. A cancelled entry forgets its
 * target at once and leaves its queue when its time comes.
 */
export interface Timed<Name extends string> {
  onTimer(name: Name, now: number): void
}

export class Deadline<Name extends string = string> {
  readonly at: number
  readonly name: Name
  target: Timed<Name> | undefined

  constructor(at: number, name: Name, target: Timed<Name>) {
    this.at = at
    this.name = name
    this.target = target
  }

  cancel(): void {
    this.target = undefined
  }
}

interface Queue {
  entries: Deadline[]
  head: number
}

/** Spent entries at the front of a queue before it is cut; keeps cutting rare and memory small. */
const MAX_SPENT = 1_024

export class Deadlines {
  readonly #queues = new Map<number, Queue>()

  /** Calls `target.onTimer(name, …)` once, `delayMs` after `now`. */
  start<Name extends string>(
    target: Timed<Name>,
    name: Name,
    delayMs: number,
    now: number,
  ): Deadline<Name> {
    const deadline = new Deadline(now + delayMs, name, target)
    const queue = this.#queues.get(delayMs)
    // `name` of a stored entry always goes back to the target that came with it.
    const entry = deadline as unknown as Deadline
    if (queue) queue.entries.push(entry)
    else this.#queues.set(delayMs, { entries: [entry], head: 0 })
    return deadline
  }

  next(): number | undefined {
    return this.#earliest()?.entry.at
  }

  /** Fires everything that is due, earliest first; timers started meanwhile fire too if due. */
  expire(now: number): void {
    for (let due = this.#earliest(); due && due.entry.at <= now; due = this.#earliest()) {
      due.queue.head += 1
      const { target } = due.entry
      due.entry.target = undefined
      target?.onTimer(due.entry.name, now)
    }
  }

  /** Deadlines that are waiting, cancelled ones left out. Linear: for statistics and tests. */
  get size(): number {
    let waiting = 0
    for (const { entries, head } of this.#queues.values())
      for (let i = head; i < entries.length; i++) if (entries[i]?.target) waiting += 1
    return waiting
  }

  #earliest(): { queue: Queue; entry: Deadline } | undefined {
    let best: { queue: Queue; entry: Deadline } | undefined
    for (const [delayMs, queue] of this.#queues) {
      const entry = dropSpent(queue)
      if (!entry) this.#queues.delete(delayMs)
      else if (!best || entry.at < best.entry.at) best = { queue, entry }
    }
    return best
  }
}

/** The first entry that still has a target. */
function dropSpent(queue: Queue): Deadline | undefined {
  const { entries } = queue
  while (queue.head < entries.length && !entries[queue.head]?.target) queue.head += 1
  if (queue.head > MAX_SPENT && queue.head * 2 > entries.length) {
    entries.splice(0, queue.head)
    queue.head = 0
  }
  return entries[queue.head]
}
