/** A rate as a deck has it, and the order of rates. */

/** Columns of a rate that most lines of a deck share with another. */
export interface DeckTerms {
  readonly rate_per_minute_micros: number
  readonly connect_fee_micros: number
  readonly is_blocked: 0 | 1
  readonly period: string | null
  readonly first_increment_seconds: number
  readonly first_rate_per_minute_micros: number
  readonly increment_seconds: number
  readonly effective_from_at: number | null
  readonly effective_to_at: number | null
}

export interface DeckRate {
  readonly prefix: string
  readonly description: string | null
  readonly terms: DeckTerms
  readonly line: number
}

/** By what a rate differs from all others of its plan. */
export interface RateKey {
  readonly prefix: string
  readonly period: string | null
  readonly effective_from_at: number | null
}

/** Compares as the databases do: prefixes are digits, and periods are of ASCII. */
export const byRateKey = (one: RateKey, other: RateKey): number =>
  byPrefixAndPeriod(one, other) || (one.effective_from_at ?? -1) - (other.effective_from_at ?? -1)

export function byPrefixAndPeriod(one: PrefixAndPeriod, other: PrefixAndPeriod): number {
  if (one.prefix !== other.prefix) return one.prefix < other.prefix ? -1 : 1
  if (one.period === other.period) return 0
  return (one.period ?? '') < (other.period ?? '') ? -1 : 1
}

export type PrefixAndPeriod = Pick<RateKey, 'prefix' | 'period'>

export const keyOf = ({ prefix, terms }: Pick<DeckRate, 'prefix' | 'terms'>): RateKey => ({
  prefix,
  period: terms.period,
  effective_from_at: terms.effective_from_at,
})

export const isSameTerms = (one: DeckTerms, other: DeckTerms): boolean =>
  one === other ||
  (one.rate_per_minute_micros === other.rate_per_minute_micros &&
    one.connect_fee_micros === other.connect_fee_micros &&
    one.is_blocked === other.is_blocked &&
    one.first_increment_seconds === other.first_increment_seconds &&
    one.first_rate_per_minute_micros === other.first_rate_per_minute_micros &&
    one.increment_seconds === other.increment_seconds &&
    one.effective_to_at === other.effective_to_at)
