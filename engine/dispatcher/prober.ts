/**
 * When OPTIONS are sent (SPECIFICATION.md §11). Each target has a fixed slot in the interval, so
 * the schedule does not drift and the load is spread. A probe is one OPTIONS and, if that is silent
 * for half of the timeout, a second one: either answer counts. Probes of one target never overlap.
 *
 * With interval 500, timeout 400 and 3 failures, a node that dies right after it answered is out
 * after 3 × 500 + 400 = 1900 ms, because two probes never start further apart than the interval.
 */
import type { Cancel } from '../../schema/clock.ts'
import { ROUND_MS } from '../../schema/rounds.ts'
import { ProbeLoop, type ProbeTarget, type ProberDeps, Volley } from './probe-loop.ts'

/** Slots one golden ratio apart stay evenly spread however many targets come and go. */
const GOLDEN_RATIO = 0.618_033_988_749_895

/**
 * Targets in one slot are probed together, so that they share their timers and the wake-ups of the
 * process (`npm run bench -- probes`).
 */
const SLOT_MS = 50

/** So many that follow each other get one slot: a few nodes wake an idle process half as often. */
const TARGETS_IN_TURN = 3

export class Prober {
  readonly #deps: ProberDeps
  readonly #loops = new Map<number, ProbeLoop>()
  /** Rounds by interval, timeout and slot. */
  readonly #rounds = new Map<string, Round>()
  #targetsSeen = 0
  #isRunning = false

  constructor(deps: ProberDeps) {
    this.#deps = deps
  }

  /**
   * Replaces the targets. A target with the same destination and settings keeps its slot and its
   * probe.
   */
  watch(targets: readonly ProbeTarget[]): void {
    const wanted = new Map(targets.map((target) => [target.id, target]))
    for (const [id, loop] of this.#loops) {
      const target = wanted.get(id)
      if (target && isSameTarget(loop.target, target)) continue
      loop.stop()
      this.#loops.delete(id)
      for (const [name, round] of this.#rounds) if (round.remove(loop)) this.#rounds.delete(name)
    }
    for (const target of targets) if (!this.#loops.has(target.id)) this.#add(target)
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    for (const round of this.#rounds.values()) round.start()
  }

  stop(): void {
    this.#isRunning = false
    for (const round of this.#rounds.values()) round.stop()
    for (const loop of this.#loops.values()) loop.stop()
  }

  /** Probes outside of the schedule, unless a probe of this target is on its way. */
  probeNow(id: number): void {
    if (this.#isRunning) this.#loops.get(id)?.probeNow()
  }

  #add(target: ProbeTarget): void {
    this.#targetsSeen += 1
    const { intervalMs, timeoutMs } = target.settings
    const slots = Math.max(1, Math.floor(intervalMs / SLOT_MS))
    const isInRounds = this.#deps.every !== undefined && intervalMs % ROUND_MS === 0
    const turn = Math.ceil(this.#targetsSeen / TARGETS_IN_TURN) - (isInRounds ? 1 : 0)
    const slotMs = Math.ceil(((turn * GOLDEN_RATIO) % 1) * slots) * SLOT_MS
    const loop = new ProbeLoop(target, this.#deps)
    this.#loops.set(target.id, loop)
    this.#roundAt(intervalMs, timeoutMs, slotMs).add(loop)
  }

  #roundAt(intervalMs: number, timeoutMs: number, slotMs: number): Round {
    const name = `${intervalMs} ${timeoutMs} ${slotMs}`
    const known = this.#rounds.get(name)
    if (known) return known
    const round = new Round(intervalMs, slotMs, this.#deps)
    this.#rounds.set(name, round)
    if (this.#isRunning) round.start()
    return round
  }
}

/** The targets of one slot of an interval, with the same timeout. */
class Round {
  readonly #intervalMs: number
  readonly #slotMs: number
  readonly #deps: ProberDeps
  readonly #loops = new Set<ProbeLoop>()
  #nextDue = 0
  #cancelDue: Cancel | undefined

  constructor(intervalMs: number, slotMs: number, deps: ProberDeps) {
    this.#intervalMs = intervalMs
    this.#slotMs = slotMs
    this.#deps = deps
  }

  add(loop: ProbeLoop): void {
    this.#loops.add(loop)
  }

  /** Whether that was the last one; the round has stopped then. */
  remove(loop: ProbeLoop): boolean {
    if (!this.#loops.delete(loop) || this.#loops.size > 0) return false
    this.stop()
    return true
  }

  start(): void {
    const { every } = this.#deps
    if (this.#slotMs === 0 && every !== undefined)
      return void (this.#cancelDue = every(this.#intervalMs, () => this.#probe()))
    this.#nextDue = this.#deps.now() + this.#slotMs
    this.#arm()
  }

  stop(): void {
    this.#cancelDue?.()
  }

  #arm(): void {
    const delayMs = Math.max(0, this.#nextDue - this.#deps.now())
    this.#cancelDue = this.#deps.schedule(() => this.#onDue(), delayMs)
  }

  #onDue(): void {
    this.#nextDue += this.#intervalMs
    const missed = Math.floor((this.#deps.now() - this.#nextDue) / this.#intervalMs) + 1
    if (missed > 0) this.#nextDue += missed * this.#intervalMs
    this.#arm()
    this.#probe()
  }

  #probe(): void {
    const free = [...this.#loops].filter((loop) => loop.isFreeWhenDue())
    if (free.length > 0) new Volley(free, this.#deps).begin()
  }
}

function isSameTarget(one: ProbeTarget, other: ProbeTarget): boolean {
  return (
    one.destination === other.destination &&
    JSON.stringify(one.settings) === JSON.stringify(other.settings)
  )
}
