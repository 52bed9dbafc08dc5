/**
 * The rates of a seed file, when they are many. One by one they would hold the write lock for seconds, and no
 * call could be journalled meanwhile.
 */
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/query.ts'
import { ApiError } from '../../http/api-error.ts'
import type { Reference } from '../../provisioning/fields.ts'
import { resolve } from '../../provisioning/references.ts'
import type { RequestScope } from '../../provisioning/resource.ts'
import { gatherRates } from './gathered-rates.ts'
import type { RateBody } from './rate-body.ts'
import { rateColumns } from './rate-store.ts'

export interface ManyRates {
  /** Inside a transaction of the caller. Undefined: nothing is written; one by one they will say what is wrong. */
  take(scope: RequestScope): Taken | undefined
  drop(): void
}

interface Taken {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
}

/** Fewer are written one by one. */
const MANY = 1_000

/** Undefined: they are few, or something is wrong with one of them. */
export function manyRates(store: Store, bodies: readonly RateBody[]): ManyRates | undefined {
  if (bodies.length < MANY) return undefined
  const plans = new Map<Reference, number>()
  const rates = withoutTwins(bodies, plans)
  if (rates === undefined) return undefined
  const gathered = gatherRates(store)
  gathered.add(rates)
  return {
    take: (scope) => {
      const ids = resolved(store, [...plans.keys()], scope)
      if (ids === undefined) return undefined
      for (const [reference, placeholder] of plans)
        gathered.setPlan(placeholder, ids.get(reference) ?? 0)
      const before = count(store)
      const changed = gathered.take()
      const created = count(store) - before
      return { created, updated: changed - created, unchanged: rates.length - changed }
    },
    drop: () => void gathered.drop(),
  }
}

/** Fills `plans`: what the bodies call their plans, and a number below zero for each. */
function withoutTwins(bodies: readonly RateBody[], plans: Map<Reference, number>) {
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

/** Undefined: there is no such plan, or two of the references mean the same one. */
function resolved(
  store: Store,
  references: readonly Reference[],
  scope: RequestScope,
): ReadonlyMap<Reference, number> | undefined {
  const ids = new Map<Reference, number>()
  try {
    for (const reference of references)
      ids.set(reference, resolve(store, 'rate_plan', reference, { tenantId: 'any', scope }) ?? 0)
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
  return new Set(ids.values()).size === ids.size ? ids : undefined
}

function count(store: Store): number {
  const query = store.db.selectFrom('rate').select((row) => row.fn.countAll<number>().as('n'))
  return all(store, query)[0]?.n ?? 0
}
