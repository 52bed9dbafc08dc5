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
  if (!address.includes(':') || address.includes('.')) return address
  const compressed = address.indexOf('::')
  let end = -1
  for (let group = 0; group < 4; group++) {
    end = address.indexOf(':', end + 1)
    // Zeros up to the end of the network, or beyond it.
    if (end === compressed) return `${address.slice(0, compressed)}::/64`
  }
  return `${address.slice(0, end)}::/64`
}

/** The same of an address in any spelling, or of such a source. */
export const sourceIn = (given: string): string =>
  sourceKey(canonicalAddress(given.replace(/\/64$/, '')))
