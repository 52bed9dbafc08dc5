/** Reads the rate table from the database. */
import { fromFlag } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/query.ts'
import { RateTable } from './rate-table.ts'

/** All plans at once. 100,000 rates take about a quarter of a second. */
export function loadRates(store: Store): RateTable {
  const rows = all(
    store,
    store.db
      .selectFrom('rate')
      .innerJoin('rate_plan', 'rate_plan.id', 'rate.rate_plan_id')
      .selectAll('rate')
      .select(['rate_plan.currency', 'rate_plan.decimals']),
  )
  return new RateTable(
    rows.map((row) => ({
      planId: row.rate_plan_id,
      tariff: {
        prefix: row.prefix,
        currency: row.currency,
        connectFeeMicros: row.connect_fee_micros,
        firstIncrementSeconds: row.first_increment_seconds,
        firstRatePerMinuteMicros: row.first_rate_per_minute_micros,
        incrementSeconds: row.increment_seconds,
        ratePerMinuteMicros: row.rate_per_minute_micros,
        decimals: row.decimals,
      },
      isBlocked: fromFlag(row.is_blocked),
      effectiveFrom: row.effective_from_at,
      effectiveTo: row.effective_to_at,
    })),
  )
}
