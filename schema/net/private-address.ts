/** Addresses that lead nowhere from outside. Pure. */
import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { networkCheck } from './ip-address.ts'

/** Whether an address is private and not the one that a packet came from. Addresses of one machine lead to each other. */
export const isHiddenFrom = (address: string, source: string): boolean =>
  address !== source && isPrivate(address) && !(isLoopback(address) && isLoopback(source))

const isLoopback = networkCheck(['127.0.0.0/8', '::1'])

/** RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291. */
const isPrivate = networkCheck([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '127.0.0.0/8',
  '::1',
  'fc00::/7',
  'fe80::/10',
])

/** IANA special-purpose registries (RFC 6890 and its updates), multicast included. */
const special = new BlockList()
for (const [network, length] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  special.addSubnet(network, length, 'ipv4')

/** Only global unicast is public, except documentation ranges and ranges that embed an IPv4 address. */
const publicIpv6 = new BlockList()
publicIpv6.addSubnet('2000::', 3, 'ipv6')
for (const [network, length] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  special.addSubnet(network, length, 'ipv6')

export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  return publicIpv6.check(address, 'ipv6') && !special.check(address, 'ipv6')
}
