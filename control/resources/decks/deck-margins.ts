/**
 * The customers that a deck makes a loss with: a minute to a prefix is sold below what a carrier
 * charges for it, and was not before. Plans in another currency are not compared.
 */
import { type Tables, all } from '../../../schema/sql/query.ts'
import { inForce, byPrefix, planRates } from './plan-rates.ts'
import { priceOf } from './deck-diff.ts'

/** Prices of a minute by prefix; null: blocked. */
export type PriceList = Map<string, number | null>

export interface PlanOfDeck {
  readonly id: number
  readonly currency: string
  readonly tenantId: number | null
}

export interface LossOfCustomer {
  readonly customerId: number
  readonly customer: string
  readonly ratePlan: string
  /** Prefixes with a loss. */
  readonly prefixes: number
  /** The largest loss of a minute. */
  readonly worst: {
    readonly prefix: string
    readonly soldMicros: number
    readonly costMicros: number
  }
}

export type Losses =
  | {
      readonly kind: 'compared'
      readonly customers: number
      readonly shown: readonly LossOfCustomer[]
    }
  /** The other plans have too many rates to be compared here. */
  | { readonly kind: 'too-many-rates' }

export interface PricesOfDeck {
  /** The plan now, when the deck comes into force, and afterwards. */
  readonly before: PriceList
  readonly after: PriceList
  readonly at: number
}

/** Rates of other plans that are read, at most. */
const MAX_RATES = 1_000_000
const MAX_SHOWN_CUSTOMERS = 100

interface OtherPlan {
  readonly id: number
  readonly name: string
}

export async function lossesBy(
  store: Tables,
  plan: PlanOfDeck,
  prices: PricesOfDeck,
  pause: () => Promise<unknown>,
): Promise<Losses> {
  const [carriers, customers] = await Promise.all([
    plansOf(store, 'carrier', plan),
    plansOf(store, 'customer', plan),
  ])
  const isOf = (plans: readonly OtherPlan[]) => plans.some(({ id }) => id === plan.id)
  const losses = new Map<number, LossOfPlan>()
  const budget = { left: MAX_RATES }
  const readOther = (id: number) => pricesOf(store, id, prices.at, budget, pause)
  if (isOf(carriers))
    for (const { id } of customers.filter((each) => each.id !== plan.id)) {
      const sold = await readOther(id)
      if (sold === undefined) return { kind: 'too-many-rates' }
      note(losses, id, lossOf(sold, sold, prices.before, prices.after))
    }
  if (isOf(customers)) {
    const costs: PriceList[] = []
    for (const { id } of carriers.filter((each) => each.id !== plan.id)) {
      const cost = await readOther(id)
      if (cost === undefined) return { kind: 'too-many-rates' }
      costs.push(cost)
    }
    if (costs.length > 0) {
      const cheapest = cheapestOf(costs)
      note(losses, plan.id, lossOf(prices.before, prices.after, cheapest, cheapest))
    }
  }
  return customersOf(store, plan, losses)
}

type LossOfPlan = Pick<LossOfCustomer, 'prefixes' | 'worst'>

function note(losses: Map<number, LossOfPlan>, planId: number, loss: LossOfPlan | undefined): void {
  if (loss !== undefined) losses.set(planId, loss)
}

/** The price of the longest prefix that begins a number; undefined: there is none. */
function priceFor(list: PriceList, number: string): number | null | undefined {
  for (let length = number.length; length >= 0; length -= 1) {
    const price = list.get(number.slice(0, length))
    if (price !== undefined) return price
  }
  return undefined
}

/** Compares at each prefix that one of the lists has: between two of them nothing changes. */
function lossOf(
  soldBefore: PriceList,
  soldAfter: PriceList,
  costBefore: PriceList,
  costAfter: PriceList,
): LossOfPlan | undefined {
  let prefixes = 0
  let worst: LossOfCustomer['worst'] | undefined
  const lists = new Set([soldAfter, costAfter])
  const seen = (prefix: string, list: PriceList): boolean =>
    list === costAfter && lists.size === 2 && soldAfter.has(prefix)
  for (const list of lists)
    for (const prefix of list.keys()) {
      if (seen(prefix, list)) continue
      const [sold, cost] = [priceFor(soldAfter, prefix), priceFor(costAfter, prefix)]
      if (sold == null || cost == null || sold >= cost) continue
      const [earlier, earlierCost] = [priceFor(soldBefore, prefix), priceFor(costBefore, prefix)]
      if (earlier != null && earlierCost != null && earlier < earlierCost) continue
      prefixes += 1
      if (worst === undefined || cost - sold > worst.costMicros - worst.soldMicros)
        worst = { prefix, soldMicros: sold, costMicros: cost }
    }
  return worst === undefined ? undefined : { prefixes, worst }
}

/** The prices of the cheapest carrier that has one for a number. */
function cheapestOf(lists: readonly PriceList[]): PriceList {
  const [only, ...others] = lists
  if (only !== undefined && others.length === 0) return only
  const cheapest: PriceList = new Map()
  for (const list of lists)
    for (const prefix of list.keys()) {
      if (cheapest.has(prefix)) continue
      const found = lists.flatMap((each) => priceFor(each, prefix) ?? [])
      cheapest.set(prefix, found.length === 0 ? null : Math.min(...found))
    }
  return cheapest
}

/** Undefined: there are too many. */
async function pricesOf(
  store: Tables,
  planId: number,
  at: number,
  budget: { left: number },
  pause: () => Promise<unknown>,
): Promise<PriceList | undefined> {
  const list: PriceList = new Map()
  for await (const groups of byPrefix(planRates(store, planId, pause)))
    for (const { prefix, period, rates } of groups) {
      budget.left -= rates.length
      if (budget.left < 0) return undefined
      if (period !== null) continue
      const rate = inForce(rates, at)
      if (rate !== undefined) list.set(prefix, priceOf(rate))
    }
  return list
}

/** The plans of carriers or customers that the owner of the deck's plan can see. */
async function plansOf(
  store: Tables,
  of: 'carrier' | 'customer',
  { currency, tenantId }: PlanOfDeck,
): Promise<readonly OtherPlan[]> {
  const users = store.db
    .selectFrom(of)
    .select('rate_plan_id')
    .where('rate_plan_id', 'is not', null)
    .$if(tenantId !== null, (rows) => rows.where('tenant_id', '=', tenantId))
  const query = store.db
    .selectFrom('rate_plan')
    .select(['id', 'name'])
    .where('currency', '=', currency)
    .where('id', 'in', users)
    .orderBy('id')
  return all(store, query)
}

async function customersOf(
  store: Tables,
  { tenantId }: PlanOfDeck,
  losses: ReadonlyMap<number, LossOfPlan>,
): Promise<Losses> {
  if (losses.size === 0) return { kind: 'compared', customers: 0, shown: [] }
  const query = store.db
    .selectFrom('customer')
    .innerJoin('rate_plan', 'rate_plan.id', 'customer.rate_plan_id')
    .select(['customer.id', 'customer.name', 'rate_plan.name as plan', 'customer.rate_plan_id'])
    .where('customer.rate_plan_id', 'in', [...losses.keys()])
    .$if(tenantId !== null, (rows) => rows.where('customer.tenant_id', '=', tenantId))
    .orderBy('customer.id')
  const rows = await all(store, query)
  const shown = rows.flatMap(({ id, name, plan, rate_plan_id }) => {
    const loss = losses.get(rate_plan_id ?? 0)
    return loss === undefined ? [] : [{ customerId: id, customer: name, ratePlan: plan, ...loss }]
  })
  return { kind: 'compared', customers: shown.length, shown: shown.slice(0, MAX_SHOWN_CUSTOMERS) }
}
