import { isToken, type Params, parseParams, skipBlanks, trimBlanks } from './headers.ts'

/** One value of RFC 3261 §20.42. */
export interface Via {
  /** Upper case: `UDP`, `TCP`, `TLS`, `WS`, `WSS`, or whatever was sent. */
  readonly protocol: string
  /** As sent, IPv6 without brackets. */
  readonly host: string
  /** 0 when absent. */
  readonly port: number
  /** '' when absent. */
  readonly branch: string
  /** `rport` without a value is ''. */
  readonly params: Params
}

const slash = 0x2f
const colon = 0x3a
const openBracket = 0x5b

/** Reads one Via value; blanks may stand around its slashes and its colon. `undefined`: unreadable. */
export function parseVia(value: string): Via | undefined {
  const protocolAt = afterVersion(value)
  if (protocolAt === -1) return undefined
  const protocolEnd = endOf(value, protocolAt)
  const protocol = value.slice(protocolAt, protocolEnd)
  const hostAt = skipBlanks(value, protocolEnd)
  if (!isToken(protocol)) return undefined
  const paramsAt = startOfParams(value, hostAt)
  const sentBy = parseSentBy(trimBlanks(value.slice(hostAt, paramsAt)))
  const params = parseParams(value, paramsAt)
  if (sentBy === undefined || params === undefined) return undefined
  return {
    protocol: protocol.toUpperCase(),
    host: sentBy.host,
    port: sentBy.port,
    branch: params.get('branch') ?? '',
    params,
  }
}

/**
 * Position of the transport after `SIP / 2.0 /`; -1 when the value does not start so. Another version is
 * read as well, so that a 505 finds its way back.
 */
function afterVersion(value: string): number {
  if (value.startsWith('SIP/2.0/')) return skipBlanks(value, 8)
  const match = /^SIP[ \t]*\/[ \t]*\d+\.\d+[ \t]*\/[ \t]*/i.exec(value)
  return match === null ? -1 : match[0].length
}

function endOf(value: string, from: number): number {
  let at = from
  while (at < value.length && value.charCodeAt(at) > 0x20 && value.charCodeAt(at) !== slash) at++
  return at
}

function startOfParams(value: string, from: number): number {
  const at = value.indexOf(';', from)
  return at === -1 ? value.length : at
}

export interface SentBy {
  readonly host: string
  readonly port: number
}

const hostName = /^[\w-][\w.-]*$/
/** Whether it is an address at all is left to the socket that would use it. */
const ipv6 = /^[\da-f]*:[\da-f:.]+$/i

/** `host[:port]` with a name, an IPv4 address or a bracketed IPv6 address; port 0 when absent. */
export function parseSentBy(text: string): SentBy | undefined {
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
