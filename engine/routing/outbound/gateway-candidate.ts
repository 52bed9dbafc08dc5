/** A carrier's gateway as a call may try it. Pure. */
import { gatewayPort, gatewayUri } from '../gateway-uri.ts'
import type {
  CallerIdRule,
  CarrierAuth,
  CarrierRecord,
  GatewayRecord,
  Transport,
} from '../routing-records.ts'
import type { CarrierPrice } from './least-cost.ts'

/** One carrier gateway offered to one call. */
export interface GatewayCandidate {
  readonly kind: 'gateway'
  readonly gatewayId: number
  readonly carrierId: number
  readonly carrierName: string
  readonly routeName: string
  /** Of a least-cost route: what made its place. Null: unknown; undefined: another route. */
  readonly price?: CarrierPrice | null
  /** `sip:<host>:<port>;transport=udp`: where to send, without the number. */
  readonly uri: string
  readonly host: string
  readonly port: number
  readonly transport: Transport
  /** The called number as this carrier wants it. */
  readonly number: string
  readonly auth: CarrierAuth
  readonly callerId: CallerIdRule
  readonly stripHeaders?: readonly string[] | undefined
}

export function candidateOf(
  carrier: CarrierRecord,
  gateway: GatewayRecord,
  offer: Pick<GatewayCandidate, 'routeName' | 'number'> & {
    readonly price: CarrierPrice | null | undefined
  },
): GatewayCandidate {
  const { carrierId, name: carrierName, auth, callerId, stripHeaders } = carrier
  const { gatewayId, host, transport } = gateway
  return {
    kind: 'gateway',
    gatewayId,
    carrierId,
    carrierName,
    routeName: offer.routeName,
    ...(offer.price === undefined ? {} : { price: offer.price }),
    uri: gatewayUri(gateway),
    host,
    port: gatewayPort(gateway),
    transport,
    number: offer.number,
    auth,
    callerId,
    stripHeaders,
  }
}
