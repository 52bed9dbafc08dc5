/**
 * Whether a request would reach a carrier's gateway. Only priced routes may call a gateway, because any
 * other path would be free. The API rejects what the engine would reject.
 */
import { isIP } from 'node:net'
import { plainHost } from '../../engine/sip-server/message/index.ts'
import { recognizedNetwork, type GatewaySource } from './gateway-source.ts'
import { networkKey, parseAddress, type IpAddress } from '../net/ip-address.ts'
import { sipTarget, type SipTarget } from '../net/sip-target.ts'

export interface CarrierGateway extends GatewaySource {
  /** Name of its carrier. */
  readonly carrier: string
  /** Owner of the carrier; null for the platform. */
  readonly tenantId: number | null
}

/** The owner of the agent, set or phone that sends the request: a tenant, the platform, or unknown. */
export type Sender = number | 'platform' | 'unknown'

/**
 * Returns the gateway at the DNS addresses of a URI; undefined when there is none, or DNS did not answer in
 * time.
 */
export type GatewayLedTo = (uri: string, sender: Sender) => CarrierGateway | undefined

/** What DNS has said of URIs that are about to be written. */
export interface LookedUp {
  readonly gatewayLedTo: GatewayLedTo
  /** All addresses behind the names of a URI; none where DNS did not answer in time. */
  readonly addressesOf: (uri: string) => readonly string[]
}

export const senderOf = (tenantId: number | null): Sender => tenantId ?? 'platform'

/**
 * Gateway names of the platform and of the sender's tenant count, and those of other tenants too: their
 * carriers would charge them. For the platform, names of tenants do not count: no tenant may restrict it.
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

/** A name that exists on every machine: only the port identifies the peer. */
const EVERY_MACHINE = 'localhost'

/** Returns the gateway that a URI names literally, without DNS; undefined when there is none. */
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
 * Whether the address of a target belongs to the gateway at `gatewayAddress`. For carriers of the platform
 * and of the sender's tenant, the whole network counts at any port, because a carrier has several. For
 * carriers of other tenants only the exact address and port do, so that no tenant can make nodes and phones
 * of others unreachable.
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

/** Every program of the machine has this address. */
const isLoopback = ({ family, words }: IpAddress): boolean =>
  family === 4
    ? (words[0] ?? 0) >>> 24 === 127
    : words.every((word, index) => word === (index === 3 ? 1 : 0))

/** 0 when unknown, because SRV records determine it. */
function isPort({ host, port, transport }: CarrierGateway, wanted: number): boolean {
  if (wanted === 0 || (port === 0 && isIP(host) === 0)) return true
  const usual = transport === 'tls' ? 5_061 : 5_060
  return wanted === (port === 0 ? usual : port)
}

/** The default port of a URI (RFC 3261 §19.1.2); 0 when SRV records determine it. */
export function wantedPort({ host, port, transport, isSecure }: SipTarget): number {
  if (port !== 0) return port
  // A name without a dot is local to this machine or network and has no domain records.
  if (isIP(host) === 0 && host.includes('.')) return 0
  return isSecure || transport === 'tls' ? 5_061 : 5_060
}
