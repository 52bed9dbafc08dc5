/**
 * What counts as one source: an IPv4 address, or the /64 network of an IPv6 address, because whoever
 * has one address there has all of them. Addresses in the canonical form of the runtime.
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
