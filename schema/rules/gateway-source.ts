/**
 * From where the calls of a carrier's gateway come: network and port. The engine recognizes by it,
 * the API refuses by it what could not be told apart; so both see the same (SPECIFICATION.md §10.1).
 */
import { networkKey, parseAddress, type Network } from '../net/ip-address.ts'

export interface GatewaySource {
  /** Address or host name. */
  readonly host: string
  /** 0: any. */
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  /** Prefix length of the network around `host`. */
  readonly netmask: number
}

/** The source port that belongs to a gateway; 0: any, as connections come from any port. */
export function recognizedPort({
  port,
  transport,
}: Pick<GatewaySource, 'port' | 'transport'>): number {
  return transport === 'udp' ? port : 0
}

/**
 * The network that is recognized as a gateway at this address of it; undefined when that is no
 * address. A host name stands for single addresses: a mask around whatever it resolves to would
 * let strangers in.
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
 * Whether the same call could come from either, with nothing to prefer one. Networks of different
 * size are no conflict, because the smaller one wins; neither are one port and any port. A host
 * name is compared as a name.
 */
export function isAmbiguous(one: GatewaySource, other: GatewaySource): boolean {
  return identityOf(one) === identityOf(other)
}

/** Equal for gateways that the same packets belong to. */
function identityOf(gateway: GatewaySource): string {
  const network = recognizedNetwork(gateway, gateway.host)
  const source = network
    ? networkKey(network.address, network.prefixLength)
    : gateway.host.toLowerCase()
  return `${source} ${recognizedPort(gateway)}`
}
