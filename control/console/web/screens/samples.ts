/** The series of the charts, from the server's samples of the last ten minutes. */
import type { TelemetryHistory } from '../api/views.ts'

type Sample = TelemetryHistory['samples'][number]

/**
 * A ratio, a delay and a sum of money are those of the last minute at each point: five seconds have
 * too few calls.
 */
const MINUTE_SECONDS = 60

interface Series {
  /** Seconds UTC. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

export interface Charts {
  readonly active: Series
  readonly perSecond: Series
  readonly asrPercent: Series
  readonly postDialDelayMs: Series
  readonly spendPerMinute: Series
  readonly lagMs: Series
  /** The one in which most is spent; the others are not drawn. */
  readonly currency: string | undefined
}

export function chartsOf({ samples, interval_seconds: interval }: TelemetryHistory): Charts {
  const times = samples.map(({ at }) => Date.parse(at) / 1_000)
  const span = Math.round(MINUTE_SECONDS / interval)
  const currency = mainCurrency(samples)
  const series = (valueOf: (sample: Sample) => number): Series => ({
    times,
    values: samples.map(valueOf),
  })
  const ofMinute = (valueOf: (minute: readonly Sample[]) => number | null): Series => ({
    times,
    values: samples.map((_, index) =>
      valueOf(samples.slice(Math.max(0, index + 1 - span), index + 1)),
    ),
  })
  return {
    active: series(({ active }) => active),
    perSecond: series(({ started }) => started / interval),
    lagMs: series(({ lag_p99_ms }) => lag_p99_ms),
    asrPercent: ofMinute(asrOf),
    postDialDelayMs: ofMinute(delayOf),
    spendPerMinute: ofMinute((minute) => (spentIn(minute, currency) / minute.length) * span),
    currency,
  }
}

/** Null: no call has ended. */
export function asrOf(samples: readonly Sample[]): number | null {
  const ended = sum(samples, (sample) => sample.ended)
  return ended === 0 ? null : (100 * sum(samples, ({ answered }) => answered)) / ended
}

/** The average; null: none is known. */
export function delayOf(samples: readonly Sample[]): number | null {
  const count = sum(samples, ({ post_dial_delay }) => post_dial_delay.count)
  return count === 0 ? null : sum(samples, ({ post_dial_delay }) => post_dial_delay.sum_ms) / count
}

const spentIn = (samples: readonly Sample[], currency: string | undefined): number =>
  sum(samples, ({ spent }) => Number(spent.find((each) => each.currency === currency)?.amount ?? 0))

function mainCurrency(samples: readonly Sample[]): string | undefined {
  const counts = new Map<string, number>()
  for (const { currency } of samples.flatMap(({ spent }) => spent))
    counts.set(currency, (counts.get(currency) ?? 0) + 1)
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0]
}

const sum = (samples: readonly Sample[], valueOf: (sample: Sample) => number): number =>
  samples.reduce((total, sample) => total + valueOf(sample), 0)
