/**
 * The headers of an application, sorted into those that the stack decides on and those that pass
 * unchanged. Via, Record-Route, Route, RSeq and Content-Length of an application are dropped: they
 * are the stack's. Outside dialogs `request-writer.ts` reads its Route.
 */
import type { AppMessage } from '../application.ts'
import { capitalized, splitList } from '../../../schema/sip/headers.ts'
import type { Flow } from '../flow.ts'
import { contentLengthLine, type SipMessage } from '../../../schema/sip/message.ts'
import type { Via } from '../../../schema/sip/fields.ts'

export interface AppHeaders {
  from: string | undefined
  to: string | undefined
  callId: string | undefined
  cseq: number | undefined
  contact: string | undefined
  maxForwards: string | undefined
  hasContentType: boolean
  /** Authorization and Proxy-Authorization, which are among `lines` too. */
  credentials: string
  /** `Require: 100rel` on a provisional response asks for a reliable one (RFC 3262). */
  requires100rel: boolean
  /** `Require` names `timer`. */
  requiresTimer: boolean
  /** Left out of the `lines` of a response: the stack answers for the terms (RFC 4028). */
  sessionExpires: string | undefined
  /** Everything else, as header lines. */
  lines: string
}

/**
 * `localhost` is what the placeholder of that name stands for: host and port of the listener used.
 */
export function sortAppHeaders(message: AppMessage, localhost: string): Readonly<AppHeaders> {
  const sorted: AppHeaders = {
    from: undefined,
    to: undefined,
    callId: undefined,
    cseq: undefined,
    contact: undefined,
    maxForwards: undefined,
    hasContentType: false,
    credentials: '',
    requires100rel: false,
    requiresTimer: false,
    sessionExpires: undefined,
    lines: '',
  }
  message.forEach((name, value) => {
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
  })
  return sorted
}

/**
 * drachtio-srf writes `sip:user@localhost` where it does not know our address. The host is
 * replaced and the URI stands in angle brackets afterwards, so that a parameter that follows
 * belongs to the header (RFC 3261 §20).
 */
function resolveLocalhost(value: string, localhost: string): string {
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

/** Puts a bare URI in angle brackets, so that parameters added behind it belong to the header. */
export const asNameAddr = (value: string): string =>
  value.includes('<') ? value : bracketUri(value)

/** Header line for a body of which the application did not say what it is; undefined: unknown. */
export function contentTypeLine(headers: AppHeaders, body: string): string | undefined {
  if (body === '' || headers.hasContentType) return ''
  return body.startsWith('v=0') ? 'Content-Type: application/sdp\r\n' : undefined
}

// The text of a received request as an application reads it, and of the responses to it.

/** The Via headers of a request as every response to it carries them. */
export interface Vias {
  /** The topmost value as it came, and completed with where it really came from. */
  readonly top: string
  readonly completed: string
  /** All of them, as whole header lines. */
  readonly lines: string
}

/**
 * Completes the top Via: `received` where the sender's name for itself is not its address (RFC 3261
 * §18.2.1), `rport` and then always `received` where it asks for them (RFC 3581 §4).
 */
export function completeVias(request: SipMessage, via: Via, flow: Flow): Vias {
  const values = request.all('Via')
  const first = values[0] ?? ''
  const top = first.includes(',') ? (splitList(first)[0] ?? '') : first
  const completed = completedTop(top, via, flow)
  let lines = `Via: ${completed}${first.slice(top.length)}\r\n`
  for (const other of values.slice(1)) lines += `Via: ${other}\r\n`
  return { top, completed, lines }
}

function completedTop(top: string, via: Via, flow: Flow): string {
  const asksForPort = via.params.has('rport')
  const isOwnName = via.host === flow.address || via.host.toLowerCase() === flow.address
  if (!asksForPort && isOwnName) return top
  const bare = via.params.has('received') ? top.replace(/;\s*received=[^;]*/i, '') : top
  const withPort = asksForPort
    ? bare.replace(/;\s*rport(\s*=[^;]*)?/i, `;rport=${flow.port}`)
    : bare
  return `${withPort};received=${flow.address}`
}

/** The request with unfolded, long-form header lines, which is all that drachtio-srf can read. */
export function requestText(request: SipMessage, vias: Vias): string {
  const { top, completed } = vias
  if (!request.hasPlainHeaders) return plainText(request, vias)
  if (top === completed) return request.text
  const start = request.positionOf('Via')
  return request.text.slice(0, start) + completed + request.text.slice(start + top.length)
}

/** A message as an application can read it. */
export const messageText = (message: SipMessage): string =>
  message.hasPlainHeaders ? message.text : plainText(message, undefined)

function plainText(message: SipMessage, vias: Vias | undefined): string {
  let text = message.text.slice(0, message.text.indexOf('\r\n')) + '\r\n'
  let areViasDone = vias === undefined
  for (const [name, value] of message.entries()) {
    if (name !== 'Via' || vias === undefined) text += `${name}: ${value}\r\n`
    else if (!areViasDone) {
      text += vias.lines
      areViasDone = true
    }
  }
  return `${text}\r\n${message.body}`
}

/** RFC 3261 §8.2.6.2, as header lines. What a faulty request lacks is '': it stays out. */
export interface Echo {
  readonly vias: string
  readonly from: string
  /** The line To without its line break: our tag may follow. */
  readonly to: string
  readonly needsTag: boolean
  /** Call-ID and CSeq. */
  readonly ids: string
  /** §12.1.1: the route set goes back in every response that can form a dialog. */
  readonly recordRoutes: string
  /** Timestamp for a 100 (§8.2.6.1). */
  readonly timestamp: string
}

export function echoOf(request: SipMessage, vias: Vias): Echo {
  const needsTag = request.toTag === ''
  return {
    vias: vias.lines,
    from: line(request, 'From'),
    to: lineStart(request, 'To'),
    needsTag,
    ids: line(request, 'Call-ID') + line(request, 'CSeq'),
    recordRoutes: needsTag ? lines(request, 'Record-Route') : '',
    timestamp: line(request, 'Timestamp'),
  }
}

function lineStart(request: SipMessage, name: string): string {
  const value = request.get(name)
  return value === undefined || value === '' ? '' : `${name}: ${value}`
}

function line(request: SipMessage, name: string): string {
  const start = lineStart(request, name)
  return start === '' ? '' : `${start}\r\n`
}

function lines(request: SipMessage, name: string): string {
  let text = ''
  for (const value of request.all(name)) text += `${name}: ${value}\r\n`
  return text
}

/** `tag` is added to a To without one, except for 100; `rest` holds whole header lines. */
export function responseText(
  echo: Echo,
  status: number,
  reason: string,
  tag: string,
  rest: string,
  body = '',
): string {
  const routes = status > 100 && status < 300 ? echo.recordRoutes : ''
  const timestamp = status === 100 ? echo.timestamp : ''
  return (
    `SIP/2.0 ${status} ${reason}\r\n${echo.vias}${parties(echo, status > 100 ? tag : '')}` +
    `${echo.ids}${routes}${timestamp}` +
    rest +
    contentLengthLine(body) +
    body
  )
}

function parties({ from, to, needsTag }: Echo, tag: string): string {
  if (to === '') return from
  return needsTag && tag !== '' ? `${from}${to};tag=${tag}\r\n` : `${from}${to}\r\n`
}
