/** The routes that have floors of quality, and how their carriers do. */
import type { RouteQualityStatus } from '../../schema/contracts/route-quality.ts'
import type { OutboundRouteRecord } from './routing-records.ts'
import { type MeasuredRoute, type QualityChange, RouteQuality } from './route-quality.ts'

export interface RouteQualitiesDeps {
  readonly now: () => number
  /** Absent: a low route is looked at again with the next call. */
  readonly at?: ((time: number, act: () => void) => void) | undefined
  readonly onChange: (change: QualityChange, status: QualityStatus) => void
}

/** The name of the carrier is known to the routing. */
export type QualityStatus = Omit<RouteQualityStatus, 'carrier'>

export class RouteQualities {
  readonly #deps: RouteQualitiesDeps
  readonly #byRoute = new Map<number, RouteQuality>()

  constructor(deps: RouteQualitiesDeps) {
    this.#deps = deps
  }

  /** Takes a route as it is now: with other floors or another carrier it is measured anew. */
  set(record: OutboundRouteRecord): void {
    const route = measured(record)
    const known = this.#byRoute.get(record.routeId)
    if (route !== undefined && known !== undefined && isSame(route, known.route)) {
      known.route = route
      return
    }
    if (known !== undefined) this.delete(record.routeId)
    if (route !== undefined) this.#byRoute.set(route.routeId, this.#begun(route))
  }

  delete(routeId: number): void {
    const known = this.#byRoute.get(routeId)
    if (known === undefined) return
    this.#byRoute.delete(routeId)
    const { now, onChange } = this.#deps
    if (known.isLow(now())) onChange({ kind: 'restored', by: 'changed' }, known.status(now()))
  }

  /** Forgets routes that are gone. */
  keepOnly(routeIds: ReadonlySet<number>): void {
    for (const id of this.#byRoute.keys()) if (!routeIds.has(id)) this.delete(id)
  }

  /** Whether the gateways of a route come after those of all others. */
  isLow(routeId: number): boolean {
    return this.#byRoute.get(routeId)?.isLow(this.#deps.now()) === true
  }

  addAttempt(
    routeId: number,
    carrierId: number,
    isAnswered: boolean,
    delayMs: number | null,
  ): void {
    this.#of(routeId, carrierId)?.addAttempt(this.#deps.now(), isAnswered, delayMs)
  }

  addTalk(routeId: number, carrierId: number, talkMs: number): void {
    this.#of(routeId, carrierId)?.addTalk(this.#deps.now(), talkMs)
  }

  /** Undefined: the route has no floors. */
  status(routeId: number): QualityStatus | undefined {
    return this.#byRoute.get(routeId)?.status(this.#deps.now())
  }

  all(): readonly QualityStatus[] {
    return [...this.#byRoute.keys()].flatMap((routeId) => this.status(routeId) ?? [])
  }

  /** A call that began before the route got another carrier says nothing about that one. */
  #of(routeId: number, carrierId: number): RouteQuality | undefined {
    const quality = this.#byRoute.get(routeId)
    return quality?.route.carrierId === carrierId ? quality : undefined
  }

  #begun(route: MeasuredRoute): RouteQuality {
    const { now, at, onChange } = this.#deps
    const quality = new RouteQuality(route, now(), (change) => {
      const { until } = quality
      if (change.kind === 'low' && until !== null) at?.(until, () => this.#rested(quality))
      onChange(change, quality.status(now()))
    })
    return quality
  }

  /** The rest of a route is over, if it is still the same one. */
  #rested(quality: RouteQuality): void {
    if (this.#byRoute.get(quality.route.routeId) === quality) quality.follow(this.#deps.now())
  }
}

/** Undefined: the route is not measured. An emergency call is sent as its routes say, whatever. */
function measured(record: OutboundRouteRecord): MeasuredRoute | undefined {
  const { routeId, name, tenantId, carrierId, floors, isActive, isEmergency, mode } = record
  if (floors === undefined || carrierId === null) return undefined
  if (!isActive || isEmergency || mode === 'block') return undefined
  return { routeId, name, tenantId, carrierId, floors }
}

function isSame(one: MeasuredRoute, other: MeasuredRoute): boolean {
  return (
    one.carrierId === other.carrierId &&
    one.tenantId === other.tenantId &&
    one.floors.minAsr === other.floors.minAsr &&
    one.floors.minAcdSeconds === other.floors.minAcdSeconds &&
    one.floors.maxPddMs === other.floors.maxPddMs &&
    one.floors.windowSeconds === other.floors.windowSeconds &&
    one.floors.minCalls === other.floors.minCalls
  )
}
