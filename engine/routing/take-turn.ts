/** The first gateway of a call takes the turn of its route, and its own in its carrier. */
import type { GatewayCandidate, RoutePrice } from './outbound-routes.ts'
import type { CarrierRecord, OutboundRouteRecord } from './routing-records.ts'
import { type AllTurns, type RouteShare, type Sharing, sharingOf } from './turns.ts'

/** The gateways of a call in their order, and what says which of them are equal. */
interface SharedCall {
  readonly gateways: readonly GatewayCandidate[]
  /** Whether nothing but turns says which of this gateway and the first one comes first. */
  readonly isEqual: (gateway: GatewayCandidate) => boolean
  /** The carrier of the first gateway. */
  readonly carrier: CarrierRecord | undefined
  /** Undefined: no route shares calls in turn. */
  readonly shares: ReadonlyMap<number, RouteShare> | undefined
  readonly routeOf: ReadonlyMap<GatewayCandidate, OutboundRouteRecord> | undefined
  readonly priceOf: (route: OutboundRouteRecord) => RoutePrice | undefined
}

/**
 * Only those that could have taken the call are credited. `turns` undefined: no call is made.
 * Returns whether the next call goes by turns.
 */
export function takeTurn(call: SharedCall, turns: AllTurns | undefined): boolean {
  const [first] = call.gateways
  if (first === undefined) return false
  const routes = equalRoutes(first, call)
  const gateways = equalGateways(first, call)
  if (routes) turns?.routes.take(...routes)
  if (gateways) turns?.gateways.take(...gateways)
  return routes !== undefined || gateways !== undefined
}

type Turn = readonly [first: Sharing, able: readonly Sharing[]]

function equalRoutes(
  first: GatewayCandidate,
  { gateways, isEqual, shares, routeOf, priceOf }: SharedCall,
): Turn | undefined {
  const route = routeOf?.get(first)
  const share = route && shares?.get(route.routeId)
  if (route === undefined || share === undefined) return undefined
  const isAsDear = (other: OutboundRouteRecord): boolean =>
    other.mode === route.mode &&
    (other.mode !== 'lcr' || priceOf(other)?.expectedMicros === priceOf(route)?.expectedMicros)
  const able = new Set<RouteShare>()
  for (const gateway of gateways) {
    const other = routeOf?.get(gateway)
    const theirs = other && shares?.get(other.routeId)
    if (theirs?.group === share.group && isAsDear(other ?? route) && isEqual(gateway))
      able.add(theirs)
  }
  return able.size > 1 ? [share, [...able]] : undefined
}

function equalGateways(
  first: GatewayCandidate,
  { gateways, isEqual, carrier }: SharedCall,
): Turn | undefined {
  const { distribution = 'weight', gateways: own = [] } = carrier ?? {}
  if (distribution === 'weight') return undefined
  const called = own.find(({ gatewayId }) => gatewayId === first.gatewayId)
  const able = own.filter(
    ({ gatewayId, priority }) =>
      priority === called?.priority &&
      gateways.some((gateway) => gateway.gatewayId === gatewayId && isEqual(gateway)),
  )
  if (called === undefined || able.length < 2) return undefined
  const shareOf = ({ gatewayId, weight }: (typeof own)[number]): Sharing =>
    sharingOf(gatewayId, weight, distribution)
  return [shareOf(called), able.map(shareOf)]
}
