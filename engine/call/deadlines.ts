/**
 * Many deadlines on one timer: every call has several (silence, ringing, grant), nearly all are
 * cancelled, so a timer of the runtime for each would cost more than the work they guard. Late by
 * at most one tick, never early.
 */

/** Runs `act` once after `delayMs`; the returned function calls it off. */
export type Schedule = (act: () => void, delayMs: number) => () => void

export interface Deadline {
  readonly slot: number
  /** Cleared when it is cancelled or has passed: V8 may hold the deadline for a while (`ReleasingMap`). */
  act: (() => void) | undefined
}

export interface DeadlinesDeps {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

const TICK_MS = 50

export class Deadlines {
  readonly #deps: DeadlinesDeps
  /** Deadlines by the tick at which they are due. */
  readonly #slots = new Map<number, Set<Deadline>>()
  #lastSlot: number
  #cancelTick: (() => void) | undefined

  constructor(deps: DeadlinesDeps) {
    this.#deps = deps
    this.#lastSlot = Math.floor(deps.now() / TICK_MS)
  }

  /** Calls `act` at `timeMs` (by the steady clock) or up to a tick later, unless cancelled before. */
  at(timeMs: number, act: () => void): Deadline {
    if (this.#slots.size === 0) this.#lastSlot = Math.floor(this.#deps.now() / TICK_MS)
    const deadline: Deadline = {
      slot: Math.max(Math.ceil(timeMs / TICK_MS), this.#lastSlot + 1),
      act,
    }
    const slot = this.#slots.get(deadline.slot)
    if (slot) slot.add(deadline)
    else this.#slots.set(deadline.slot, new Set([deadline]))
    this.#cancelTick ??= this.#deps.schedule(this.#tick, TICK_MS)
    return deadline
  }

  /** Safe to repeat, and after the deadline has passed. */
  cancel(deadline: Deadline | undefined): void {
    if (!deadline) return
    deadline.act = undefined
    const slot = this.#slots.get(deadline.slot)
    if (!slot) return
    slot.delete(deadline)
    if (slot.size === 0) this.#slots.delete(deadline.slot)
  }

  get size(): number {
    let size = 0
    for (const slot of this.#slots.values()) size += slot.size
    return size
  }

  /** Forgets every deadline. */
  stop(): void {
    this.#slots.clear()
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  readonly #tick = (): void => {
    const from = this.#lastSlot + 1
    const present = Math.floor(this.#deps.now() / TICK_MS)
    // Set first: deadlines that `act` adds come after this tick.
    this.#lastSlot = Math.max(this.#lastSlot, present)
    this.#cancelTick = this.#deps.schedule(this.#tick, TICK_MS)
    // After a long pause there are fewer slots than ticks.
    if (present - from > this.#slots.size) {
      for (const slot of [...this.#slots.keys()].toSorted((a, b) => a - b))
        if (slot <= present) this.#run(slot)
    } else for (let slot = from; slot <= present; slot++) this.#run(slot)
    if (this.#slots.size > 0) return
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  #run(slot: number): void {
    const due = this.#slots.get(slot)
    if (!due) return
    for (const deadline of due) {
      due.delete(deadline)
      const { act } = deadline
      deadline.act = undefined
      act?.()
    }
    this.#slots.delete(slot)
  }
}
