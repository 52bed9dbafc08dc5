/** Cost by the carrier, and margin, as records show them. */
import { moneyToDecimal, moneyToNumber } from '../../schema/columns.ts'
import { type BoughtAndSold, marginMicros } from '../../schema/records/margin.ts'

export interface BoughtRow extends BoughtAndSold {
  readonly carrier_prefix: string | null
}

export function carrierCostView(row: BoughtRow) {
  const { carrier_cost_micros: cost } = row
  const margin = marginMicros(row)
  return {
    carrier_cost: cost === null ? null : moneyToNumber(cost),
    carrier_cost_exact: cost === null ? null : moneyToDecimal(cost),
    carrier_currency: row.carrier_currency,
    carrier_prefix: row.carrier_prefix,
    margin: margin === null ? null : moneyToNumber(margin),
    margin_exact: margin === null ? null : moneyToDecimal(margin),
  }
}

/** Columns that only the owner of a carrier, and the platform, may read. */
export const carrierColumns = ['carrier_cost_micros', 'carrier_currency', 'carrier_prefix'] as const

interface OwnedRow extends BoughtRow {
  readonly tenant_id: number | null
  readonly carrier_tenant_id: number | null
}

/** The row for a reader of its tenant: the price of another owner's carrier is not shown. */
export const withoutOthersCost = <Row extends OwnedRow>(row: Row): Row =>
  row.carrier_tenant_id === row.tenant_id
    ? row
    : { ...row, carrier_cost_micros: null, carrier_currency: null, carrier_prefix: null }
