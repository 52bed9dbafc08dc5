/** What a call would cost, part by part. */
import type { Quote, Rate } from '../../../schema/contracts/charging.ts'
import { costMicros, priceParts } from './price.ts'

/** Undefined: there is no rate. */
export function quoteOf(rate: Rate | undefined, seconds: number): Quote | undefined {
  if (rate === undefined) return undefined
  const { tariff } = rate
  return { rate, costMicros: costMicros(tariff, seconds), parts: priceParts(tariff, seconds) }
}
