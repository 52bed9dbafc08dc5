/** The text of a received request as an application reads it, and of the responses to it. */
import type { Flow } from '../../flow.ts'
import { splitList } from '../../message/headers.ts'
import { contentLengthLine } from '../../message/decode.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/fields.ts'

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
  const [first = '', ...others] = request.all('Via')
  const top = first.includes(',') ? (splitList(first)[0] ?? '') : first
  const completed = completedTop(top, via, flow)
  let lines = `Via: ${completed}${first.slice(top.length)}\r\n`
  for (const other of others) lines += `Via: ${other}\r\n`
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
  /** Without its line break: our tag may follow. */
  readonly to: string
  readonly needsTag: boolean
  /** Call-ID and CSeq. */
  readonly ids: string
  /** §12.1.1: the route set goes back in every response that can form a dialog. */
  readonly recordRoutes: string
  /** For 100 (§8.2.6.1). */
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
  if (!request.has(name)) return ''
  return request
    .all(name)
    .map((value) => `${name}: ${value}\r\n`)
    .join('')
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
    `SIP/2.0 ${status} ${reason}\r\n${echo.vias}${parties(echo, status > 100 ? tag : '')}${echo.ids}${routes}${timestamp}` +
    rest +
    contentLengthLine(body) +
    body
  )
}

function parties({ from, to, needsTag }: Echo, tag: string): string {
  if (to === '') return from
  return needsTag && tag !== '' ? `${from}${to};tag=${tag}\r\n` : `${from}${to}\r\n`
}
