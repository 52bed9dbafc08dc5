/** The rates of a plan in the order of prefixes and starts, a page at a time. */
import { type Selectable, sql } from 'kysely'
import type { RateTable } from '../../../schema/tables/tenants.ts'
import { type Tables, all } from '../../../schema/sql/query.ts'

export type PlanRate = Selectable<RateTable>

const PAGE = 2_000

/**
 * Rates that are written before the reader has come to them are seen, others not.
 *
 * @param pause runs between two pages.
 */
export async function* planRates(
  store: Tables,
  planId: number,
  pause: () => Promise<unknown> = () => Promise.resolve(),
): AsyncGenerator<readonly PlanRate[]> {
  let after: readonly [prefix: string, start: number] | undefined
  for (;;) {
    const rows = await all(store, pageOf(store, planId, after))
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) return
    after = [last.prefix, last.effective_from_at ?? -1]
    await pause()
  }
}

function pageOf(
  { db }: Tables,
  planId: number,
  after: readonly [prefix: string, start: number] | undefined,
) {
  const start = sql<number>`coalesce(effective_from_at, -1)`
  return db
    .selectFrom('rate')
    .selectAll()
    .where('rate_plan_id', '=', planId)
    .$if(after !== undefined, (rows) => {
      const [prefix, from] = after ?? ['', -1]
      return rows.where(sql<boolean>`(prefix, ${start}) > (${prefix}, ${from})`)
    })
    .orderBy('prefix')
    .orderBy(start)
    .limit(PAGE)
}

/** All rates of one prefix, the earliest start first. */
export interface PrefixRates {
  readonly prefix: string
  readonly rates: readonly PlanRate[]
}

export async function* byPrefix(
  pages: AsyncIterable<readonly PlanRate[]>,
): AsyncGenerator<readonly PrefixRates[]> {
  let prefix: string | undefined
  let rates: PlanRate[] = []
  for await (const page of pages) {
    const groups: PrefixRates[] = []
    for (const rate of page) {
      if (rate.prefix !== prefix) {
        if (prefix !== undefined) groups.push({ prefix, rates })
        prefix = rate.prefix
        rates = []
      }
      rates.push(rate)
    }
    yield groups
  }
  if (prefix !== undefined) yield [{ prefix, rates }]
}

/** The rate of one prefix that is in force at a time: the latest that has begun. */
export const inForce = <R extends Pick<PlanRate, 'effective_from_at' | 'effective_to_at'>>(
  rates: readonly R[],
  at: number,
): R | undefined =>
  rates.findLast(
    ({ effective_from_at: from, effective_to_at: to }) =>
      (from === null || from <= at) && (to === null || to > at),
  )
