/** Counts what becomes of hooks that are only told, until the next report. Pure. */
import type { ToldHook } from '../../schema/contracts/hooks.ts'
import type { ToldReport } from './thread-messages.ts'
import type { ThrownProblem } from './thrown.ts'

/** Nobody waits for them, but what never ends would fill the queue. */
const TOLD_LIMIT_MS = 30_000

interface Run {
  readonly hook: ToldHook
  readonly start: number
}

export class ToldHooks {
  /** Milliseconds, with fractions. */
  readonly #now: () => number
  /** The oldest first. */
  readonly #runs = new Set<Run>()
  readonly #reports = new Map<ToldHook, ToldReport>()

  constructor(now: () => number) {
    this.#now = now
  }

  get running(): number {
    return this.#runs.size
  }

  /** The result is called once the hook has ended; with a problem, if it has failed. */
  begin(hook: ToldHook): (problem?: ThrownProblem) => void {
    const run = { hook, start: this.#now() }
    this.#runs.add(run)
    return (problem) => {
      if (!this.#runs.delete(run)) return
      this.#add(run, problem === undefined ? {} : { failures: 1, problem })
    }
  }

  take(): readonly ToldReport[] {
    for (const run of this.#runs) {
      if (this.#now() - run.start < TOLD_LIMIT_MS) break
      this.#runs.delete(run)
      this.#add(run, { timeouts: 1 })
    }
    if (this.#reports.size === 0) return []
    const reports = [...this.#reports.values()]
    this.#reports.clear()
    return reports
  }

  #add(
    { hook, start }: Run,
    {
      failures = 0,
      timeouts = 0,
      problem,
    }: Partial<Pick<ToldReport, 'failures' | 'timeouts' | 'problem'>>,
  ): void {
    const known = this.#reports.get(hook)
    this.#reports.set(hook, {
      hook,
      count: (known?.count ?? 0) + 1,
      failures: (known?.failures ?? 0) + failures,
      timeouts: (known?.timeouts ?? 0) + timeouts,
      micros: (known?.micros ?? 0) + Math.round((this.#now() - start) * 1_000),
      problem: problem ?? known?.problem,
    })
  }
}
