/**
 * Writes many rates of a seed file at once. One by one they would hold the write lock for seconds, and no call
 * could be journalled meanwhile.
 */
import type { Store } from '../../../schema/open.ts'
import { first } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import type { Reference } from '../../provisioning/fields.ts'
import { resolve } from '../../provisioning/references.ts'
import type { RequestScope } from '../../provisioning/resource.ts'
import { inOrder, type NewRate, ratesToPut } from './put-rates.ts'
import type { RateBody } from './rate-body.ts'
import { rateColumns } from './rate-store.ts'

/** Writes them inside the open transaction. Undefined: nothing is written, and writing them one by one finds the fault. */
type WriteRates = (scope: RequestScope) => Promise<Taken | undefined>

interface Taken {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
}

/** Fewer are written one by one. */
const MANY = 1_000

/** Undefined: there are few, or one of them is not valid. */
export function manyRates(store: Store, bodies: readonly RateBody[]): WriteRates | undefined {
  if (bodies.length < MANY) return undefined
  const plans = new Map<Reference, number>()
  const rates = withoutTwins(bodies, plans)
  if (rates === undefined) return undefined
  // Their order is known but for that of the plans: nothing is sorted under the lock.
  const ofPlans = byPlan(rates)
  return async (scope) => {
    const ids = await resolved(store, plans, scope)
    if (ids === undefined) return undefined
    const before = await count(store)
    const written = [...ids]
      .toSorted(([, one], [, other]) => one - other)
      .flatMap(([placeholder, id]) =>
        (ofPlans.get(placeholder) ?? []).map((rate) => ({ ...rate, rate_plan_id: id })),
      )
    const changed = await ratesToPut(store, written)()
    const created = (await count(store)) - before
    return { created, updated: changed - created, unchanged: rates.length - changed }
  }
}

function byPlan(rates: readonly NewRate[]): ReadonlyMap<number, readonly NewRate[]> {
  const plans = new Map<number, NewRate[]>()
  for (const rate of inOrder(rates)) {
    const plan = plans.get(rate.rate_plan_id)
    if (plan === undefined) plans.set(rate.rate_plan_id, [rate])
    else plan.push(rate)
  }
  return plans
}

/** Fills `plans`: the references of the bodies, with a number below zero for each. */
function withoutTwins(
  bodies: readonly RateBody[],
  plans: Map<Reference, number>,
): NewRate[] | undefined {
  const keys = new Set<string>()
  try {
    const rates = bodies.map((body) => {
      const plan = body.rate_plan ?? body.rate_plan_id
      if (
        plan === undefined ||
        plan === null ||
        (body.rate_plan ?? plan) !== (body.rate_plan_id ?? plan)
      )
        throw new ApiError(400, 'validation_failed', 'The plan of a rate is not clear')
      const placeholder = plans.get(plan) ?? -1 - plans.size
      plans.set(plan, placeholder)
      const columns = rateColumns(body)
      keys.add(`${placeholder} ${columns.prefix} ${columns.effective_from_at}`)
      return { rate_plan_id: placeholder, ...columns }
    })
    return keys.size === rates.length ? rates : undefined
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/** The plans by the numbers that stand for them. Undefined: one does not exist, or two references mean the same. */
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
