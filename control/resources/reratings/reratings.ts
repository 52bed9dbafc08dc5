/**
 * Works on jobs that price past calls anew, a step of each in turn, with rests in which calls are
 * served. A job goes on after a restart, in this process or in another one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { isUnstored } from '../../../schema/storage/storage.ts'
import { ReratingSteps, type StepDeps } from './rerating-steps.ts'
import { ApiError } from '../../http/api-error.ts'
import { FairTurns } from '../../http/fair-turns.ts'
import type { ReratedCalls } from './rerated-calls.ts'
import { previewRerating, type ReratingPreview } from './rerating-preview.ts'
import type { ReratingClaim } from './rerating-store.ts'

export type ReratingsDeps = Omit<StepDeps, 'process'> & {
  readonly randomBytes: (size: number) => Buffer
}

/** Previews that wait of one tenant. */
const MAX_WAITING = 3

const tooManyPreviews = (): ApiError =>
  new ApiError(429, 'too_many_previews', `${MAX_WAITING} previews are waiting already`, {
    headers: { 'Retry-After': '10' },
  })

/** Calls get half of the event loop while jobs run. */
const REST_MS = 5

export class Reratings {
  readonly #steps: ReratingSteps
  readonly #deps: ReratingsDeps
  /** Steps run outside the request that has begun a job. */
  readonly #outside = AsyncLocalStorage.snapshot()
  readonly #previews = new FairTurns<number | null>(1, MAX_WAITING, tooManyPreviews)
  #running: Promise<void> | undefined
  #isAskedAgain = false
  #isStopped = false

  constructor(deps: ReratingsDeps) {
    this.#deps = deps
    this.#steps = new ReratingSteps({ ...deps, process: deps.randomBytes(8).toString('hex') })
  }

  /** Says what a job would change. A few of a tenant wait: each reads for seconds. */
  preview(tenantId: number | null, calls: ReratedCalls): Promise<ReratingPreview> {
    const { store, ocs } = this.#deps
    return this.#previews.run(tenantId, () => previewRerating(store, calls, ocs))
  }

  /** For a job that this process begins. */
  claim(): ReratingClaim {
    return this.#steps.claim()
  }

  /** A job is there. Also called every `RERATING_TICK_MS`, for jobs of processes that have died. */
  wake(): void {
    if (this.#isStopped) return
    this.#isAskedAgain = true
    this.#running ??= this.#outside(() => this.#run())
  }

  /** The step under way ends; its job goes on after the next start. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #run(): Promise<void> {
    try {
      while (this.#isAskedAgain && !this.#isStopped) {
        this.#isAskedAgain = false
        while (!this.#isStopped && (await this.#round())) continue
      }
    } catch (error) {
      // Then the next time.
      if (!isUnstored(error))
        this.#deps.log('error', 'a re-rating has failed', { error: String(error) })
    } finally {
      this.#running = undefined
    }
  }

  /** One step of each job. False: there is none. */
  async #round(): Promise<boolean> {
    const jobs = await this.#steps.open()
    for (const job of jobs) {
      if (this.#isStopped) break
      await this.#steps.step(job)
      await sleep(REST_MS)
    }
    return jobs.length > 0
  }
}

/** How often jobs of processes that have died are looked for. */
export const RERATING_TICK_MS = 5_000
