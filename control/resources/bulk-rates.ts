/**
 * Writes many rates by few statements: those of an import, and those of a seed file. One by one
 * they would hold the write lock for seconds, and no call could be journalled meanwhile.
 */
import type { RequestScope } from '../auth/tenants.ts'
import type { Store } from '../../schema/storage/store.ts'
import { type Tables, all, first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import type { Reference } from '../http/fields.ts'
import { refuseDatedPrices } from './dated-prices.ts'
import { periodsOfPlan } from './plan-periods.ts'
import { completed, patched } from './patch.ts'
import { resolve } from './references.ts'
import { sql } from 'kysely'
import { rateColumns, rateDocument, type RateBody, rateBody, type SeedRateBody } from './rates.ts'

/**
 * Writes the rates inside the open transaction. Undefined: nothing is written; writing one by one
 * finds the fault.
 */
type WriteRates = (scope: RequestScope) => Promise<RateCounts | undefined>

interface RateCounts {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
}

/** Fewer rates are written one by one. */
const MANY = 1_000

/** Undefined: there are few rates, or one of them is not valid. */
export function manyRates(store: Store, bodies: readonly SeedRateBody[]): WriteRates | undefined {
  if (bodies.length < MANY) return undefined
  const plans = new Map<Reference, number>()
  const rates = withoutTwins(bodies, plans)
  if (rates === undefined) return undefined
  // Only the plans are sorted under the lock.
  const ofPlans = byPlan(rates)
  return async (scope) => {
    const ids = await resolved(store, plans, scope)
    if (ids === undefined) return undefined
    const before = await count(store)
    const written: NewRate[] = []
    for (const [placeholder, id] of [...ids].toSorted(([, one], [, other]) => one - other)) {
      const ofPlan = ofPlans.get(placeholder) ?? []
      if (!(await havePeriods(store, id, ofPlan))) return undefined
      const merged = await withStored(store, id, ofPlan)
      if (merged === undefined) return undefined
      for (const rate of merged) written.push(rate)
    }
    const put = ratesToPut(store, written)
    const changed = await refuseDatedPrices(store, [...ids.values()], put)
    const created = (await count(store)) - before
    return { created, updated: changed - created, unchanged: rates.length - changed }
  }
}

function byPlan(rates: readonly SeedRate[]): ReadonlyMap<number, readonly SeedRate[]> {
  const plans = new Map<number, SeedRate[]>()
  for (const rate of inOrder(rates)) {
    const plan = plans.get(rate.rate_plan_id)
    if (plan === undefined) plans.set(rate.rate_plan_id, [rate])
    else plan.push(rate)
  }
  return plans
}

/** A rate with its defaults, and the fields that the file names. */
interface SeedRate extends NewRate {
  readonly named: SeedRateBody
}

/** Fills `plans`: the references of the bodies, with a number below zero for each. */
function withoutTwins(
  bodies: readonly SeedRateBody[],
  plans: Map<Reference, number>,
): SeedRate[] | undefined {
  const keys = new Set<string>()
  try {
    const rates = bodies.map((named) => {
      const plan = named.rate_plan ?? named.rate_plan_id
      if (
        plan === undefined ||
        plan === null ||
        (named.rate_plan ?? plan) !== (named.rate_plan_id ?? plan)
      )
        throw new ApiError(400, 'validation_failed', 'A rate must name one rate plan')
      const placeholder = plans.get(plan) ?? -1 - plans.size
      plans.set(plan, placeholder)
      const columns = rateColumns(completed(rateBody, named))
      keys.add(`${placeholder} ${keyOf(columns)}`)
      return { rate_plan_id: placeholder, named, ...columns }
    })
    return keys.size === rates.length ? rates : undefined
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

const keyOf = (rate: Pick<NewRate, 'prefix' | 'period' | 'effective_from_at'>): string =>
  `${rate.prefix} ${rate.effective_from_at} ${rate.period}`

/** Whether the plan has the periods of all of them. */
async function havePeriods(
  store: Store,
  planId: number,
  rates: readonly Pick<NewRate, 'period'>[],
): Promise<boolean> {
  const named = new Set(rates.flatMap(({ period }) => period ?? []))
  if (named.size === 0) return true
  const known = await periodsOfPlan(store, planId)
  return [...named].every((name) => known.includes(name))
}

/**
 * Merges the rates of one plan with stored fields that the file does not name. Undefined: a merged
 * rate is not valid.
 */
async function withStored(
  store: Store,
  planId: number,
  rates: readonly SeedRate[],
): Promise<readonly NewRate[] | undefined> {
  const stored = new Map<string, RateBody>()
  for (const row of await all(store, notPlain(store, planId)))
    stored.set(keyOf(row), rateDocument(row))
  try {
    return rates.map(({ named, ...rate }) => {
      const known = stored.get(keyOf(rate))
      const columns = known === undefined ? rate : rateColumns(patched(rateBody, known, named))
      return { ...columns, rate_plan_id: planId }
    })
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/**
 * The stored rates of a plan with fields other than their price; the other rates have no fields to
 * merge.
 */
const notPlain = ({ db }: Store, planId: number) =>
  db
    .selectFrom('rate')
    .selectAll()
    .where('rate_plan_id', '=', planId)
    .where((row) =>
      row.or([
        row('description', 'is not', null),
        row('connect_fee_micros', '!=', 0),
        row('first_increment_seconds', '!=', 0),
        row('first_rate_per_minute_micros', '!=', row.ref('rate_per_minute_micros')),
        row('increment_seconds', '!=', 1),
        row('is_blocked', '!=', 0),
        row('effective_to_at', 'is not', null),
      ]),
    )

/**
 * The plan ids by placeholder. Undefined: a plan does not exist, or two references name the same
 * plan.
 */
async function resolved(
  store: Store,
  plans: ReadonlyMap<Reference, number>,
  scope: RequestScope,
): Promise<ReadonlyMap<number, number> | undefined> {
  const ids = new Map<number, number>()
  try {
    for (const [reference, placeholder] of plans) {
      const id = await resolve(store, 'rate_plan', reference, { tenantId: 'any', scope })
      ids.set(placeholder, id ?? 0)
    }
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
  return new Set(ids.values()).size === ids.size ? ids : undefined
}

async function count(store: Store): Promise<number> {
  const query = store.db.selectFrom('rate').select((row) => row.fn.countAll<number>().as('n'))
  return (await first(store, query))?.n ?? 0
}

export interface NewRate extends ReturnType<typeof rateColumns> {
  readonly rate_plan_id: number
}

const identity = ['rate_plan_id', 'prefix', 'period', 'effective_from_at'] as const
const terms = [
  'description',
  'rate_per_minute_micros',
  'connect_fee_micros',
  'is_blocked',
  'first_increment_seconds',
  'first_rate_per_minute_micros',
  'increment_seconds',
  'effective_to_at',
] as const
const columns = [...identity, ...terms]

/** Rows of one statement; more rows are not faster. */
const MAX_ROWS = 100

/**
 * Sorts rates as the index has them: they are written three times as fast. Rates that are in order
 * already cost one comparison each.
 */
const inOrder = <Rate extends NewRate>(rates: readonly Rate[]): Rate[] =>
  rates.toSorted(
    (a, b) =>
      a.rate_plan_id - b.rate_plan_id || Number(a.prefix > b.prefix) - Number(a.prefix < b.prefix),
  )

/**
 * Prepares the statements that insert or replace rates, none of which is there twice. They run
 * inside the open transaction, and resolve with the number of new and changed rows.
 */
export function ratesToPut(store: Tables, rates: readonly NewRate[]): () => Promise<number> {
  const ordered = inOrder(rates)
  const statementOf = (count: number) => store.statements.prepare(upsertOf(store, count))
  const ofMany = statementOf(MAX_ROWS)
  const runs = Array.from({ length: Math.ceil(ordered.length / MAX_ROWS) }, (_, index) => {
    const some = ordered.slice(index * MAX_ROWS, (index + 1) * MAX_ROWS)
    const statement = some.length === MAX_ROWS ? ofMany : statementOf(some.length)
    const values = some.flatMap((rate) => columns.map((name) => rate[name]))
    return () => statement.run(values)
  })
  return async () => {
    let count = 0
    for (const run of runs) count += await run()
    return count
  }
}

/** Inserts or replaces up to a hundred rates at a time, as they come. */
export function rateBatches(store: Tables): (rates: readonly NewRate[]) => Promise<number> {
  const statementOf = (count: number) => store.statements.prepare(upsertOf(store, count))
  const ofMany = statementOf(MAX_ROWS)
  return (rates) => {
    const statement = rates.length === MAX_ROWS ? ofMany : statementOf(rates.length)
    return statement.run(rates.flatMap((rate) => columns.map((name) => rate[name])))
  }
}

/** The text of a statement that takes the columns of so many rates. */
function upsertOf({ db }: Pick<Tables, 'db'>, count: number): string {
  const row = sql`(${sql.join(columns.map(() => 0))})`
  const rows = sql.join(Array.from({ length: count }, () => row))
  const names = (of: readonly string[]) => sql.join(of.map((name) => sql.ref(name)))
  const changes = terms.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`)
  const differences = terms.map(
    (name) => sql`${sql.ref(`rate.${name}`)} is distinct from ${sql.ref(`excluded.${name}`)}`,
  )
  return sql`insert into rate (${names(columns)}) values ${rows}
    on conflict (rate_plan_id, prefix, coalesce(period, ''), coalesce(effective_from_at, -1))
    do update set ${sql.join(changes)} where ${sql.join(differences, sql` or `)}`.compile(db).sql
}
