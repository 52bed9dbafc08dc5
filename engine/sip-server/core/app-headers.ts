/**
 * What an application wrote, sorted into what the stack decides itself and what passes as it is.
 * Via, Record-Route, Route, RSeq and Content-Length of an application are dropped: they are the
 * stack's. Outside dialogs compose.ts reads its Route.
 */
import { byteLength } from '../message/decode.ts'
import { capitalized } from '../message/headers.ts'
import type { SipMessage } from '../message/message.ts'

export interface AppHeaders {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly callId: string | undefined
  readonly cseq: number | undefined
  readonly contact: string | undefined
  readonly maxForwards: string | undefined
  readonly hasContentType: boolean
  /** Authorization and Proxy-Authorization, which are among `lines` too. */
  readonly credentials: string
  /** `Require: 100rel` on a provisional response asks for a reliable one (RFC 3262). */
  readonly requires100rel: boolean
  /** `Require` names `timer`. */
  readonly requiresTimer: boolean
  /** Of a response it is left out of `lines`: the stack answers for the terms (RFC 4028). */
  readonly sessionExpires: string | undefined
  /** Everything else, as header lines. */
  readonly lines: string
}

/** `localhost` is what the placeholder of that name stands for: host and port of the listener used. */
export function sortAppHeaders(message: SipMessage, localhost: string): AppHeaders {
  let from: string | undefined
  let to: string | undefined
  let callId: string | undefined
  let cseq: number | undefined
  let contact: string | undefined
  let maxForwards: string | undefined
  let hasContentType = false
  let requires100rel = false
  let requiresTimer = false
  let sessionExpires: string | undefined
  let lines = ''
  let credentials = ''
  for (const [name, value] of message.entries()) {
    switch (name) {
      case 'Via':
      case 'Record-Route':
      case 'Route':
      case 'RSeq':
      case 'Content-Length':
        break
      case 'From':
        from = resolveLocalhost(value, localhost)
        break
      case 'To':
        to = resolveLocalhost(value, localhost)
        break
      case 'Contact':
        contact = resolveLocalhost(value, localhost)
        break
      case 'Call-ID':
        callId = value
        break
      case 'CSeq': {
        const number = Number.parseInt(value, 10)
        if (Number.isSafeInteger(number) && number >= 0) cseq = number
        break
      }
      case 'Max-Forwards':
        maxForwards = value
        if (message.kind === 'response') lines += `Max-Forwards: ${value}\r\n`
        break
      case 'P-Asserted-Identity':
        lines += `P-Asserted-Identity: ${resolveLocalhost(value, localhost)}\r\n`
        break
      case 'Content-Type':
        hasContentType = true
        lines += `Content-Type: ${value}\r\n`
        break
      case 'Authorization':
      case 'Proxy-Authorization':
        credentials += `${name}: ${value}\r\n`
        lines += `${name}: ${value}\r\n`
        break
      case 'Require':
        if (/(^|[\s,])100rel($|[\s,;])/i.test(value)) requires100rel = true
        if (/(^|[\s,])timer($|[\s,;])/i.test(value)) requiresTimer = true
        lines += `Require: ${value}\r\n`
        break
      case 'Session-Expires':
        sessionExpires = value
        if (message.kind === 'request') lines += `Session-Expires: ${value}\r\n`
        break
      default:
        lines += `${capitalized(name)}: ${value}\r\n`
    }
  }
  return {
    from,
    to,
    callId,
    cseq,
    contact,
    maxForwards,
    hasContentType,
    credentials,
    requires100rel,
    requiresTimer,
    sessionExpires,
    lines,
  }
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

export const contentLengthLine = (body: string): string =>
  `Content-Length: ${body === '' ? 0 : byteLength(body)}\r\n\r\n`
