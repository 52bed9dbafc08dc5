/**
 * The increments of a call whose price changes with the period. An increment costs what the price
 * at its begin says. Sums are exact, in sixtieths of a micro-unit.
 */
import type { Tariff } from '../../../schema/contracts/tariff.ts'

interface Step {
  /** Seconds since the answer: increments that begin here or later have the next price. */
  readonly end: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
}

const stepsOf = (tariff: Tariff): readonly Step[] => {
  const changes = tariff.changes ?? []
  return [tariff, ...changes].map(({ incrementSeconds, ratePerMinuteMicros }, index) => ({
    end: changes[index]?.afterSeconds ?? Infinity,
    incrementSeconds,
    ratePerMinuteMicros,
  }))
}

/** All that is charged after the first increment for so many seconds of talk. */
export function furtherWithChanges(
  tariff: Tariff,
  seconds: number,
): { readonly seconds: number; readonly sixtieths: bigint } {
  let at = tariff.firstIncrementSeconds
  let sixtieths = 0n
  for (const { end, incrementSeconds, ratePerMinuteMicros } of stepsOf(tariff)) {
    const until = Math.min(end, seconds)
    if (until <= at) continue
    const charged = Math.ceil((until - at) / incrementSeconds) * incrementSeconds
    sixtieths += BigInt(charged) * BigInt(ratePerMinuteMicros)
    at += charged
  }
  return { seconds: at - tariff.firstIncrementSeconds, sixtieths }
}

/**
 * The most seconds whose increments after the first cost no more than `left`. Infinity: the last
 * price is 0, and it is reached.
 *
 * @param left sixtieths of a micro-unit beyond the base; below 0: not even the base.
 */
export function affordableWithChanges(tariff: Tariff, left: bigint): number {
  if (left < 0n) return 0
  let at = tariff.firstIncrementSeconds
  let rest = left
  for (const { end, incrementSeconds, ratePerMinuteMicros } of stepsOf(tariff)) {
    if (end <= at) continue
    const price = BigInt(incrementSeconds) * BigInt(ratePerMinuteMicros)
    if (price === 0n && end === Infinity) return Infinity
    const most = Math.ceil((end - at) / incrementSeconds)
    const payable = price === 0n ? most : Math.min(most, Number(rest / price))
    at += payable * incrementSeconds
    if (payable < most) return at
    rest -= BigInt(payable) * price
  }
  return at
}
