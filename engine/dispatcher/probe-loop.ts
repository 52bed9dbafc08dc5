import type { Cancel, Every, Schedule } from '../../schema/clock.ts'
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
export interface ProbeVerdict {
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
  /** The first slot wakes the process together with what goes by these rounds. */
  readonly every?: Every | undefined
  readonly sendProbe: SendProbe
  readonly onVerdict: (id: number, verdict: ProbeVerdict) => void
  /**
   * How long an answer that has arrived may wait to be read, while we are busy. Default: not at
   * all.
   */
  readonly lagMs?: (() => number) | undefined
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
export class Volley {
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

export class ProbeLoop {
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

  #finish(verdict: ProbeVerdict): void {
    this.#settle()
    this.#deps.onVerdict(this.target.id, verdict)
  }

  #leaveVolley(): void {
    const volley = this.#volley
    this.#volley = undefined
    volley?.ended()
  }
}

const noAnswer = (at: number, reason: string): ProbeVerdict => ({
  at,
  isUp: false,
  status: 0,
  reason,
  latencyMs: undefined,
})
