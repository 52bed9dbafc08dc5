/** Addresses that are those of no single host: of a group, of a whole network, or of nobody. */

/**
 * RFC 1122 §3.2.1.3, RFC 5771, RFC 1112 §4 and RFC 4291 §2.5.2, §2.7; of IPv4 also mapped (RFC 4291
 * §2.5.5.2) and behind NAT64 (RFC 6052). False for a name: its addresses are asked about when they
 * are known. IPv6 without brackets.
 */
export function isNoHost(host: string): boolean {
  const octet = firstOctetOf(host)
  if (octet !== undefined) return octet === 0 || octet >= 224
  return /^ff[\da-f]{2}:/i.test(host) || /^[0:]*:[0:]*$/.test(host)
}

/** The first octet of an IPv4 address, alone or in one of IPv6. */
function firstOctetOf(host: string): number | undefined {
  const dotted = /^(?:[\da-f:]*:)?(\d{1,3})(?:\.\d{1,3}){3}$/i.exec(host)?.[1]
  if (dotted !== undefined) return Number(dotted)
  const word = mapped.exec(host)?.[1] ?? nat64.exec(host)?.[1]
  return word === undefined ? undefined : Number.parseInt(word, 16) >>> 8
}

const mapped = /^[0:]*:ffff:([\da-f]{1,4}):[\da-f]{1,4}$/i
const nat64 = /^0{0,2}64:ff9b:[0:]*:([\da-f]{1,4}):[\da-f]{1,4}$/i
