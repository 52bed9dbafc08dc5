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
  const [before = '', behind] = address.split('::', 2)
  const start = before === '' ? [] : before.split(':', 4)
  const rest = behind === undefined || behind === '' ? [] : behind.split(':')
  // Zeros may end within the network: `2001::1:5:6:7:8` is in `2001:0:0:1::/64`.
  for (let zeros = 8 - start.length - rest.length; start.length < 4 && zeros > 0; zeros--)
    start.push('0')
  for (const group of rest) if (start.length < 4) start.push(group)
  while (start.at(-1) === '0') start.pop()
  return `${start.join(':')}::/64`
}

/** The same of an address in any spelling, or of such a source. */
export const sourceIn = (given: string): string =>
  sourceKey(canonicalAddress(given.replace(/\/64$/, '')))
