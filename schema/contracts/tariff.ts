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
}

/** How a price becomes one of the plan's decimals; `half_up`: a half of the last one goes up. */
export const roundings = ['up', 'half_up', 'down'] as const
export type Rounding = (typeof roundings)[number]

/** The price of a carrier for a call that its gateway has answered. */
export interface BoughtPrice {
  /** The price in force at the answer, for the number that was sent. */
  readonly tariff: Tariff
  /** The tenant that owns the carrier, and sees what it charges; null: the platform. */
  readonly tenantId: number | null
  /** The number that was sent, and by which the carrier charges; absent: the called number. */
  readonly number?: string | undefined
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
