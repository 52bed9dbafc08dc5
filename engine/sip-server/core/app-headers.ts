/**
 * What an application wrote, sorted into what the stack decides itself and what passes as it is.
 * Via, Record-Route, Route, RSeq and Content-Length of an application are dropped: they are the
 * stack's. Outside dialogs compose.ts reads its Route.
 */
import type { AppMessage } from '../application.ts'
import { capitalized } from '../message/headers.ts'

export interface AppHeaders {
  from?: string
  to?: string
  callId?: string
  cseq?: number
  contact?: string
  maxForwards?: string
  hasContentType: boolean
  /** Authorization and Proxy-Authorization, which are among `lines` too. */
  credentials: string
  /** `Require: 100rel` on a provisional response asks for a reliable one (RFC 3262). */
  requires100rel: boolean
  /** `Require` names `timer`. */
  requiresTimer: boolean
  /** Of a response it is left out of `lines`: the stack answers for the terms (RFC 4028). */
  sessionExpires?: string
  /** Everything else, as header lines. */
  lines: string
}

/** `localhost` is what the placeholder of that name stands for: host and port of the listener used. */
export function sortAppHeaders(message: AppMessage, localhost: string): Readonly<AppHeaders> {
  const sorted: AppHeaders = {
    hasContentType: false,
    credentials: '',
    requires100rel: false,
    requiresTimer: false,
    lines: '',
  }
  for (const [name, value] of message.entries()) {
    switch (name) {
      case 'Via':
      case 'Record-Route':
      case 'Route':
      case 'RSeq':
      case 'Content-Length':
        break
      case 'From':
        sorted.from = resolveLocalhost(value, localhost)
        break
      case 'To':
        sorted.to = resolveLocalhost(value, localhost)
        break
      case 'Contact':
        sorted.contact = resolveLocalhost(value, localhost)
        break
      case 'Call-ID':
        sorted.callId = value
        break
      case 'CSeq': {
        const number = Number.parseInt(value, 10)
        if (Number.isSafeInteger(number) && number >= 0) sorted.cseq = number
        break
      }
      case 'Max-Forwards':
        sorted.maxForwards = value
        if (message.kind === 'response') sorted.lines += `Max-Forwards: ${value}\r\n`
        break
      case 'P-Asserted-Identity':
        sorted.lines += `P-Asserted-Identity: ${resolveLocalhost(value, localhost)}\r\n`
        break
      case 'Authorization':
      case 'Proxy-Authorization':
        sorted.credentials += `${name}: ${value}\r\n`
        sorted.lines += `${name}: ${value}\r\n`
        break
      case 'Session-Expires':
        sorted.sessionExpires = value
        if (message.kind === 'request') sorted.lines += `Session-Expires: ${value}\r\n`
        break
      case 'Require':
        if (/(^|[\s,])100rel($|[\s,;])/i.test(value)) sorted.requires100rel = true
        if (/(^|[\s,])timer($|[\s,;])/i.test(value)) sorted.requiresTimer = true
        sorted.lines += `Require: ${value}\r\n`
        break
      default:
        if (name === 'Content-Type') sorted.hasContentType = true
        sorted.lines += `${capitalized(name)}: ${value}\r\n`
    }
  }
  return sorted
}

/**
 * drachtio-srf writes `sip:user@localhost` where it does not know our address. The host is
 * replaced and the URI stands in angle brackets afterwards, so that a parameter that follows
 * belongs to the header (RFC 3261 §20).
 */
export function resolveLocalhost(value: string, localhost: string): string {
  if (!value.includes('localhost')) return value
  const replaced = value.replace(
    /(sips?:(?:[^\s@<>;]*@)?)localhost(?::\d+)?(?=[;>?\s,]|$)/gi,
    (_match, start: string) => start + localhost,
  )
  return replaced.includes('<') ? replaced : bracketUri(replaced)
}

function bracketUri(value: string): string {
  const end = value.indexOf(';')
  return end === -1 ? `<${value}>` : `<${value.slice(0, end)}>${value.slice(end)}`
}

/** The `tag` parameter of a From or To value. */
export function tagOf(value: string): string {
  const params = value.slice(value.lastIndexOf('>') + 1)
  const match = /;\s*tag\s*=\s*([^\s;,]+)/i.exec(params)
  return match?.[1] ?? ''
}

/** Puts a bare URI in angle brackets, so that parameters added behind it belong to the header. */
export const asNameAddr = (value: string): string =>
  value.includes('<') ? value : bracketUri(value)

/** Header line for a body of which the application did not say what it is; undefined: unknown. */
export function contentTypeLine(headers: AppHeaders, body: string): string | undefined {
  if (body === '' || headers.hasContentType) return ''
  return body.startsWith('v=0') ? 'Content-Type: application/sdp\r\n' : undefined
}
