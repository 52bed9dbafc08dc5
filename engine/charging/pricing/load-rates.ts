/** Reads the rate table from the database. */
import type { Selectable } from 'kysely'
import { fromFlag } from '../../../schema/columns.ts'
import type { Rate } from '../../../schema/contracts/charging.ts'
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/sql/query.ts'
import type { RateTable as RateColumns } from '../../../schema/tables/tenants.ts'

interface RateRow extends Selectable<RateColumns> {
  readonly currency: string
  readonly decimals: number
}

/** Rates per slice: about 5 ms. */
const sliceLength = 1_000

/** All rates, or those of a plan, a slice at a time; rates may be written between two slices. */
export async function* rateSlices(store: Store, planId?: number): AsyncGenerator<readonly Rate[]> {
  for (let after = 0; ;) {
    const query = rateRows(store)
      .$if(planId !== undefined, (rows) => rows.where('rate_plan_id', '=', planId ?? 0))
      .where('rate.id', '>', after)
      .orderBy('rate.id')
      .limit(sliceLength)
    const rows = await all(store, query)
    yield rows.map(rateOf)
    const last = rows.at(-1)
    if (last === undefined || rows.length < sliceLength) return
    after = last.id
  }
}

/** The rates of one plan and prefix, with or without `+`. */
export async function loadPrefix(
  store: Store,
  planId: number,
  prefix: string,
): Promise<readonly Rate[]> {
  const rows = rateRows(store)
    .where('rate_plan_id', '=', planId)
    .where('prefix', 'in', [prefix, `+${prefix}`])
  return (await all(store, rows)).map(rateOf)
}

const rateRows = (store: Store) =>
  store.db
    .selectFrom('rate')
    .innerJoin('rate_plan', 'rate_plan.id', 'rate.rate_plan_id')
    .selectAll('rate')
    .select(['rate_plan.currency', 'rate_plan.decimals'])

const rateOf = (row: RateRow): Rate => ({
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
})
