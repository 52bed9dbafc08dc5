/**
 * The source of a carrier gateway's calls: network and port. The engine recognizes calls by it, and the API
 * rejects ambiguous ones, so both agree (SPECIFICATION.md §10.1).
 */
import { networkKey, parseAddress, type Network } from '../net/ip-address.ts'

export interface GatewaySource {
  /** Address or host name. */
  readonly host: string
  /** 0 for any. */
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  /** Prefix length of the network around `host`. */
  readonly netmask: number
}

/** The source port of a gateway; 0 for any, because connections come from any port. */
export function recognizedPort({
  port,
  transport,
}: Pick<GatewaySource, 'port' | 'transport'>): number {
  return transport === 'udp' ? port : 0
}

/**
 * Returns the network that is recognized as the gateway; undefined when `address` is not an address. A host
 * name covers single addresses: a mask around whatever it resolves to would admit unknown sources.
 */
export function recognizedNetwork(
  { host, netmask }: Pick<GatewaySource, 'host' | 'netmask'>,
  address: string,
): Network | undefined {
  const parsed = parseAddress(address)
  if (!parsed) return undefined
  const bits = parsed.family === 4 ? 32 : 128
  const isName = parseAddress(host) === undefined
  const prefixLength = isName ? bits : Math.min(netmask, bits)
  return { address: parsed, prefixLength }
}

/**
 * Whether the same call could come from either without a preference. Networks of different size do not
 * conflict, because the smaller one wins; nor do a port and any port. A host name is compared as a name.
 */
export function isAmbiguous(one: GatewaySource, other: GatewaySource): boolean {
  return identityOf(one) === identityOf(other)
}

/** Equal for gateways with the same source packets. */
function identityOf(gateway: GatewaySource): string {
  const network = recognizedNetwork(gateway, gateway.host)
  const source = network
    ? networkKey(network.address, network.prefixLength)
    : gateway.host.toLowerCase()
  return `${source} ${recognizedPort(gateway)}`
}
