/**
 * The rate table in force. Follows the database whole or by one plan, in slices, or by one prefix.
 */
import type { Selectable } from 'kysely'
import { fromFlag } from '../../../schema/columns.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all } from '../../../schema/sql/query.ts'
import type { RateTable as RateColumns } from '../../../schema/tables/tenants.ts'
import { PlanTimes } from './plan-times.ts'
import { grantLength } from './price.ts'
import { RateDeck } from './rate-table.ts'
import type { ExitCodes, Rate } from '../../../schema/contracts/charging.ts'
import type { Rounding } from '../../../schema/contracts/tariff.ts'
import type { PricePeriod } from '../../../schema/rules/price-periods.ts'

type Change = (table: RateDeck) => void

export class Rates {
  readonly #store: Store
  readonly #pause: (isServing: boolean) => Promise<unknown>
  readonly #whole = new OneAtATime(() => this.#load())
  /** A part does not wait for a whole load, only for other parts. */
  readonly #parts = new OneAtATime(() => Promise.resolve())
  readonly #exitCodes: ExitCodes | undefined
  #table: RateDeck
  #isServing = false
  #longestGrantSeconds = 0
  /** Changes taken over while a table loads; undefined: none loads. */
  #changedMeanwhile: Change[] | undefined

  /** @param pause runs between two slices; false: no call is served before the rates are loaded. */
  constructor(
    store: Store,
    pause: (isServing: boolean) => Promise<unknown>,
    exitCodes?: ExitCodes,
  ) {
    this.#store = store
    this.#pause = pause
    this.#exitCodes = exitCodes
    this.#table = new RateDeck([], exitCodes)
  }

  get table(): RateDeck {
    return this.#table
  }

  /** The longest grant at any rate ever in this table: calls keep the rate of their start. */
  get longestGrantSeconds(): number {
    return this.#longestGrantSeconds
  }

  #note(rates: readonly Rate[]): void {
    for (const { tariff } of rates)
      this.#longestGrantSeconds = Math.max(this.#longestGrantSeconds, grantLength(tariff))
  }

  /**
   * Takes over the rates as they are stored now: there are none before. 100,000 of them take about
   * half a second.
   */
  reload(): Promise<void> {
    return this.#whole.request()
  }

  /** Takes over the rates of one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): Promise<void> {
    return this.#parts.between(async () => {
      const rates = await loadPrefix(this.#store, planId, prefix)
      this.#note(rates)
      this.#change((table) => table.replace(planId, prefix, rates))
    })
  }

  /** Takes over the rates of one plan, and counts them. */
  reloadPlan(planId: number): Promise<number> {
    return this.#parts.between(async () => {
      const { table: loaded, count } = await this.#read(planId)
      this.#change((table) => table.takePlan(planId, loaded))
      return count
    })
  }

  /** Takes over the zones, periods and holidays: a plan may have the zone of its tenant. */
  reloadTimes(): Promise<void> {
    return this.#parts.between(async () => {
      const times = await loadTimes(this.#store)
      this.#change((table) => table.setTimes(times))
    })
  }

  #change(change: Change): void {
    change(this.#table)
    this.#changedMeanwhile?.push(change)
  }

  async #load(): Promise<void> {
    const changes: Change[] = []
    this.#changedMeanwhile = changes
    try {
      const { table } = await this.#read()
      for (const change of changes) change(table)
      this.#table = table
      this.#isServing = true
    } finally {
      this.#changedMeanwhile = undefined
    }
  }

  /** Reads the rates of one plan, or of all. */
  async #read(planId?: number): Promise<{ readonly table: RateDeck; readonly count: number }> {
    const table = new RateDeck([], this.#exitCodes)
    table.setTimes(await loadTimes(this.#store, planId))
    let count = 0
    for await (const slice of rateSlices(this.#store, planId)) {
      table.add(slice)
      count += slice.length
      this.#note(slice)
      await this.#pause(this.#isServing)
    }
    return { table, count }
  }
}

interface RateRow extends Selectable<RateColumns> {
  readonly currency: string
  readonly decimals: number
  readonly priced_by: 'number' | 'rn'
  readonly rounding: Rounding
}

/** Rates per slice: about 1 ms, because calls are set up between two of them. */
const sliceLength = 250

/** All rates, or those of a plan, a slice at a time; rates may be written between two slices. */
async function* rateSlices(store: Store, planId?: number): AsyncGenerator<readonly Rate[]> {
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

/** When the prices of plans change: of one, or of all that have periods. */
async function loadTimes(store: Store, planId?: number): Promise<ReadonlyMap<number, PlanTimes>> {
  const query = store.db
    .selectFrom('rate_plan')
    .leftJoin('tenant', 'tenant.id', 'rate_plan.tenant_id')
    .select(['rate_plan.id', 'periods', 'holidays', 'price_change'])
    .select(['rate_plan.time_zone as zone', 'tenant.time_zone as tenantZone'])
    .where('periods', 'is not', null)
    .$if(planId !== undefined, (rows) => rows.where('rate_plan.id', '=', planId ?? 0))
  const rows = await all(store, query)
  return new Map(
    rows.map(({ id, periods, holidays, price_change: priceChange, zone, tenantZone }) => [
      id,
      new PlanTimes({
        zone: zone ?? tenantZone ?? 'UTC',
        periods: JSON.parse(periods ?? '[]') as readonly PricePeriod[],
        holidays: JSON.parse(holidays ?? '[]') as readonly string[],
        priceChange,
      }),
    ]),
  )
}

/** The rates of one plan and prefix, with or without `+`. */
async function loadPrefix(store: Store, planId: number, prefix: string): Promise<readonly Rate[]> {
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
    .select(['rate_plan.rounding', 'rate_plan.priced_by'])

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
    rounding: row.rounding,
  },
  isBlocked: fromFlag(row.is_blocked),
  ...(row.priced_by === 'rn' && { isByRoutingNumber: true }),
  ...(row.period !== null && { period: row.period }),
  effectiveFrom: row.effective_from_at,
  effectiveTo: row.effective_to_at,
})
