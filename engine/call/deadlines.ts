/**
 * Many deadlines on one timer: every call has several (silence, ringing, grant), nearly all are
 * cancelled, so a timer of the runtime for each would cost more than the work they guard. Late by
 * at most one tick, never early.
 */
import type { Schedule } from '../../schema/clock.ts'

export interface CallDeadline {
  readonly slot: Slot
  /**
   * Cleared when it is cancelled or has passed: V8 may hold the deadline for a while
   * (`ReleasingMap`).
   */
  act: (() => void) | undefined
  /** Its neighbours in the slot. */
  before: CallDeadline | undefined
  after: CallDeadline | undefined
}

/** The deadlines of one tick: a list, because a `Set` costs ten times as much. */
interface Slot {
  readonly tick: number
  first: CallDeadline | undefined
  last: CallDeadline | undefined
}

export interface DeadlinesDeps {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

const TICK_MS = 50

export class CallDeadlines {
  readonly #deps: DeadlinesDeps
  /** The entries of each tick, by the tick at which their deadlines are due. */
  readonly #slots = new Map<number, Slot>()
  #size = 0
  #lastSlot: number
  #cancelTick: (() => void) | undefined

  constructor(deps: DeadlinesDeps) {
    this.#deps = deps
    this.#lastSlot = Math.floor(deps.now() / TICK_MS)
  }

  /**
   * Calls `act` at `timeMs` (by the steady clock) or up to a tick later, unless cancelled before.
   */
  at(timeMs: number, act: () => void): CallDeadline {
    if (this.#slots.size === 0) this.#lastSlot = Math.floor(this.#deps.now() / TICK_MS)
    const slot = this.#slotOf(Math.max(Math.ceil(timeMs / TICK_MS), this.#lastSlot + 1))
    const { last } = slot
    const deadline: CallDeadline = { slot, act, before: last, after: undefined }
    if (last) last.after = deadline
    else slot.first = deadline
    slot.last = deadline
    this.#size += 1
    this.#cancelTick ??= this.#deps.schedule(this.#tick, TICK_MS)
    return deadline
  }

  /** Safe to repeat, and after the deadline has passed. */
  cancel(deadline: CallDeadline | undefined): void {
    if (deadline?.act) this.#remove(deadline)
  }

  #slotOf(tick: number): Slot {
    const known = this.#slots.get(tick)
    if (known) return known
    const slot: Slot = { tick, first: undefined, last: undefined }
    this.#slots.set(tick, slot)
    return slot
  }

  #remove(deadline: CallDeadline): void {
    const { slot, before, after } = deadline
    if (before) before.after = after
    else slot.first = after
    if (after) after.before = before
    else slot.last = before
    if (slot.first === undefined) this.#slots.delete(slot.tick)
    deadline.act = undefined
    deadline.before = undefined
    deadline.after = undefined
    this.#size -= 1
  }

  get size(): number {
    return this.#size
  }

  /** Forgets every deadline. */
  stop(): void {
    for (const slot of this.#slots.values()) while (slot.first) this.#remove(slot.first)
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

  #run(tick: number): void {
    const slot = this.#slots.get(tick)
    for (let first = slot?.first; first; first = slot?.first) {
      const { act } = first
      this.#remove(first)
      act?.()
    }
  }
}
