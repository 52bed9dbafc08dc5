/**
 * When OPTIONS are sent (SPECIFICATION.md §11). Each target has a fixed slot in the interval, so
 * the schedule does not drift and the load is spread. A probe is one OPTIONS and, if that is silent
 * for half of the timeout, a second one: either answer counts. Probes of one target never overlap.
 *
 * With interval 500, timeout 400 and 3 failures, a node that dies right after it answered is out
 * after 3 × 500 + 400 = 1900 ms, because two probes never start further apart than the interval.
 */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { ProbeSettings } from './destination-set.ts'

export type ProbeResult =
  | { readonly kind: 'answered'; readonly status: number; readonly reason: string }
  | { readonly kind: 'silence' }
  | { readonly kind: 'transport-error'; readonly reason: string }
  /**
   * The OPTIONS did not leave, for no fault of the destination: our SIP server is unreachable. No
   * verdict.
   */
  | { readonly kind: 'unsent' }

/**
 * Sends one OPTIONS, whose final answer is of interest for `timeoutMs`. `done` is called at most
 * once, perhaps at once, or later than that.
 */
export type SendProbe = (
  destination: string,
  timeoutMs: number,
  done: (result: ProbeResult) => void,
) => void

export interface ProbeTarget {
  readonly id: number
  readonly destination: string
  readonly settings: ProbeSettings
}

/** How one probe ended. */
export interface Verdict {
  /** When it ended, milliseconds UTC. */
  readonly at: number
  /** An answer whose status is one of the target's `okCodes`. */
  readonly isUp: boolean
  /** 0: no answer. */
  readonly status: number
  readonly reason: string
  /** Round trip of the OPTIONS that was answered. */
  readonly latencyMs: number | undefined
}

export interface ProberDeps {
  readonly now: () => number
  readonly schedule: Schedule
  readonly sendProbe: SendProbe
  readonly onVerdict: (id: number, verdict: Verdict) => void
  /**
   * How long an answer that has arrived may wait to be read, while we are busy. Default: not at
   * all.
   */
  readonly lagMs?: (() => number) | undefined
}

/** Slots one golden ratio apart stay evenly spread however many targets come and go. */
const GOLDEN_RATIO = 0.618_033_988_749_895

/**
 * Targets in one slot are probed together, so that they share their timers and the wake-ups of the
 * process (`npm run bench -- probes`).
 */
const SLOT_MS = 50

export class Prober {
  readonly #deps: ProberDeps
  readonly #loops = new Map<number, ProbeLoop>()
  /** By interval, timeout and slot. */
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
    const slotMs = Math.ceil(((this.#targetsSeen * GOLDEN_RATIO) % 1) * slots) * SLOT_MS
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
    const free = [...this.#loops].filter((loop) => loop.isFreeWhenDue())
    if (free.length > 0) new Volley(free, this.#deps).begin()
  }
}

/**
 * A timer or an answer this late means that the process itself is slow, not that the node is
 * silent.
 */
const STALL_MS = 20

/** A node is not blamed for so much delay of this process; a slower process cannot probe. */
const MAX_DOUBT_MS = 3_000

/**
 * Probes that begin together: at most two OPTIONS and one verdict for each. They share their
 * timers.
 */
class Volley {
  readonly #loops: readonly ProbeLoop[]
  readonly #deps: ProberDeps
  readonly #timeoutMs: number
  readonly #deadline: number
  #open: number
  #cancelTimer: Cancel | undefined

  /** @param loops at least one; all have the same timeout. */
  constructor(loops: readonly ProbeLoop[], deps: ProberDeps) {
    this.#loops = loops
    this.#deps = deps
    this.#timeoutMs = loops[0]?.target.settings.timeoutMs ?? 0
    this.#deadline = deps.now() + this.#timeoutMs
    this.#open = loops.length
  }

  begin(): void {
    const halfMs = this.#timeoutMs / 2
    this.#cancelTimer = this.#deps.schedule(() => this.#repeat(halfMs), halfMs)
    for (const loop of this.#loops) loop.begin(this, this.#timeoutMs)
  }

  /** One probe of the volley is over. */
  ended(): void {
    this.#open -= 1
    if (this.#open === 0) this.#cancelTimer?.()
  }

  #repeat(halfMs: number): void {
    const leftMs = Math.max(0, Math.ceil(this.#deadline - this.#deps.now()))
    this.#cancelTimer = this.#deps.schedule(() => this.#onDeadline(), leftMs)
    for (const loop of this.#loops) loop.repeat(this, this.#timeoutMs - halfMs)
  }

  #onDeadline(isLastWord = false): void {
    const at = this.#deps.now()
    // After a stall, or behind what waits, answers may be in the socket: let them be read first.
    const doubtMs = this.#doubtMs(at - this.#deadline, isLastWord)
    if (doubtMs > 0) this.#cancelTimer = this.#deps.schedule(() => this.#onDeadline(true), doubtMs)
    else for (const loop of this.#loops) loop.giveUp(this, at)
  }

  #doubtMs(lateMs: number, isLastWord: boolean): number {
    const lagMs = this.#deps.lagMs?.() ?? 0
    if (lateMs >= MAX_DOUBT_MS) return 0
    if (lagMs > STALL_MS) return lagMs + STALL_MS - lateMs
    return lateMs > STALL_MS && !isLastWord ? STALL_MS : 0
  }
}

class ProbeLoop {
  readonly target: ProbeTarget
  readonly #deps: ProberDeps
  /** That of the probe on its way. */
  #volley: Volley | undefined
  #isDueWaiting = false

  constructor(target: ProbeTarget, deps: ProberDeps) {
    this.target = target
    this.#deps = deps
  }

  stop(): void {
    this.#isDueWaiting = false
    this.#leaveVolley()
  }

  probeNow(): void {
    if (!this.#volley) new Volley([this], this.#deps).begin()
  }

  /** A due probe waits for one that a failed call has started: never two, never a longer gap. */
  isFreeWhenDue(): boolean {
    if (!this.#volley) return true
    this.#isDueWaiting = true
    return false
  }

  begin(volley: Volley, timeoutMs: number): void {
    this.#volley = volley
    this.#send(volley, timeoutMs)
  }

  /** The second OPTIONS, unless there was an answer. */
  repeat(volley: Volley, timeoutMs: number): void {
    if (volley === this.#volley) this.#send(volley, timeoutMs)
  }

  /** The verdict, unless there was an answer. */
  giveUp(volley: Volley, at: number): void {
    if (volley === this.#volley) this.#finish(noAnswer(at, 'no answer'))
  }

  #send(volley: Volley, timeoutMs: number): void {
    const { now, sendProbe } = this.#deps
    const sentAt = now()
    try {
      sendProbe(this.target.destination, timeoutMs, (result) =>
        this.#onResult(volley, result, sentAt),
      )
    } catch (error) {
      this.#onResult(volley, { kind: 'transport-error', reason: String(error) }, sentAt)
    }
  }

  #onResult(volley: Volley, result: ProbeResult, sentAt: number): void {
    // Silence of the first OPTIONS proves nothing while the second is on its way.
    if (volley !== this.#volley || result.kind === 'silence') return
    if (result.kind === 'unsent') return this.#settle()
    const at = this.#deps.now()
    if (result.kind === 'transport-error') return this.#finish(noAnswer(at, result.reason))
    const { status, reason } = result
    const isUp = this.target.settings.okCodes.some(({ from, to }) => status >= from && status <= to)
    return this.#finish({ at, isUp, status, reason, latencyMs: at - sentAt })
  }

  #settle(): void {
    this.#leaveVolley()
    const isDue = this.#isDueWaiting
    this.#isDueWaiting = false
    if (isDue) this.probeNow()
  }

  #finish(verdict: Verdict): void {
    this.#settle()
    this.#deps.onVerdict(this.target.id, verdict)
  }

  #leaveVolley(): void {
    const volley = this.#volley
    this.#volley = undefined
    volley?.ended()
  }
}

const noAnswer = (at: number, reason: string): Verdict => ({
  at,
  isUp: false,
  status: 0,
  reason,
  latencyMs: undefined,
})

function isSameTarget(one: ProbeTarget, other: ProbeTarget): boolean {
  return (
    one.destination === other.destination &&
    JSON.stringify(one.settings) === JSON.stringify(other.settings)
  )
}
