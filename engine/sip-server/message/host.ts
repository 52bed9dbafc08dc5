/** Hosts and ports as they stand in a SIP URI, a Via or a list of listeners (RFC 3261 §25.1 `hostport`). */
import { skipBlanks, trimBlanks } from './headers.ts'

export interface HostPort {
  /** A name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
}

/** A host as it stands in a URI: an IPv6 address in brackets, which must have none yet. */
export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** A host without the brackets of an IPv6 reference. */
export const withoutBrackets = (host: string): string =>
  host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host

/** A host as it is compared: in small letters, without brackets and without the final dot of a name. */
export const plainHost = (host: string): string =>
  withoutBrackets(host.toLowerCase()).replace(/\.$/, '')

/** `host:port`, IPv6 in brackets; port 0 is left out. */
export const hostPort = (host: string, port: number): string =>
  port === 0 ? bracketed(host) : `${bracketed(host)}:${port}`

const colon = 0x3a
const openBracket = 0x5b
const hostName = /^[\w-][\w.-]*$/
/** Whether it is an address at all is left to the socket that would use it. */
const ipv6 = /^[\da-f]*:[\da-f:.]+$/i

/** Reads `host[:port]` with a name, an IPv4 address or a bracketed IPv6 address. */
export function parseHostPort(text: string): HostPort | undefined {
  const isBracketed = text.charCodeAt(0) === openBracket
  const delimiter = text.indexOf(isBracketed ? ']' : ':')
  if (delimiter === -1) return hostName.test(text) ? { host: text, port: 0 } : undefined
  const host = isBracketed ? text.slice(1, delimiter) : trimBlanks(text.slice(0, delimiter))
  if (!(isBracketed ? ipv6 : hostName).test(host)) return undefined
  const colonAt = isBracketed ? skipBlanks(text, delimiter + 1) : delimiter
  if (colonAt === text.length) return { host, port: 0 }
  const port = parsePort(text, skipBlanks(text, colonAt + 1))
  return text.charCodeAt(colonAt) !== colon || port === 0 ? undefined : { host, port }
}

/** 1 to 65535, up to the end of the text; 0 for anything else. */
function parsePort(text: string, from: number): number {
  if (text.length - from > 5) return 0
  let port = 0
  for (let at = from; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return 0
    port = port * 10 + digit
  }
  return port <= 65_535 ? port : 0
}
