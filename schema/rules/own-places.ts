/**
 * What of the network is this installation itself: no node or gateway may be one of its SIP listeners, and
 * what a tenant writes leads to nothing that only this machine can reach. Pure.
 */
import { isIP } from 'node:net'
import {
  agree,
  networkCheck,
  parseAddress,
  parseNetwork,
  type IpAddress,
} from '../net/ip-address.ts'
import type { SipTarget } from '../net/sip-target.ts'
import { wantedPort } from './gateway-reach.ts'

/** Read again at each question: interfaces and nodes come and go. */
export interface OwnPlaces {
  /** Addresses of this machine with the lengths of their networks, and addresses of other nodes: CIDRs. */
  readonly networks: () => readonly string[]
  /** Where SIP is served, here and on other nodes. */
  readonly listeners: () => readonly OwnListener[]
  /** CIDRs of inner networks that tenants may name nonetheless (`TENANT_NETWORKS`). */
  readonly allowed: readonly string[]
}

export interface OwnListener {
  /** Addresses, CIDRs and names in small letters. */
  readonly hosts: readonly string[]
  readonly port: number
  /** By UDP, not over connections; undefined: both. */
  readonly isDatagram: boolean | undefined
}

/** Nothing is known of the machine, such as in a command that has no settings. */
export const nowhere: OwnPlaces = { networks: () => [], listeners: () => [], allowed: [] }

/**
 * Returns a check whether an address belongs to the machine or leads nowhere from outside: loopback,
 * link-local, multicast, and the machine's private networks. Of a public network only the machine's own
 * address counts: everyone reaches the others. An address that cannot be read counts.
 */
export function innerCheck({ networks, allowed }: OwnPlaces): (address: string) => boolean {
  const inner = [...ALWAYS_INNER, ...networks().map(ownPart)].flatMap(networkOf)
  const exempt = allowed.flatMap(networkOf)
  return (text) => {
    const address = parseAddress(text)
    if (address === undefined) return true
    const spellings = [address, ...embeddedIpv4(address)]
    const isIn = (list: typeof inner): boolean =>
      list.some((network) =>
        spellings.some((each) => agree(each, network.address, network.prefixLength)),
      )
    return isIn(inner) && !isIn(exempt)
  }
}

/** RFC 1122, RFC 3927, RFC 5771, RFC 4291; Teredo hides the IPv4 address in it (RFC 4380). */
const ALWAYS_INNER = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/128',
  '::1/128',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
  '2001::/32',
]

const networkOf = (text: string) => {
  const network = parseNetwork(text)
  return network === undefined ? [] : [network]
}

/** RFC 1918, RFC 6598, RFC 2544, RFC 4193: networks that others do not reach. */
const PRIVATE = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '198.18.0.0/15',
  'fc00::/7',
]
const isPrivate = networkCheck(PRIVATE)

function ownPart(cidr: string): string {
  const [address = ''] = cidr.split('/')
  return isPrivate(address) ? cidr : address
}

/** NAT64 (RFC 6052, RFC 8215), SIIT (RFC 7915), IPv4-compatible (RFC 4291 §2.5.5.1): the last word; 6to4 (RFC 3056): behind the prefix. */
function embeddedIpv4({ family, words }: IpAddress): readonly IpAddress[] {
  if (family === 4) return []
  const [one = 0, two = 0, three = 0, four = 0] = words
  const isTranslated = one === 0x0064ff9b && (two === 0 || two >>> 16 === 1)
  const isBehindZeros = one === 0 && two === 0 && (three === 0 || three === 0xffff0000)
  if (isTranslated || isBehindZeros) return [{ family: 4, words: [four] }]
  const in6to4 = (((one & 0xffff) << 16) | (two >>> 16)) >>> 0
  return one >>> 16 === 0x2002 ? [{ family: 4, words: [in6to4] }] : []
}

/** Whether requests for a target would arrive at a SIP listener of this installation, by its name or its addresses. */
export function isOwnListener(
  target: SipTarget,
  addresses: readonly string[],
  listeners: readonly OwnListener[],
): boolean {
  const { host, transport, isSecure } = target
  const isDatagram = !isSecure && (transport === undefined || transport === 'udp')
  const port = usedPort(target)
  const known = isIP(host) === 0 ? addresses : [host]
  return listeners.some(
    (listener) =>
      listener.port === port &&
      (listener.isDatagram ?? isDatagram) === isDatagram &&
      listener.hosts.some((own) => {
        const network = parseNetwork(own)
        if (network === undefined) return own === host
        return known.some((text) => {
          const address = parseAddress(text)
          return address !== undefined && agree(address, network.address, network.prefixLength)
        })
      }),
  )
}

/** The port of a target, or the usual one; SRV records may say another one. */
export function usedPort(target: SipTarget): number {
  const port = wantedPort(target)
  if (port !== 0) return port
  return target.isSecure || target.transport === 'tls' ? 5_061 : 5_060
}
