/** Addresses of peers: one spelling for each, and what counts as one source. */
import { isIP, SocketAddress } from 'node:net'

/** Returns IPv4-mapped IPv6 as IPv4, and IPv6 compressed, in lower case, without zone. */
export function canonicalAddress(address: string): string {
  if (!address.includes(':') || isIP(address) !== 6) return address
  const [plain = ''] = address.split('%', 1)
  const compressed = new SocketAddress({ address: plain, family: 'ipv6' }).address
  return compressed.startsWith('::ffff:') && compressed.includes('.')
    ? compressed.slice('::ffff:'.length)
    : compressed
}

/**
 * Returns an IPv4 address itself, or the /64 network of an IPv6 address, because one host may take every
 * address of its /64. For addresses in the canonical form. The SIP server, which stands by itself, has the
 * same rule in its `transport/sources.ts`.
 */
export function sourceKey(address: string): string {
  if (!address.includes(':')) return address
  // `::192.0.2.1` (RFC 4291 §2.5.5.1); in the canonical form no other one is mixed.
  if (address.includes('.')) return address.startsWith('::ffff:') ? address : '::/64'
  const zeros = address.indexOf('::')
  let end = -1
  for (let group = 0; group < 4 && (group === 0 || end !== zeros); group++)
    end = address.indexOf(':', end + 1)
  let network = address.slice(0, end)
  if (end === zeros) {
    const behind = address.slice(zeros + 2).split(':')
    // With up to four groups behind them, the zeros go on up to the end of the network.
    if (behind.length > 4) network = withZeros(network, behind)
  }
  while (network.endsWith(':0')) network = network.slice(0, -2)
  return `${network === '0' ? '' : network}::/64`
}

/** The first four groups: `2001::1:5:6:7:8` is in `2001:0:0:1::/64`. */
function withZeros(before: string, behind: readonly string[]): string {
  const groups = before === '' ? [] : before.split(':')
  for (let zeros = 8 - groups.length - behind.length; zeros > 0; zeros--) groups.push('0')
  return [...groups, ...behind].slice(0, 4).join(':')
}

/** The same of an address in any spelling, or of such a source. */
export const sourceIn = (given: string): string =>
  sourceKey(canonicalAddress(given.replace(/\/64$/, '')))
