/** The price by which a call was rated, as records show it. */
import { moneyToDecimal } from '../../schema/columns.ts'
import { ratedBy } from '../../schema/records/rated-by.ts'

interface RatedRow {
  readonly rate_prefix: string | null
  readonly rated: string | null
}

export function rateView({ rate_prefix, rated }: RatedRow) {
  const price = rated === null ? undefined : ratedBy(rated)
  const decimal = (micros: number | undefined) =>
    micros === undefined ? null : moneyToDecimal(micros)
  return {
    rate_prefix,
    rate: decimal(price?.ratePerMinuteMicros),
    rate_first: decimal(price?.firstRatePerMinuteMicros),
    connect_fee: decimal(price?.connectFeeMicros),
    first_increment: price?.firstIncrementSeconds ?? null,
    increment: price?.incrementSeconds ?? null,
  }
}
