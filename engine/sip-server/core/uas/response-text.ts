/** The text of responses: what they copy from their request is put together once. */
import type { SipMessage } from '../../message/message.ts'
import { contentLengthLine } from '../app-headers.ts'
import type { Vias } from './request-text.ts'

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

/** `tag` is added to a To without one; `rest` holds whole header lines. */
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
    `SIP/2.0 ${status} ${reason}\r\n${echo.vias}${parties(echo, tag)}${echo.ids}${routes}${timestamp}` +
    rest +
    contentLengthLine(body) +
    body
  )
}

function parties({ from, to, needsTag }: Echo, tag: string): string {
  if (to === '') return from
  return needsTag && tag !== '' ? `${from}${to};tag=${tag}\r\n` : `${from}${to}\r\n`
}
