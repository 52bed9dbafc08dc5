/** The rate plan that a query or a line of a table names. */
import type { Tables } from '../../schema/sql/query.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError, badRequest, type RequestProblem } from '../http/api-error.ts'
import type { PlanOf } from './rate-import.ts'
import { badReference, either, resolve } from './references.ts'

export interface NamedPlan {
  readonly rate_plan?: string | undefined
  readonly rate_plan_id?: number | undefined
}

export function planFor(
  store: Tables,
  { rate_plan, rate_plan_id }: NamedPlan,
  scope: RequestScope,
): Promise<number> {
  return inQuery(async () => {
    const reference = either('rate_plan', rate_plan, rate_plan_id)
    const id = await resolve(store, 'rate_plan', reference, { tenantId: 'any', scope })
    if (id === null) throw badReference('rate_plan', 'is required')
    return id
  })
}

/** References are resolved as fields of a body; these come from the query. */
async function inQuery<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof ApiError ? badRequest('The query is not valid', error.details) : error
  }
}

/** Different names in one table. */
const MAX_NAMES = 1_000

/** Finds the plan that a line names, else the one that the request names; each name once. */
export function planFinder(store: Tables, plan: NamedPlan, scope: RequestScope): PlanOf {
  const known = new Map<string | undefined, number | RequestProblem>()
  return async (name) => {
    const kept = known.get(name)
    if (kept !== undefined) return kept
    if (known.size === MAX_NAMES)
      throw badRequest(`The table names more than ${MAX_NAMES} rate plans`)
    const found = await find(name)
    known.set(name, found)
    return found
  }

  async function find(name: string | undefined): ReturnType<PlanOf> {
    try {
      return await planFor(store, name === undefined ? plan : { rate_plan: name }, scope)
    } catch (error) {
      const [detail] = error instanceof ApiError ? (error.details ?? []) : []
      if (detail === undefined) throw error
      return detail
    }
  }
}
