/**
 * A tenant sees the calls of its extensions, domains and carriers. Those that a customer of the
 * platform pays have no price for it.
 */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import { storedDenialText } from '../../schema/contracts/denials.ts'

/**
 * Whether the tenant of a row of `cdr` may see what it costs. A customer with records cannot be
 * removed.
 */
export const hasOwnPrice: RawBuilder<SqlBool> = sql`NOT EXISTS (
  SELECT 1 FROM customer WHERE customer.id = cdr.customer_id
    AND (customer.tenant_id IS NULL OR customer.tenant_id <> cdr.tenant_id)
)`

/** The cost of the call for a reader of this tenant; null: for one of all tenants. */
export const costFor = (tenantId: number | null): RawBuilder<number> =>
  tenantId === null
    ? sql`cdr.cost_micros`
    : sql`CASE WHEN ${hasOwnPrice} THEN cdr.cost_micros ELSE 0 END`

/** Stands before a currency in sums: only the platform sees the cost. */
const PLATFORMS = '*'

/** The currency of a sum of calls with the price of their tenant, or of others. */
export const markedCurrency = (currency: RawBuilder<unknown>): RawBuilder<string> =>
  sql`CASE WHEN cdr.tenant_id IS NULL OR ${hasOwnPrice} THEN '' ELSE ${sql.lit(PLATFORMS)} END
    || coalesce(${currency}, '')`

export const isMarked = (currency: string): boolean => currency.startsWith(PLATFORMS)

export const unmarked = (currency: string): string =>
  isMarked(currency) ? currency.slice(PLATFORMS.length) : currency

/** The same condition for a sum in `call_sum`. */
export const hasOwnSum: RawBuilder<SqlBool> = sql`substr(currency, 1, 1) <> ${sql.lit(PLATFORMS)}`

interface PricedRow {
  readonly cost_micros: number | null
  readonly currency: string | null
  readonly rate_prefix: string | null
  readonly rated: string | null
  readonly required_micros: number | null
  readonly available_micros: number | null
  readonly denial_code: string | null
  readonly denial_text: string | null
}

/** The row without what it says of the money of the platform's customer. */
export const withoutPrice = <Row extends PricedRow>(row: Row): Row => ({
  ...row,
  cost_micros: null,
  currency: null,
  rate_prefix: null,
  rated: null,
  required_micros: null,
  available_micros: null,
  denial_text: storedDenialText(row.denial_code, null),
})
