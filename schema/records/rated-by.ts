/** The price by which a call was rated, as its record has it. */
import type { Tariff } from '../contracts/tariff.ts'

/** The price in force at the answer. */
export type RatedBy = Pick<
  Tariff,
  | 'connectFeeMicros'
  | 'firstIncrementSeconds'
  | 'firstRatePerMinuteMicros'
  | 'incrementSeconds'
  | 'ratePerMinuteMicros'
>

/** Millions of records have one each: it has no names. */
export const ratedText = (price: RatedBy): string =>
  `[${price.connectFeeMicros},${price.firstIncrementSeconds},${price.firstRatePerMinuteMicros},` +
  `${price.incrementSeconds},${price.ratePerMinuteMicros}]`

/** Only `ratedText` writes it. */
export function ratedBy(text: string): RatedBy {
  const [connectFeeMicros = 0, firstIncrementSeconds = 0, firstRatePerMinuteMicros = 0, ...rest] =
    JSON.parse(text) as readonly number[]
  const [incrementSeconds = 0, ratePerMinuteMicros = 0] = rest
  return {
    connectFeeMicros,
    firstIncrementSeconds,
    firstRatePerMinuteMicros,
    incrementSeconds,
    ratePerMinuteMicros,
  }
}
