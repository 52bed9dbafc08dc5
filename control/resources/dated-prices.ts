/**
 * How many prices with different starts a prefix may have in a plan. All of them are in memory, and
 * a look-up may read those that are over, so this bounds a call, whoever writes the prices.
 */
import { type Tables, all, first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'

/** A new price each week for nineteen years. */
const MAX_DATED_PRICES = 1_000

/**
 * Throws 409 when `write`, which runs in a transaction, leaves more than these plans may have, and
 * more than before.
 */
export async function refuseDatedPrices<T>(
  store: Tables,
  plans: readonly number[],
  write: () => Promise<T>,
): Promise<T> {
  const before = await beyondLimit(store, plans)
  const result = await write()
  for (const [name, { prefix, prices }] of await beyondLimit(store, plans))
    if (prices > (before.get(name)?.prices ?? 0)) throw tooManyPrices(prefix)
  return result
}

interface Prices {
  readonly rate_plan_id: number
  readonly prefix: string
  readonly prices: number
}

async function beyondLimit(
  store: Tables,
  plans: readonly number[],
): Promise<ReadonlyMap<string, Prices>> {
  const query = store.db
    .selectFrom('rate')
    .select(['rate_plan_id', 'prefix'])
    .select((row) => row.fn.countAll<number>().as('prices'))
    .where('rate_plan_id', 'in', plans)
    .groupBy(['rate_plan_id', 'prefix'])
    .having((row) => row.fn.countAll(), '>', MAX_DATED_PRICES)
  const rows = await all<Prices>(store, query)
  return new Map(rows.map((row) => [`${row.rate_plan_id} ${row.prefix}`, row]))
}

/** Throws 409 when the plan has no room for one more price of this prefix. */
export async function refuseOneMorePrice(
  store: Tables,
  planId: number,
  prefix: string,
): Promise<void> {
  const query = store.db
    .selectFrom('rate')
    .select((row) => row.fn.countAll<number>().as('prices'))
    .where('rate_plan_id', '=', planId)
    .where('prefix', '=', prefix)
  const { prices = 0 } = (await first(store, query)) ?? {}
  if (prices >= MAX_DATED_PRICES) throw tooManyPrices(prefix)
}

const tooManyPrices = (prefix: string): ApiError =>
  new ApiError(
    409,
    'too_many_dates',
    `A plan has at most ${MAX_DATED_PRICES} prices with different starts of one prefix; ` +
      `${quoted(prefix)} would have more. Remove prices that are over`,
    {
      details: [
        { path: 'prefix', message: `has at most ${MAX_DATED_PRICES} prices with different starts` },
      ],
    },
  )
