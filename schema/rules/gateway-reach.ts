/**
 * Whether a request would arrive at a carrier's gateway. A gateway is reached by priced routes only: by
 * any other way its numbers would cost nothing. The API refuses by this what the engine would refuse.
 */
import { isIP } from 'node:net'
import { plainHost } from '../../engine/sip-server/message/index.ts'
import { recognizedNetwork, type GatewaySource } from './gateway-source.ts'
import { networkKey, parseAddress, type IpAddress } from '../net/ip-address.ts'
import { sipTarget, type SipTarget } from '../net/sip-target.ts'

export interface CarrierGateway extends GatewaySource {
  /** Name of its carrier. */
  readonly carrier: string
  /** Whose carrier it is; null: the platform's. */
  readonly tenantId: number | null
}

/** Whose agent, set or phone would send the request: a tenant's or the platform's; or it is not known. */
export type Sender = number | 'platform' | 'unknown'

/** The gateway to which a URI leads by what DNS just said; undefined: to none, or DNS said nothing in time. */
export type GatewayLedTo = (uri: string, sender: Sender) => CarrierGateway | undefined

export const senderOf = (tenantId: number | null): Sender => tenantId ?? 'platform'

/**
 * The names of gateways of the platform and of the sender's tenant count, and those of other tenants too:
 * their carriers would charge them. Not for the platform, which no tenant may hinder.
 */
export const isNamed = (
  { host, tenantId }: CarrierGateway,
  target: Pick<SipTarget, 'host'>,
  sender: Sender,
): boolean =>
  isIP(target.host) === 0 &&
  target.host !== EVERY_MACHINE &&
  (tenantId === null || sender !== 'platform') &&
  plainHost(host) === target.host

/** A name of every machine: there the port tells who is meant. */
const EVERY_MACHINE = 'localhost'

/** The gateway that a URI names as it is written, without DNS; undefined: none. */
export function gatewayNamedBy(
  gateways: readonly CarrierGateway[],
  uri: string,
  sender: Sender,
): CarrierGateway | undefined {
  const target = sipTarget(uri)
  if (target === undefined) return undefined
  const place = { address: target.host, port: wantedPort(target) }
  return gateways.find(
    (gateway) =>
      isNamed(gateway, target, sender) || isGatewayAddress(gateway, gateway.host, place, sender),
  )
}

/**
 * Whether the address of a target is that of a gateway, which stands at `gatewayAddress`. Of the
 * platform's carriers and of those of the sender's tenant the whole network counts, at any port: a
 * carrier has more than one. Of another tenant's carrier only its very place does, so that no tenant
 * can make the nodes and phones of others unreachable.
 */
export function isGatewayAddress(
  gateway: CarrierGateway,
  gatewayAddress: string,
  target: { readonly address: string; readonly port: number },
  sender: Sender,
): boolean {
  const { tenantId } = gateway
  if (tenantId !== null && sender === 'platform') return false
  const isWide = tenantId === null || tenantId === sender
  const network = recognizedNetwork(gateway, gatewayAddress)
  const address = parseAddress(target.address)
  if (network === undefined || address === undefined) return false
  if (address.family !== network.address.family) return false
  const bits = address.family === 4 ? 32 : 128
  const length = isWide ? network.prefixLength : bits
  if (networkKey(address, length) !== networkKey(network.address, length)) return false
  return (isWide && !isLoopback(address)) || isPort(gateway, target.port)
}

/** Every program of the machine has the same address there. */
const isLoopback = ({ family, words }: IpAddress): boolean =>
  family === 4
    ? (words[0] ?? 0) >>> 24 === 127
    : words.every((word, index) => word === (index === 3 ? 1 : 0))

/** 0: not known, as SRV records tell it. */
function isPort({ host, port, transport }: CarrierGateway, wanted: number): boolean {
  if (wanted === 0 || (port === 0 && isIP(host) === 0)) return true
  const usual = transport === 'tls' ? 5_061 : 5_060
  return wanted === (port === 0 ? usual : port)
}

/** What a URI without a port means (RFC 3261 §19.1.2); 0: SRV records say it. */
export function wantedPort({ host, port, transport, isSecure }: SipTarget): number {
  if (port !== 0) return port
  // A name without a dot is one of this machine or network: no domain, so no records of a domain.
  if (isIP(host) === 0 && host.includes('.')) return 0
  return isSecure || transport === 'tls' ? 5_061 : 5_060
}
