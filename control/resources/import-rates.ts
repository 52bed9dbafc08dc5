/** The whole work of an import of rates, in whichever thread. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tables } from '../../schema/sql/query.ts'
import type { RequestScope } from '../auth/tenants.ts'
import {
  changedBy,
  type ChangedRates,
  type ImportOrder,
  type ImportReport,
  readRates,
  storeRates,
} from './rate-import.ts'
import { periodsOfPlan } from './plan-periods.ts'
import { type NamedPlan, planFinder } from './rate-plan-reference.ts'

/** Plain data: it is sent to the thread. */
export interface RateWork {
  readonly kind: 'rates'
  /** The bytes as they arrived. */
  readonly table: Uint8Array
  /** Plan of the lines that name none. */
  readonly plan: NamedPlan
  readonly order: ImportOrder
  readonly scope: RequestScope
}

export interface RateOutcome {
  readonly kind: 'rates'
  readonly report: ImportReport
  readonly changed: ChangedRates
}

/** Throws an `ApiError` for a table that cannot be imported. */
export async function importRates(
  store: Tables,
  { table, plan, order, scope }: RateWork,
): Promise<RateOutcome> {
  const planOf = planFinder(store, plan, scope)
  const periods = new Map<number, Promise<readonly string[]>>()
  const periodsOf = (planId: number): Promise<readonly string[]> => {
    const known = periods.get(planId) ?? periodsOfPlan(store, planId)
    periods.set(planId, known)
    return known
  }
  const plans = { planOf, periodsOf }
  const rates = await readRates(table, plans, order.allowsDefault, nextTurn)
  const report = await storeRates(store, rates, order, scope)
  return { kind: 'rates', report, changed: changedBy(rates, order) }
}
