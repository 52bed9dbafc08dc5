/** The cost of a call to us: the carrier's price, with its own increments and rounding. */
import type { BoughtPrice, CarrierCost } from '../../../schema/contracts/tariff.ts'
import { costMicros } from './price.ts'

/** @param billsec charged seconds of the record; a call that was not answered has 0. */
export function carrierCostOf(
  bought: BoughtPrice | undefined,
  billsec: number,
): CarrierCost | undefined {
  if (bought === undefined || billsec === 0) return undefined
  const { tariff, tenantId, number } = bought
  const { prefix, currency } = tariff
  return { costMicros: costMicros(tariff, billsec), prefix, currency, tenantId, number }
}
