/**
 * The source of a carrier gateway's calls: network and port. The engine recognizes calls by it, and
 * the API rejects ambiguous ones, so both agree (SPECIFICATION.md §10.1).
 */
import { isIP } from 'node:net'
import {
  agree,
  type IpAddress,
  type Network,
  networkCheck,
  networkKey,
  parseAddress,
  parseNetwork,
} from '../net/ip-address.ts'
import { type SipTarget, sipTarget } from '../net/sip-target.ts'
import { plainHost } from '../sip/index.ts'
import type { GatewaySource, CarrierGateway, Sender } from '../contracts/gateways.ts'

/** The source port of a gateway; 0 for any, because connections come from any port. */
export function recognizedPort({
  port,
  transport,
}: Pick<GatewaySource, 'port' | 'transport'>): number {
  return transport === 'udp' ? port : 0
}

/**
 * Returns the network that is recognized as the gateway; undefined when `address` is not an
 * address. A host name covers single addresses: a mask around whatever it resolves to would admit
 * unknown sources.
 */
export function recognizedNetwork(
  { host, netmask }: Pick<GatewaySource, 'host' | 'netmask'>,
  address: string,
): Network | undefined {
  const parsed = parseAddress(address)
  if (!parsed) return undefined
  const bits = parsed.family === 4 ? 32 : 128
  const isName = parseAddress(host) === undefined
  const prefixLength = isName ? bits : Math.min(netmask, bits)
  return { address: parsed, prefixLength }
}

/**
 * Whether the same call could come from either without a preference. Networks of different size do
 * not conflict, because the smaller one wins; nor do a port and any port. A host name is compared
 * as a name.
 */
export function isAmbiguous(one: GatewaySource, other: GatewaySource): boolean {
  return identityOf(one) === identityOf(other)
}

/** Equal for gateways with the same source packets. */
function identityOf(gateway: GatewaySource): string {
  const network = recognizedNetwork(gateway, gateway.host)
  const source = network
    ? networkKey(network.address, network.prefixLength)
    : gateway.host.toLowerCase()
  return `${source} ${recognizedPort(gateway)}`
}

export const senderOf = (tenantId: number | null): Sender => tenantId ?? 'platform'

/**
 * Gateway names of the platform and of the sender's tenant count, and those of other tenants too:
 * their carriers would charge them. For the platform, names of tenants do not count: no tenant may
 * restrict it.
 */
export const isNamed = (
  { host, tenantId }: CarrierGateway,
  target: Pick<SipTarget, 'host'>,
  sender: Sender,
): boolean =>
  isIP(target.host) === 0 &&
  target.host !== EVERY_MACHINE &&
  (tenantId === null || sender !== 'platform') &&
  plainHost(host) === target.host

/** A name that exists on every machine: only the port identifies the peer. */
const EVERY_MACHINE = 'localhost'

/** Returns the gateway that a URI names literally, without DNS; undefined when there is none. */
export function gatewayNamedBy(
  gateways: readonly CarrierGateway[],
  uri: string,
  sender: Sender,
): CarrierGateway | undefined {
  const target = sipTarget(uri)
  if (target === undefined) return undefined
  const place = { address: target.host, port: wantedPort(target) }
  return gateways.find(
    (gateway) =>
      isNamed(gateway, target, sender) || isGatewayAddress(gateway, gateway.host, place, sender),
  )
}

/**
 * Whether the address of a target belongs to the gateway at `gatewayAddress`. For carriers of the
 * platform and of the sender's tenant, the whole network counts at any port, because a carrier has
 * several. For carriers of other tenants only the exact address and port do, so that no tenant can
 * make nodes and phones of others unreachable.
 */
export function isGatewayAddress(
  gateway: CarrierGateway,
  gatewayAddress: string,
  target: { readonly address: string; readonly port: number },
  sender: Sender,
): boolean {
  const { tenantId } = gateway
  if (tenantId !== null && sender === 'platform') return false
  const isWide = tenantId === null || tenantId === sender
  const network = recognizedNetwork(gateway, gatewayAddress)
  const address = parseAddress(target.address)
  if (network === undefined || address === undefined) return false
  if (address.family !== network.address.family) return false
  const bits = address.family === 4 ? 32 : 128
  const length = isWide ? network.prefixLength : bits
  if (networkKey(address, length) !== networkKey(network.address, length)) return false
  return (isWide && !isLoopback(address)) || isPort(gateway, target.port)
}

/** Every program of the machine has this address. */
const isLoopback = ({ family, words }: IpAddress): boolean =>
  family === 4
    ? (words[0] ?? 0) >>> 24 === 127
    : words.every((word, index) => word === (index === 3 ? 1 : 0))

/** 0 when unknown, because SRV records determine it. */
function isPort({ host, port, transport }: CarrierGateway, wanted: number): boolean {
  if (wanted === 0 || (port === 0 && isIP(host) === 0)) return true
  const usual = transport === 'tls' ? 5_061 : 5_060
  return wanted === (port === 0 ? usual : port)
}

/** The default port of a URI (RFC 3261 §19.1.2); 0 when SRV records determine it. */
export function wantedPort({ host, port, transport, isSecure }: SipTarget): number {
  if (port !== 0) return port
  // A name without a dot is local to this machine or network and has no domain records.
  if (isIP(host) === 0 && host.includes('.')) return 0
  return isSecure || transport === 'tls' ? 5_061 : 5_060
}

/**
 * The addresses and listeners of this installation. No node or gateway may be one of its SIP
 * listeners, and no address of a tenant may lead to a network that only this machine reaches. Read
 * again for each check: interfaces and instances change.
 */
export interface OwnNetwork {
  /**
   * Addresses of this machine with the lengths of their networks, and addresses of other instances:
   * CIDRs.
   */
  readonly networks: () => readonly string[]
  /** SIP listeners of this and of other instances. */
  readonly listeners: () => readonly OwnListener[]
  /** CIDRs of inner networks that tenants may name nonetheless (`TENANT_NETWORKS`). */
  readonly allowed: readonly string[]
}

export interface OwnListener {
  /** Addresses, CIDRs and names in small letters. */
  readonly hosts: readonly string[]
  readonly port: number
  /** True: UDP only; false: connections only; undefined: both. */
  readonly isDatagram: boolean | undefined
}

/** Nothing is known of the machine, such as in a command that has no settings. */
export const nowhere: OwnNetwork = { networks: () => [], listeners: () => [], allowed: [] }

/**
 * Returns a check whether an address belongs to the machine or leads nowhere from outside:
 * loopback, link-local, multicast, and the machine's private networks. Of a public network only the
 * machine's own address counts: everyone reaches the others. An address that cannot be read counts.
 */
export function innerCheck({ networks, allowed }: OwnNetwork): (address: string) => boolean {
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

/**
 * NAT64 (RFC 6052, RFC 8215), SIIT (RFC 7915), IPv4-compatible (RFC 4291 §2.5.5.1): the last word;
 * 6to4 (RFC 3056): behind the prefix.
 */
function embeddedIpv4({ family, words }: IpAddress): readonly IpAddress[] {
  if (family === 4) return []
  const [one = 0, two = 0, three = 0, four = 0] = words
  const isTranslated = one === 0x0064ff9b && (two === 0 || two >>> 16 === 1)
  const isBehindZeros = one === 0 && two === 0 && (three === 0 || three === 0xffff0000)
  if (isTranslated || isBehindZeros) return [{ family: 4, words: [four] }]
  const in6to4 = (((one & 0xffff) << 16) | (two >>> 16)) >>> 0
  return one >>> 16 === 0x2002 ? [{ family: 4, words: [in6to4] }] : []
}

/**
 * Whether requests for a target would arrive at a SIP listener of this installation, by its name or
 * its addresses.
 */
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
