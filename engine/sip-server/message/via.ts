import { isToken, parseParams, skipBlanks, trimBlanks } from './headers.ts'
import { parseHostPort } from './host.ts'
import type { Params } from './params.ts'

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

/** Reads one Via value; blanks may stand around its slashes and its colon. `undefined`: unreadable. */
export function parseVia(value: string): Via | undefined {
  const protocolAt = afterVersion(value)
  if (protocolAt === -1) return undefined
  const protocolEnd = endOf(value, protocolAt)
  const protocol = value.slice(protocolAt, protocolEnd)
  const hostAt = skipBlanks(value, protocolEnd)
  if (!isToken(protocol)) return undefined
  const paramsAt = startOfParams(value, hostAt)
  const sentBy = parseHostPort(trimBlanks(value.slice(hostAt, paramsAt)))
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
