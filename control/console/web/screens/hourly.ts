/** Series of hours, out of a summary of calls by hour: hours without a call are there, too. */
import type { CallSummary } from '../api/views.ts'
import { HOUR_MS, MINUTE_MS } from '../parts/format.ts'

interface Series {
  /** Seconds UTC. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

interface Hourly {
  readonly calls: Series
  /** Answer-seizure ratios of hours with calls. */
  readonly asr: Series
  readonly cost: Series
  readonly seconds: Series
  /** The one in which most is spent; the others are not drawn. */
  readonly currency: string | undefined
}

type Sums = Pick<CallSummary['groups'][number], 'answered' | 'billsec'>

/** Null: no call was answered. */
export const meanSeconds = ({ answered, billsec }: Sums): number | null =>
  answered === 0 ? null : billsec / answered

/** The end of the hour that a clock of the zone shows: some zones are half an hour off. */
export function hourEnd(at: number, timeZone: string): number {
  const clock = new Intl.DateTimeFormat('en', { timeZone, minute: 'numeric' })
  const minuteBegin = Math.floor(at / MINUTE_MS) * MINUTE_MS
  return minuteBegin - Number(clock.format(at)) * MINUTE_MS + HOUR_MS
}

/** `before`: the end of the last hour, milliseconds UTC. */
export function hourly(
  summary: Pick<CallSummary, 'groups' | 'totals'> | undefined,
  before: number,
  hours: number,
): Hourly {
  const byHour = new Map(summary?.groups.map((group) => [Date.parse(group.group ?? ''), group]))
  const starts = Array.from({ length: hours }, (_, index) => before - (hours - index) * HOUR_MS)
  const times = starts.map((start) => start / 1_000)
  const [currency] = Object.entries(summary?.totals.cost ?? {}).toSorted(
    ([, one], [, other]) => Number(other) - Number(one),
  )[0] ?? [undefined]
  const series = (
    valueOf: (group: CallSummary['groups'][number]) => number | null,
    without: number | null,
  ): Series => ({
    times,
    values: starts.map((start) => {
      const group = byHour.get(start)
      return group === undefined ? without : valueOf(group)
    }),
  })
  return {
    calls: series(({ calls }) => calls, 0),
    asr: series((group) => group.asr_percent, null),
    cost: series(({ cost }) => Number(cost[currency ?? ''] ?? 0), 0),
    seconds: series(meanSeconds, 0),
    currency,
  }
}
