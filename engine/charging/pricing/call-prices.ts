/** The prices that a call may have, by the time of its answer, and those that follow during it. */
import type { Rate } from '../../../schema/contracts/charging.ts'
import type { PriceChange, Tariff } from '../../../schema/contracts/tariff.ts'
import { MAX_AHEAD_MS, type PlanTimes } from './plan-times.ts'

/** They are decided when the call starts: later changes of rates do not affect it. */
export interface TimedPrices {
  /** Its price changes during the call, too. */
  readonly isChanging: boolean
  /** The earliest first; never empty. */
  readonly steps: readonly TimedTariff[]
}

interface TimedTariff {
  /** Milliseconds UTC. */
  readonly from: number
  readonly tariff: Tariff
}

/** A call that rings for longer has the price of then. */
const RINGING_MS = 3_600_000
/** A call has no more prices: its state has a bound. */
const MAX_CHANGES = 64

/**
 * @param rateAt the rate of the call while the periods of a time hold.
 * @param at when the call starts.
 */
export function timedPrices(
  rate: Rate,
  rateAt: (clock: number) => Rate | undefined,
  times: PlanTimes,
  at: number,
): TimedPrices {
  const steps: TimedTariff[] = [{ from: at, tariff: priceOf(rate) }]
  const until = at + (times.isChanging ? MAX_AHEAD_MS : RINGING_MS)
  for (const from of times.changesBetween(at, until)) {
    const next = rateAt(from)
    // Without a price, or blocked, a call that has begun keeps the one that it has.
    if (next === undefined || next.isBlocked) continue
    const tariff = priceOf(next)
    if (!isSame(tariff, steps.at(-1)?.tariff)) steps.push({ from, tariff })
    if (steps.length > MAX_CHANGES) break
  }
  return { isChanging: times.isChanging, steps }
}

const priceOf = ({ tariff, period }: Rate): Tariff =>
  period === undefined ? tariff : { ...tariff, period }

const isSame = (one: Tariff, other: Tariff | undefined): boolean =>
  other !== undefined &&
  one.period === other.period &&
  one.prefix === other.prefix &&
  isSamePrice(one, other) &&
  one.connectFeeMicros === other.connectFeeMicros &&
  one.firstIncrementSeconds === other.firstIncrementSeconds &&
  one.firstRatePerMinuteMicros === other.firstRatePerMinuteMicros

const isSamePrice = (one: PriceOfIncrement, other: PriceOfIncrement): boolean =>
  one.ratePerMinuteMicros === other.ratePerMinuteMicros &&
  one.incrementSeconds === other.incrementSeconds

type PriceOfIncrement = Pick<Tariff, 'ratePerMinuteMicros' | 'incrementSeconds'>

/** The price of a call that was answered then, with those that follow. */
export function tariffAt({ isChanging, steps }: TimedPrices, answeredAt: number): Tariff {
  const [first, ...others] = steps
  if (first === undefined) throw new Error('a call has no price')
  const { tariff } = others.findLast(({ from }) => from <= answeredAt) ?? first
  if (!isChanging) return tariff
  const changes: PriceChange[] = []
  let last: PriceOfIncrement = tariff
  for (const { from, tariff: next } of others) {
    if (from <= answeredAt || isSamePrice(next, last)) continue
    last = next
    const { incrementSeconds, ratePerMinuteMicros, period } = next
    const afterSeconds = Math.ceil((from - answeredAt) / 1_000)
    changes.push({ afterSeconds, incrementSeconds, ratePerMinuteMicros, period })
  }
  return changes.length === 0 ? tariff : { ...tariff, changes }
}

/** The first grant reserves for the dearest price that the call may be answered at until then. */
const PROMISED_MS = 300_000

/** The prices that the first grant of a call may have. */
export const firstPrices = ({ steps }: TimedPrices): readonly Tariff[] => {
  const until = (steps[0]?.from ?? 0) + PROMISED_MS
  return steps.filter(({ from }) => from <= until).map(({ tariff }) => tariff)
}
