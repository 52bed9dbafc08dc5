/**
 * Carriers are recognized by the longest network that holds the source address, and by port where
 * one is given (decisions.md §2). Two gateways that would be found equally well are ambiguous.
 */
import { BlockList, isIP } from 'node:net'

export interface InboundGateway {
  readonly host: string
  /** 0: any. */
  readonly port: number
  /** Prefix length. */
  readonly netmask: number
}

/** Whether the same call could come from either, with nothing to prefer one. */
export function isAmbiguous(one: InboundGateway, other: InboundGateway): boolean {
  if (one.port !== other.port) return false
  if (one.host === other.host) return one.netmask === other.netmask
  return one.netmask === other.netmask && isInNetwork(one.host, other)
}

function isInNetwork(address: string, { host, netmask }: InboundGateway): boolean {
  const version = isIP(host)
  if (version === 0 || isIP(address) !== version) return false
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const network = new BlockList()
  network.addSubnet(host, netmask, family)
  return network.check(address, family)
}
