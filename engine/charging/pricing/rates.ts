/**
 * The rate table in force. Follows the database whole or by one plan, in slices, or by one prefix.
 */
import { type Selectable, sql } from 'kysely'
import { fromFlag } from '../../../schema/columns.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, rawRows } from '../../../schema/sql/query.ts'
import type { RateTable as RateColumns } from '../../../schema/tables/tenants.ts'
import { PlanTimes } from './plan-times.ts'
import { grantLength } from './price.ts'
import { lossTermsOf } from '../../../schema/rules/loss-protection.ts'
import type { PlanOfRates } from './packed-prices.ts'
import { RateDeck, type ReadPlanPrice } from './rate-table.ts'
import type { ExitCodes, Rate } from '../../../schema/contracts/charging.ts'
import type { Rounding, Tariff } from '../../../schema/contracts/tariff.ts'
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

  #note(tariff: Pick<Tariff, 'firstIncrementSeconds'>): void {
    this.#longestGrantSeconds = Math.max(this.#longestGrantSeconds, grantLength(tariff))
  }

  /**
   * Takes over the rates as they are stored now: there are none before. 100,000 of them take about
   * a third of a second.
   */
  reload(): Promise<void> {
    return this.#whole.request()
  }

  /** Takes over the rates of one prefix of a plan. */
  reloadPrefix(planId: number, prefix: string): Promise<void> {
    return this.#parts.between(async () => {
      const rates = await loadPrefix(this.#store, planId, prefix)
      for (const { tariff } of rates) this.#note(tariff)
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
    for (const row of await protectedPlans(this.#store, planId))
      table.setLossTerms(row.id, lossTermsOf(row))
    table.setTimes(await loadTimes(this.#store, planId))
    let count = 0
    for await (const slice of readRates(this.#store, planId)) {
      for (const { plan, rows } of slice) {
        table.addRead(plan, rows)
        count += rows.length
        for (const row of rows) this.#note(row)
      }
      await this.#pause(this.#isServing)
    }
    table.endReading()
    return { table, count }
  }
}

interface RatesOfPlan {
  readonly plan: PlanOfRates
  readonly rows: readonly ReadPlanPrice[]
}

/** Those that say something about calls at a loss; `planId` undefined: of all. */
const protectedPlans = (store: Store, planId?: number) =>
  all(
    store,
    store.db
      .selectFrom('rate_plan')
      .select(['id', 'tenant_id', 'loss_protection', 'min_margin', 'is_loss_by_tenant'])
      .where('loss_protection', 'is not', null)
      .$if(planId !== undefined, (rows) => rows.where('id', '=', planId ?? 0)),
  )

/** Rates per slice: 1 to 2 ms, because calls are set up between two of them. */
const SLICE = 1_000

/**
 * All rates, or those of a plan, a slice at a time, in the order of the index: by their ids each
 * slice of a plan would sort all that is left of it. Rates may be written between two slices.
 */
async function* readRates(store: Store, planId?: number): AsyncGenerator<readonly RatesOfPlan[]> {
  const plans = await plansOf(store, planId)
  let after: Place = [planId ?? 0, '', '', -2]
  for (;;) {
    const rows = await rawRows<RawRate>(store, sliceAfter(store, after, planId))
    yield byPlan(rows, plans)
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE) return
    after = [last[0], last[1], last[10] ?? '', last[8] ?? -1]
  }
}

async function plansOf(
  store: Store,
  planId: number | undefined,
): Promise<ReadonlyMap<number, PlanOfRates>> {
  const query = store.db
    .selectFrom('rate_plan')
    .select(['id', 'currency', 'decimals', 'rounding', 'priced_by'])
    .$if(planId !== undefined, (rows) => rows.where('id', '=', planId ?? 0))
  const rows = await all(store, query)
  return new Map(
    rows.map(({ id, currency, decimals, rounding, priced_by }) => [
      id,
      { planId: id, currency, decimals, rounding, isByRoutingNumber: priced_by === 'rn' },
    ]),
  )
}

/** When the prices of plans change: of one, or of all that have periods. */
async function loadTimes(store: Store, planId?: number): Promise<ReadonlyMap<number, PlanTimes>> {
  const query = store.db
    .selectFrom('rate_plan')
    .leftJoin('tenant', 'tenant.id', 'rate_plan.tenant_id')
    .select(['rate_plan.id', 'rate_plan.tenant_id', 'periods', 'holidays', 'price_change'])
    .select(['rate_plan.time_zone as zone', 'tenant.time_zone as tenantZone'])
    .where('periods', 'is not', null)
    .$if(planId !== undefined, (rows) => rows.where('rate_plan.id', '=', planId ?? 0))
  const rows = await all(store, query)
  return new Map(
    rows.map(
      ({ id, tenant_id, periods, holidays, price_change: priceChange, zone, tenantZone }) => [
        id,
        new PlanTimes({
          zone: zone ?? tenantZone ?? 'UTC',
          ofTenant: zone === null ? tenant_id : undefined,
          periods: JSON.parse(periods ?? '[]') as readonly PricePeriod[],
          holidays: JSON.parse(holidays ?? '[]') as readonly string[],
          priceChange,
        }),
      ],
    ),
  )
}

/** The rate after which a slice begins. */
type Place = readonly [planId: number, prefix: string, period: string, start: number]

const rawColumns = [
  'rate_plan_id',
  'prefix',
  'connect_fee_micros',
  'first_increment_seconds',
  'first_rate_per_minute_micros',
  'increment_seconds',
  'rate_per_minute_micros',
  'is_blocked',
  'effective_from_at',
  'effective_to_at',
  'period',
] as const satisfies readonly (keyof RateColumns)[]

type RawRate = readonly [
  planId: number,
  prefix: string,
  connectFee: number,
  firstIncrement: number,
  firstRate: number,
  increment: number,
  rate: number,
  isBlocked: 0 | 1,
  from: number | null,
  to: number | null,
  period: string | null,
]

function sliceAfter(
  { db }: Store,
  [afterPlan, prefix, ofPeriod, from]: Place,
  planId: number | undefined,
) {
  const start = sql<number>`coalesce(effective_from_at, -1)`
  const period = sql<string>`coalesce(period, '')`
  const [own, after] = [sql`prefix, ${period}, ${start}`, sql`${prefix}, ${ofPeriod}, ${from}`]
  const rates = db.selectFrom('rate').select(rawColumns)
  const following =
    planId === undefined
      ? rates.where(sql<boolean>`(rate_plan_id, ${own}) > (${afterPlan}, ${after})`)
      : rates.where('rate_plan_id', '=', planId).where(sql<boolean>`(${own}) > (${after})`)
  return following
    .orderBy('rate_plan_id')
    .orderBy('prefix')
    .orderBy(period)
    .orderBy(start)
    .limit(SLICE)
}

/** A plan that is made meanwhile is read by itself later. */
function byPlan(
  rows: readonly RawRate[],
  plans: ReadonlyMap<number, PlanOfRates>,
): readonly RatesOfPlan[] {
  const found: RatesOfPlan[] = []
  for (let start = 0; start < rows.length;) {
    const planId = rows[start]?.[0] ?? 0
    let end = start + 1
    while (rows[end]?.[0] === planId) end += 1
    const plan = plans.get(planId)
    if (plan !== undefined) found.push({ plan, rows: rows.slice(start, end).map(priceOf) })
    start = end
  }
  return found
}

const priceOf = (row: RawRate): ReadPlanPrice => ({
  prefix: row[1],
  connectFeeMicros: row[2],
  firstIncrementSeconds: row[3],
  firstRatePerMinuteMicros: row[4],
  incrementSeconds: row[5],
  ratePerMinuteMicros: row[6],
  isBlocked: fromFlag(row[7]),
  effectiveFrom: row[8],
  effectiveTo: row[9],
  period: row[10],
})

/** The rates of one plan and prefix, with or without `+`. */
async function loadPrefix(store: Store, planId: number, prefix: string): Promise<readonly Rate[]> {
  const rows = rateRows(store)
    .where('rate_plan_id', '=', planId)
    .where('prefix', 'in', [prefix, `+${prefix}`])
  return (await all(store, rows)).map(rateOf)
}

interface RateRow extends Selectable<RateColumns> {
  readonly currency: string
  readonly decimals: number
  readonly priced_by: 'number' | 'rn'
  readonly rounding: Rounding
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
