/**
 * When OPTIONS are sent (SPECIFICATION.md §11). Each target has a fixed slot in the interval, so the schedule
 * does not drift and the load is spread. A probe is one OPTIONS and, if that is silent for
 * half of the timeout, a second one: either answer counts. Probes of one target never overlap.
 *
 * With interval 500, timeout 400 and 3 failures, a node that dies right after it answered is out
 * after 3 × 500 + 400 = 1900 ms, because two probes never start further apart than the interval.
 */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { ProbeSettings } from './destination-set.ts'

/** Runs `action` once after `delayMs`, unless cancelled before. */

export type ProbeResult =
  | { readonly kind: 'answered'; readonly status: number; readonly reason: string }
  | { readonly kind: 'silence' }
  | { readonly kind: 'transport-error'; readonly reason: string }
  /** It did not leave, for no fault of the destination: our SIP server is away. No verdict. */
  | { readonly kind: 'unsent' }

/** Sends one OPTIONS and waits at most `timeoutMs` for its final answer. Never rejects. */
export type SendProbe = (destination: string, timeoutMs: number) => Promise<ProbeResult>

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
  /** How long an answer that has arrived may wait to be read, while we are busy. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
}

/** Slots one golden ratio apart stay evenly spread however many targets come and go. */
const GOLDEN_RATIO = 0.618_033_988_749_895

/**
 * Targets in one slot are probed together, so that they share a wake-up of the process (`test/bench/growth.ts`):
 * 1,000 nodes cost a fifth less.
 */
const SLOT_MS = 10

export class Prober {
  readonly #deps: ProberDeps
  readonly #loops = new Map<number, ProbeLoop>()
  /** By interval and slot. */
  readonly #rounds = new Map<string, Round>()
  #targetsSeen = 0
  #isRunning = false

  constructor(deps: ProberDeps) {
    this.#deps = deps
  }

  /** Replaces the targets. A target with the same destination and settings keeps its slot and its probe. */
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
    const { intervalMs } = target.settings
    const slots = Math.max(1, Math.floor(intervalMs / SLOT_MS))
    const slotMs = Math.ceil(((this.#targetsSeen * GOLDEN_RATIO) % 1) * slots) * SLOT_MS
    const loop = new ProbeLoop(target, this.#deps)
    this.#loops.set(target.id, loop)
    this.#roundAt(intervalMs, slotMs).add(loop)
  }

  #roundAt(intervalMs: number, slotMs: number): Round {
    const name = `${intervalMs} ${slotMs}`
    const known = this.#rounds.get(name)
    if (known) return known
    const round = new Round(intervalMs, slotMs, this.#deps)
    this.#rounds.set(name, round)
    if (this.#isRunning) round.start()
    return round
  }
}

/** The targets of one slot of an interval. */
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
    for (const loop of this.#loops) loop.due()
  }
}

/** One probe on its way: at most two OPTIONS, one verdict. */
interface Attempt {
  readonly deadline: number
  readonly timers: Cancel[]
}

/** A timer or an answer this late means that the process itself is slow, not that the node is silent. */
const STALL_MS = 20

/** For so long a node gets the benefit of the doubt; a process that is slower than that is past help. */
const MAX_DOUBT_MS = 3_000

class ProbeLoop {
  readonly target: ProbeTarget
  readonly #deps: ProberDeps
  #attempt: Attempt | undefined
  #isDueWaiting = false

  constructor(target: ProbeTarget, deps: ProberDeps) {
    this.target = target
    this.#deps = deps
  }

  stop(): void {
    this.#isDueWaiting = false
    this.#forgetAttempt()
  }

  probeNow(): void {
    if (!this.#attempt) this.#begin()
  }

  /** A due probe waits for one that a failed call has started: never two, never a longer gap. */
  due(): void {
    if (this.#attempt) this.#isDueWaiting = true
    else this.#begin()
  }

  #begin(): void {
    const { timeoutMs } = this.target.settings
    const attempt: Attempt = { deadline: this.#deps.now() + timeoutMs, timers: [] }
    this.#attempt = attempt
    const halfMs = timeoutMs / 2
    attempt.timers.push(
      this.#deps.schedule(() => this.#send(attempt, timeoutMs - halfMs), halfMs),
      this.#deps.schedule(() => this.#onDeadline(attempt), timeoutMs),
    )
    this.#send(attempt, timeoutMs)
  }

  #send(attempt: Attempt, timeoutMs: number): void {
    const sentAt = this.#deps.now()
    this.#deps.sendProbe(this.target.destination, timeoutMs).then(
      (result) => this.#onResult(attempt, result, this.#deps.now() - sentAt),
      (error: unknown) =>
        this.#onResult(attempt, { kind: 'transport-error', reason: String(error) }, 0),
    )
  }

  #onResult(attempt: Attempt, result: ProbeResult, latencyMs: number): void {
    // Silence of the first OPTIONS proves nothing while the second is on its way.
    if (attempt !== this.#attempt || result.kind === 'silence') return
    if (result.kind === 'unsent') return this.#settle()
    const at = this.#deps.now()
    if (result.kind === 'transport-error')
      return this.#finish({
        at,
        isUp: false,
        status: 0,
        reason: result.reason,
        latencyMs: undefined,
      })
    const { status, reason } = result
    const isUp = this.target.settings.okCodes.some(({ from, to }) => status >= from && status <= to)
    this.#finish({ at, isUp, status, reason, latencyMs })
  }

  #onDeadline(attempt: Attempt, isLastWord = false): void {
    const at = this.#deps.now()
    const silent = { at, isUp: false, status: 0, reason: 'no answer', latencyMs: undefined }
    // After a stall, or behind what waits, the answer may be in the socket: let it be read first.
    const doubtMs = this.#doubtMs(at - attempt.deadline, isLastWord)
    if (doubtMs > 0)
      attempt.timers.push(this.#deps.schedule(() => this.#onDeadline(attempt, true), doubtMs))
    else this.#finish(silent)
  }

  #doubtMs(lateMs: number, isLastWord: boolean): number {
    const lagMs = this.#deps.lagMs?.() ?? 0
    if (lateMs >= MAX_DOUBT_MS) return 0
    if (lagMs > STALL_MS) return lagMs + STALL_MS - lateMs
    return lateMs > STALL_MS && !isLastWord ? STALL_MS : 0
  }

  #settle(): void {
    this.#forgetAttempt()
    const isDue = this.#isDueWaiting
    this.#isDueWaiting = false
    if (isDue) this.#begin()
  }

  #finish(verdict: Verdict): void {
    this.#settle()
    this.#deps.onVerdict(this.target.id, verdict)
  }

  #forgetAttempt(): void {
    for (const cancel of this.#attempt?.timers ?? []) cancel()
    this.#attempt = undefined
  }
}

function isSameTarget(one: ProbeTarget, other: ProbeTarget): boolean {
  return (
    one.destination === other.destination &&
    JSON.stringify(one.settings) === JSON.stringify(other.settings)
  )
}
