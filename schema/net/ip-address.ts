/** IP addresses as numbers, for matching by network. IPv4-mapped IPv6 addresses are IPv4. */
import { isIP, isIPv4, SocketAddress } from 'node:net'

export interface IpAddress {
  readonly family: 4 | 6
  /** 32-bit words, most significant first: one for IPv4, four for IPv6. */
  readonly words: readonly number[]
}

export interface Network {
  readonly address: IpAddress
  /** Number of leading bits that must match: 0 to 32, or to 128. */
  readonly prefixLength: number
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

export function parseAddress(text: string): IpAddress | undefined {
  const word = parseIpv4(text.includes(':') ? (MAPPED.exec(text)?.[1] ?? '') : text)
  if (word !== undefined) return { family: 4, words: [word] }
  return isIP(text) === 6 && !text.includes('%') ? parseIpv6(text) : undefined
}

/** Four numbers up to 255 without leading zeros. In one pass: it is asked for in each call. */
function parseIpv4(text: string): number | undefined {
  let word = 0
  let dots = 0
  let byte = -1
  for (let at = 0; at <= text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit >= 0 && digit <= 9) {
      byte = byte < 0 ? digit : byte === 0 ? 256 : byte * 10 + digit
      if (byte > 255) return undefined
    } else {
      if (byte < 0 || (at < text.length && digit !== dot)) return undefined
      word = ((word << 8) | byte) >>> 0
      byte = -1
      dots += 1
    }
  }
  return dots === 4 ? word : undefined
}

const dot = 0x2e - 0x30

/** Parses a CIDR: `10.0.0.0/8`, `fd00::/8`, or one address. Host bits are ignored. */
export function parseNetwork(text: string): Network | undefined {
  const [host = '', length, ...rest] = text.split('/')
  const address = parseAddress(host)
  if (!address || rest.length > 0) return undefined
  const bits = address.family === 4 ? 32 : 128
  if (length === undefined) return { address, prefixLength: bits }
  // An IPv4-mapped address is written with the prefix length of IPv6.
  const isMapped = address.family === 4 && host.includes(':')
  const prefixLength = Number(length) - (isMapped ? 96 : 0)
  const isValid = /^\d{1,3}$/.test(length) && prefixLength >= 0 && prefixLength <= bits
  return isValid ? { address, prefixLength } : undefined
}

/** Whether two addresses have the same leading bits. */
export const agree = (one: IpAddress, other: IpAddress, bits: number): boolean =>
  one.family === other.family &&
  one.words.every((word, index) => {
    const shared = Math.min(Math.max(bits - index * 32, 0), 32)
    return shared === 0 || (word ^ (other.words[index] ?? 0)) >>> (32 - shared) === 0
  })

/** Returns a check whether an address is in any of these CIDRs. Without CIDRs, every address is. */
export function networkCheck(texts: readonly string[]): (address: string) => boolean {
  if (texts.length === 0) return () => true
  const networks = texts.map(parseNetwork).filter((network) => network !== undefined)
  return (text) => {
    const address = parseAddress(text)
    if (address === undefined) return false
    return networks.some((network) => agree(address, network.address, network.prefixLength))
  }
}

/** Equal for exactly those addresses with the same first `prefixLength` bits. */
export function networkKey({ family, words }: IpAddress, prefixLength: number): string {
  const prefix = words.map((word, index) => firstBits(word, prefixLength - index * 32))
  return `${family}:${prefix.join(':')}/${prefixLength}`
}

/** A word with zeros behind its first `count` bits. */
export const firstBits = (word: number, count: number): number =>
  count <= 0 ? 0 : (word & (0xffffffff << Math.max(32 - count, 0))) >>> 0

function parseIpv6(text: string): IpAddress {
  // The canonical form has no leading zeros, and dots only in the last 32 bits.
  const canonical = new SocketAddress({ address: text, family: 'ipv6' }).address
  const hex = canonical.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const word = wordOf(parts.slice(0, 4).map(Number))
    return `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
  })
  const [head = '', tail] = hex.split('::')
  const first = groupsOf(head)
  const last = groupsOf(tail ?? '')
  const groups = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
  const words = [0, 2, 4, 6].map(
    (index) => (((groups[index] ?? 0) << 16) | (groups[index + 1] ?? 0)) >>> 0,
  )
  const [one, two, three, four = 0] = words
  const isMapped = one === 0 && two === 0 && three === 0xffff
  return isMapped ? { family: 4, words: [four] } : { family: 6, words }
}

const groupsOf = (text: string) =>
  text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))

const wordOf = (bytes: readonly number[]) =>
  bytes.reduce((word, byte) => ((word << 8) | byte) >>> 0, 0)

/**
 * Whether an address is private and not the one that a packet came from. Addresses of one machine
 * lead to each other.
 */
export const isHiddenFrom = (address: string, source: string): boolean =>
  address !== source && isPrivate(address) && !(isLoopback(address) && isLoopback(source))

/** An address that only programs of this machine reach. */
export const isLoopback = networkCheck(['127.0.0.0/8', '::1'])

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

/**
 * IANA special-purpose registries (RFC 6890 and its updates) with multicast; of IPv6 the
 * documentation ranges and the ranges that embed an IPv4 address.
 */
const isSpecial = networkCheck([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
])
const isGlobalUnicast = networkCheck(['2000::/3'])

/** In IPv6 only global unicast is public, and IPv4-mapped addresses are not. */
export const isPublicAddress = (address: string): boolean =>
  (address.includes(':') ? isGlobalUnicast(address) : isIPv4(address)) && !isSpecial(address)

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
 * Returns an IPv4 address itself, or the /64 network of an IPv6 address, because one host may take
 * every address of its /64. For addresses in the canonical form. The SIP server, which stands by
 * itself, has the same rule in `engine/sip-server/transport/sources.ts`.
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
