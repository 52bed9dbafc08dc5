/** The price of a call: what is sold to a customer, and what is bought from a carrier. */

/** The price at the start of a call: later changes of the rate do not affect the call. */
export interface Tariff {
  readonly prefix: string
  readonly currency: string
  readonly connectFeeMicros: number
  readonly firstIncrementSeconds: number
  readonly firstRatePerMinuteMicros: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  /** Decimals to which a price is rounded, 0 to 6. */
  readonly decimals: number
  /** Absent: `up`. A call of an earlier version has none. */
  readonly rounding?: Rounding | undefined
  /** The period of its plan in which this price begins; absent: it is of no period. */
  readonly period?: string | undefined
  /** Prices that follow, the earliest first. Absent: this one holds to the end of the call. */
  readonly changes?: readonly PriceChange[] | undefined
}

/** A price of increments that begin at a second or later; one that runs then is finished first. */
export interface PriceChange {
  /** Seconds since the answer, rounded up. */
  readonly afterSeconds: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  /** As in `Tariff`. */
  readonly period?: string | undefined
}

/** How a price becomes one of the plan's decimals; `half_up`: a half of the last one goes up. */
export const roundings = ['up', 'half_up', 'down'] as const
export type Rounding = (typeof roundings)[number]

/** The price in force at the answer holds, or the new one begins when another period does. */
export const priceChanges = ['hold', 'change'] as const
export type PriceChangeRule = (typeof priceChanges)[number]

/** The price of a carrier for a call that its gateway has answered. */
export interface BoughtPrice {
  /** The price in force at the answer, for the number that was sent. */
  readonly tariff: Tariff
  /** The tenant that owns the carrier, and sees what it charges; null: the platform. */
  readonly tenantId: number | null
}

/** The cost of a call that is over, by its carrier. */
export interface CarrierCost {
  readonly costMicros: number
  readonly prefix: string
  readonly currency: string
  /** As in `BoughtPrice`. */
  readonly tenantId: number | null
}
