/** Telemetry over the last ten minutes: totals become rates between two samples. */
import type { Telemetry } from '../api/api-types.ts'

export interface Sample {
  /** Milliseconds UTC, by the server's clock. */
  readonly at: number
  readonly calls: number
  readonly perSecond: number
  readonly lagMs: number
  /** Null at the first sample. With several currencies: of the one with most debits. */
  readonly spendPerMinute: number | null
  readonly totals: Totals
}

interface Totals {
  readonly ended: number
  readonly answered: number
  readonly delays: number
  readonly delaySumMs: number
  readonly spent: number
}

const WINDOW_MS = 600_000
/** At one a second. */
const MAX_SAMPLES = 600

export function withSample(samples: readonly Sample[], telemetry: Telemetry): readonly Sample[] {
  const next = sampleOf(samples.at(-1), telemetry)
  const last = samples.at(-1)
  // The process has restarted: its totals count from zero.
  if (last !== undefined && next.totals.ended < last.totals.ended) return [next]
  return [...samples, next].filter(({ at }) => at > next.at - WINDOW_MS).slice(-MAX_SAMPLES)
}

function sampleOf(last: Sample | undefined, telemetry: Telemetry): Sample {
  const { calls, billing, event_loop: loop } = telemetry
  const at = Date.parse(telemetry.at)
  const debits = (billing?.moved ?? []).filter(({ kind }) => kind === 'debit')
  const [most] = debits.toSorted((a, b) => b.count - a.count)
  const totals: Totals = {
    ...{ ended: calls.total, answered: calls.answered },
    ...{ delays: calls.post_dial_delay.count, delaySumMs: calls.post_dial_delay.sum_ms },
    spent: Number(most?.amount ?? 0),
  }
  const minutes = last === undefined ? 0 : (at - last.at) / 60_000
  const spendPerMinute =
    last === undefined || minutes <= 0 ? null : (totals.spent - last.totals.spent) / minutes
  const lagMs = loop.lag_p99_ms
  return { at, calls: calls.active, perSecond: calls.per_second, lagMs, spendPerMinute, totals }
}

/** Of the calls that ended between the first and the last sample; null when there was none. */
export function figuresBetween(samples: readonly Sample[]): {
  readonly asrPercent: number | null
  readonly postDialDelayMs: number | null
} {
  const [first, last] = [samples[0]?.totals, samples.at(-1)?.totals]
  if (first === undefined || last === undefined) return { asrPercent: null, postDialDelayMs: null }
  const ended = last.ended - first.ended
  const delays = last.delays - first.delays
  return {
    asrPercent: ended === 0 ? null : (100 * (last.answered - first.answered)) / ended,
    postDialDelayMs: delays === 0 ? null : (last.delaySumMs - first.delaySumMs) / delays,
  }
}
