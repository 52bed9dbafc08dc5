/** Addresses of clients: one spelling for each, the networks of allow lists, and who shares a bucket. */
import { BlockList, isIP, isIPv4 } from 'node:net'

/** `::ffff:192.0.2.1` → `192.0.2.1`, `fe80::1%eth0` → `fe80::1`. */
export function plainAddress(address: string): string {
  if (address.startsWith('::ffff:') && isIPv4(address.slice(7))) return address.slice(7)
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

/**
 * Who counts as one caller: an IPv4 address, or the /64 of an IPv6 address, because a single
 * host may take every address of its /64.
 */
export function bucketAddress(address: string): string {
  if (!address.includes(':')) return address
  return `${groupsOf(address).slice(0, 4).join(':')}::/64`
}

/** The eight groups of an IPv6 address, those behind `::` written out. */
function groupsOf(address: string): string[] {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  if (tail === undefined) return left
  const right = tail === '' ? [] : tail.split(':')
  return [
    ...left,
    ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'),
    ...right,
  ]
}

export interface Network {
  readonly address: string
  readonly prefixLength: number
  readonly family: 'ipv4' | 'ipv6'
}

/** A CIDR such as `10.0.0.0/8`; an address alone is a network of one. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', length, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined
  const prefixLength = length === undefined ? bits : Number(length)
  if (prefixLength > bits) return undefined
  return { address, prefixLength, family: version === 4 ? 'ipv4' : 'ipv6' }
}

/** A check for membership in any of the networks, prepared once per key. No network: any address. */
export function addressCheck(cidrs: readonly string[]): (address: string) => boolean {
  if (cidrs.length === 0) return () => true
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const network = parseNetwork(cidr)
    if (network) networks.addSubnet(network.address, network.prefixLength, network.family)
  }
  return (address) =>
    isIP(address) !== 0 && networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}
