/** Routes and gateways that take no part in a call, for people who ask why. */
import { gatewayUri } from '../gateway-uri.ts'
import type { CarrierRecord, GatewayRecord, OutboundRouteRecord } from '../routing-records.ts'

export interface PassedOver {
  readonly kind: 'route' | 'gateway'
  /** Of the route or of the carrier. */
  readonly name: string
  /** Of a gateway. */
  readonly uri: string | null
  readonly carrierId: number | null
  /** Whose it is; null: the platform's. */
  readonly tenantId: number | null
  readonly why:
    | ('other_caller' | 'after_block' | 'no_carrier' | 'blocked_by_carrier' | 'carrier_limit')
    | ('number_blocked' | 'number_stripped' | 'inbound_only' | 'gateway_down' | 'leads_to_platform')
}

/** How routes are looked up. A call draws by chance and tells nothing of the others. */
export interface Look {
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly passOver: (passed: PassedOver) => void
}

export const passedRoute = (
  { name, carrierId, tenantId }: OutboundRouteRecord,
  why: PassedOver['why'],
): PassedOver => ({ kind: 'route', name, uri: null, carrierId, tenantId, why })

export const passedGateway = (
  { name, carrierId, tenantId }: CarrierRecord,
  gateway: GatewayRecord,
  why: PassedOver['why'],
): PassedOver => ({ kind: 'gateway', name, uri: gatewayUri(gateway), carrierId, tenantId, why })
