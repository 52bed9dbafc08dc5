/** The periods of rate plans, to which rates may refer. */
import { periodNames, type PricePeriod } from '../../schema/rules/price-periods.ts'
import { first, type Tables } from '../../schema/sql/query.ts'
import { quoted } from '../http/clean-text.ts'
import { badReference } from './references.ts'

/** The names of the periods of a plan. */
export async function periodsOfPlan(store: Tables, planId: number): Promise<readonly string[]> {
  const query = store.db.selectFrom('rate_plan').select('periods').where('id', '=', planId)
  return periodsIn((await first(store, query))?.periods)
}

export const periodsIn = (column: string | null | undefined): readonly string[] =>
  column == null ? [] : periodNames(JSON.parse(column) as readonly PricePeriod[])

/** Undefined: the plan has the period. */
export function unknownPeriod(period: string, periods: readonly string[]): string | undefined {
  if (periods.includes(period)) return undefined
  const known = periods.length === 0 ? 'none' : periods.map(quoted).join(', ')
  return `the plan has no period ${quoted(period)}: it has ${known}`
}

/** Throws 400. */
export async function refuseUnknownPeriod(
  store: Tables,
  planId: number,
  period: string,
): Promise<void> {
  const message = unknownPeriod(period, await periodsOfPlan(store, planId))
  if (message !== undefined) throw badReference('period', message)
}
