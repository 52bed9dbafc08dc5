/** Calls and time of each hook, as telemetry shows them. */
import type { HookName } from '../../schema/contracts/hooks.ts'
import { figureOf } from './hook-names.ts'

/** Totals since the start. */
export interface HookCounts {
  calls: number
  failures: number
  /** Failures by an answer that names what its call cannot reach. */
  unusable: number
  timeouts: number
  /** Questions not asked: the breaker was open, no thread was there, or too many waited. */
  skipped: number
  micros: number
}

export class HookFigures {
  readonly #counts = new Map<HookName, HookCounts>()

  of(hook: HookName): HookCounts {
    const known = this.#counts.get(hook)
    if (known !== undefined) return known
    const counts: HookCounts = {
      calls: 0,
      failures: 0,
      unusable: 0,
      timeouts: 0,
      skipped: 0,
      micros: 0,
    }
    this.#counts.set(hook, counts)
    return counts
  }

  telemetry(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      [...this.#counts].flatMap(([hook, counts]) => {
        const { calls, failures, unusable, timeouts, skipped, micros } = counts
        const name = `hook_${figureOf(hook)}`
        return [
          [`${name}_calls_total`, calls],
          [`${name}_failures_total`, failures],
          [`${name}_unusable_total`, unusable],
          [`${name}_timeouts_total`, timeouts],
          [`${name}_skipped_total`, skipped],
          [`${name}_seconds_total`, micros / 1_000_000],
        ]
      }),
    )
  }
}
