/**
 * Carriers are recognized by the longest network that holds the source address, and by port where
 * one is given (decisions.md §2). Two gateways that would be found equally well are ambiguous.
 */
import { isIPv4, isIPv6 } from 'node:net'

export interface InboundGateway {
  readonly host: string
  /** 0: any. */
  readonly port: number
  /** Prefix length. */
  readonly netmask: number
}

/** Whether the same call could come from either, with nothing to prefer one. */
export function isAmbiguous(one: InboundGateway, other: InboundGateway): boolean {
  return one.port === other.port && networkOf(one) === networkOf(other)
}

/** The network as a comparable text; a host name is a network of its own. */
export function networkOf({ host, netmask }: InboundGateway): string {
  if (isIPv4(host)) return `4/${netmask}/${maskedBits(octetsOf(host), netmask)}`
  if (isIPv6(host)) return `6/${netmask}/${maskedBits(groupsOf(host), netmask)}`
  return host
}

const maskedBits = (bits: string, length: number): string => bits.slice(0, length)

const octetsOf = (address: string): string =>
  address
    .split('.')
    .map((octet) => Number(octet).toString(2).padStart(8, '0'))
    .join('')

/** The 128 bits of an address in any of its spellings. */
function groupsOf(address: string): string {
  const [head = '', tail] = withoutDottedEnd(address.replace(/%.*$/, '')).split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = Math.max(0, 8 - first.length - last.length)
  return [...first, ...Array<string>(tail === undefined ? 0 : missing).fill('0'), ...last]
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
    .join('')
}

/** `::ffff:192.0.2.1` → `::ffff:c000:201` */
function withoutDottedEnd(address: string): string {
  const [dotted] = /\d+\.\d+\.\d+\.\d+$/.exec(address) ?? []
  if (dotted === undefined) return address
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  const groups = [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(':')
  return address.slice(0, -dotted.length) + groups
}
