/** Where a SIP URI sends a request: host, port and transport. Control plane and engine read it alike. */
import { isIP } from 'node:net'
import { parseHostPort, plainHost, readUri } from '../../engine/sip-server/message/index.ts'

export interface SipTarget {
  /** Small letters, IPv6 without brackets, no final dot; `maddr` stands in the place of the host. */
  readonly host: string
  /** 0: none given. */
  readonly port: number
  /** Small letters; undefined: none given. */
  readonly transport: string | undefined
  readonly isSecure: boolean
}

/** Reads a SIP URI, alone or as a name-addr. Undefined: it is none, or could be read in two ways. */
export function sipTarget(value: string): SipTarget | undefined {
  const open = value.lastIndexOf('<')
  const close = open === -1 ? value.length : value.indexOf('>', open)
  const text = value.slice(open + 1, close).trim()
  if (close === -1 || /[\s<>"]|@.*@/.test(text)) return undefined
  // The user part may be that of a template (`spy-uri.ts`): it does not tell where a request goes.
  const { scheme, hostPort, params } = readUri(text)
  const place = parseHostPort(hostPort)
  const [maddr, ...more] = valuesOf(params, 'maddr')
  const [transport, ...transports] = valuesOf(params, 'transport')
  // RFC 3261 §19.1.1: a parameter stands once. Of two, another reader could take the other one.
  if (place === undefined || more.length > 0 || transports.length > 0) return undefined
  const host = plainHost(maddr ?? place.host)
  if (isIP(host) === 0 && !isName.test(host)) return undefined
  return { host, port: place.port, transport, isSecure: scheme === 'sips' }
}

/**
 * RFC 3261 §25.1: the last label of a name is no number. `203.0.28935`, `0xcb007107` and `203.0.113.007` are addresses to
 * some readers.
 */
const isName = /^(?!(?:.*\.)?(?:\d+|0x[\da-f]*)$)[\w.-]+$/

/**
 * The names behind which the addresses of a target stand: its host, and where its SRV records are
 * (RFC 3263 §4.2). None for an address.
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
