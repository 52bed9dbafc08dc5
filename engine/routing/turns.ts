/**
 * Exact shares among equals: the smooth weighted round robin of nginx. Each call credits every one
 * of them with its weight, and the one with the greatest credit takes the call and pays the sum. So
 * 100 calls at 70 and 30 are 70 and 30, well mixed, and nothing is drawn (D408).
 */
import type { Distribution } from '../../schema/contracts/field-values.ts'

export interface Sharing {
  readonly id: number
  /** Calls go to each in proportion to it. */
  readonly weight: number
}

export class Turns {
  /** By id; absent: nothing. */
  readonly #credits: Map<number, number>

  constructor(credits: ReadonlyMap<number, number> = new Map()) {
    this.#credits = new Map(credits)
  }

  /** The same turns, for calls that are not made. */
  copy(): Turns {
    return new Turns(this.#credits)
  }

  /** The credit with which it goes into the next call: the greatest comes first. */
  standing({ id, weight }: Sharing): number {
    return (this.#credits.get(id) ?? 0) + weight
  }

  /** A call goes to `first`, which is one of those that could take it. */
  take(first: Sharing, able: readonly Sharing[]): void {
    let sum = 0
    for (const each of able) {
      sum += each.weight
      this.#credits.set(each.id, this.standing(each))
    }
    this.#credits.set(first.id, (this.#credits.get(first.id) ?? 0) - sum)
  }

  /** It is gone, or has another weight. */
  forget(id: number): void {
    this.#credits.delete(id)
  }

  keepOnly(ids: { has(id: number): boolean }): void {
    for (const id of this.#credits.keys()) if (!ids.has(id)) this.#credits.delete(id)
  }
}

/** The turns of routes and those of gateways. */
export interface AllTurns {
  readonly routes: Turns
  readonly gateways: Turns
}

/** The part of a route or gateway in the calls of its equals: `round_robin` ignores weights. */
export const sharingOf = (id: number, weight: number, distribution: Distribution): Sharing => ({
  id,
  weight: distribution === 'round_robin' ? 1 : weight,
})

/** The routes of one prefix, owner and priority, and how they share calls. */
export interface RouteShare extends Sharing {
  readonly group: string
}

interface SharedRoute {
  readonly routeId: number
  readonly priority: number
  readonly weight: number
  readonly distribution: Distribution
}

/**
 * Routes of one prefix, as they were drawn, with those that share calls in turn. One of equals
 * that says `percent`, or else `round_robin`, says it for all of them. Their shares are added to
 * `shares`. `tierOf` undefined: the route shares with no other.
 */
export function inTurn<Route extends SharedRoute>(
  drawn: readonly Route[],
  tierOf: (route: Route) => string | undefined,
  turns: Turns,
  shares: Map<number, RouteShare>,
): readonly Route[] {
  const rules = new Map<string, Distribution>()
  const groupOf = (route: Route, tier: string): string => `${tier} ${route.priority}`
  for (const route of drawn) {
    const tier = tierOf(route)
    if (tier === undefined) continue
    const group = groupOf(route, tier)
    if (isStronger(route.distribution, rules.get(group))) rules.set(group, route.distribution)
  }
  const placed = drawn.map((route, index) => {
    const tier = tierOf(route)
    const group = tier === undefined ? '' : groupOf(route, tier)
    const rule = tier === undefined ? 'weight' : (rules.get(group) ?? 'weight')
    if (rule === 'weight') return { route, group, standing: -index }
    const share = { ...sharingOf(route.routeId, route.weight, rule), group }
    shares.set(route.routeId, share)
    return { route, group, standing: turns.standing(share) }
  })
  return placed
    .toSorted(
      (one, other) =>
        one.route.priority - other.route.priority ||
        (one.group < other.group ? -1 : Number(one.group > other.group)) ||
        other.standing - one.standing ||
        one.route.routeId - other.route.routeId,
    )
    .map(({ route }) => route)
}

const strength: Readonly<Record<Distribution, number>> = { weight: 0, round_robin: 1, percent: 2 }

const isStronger = (one: Distribution, other: Distribution | undefined): boolean =>
  other === undefined || strength[one] > strength[other]
