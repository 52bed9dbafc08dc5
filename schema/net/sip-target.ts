/**
 * The destination of a SIP URI: host, port and transport, parsed alike by control plane and engine.
 */
import { isIP } from 'node:net'
import { agree, type Network, parseAddress } from './ip-address.ts'
import { parseHostPort, plainHost, readUri } from '../sip/index.ts'

export interface SipTarget {
  /** Lower case, IPv6 without brackets, no final dot; `maddr` replaces the host. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
  /** Lower case; undefined when absent. */
  readonly transport: string | undefined
  readonly isSecure: boolean
}

/** Parses a SIP URI, alone or as a name-addr. Undefined when invalid or ambiguous. */
export function sipTarget(value: string): SipTarget | undefined {
  const open = value.lastIndexOf('<')
  const close = open === -1 ? value.length : value.indexOf('>', open)
  const text = value.slice(open + 1, close).trim()
  if (close === -1 || /[\s<>"]|@.*@/.test(text)) return undefined
  // The user part may contain placeholders (`spy_uri` of a dispatcher set); it does not affect the
  // destination.
  const { scheme, hostPort, params } = readUri(text)
  const place = parseHostPort(hostPort)
  const [maddr, ...more] = valuesOf(params, 'maddr')
  const [transport, ...transports] = valuesOf(params, 'transport')
  // RFC 3261 §19.1.1: a parameter occurs once. Of two, another parser could use the other one.
  if (place === undefined || more.length > 0 || transports.length > 0) return undefined
  const host = plainHost(maddr ?? place.host)
  if (isIP(host) === 0 && !isName.test(host)) return undefined
  return { host, port: place.port, transport, isSecure: scheme === 'sips' }
}

/**
 * RFC 3261 §25.1: the last label of a name is not a number. Some parsers read `203.0.28935`,
 * `0xcb007107` and `203.0.113.007` as addresses.
 */
const isName = /^(?!(?:.*\.)?(?:\d+|0x[\da-f]*)$)[\w.-]+$/

/**
 * Returns the names that determine the addresses of a target: its host, and its SRV names (RFC 3263
 * §4.2). None for an address.
 */
export function namesBehind({ host, port, transport, isSecure }: SipTarget): readonly string[] {
  if (isIP(host) !== 0) return []
  if (port !== 0) return [host]
  const services = isSecure ? ['_sips._tcp'] : (srvNames[transport ?? ''] ?? allSrvNames)
  return [host, ...services.map((service) => `${service}.${host}`)]
}

const srvNames: Readonly<Record<string, readonly string[]>> = {
  udp: ['_sip._udp'],
  tcp: ['_sip._tcp'],
  tls: ['_sips._tcp'],
}
const allSrvNames = ['_sip._udp', '_sip._tcp', '_sips._tcp']

function valuesOf(parameters: string, name: string): string[] {
  return parameters
    .toLowerCase()
    .split(';')
    .map((parameter) => parameter.split('='))
    .filter(([key]) => key?.trim() === name)
    .map(([, value = '']) => value.trim())
}

/** Places on the network: a host name, an address or a network, with ports. */
export interface Place {
  /** Address or host name. */
  readonly host: string
  /** Prefix length of the network around an address. */
  readonly netmask: number
  readonly ports: 'any' | readonly number[]
}

/** Parsed once, for comparing many places. */
export type Location = Network | { readonly name: string }

export function locationOf({ host, netmask }: Omit<Place, 'ports'>): Location {
  const address = parseAddress(host)
  if (address === undefined) return { name: host.toLowerCase() }
  return { address, prefixLength: Math.min(netmask, address.family === 4 ? 32 : 128) }
}

/**
 * Whether two places have an address in common, as far as can be known: names are compared as
 * names.
 */
export function overlap(one: Location, other: Location): boolean {
  if ('name' in one || 'name' in other)
    return 'name' in one && 'name' in other && one.name === other.name
  return agree(one.address, other.address, Math.min(one.prefixLength, other.prefixLength))
}

/** Whether the same packet could come from either of two places that overlap. */
export function isSameSource(
  { ports: own }: Pick<Place, 'ports'>,
  { ports: its }: Pick<Place, 'ports'>,
): boolean {
  return own === 'any' || its === 'any' || own.some((port) => its.includes(port))
}
