/** Keeps a call within what was granted: asks for more in time, and ends it when there is no more. */
import type { Charging } from '../../schema/contracts/charging.ts'
import type { Call } from './call.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { cause } from './cdr/end-reason.ts'

export interface GrantTimerDeps {
  readonly charging: Pick<Charging, 'extend'>
  readonly deadlines: Deadlines
}

/** More is asked for this long before the end; half the grant when it is shorter than twice that. */
const LEAD_MS = 10_000

export class GrantTimer {
  readonly #deps: GrantTimerDeps
  readonly #call: Call
  readonly #answeredAt: number
  #deadline: Deadline | undefined
  #isStopped = false
  /** Why there is no more. */
  #denial = 'insufficient_funds'

  /** `answeredAt` in milliseconds UTC; the grant is `call.grantedSeconds`. */
  constructor(deps: GrantTimerDeps, call: Call, answeredAt: number) {
    this.#deps = deps
    this.#call = call
    this.#answeredAt = answeredAt
    this.#await()
  }

  stop(): void {
    this.#isStopped = true
    this.#deps.deadlines.cancel(this.#deadline)
  }

  #await(): void {
    const grantedMs = this.#call.grantedSeconds * 1_000
    if (grantedMs === Infinity) return
    const leadMs = Math.min(LEAD_MS, grantedMs / 2)
    this.#wait(grantedMs - leadMs, () => this.#askForMore(grantedMs))
  }

  #askForMore(grantedMs: number): void {
    // Stands until there is an answer, so that an OCS that does not answer in time cuts, too.
    this.#wait(grantedMs, () => this.#cut())
    void this.#extend()
  }

  async #extend(): Promise<void> {
    const { charging } = this.#deps
    const extension = await charging
      .extend(this.#call.start.callUuid, this.#call.grantedSeconds)
      .catch(() => ({ kind: 'denied', code: 'ocs_unreachable' }) as const)
    if (extension.kind === 'denied') this.#denial = extension.code
    else if (!this.#isStopped && extension.grantedSeconds > this.#call.grantedSeconds) {
      this.#call.grantedSeconds = extension.grantedSeconds
      this.#await()
    }
  }

  #cut(): void {
    this.#call.stop({ kind: 'cut', by: 'system', cause: cause.noCredit, code: this.#denial })
  }

  /** Replaces what was waited for. */
  #wait(sinceAnswerMs: number, act: () => void): void {
    this.#deps.deadlines.cancel(this.#deadline)
    this.#deadline = this.#deps.deadlines.at(this.#answeredAt + sinceAnswerMs, act)
  }
}
