/** The applications of drachtio-srf in threads: which thread is asked about calls. */
import type { ApplicationRuns } from '../call/application/application-runs.ts'
import { loopbackOf, type WayToMain } from './application/private-lines.ts'
import type { HookThreadPort } from './hook-thread.ts'

/** SIP of this process, as applications reach it. */
export interface ServedApplications {
  readonly runs: Pick<ApplicationRuns, 'started' | 'retire' | 'ended' | 'expect'>
  readonly way: Omit<WayToMain, 'secret'>
  readonly randomSecret: () => string
}

interface ThreadRun {
  readonly run: number
  readonly way: WayToMain
}

export class ThreadApplications {
  #served: ServedApplications | undefined
  #current: HookThreadPort | undefined
  readonly #runs = new Map<HookThreadPort, ThreadRun>()
  #lastRun = 0

  serve(
    served: ServedApplications,
    current: HookThreadPort | undefined,
    hasApplication: boolean,
  ): void {
    this.#served = served
    if (current !== undefined) this.inCharge(current, hasApplication)
  }

  /**
   * New calls are offered to this thread alone, once its application takes some: until then to the
   * last one, so that none goes past both.
   */
  inCharge(thread: HookThreadPort, hasApplication: boolean): void {
    if (this.#served === undefined || this.#runs.has(thread)) return
    const { runs, way, randomSecret } = this.#served
    runs.expect(hasApplication)
    if (!hasApplication) for (const { run } of this.#runs.values()) runs.retire(run)
    this.#current = thread
    this.#lastRun += 1
    const known = { run: this.#lastRun, way: { ...way, secret: randomSecret() } }
    this.#runs.set(thread, known)
    thread.post({ type: 'serve', way: known.way })
  }

  taking(thread: HookThreadPort, port: number): void {
    const known = this.#runs.get(thread)
    if (known === undefined || thread !== this.#current) return
    const { run, way } = known
    const { protocol, secret } = way
    this.#served?.runs.started({ run, protocol, host: loopbackOf(way), port, secret })
  }

  gone(thread: HookThreadPort): void {
    const known = this.#runs.get(thread)
    this.#runs.delete(thread)
    if (known !== undefined) this.#served?.runs.ended(known.run)
  }
}
