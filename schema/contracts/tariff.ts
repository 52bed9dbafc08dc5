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

/**
 * How calls that would earn less than wanted are treated. `strict`: as `refuse`, and a carrier
 * whose price is not known gets no call either.
 */
export const lossProtections = ['never', 'warn', 'refuse', 'strict'] as const
export type LossProtection = (typeof lossProtections)[number]

/** The price in force at the answer holds, or the new one begins when another period does. */
export const priceChanges = ['hold', 'change'] as const
export type PriceChangeRule = (typeof priceChanges)[number]

/** The price of a carrier for a call that its gateway has answered. */
export interface BoughtPrice {
  /** The price in force at the answer, for the number that was sent. */
  readonly tariff: Tariff
  /** The tenant that owns the carrier, and sees what it charges; null: the platform. */
  readonly tenantId: number | null
  /** The number that was sent, and by which the carrier charges; absent: the called number. */
  readonly number?: string | undefined
}

/** Earnings of a call of the expected duration by one carrier, and whether it may go there. */
export interface ExpectedProfit {
  readonly seconds: number
  /** The cost by the carrier; null: it is not known. */
  readonly costMicros: number | null
  readonly costCurrency: string | null
  /** The price of the customer; null: nobody pays here. */
  readonly saleMicros: number | null
  readonly saleCurrency: string | null
  readonly salePrefix: string | null
  /** Null: one of both is not known, or they differ in currency. */
  readonly marginMicros: number | null
  /** The owner of the carrier; null: the platform. */
  readonly carrierTenantId: number | null
  /** By loss protection; `kept`: it lets the call go there. */
  readonly verdict: 'kept' | 'warned' | 'refused'
  /** The owner of the protection that has warned or refused; null: none has. */
  readonly judgedBy: { readonly tenantId: number | null } | null
}

/** The cost of a call that is over, by its carrier. */
export interface CarrierCost {
  readonly costMicros: number
  readonly prefix: string
  readonly currency: string
  /** As in `BoughtPrice`, like the next. */
  readonly tenantId: number | null
  readonly number?: string | undefined
}
