/** The margin of a call: what it was sold for, less what its carrier takes. */
export interface BoughtAndSold {
  readonly cost_micros: number | null
  readonly currency: string | null
  readonly carrier_cost_micros: number | null
  readonly carrier_currency: string | null
}

/** Null: one of the two prices is not known, or they are in different currencies. */
export function marginMicros(call: BoughtAndSold): number | null {
  const { cost_micros: sold, carrier_cost_micros: bought, currency } = call
  if (sold === null || bought === null || currency === null) return null
  return currency === call.carrier_currency ? sold - bought : null
}
