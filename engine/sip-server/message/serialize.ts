/** Text out: a message from its parts, and the messages that follow from one received or sent. */
import { byteLength } from './decode.ts'
import { canonicalName, splitList } from './headers.ts'
import { type SipMessage } from './message.ts'
import { parseAppMessage } from './parse.ts'

type Headers = readonly (readonly [string, string])[]

export interface MessageParts {
  /** Without line break. */
  readonly startLine: string
  /** In order. A Content-Length among them is replaced. No value may hold a line break. */
  readonly headers: Headers
  readonly body: string
}

/** The message as text, with a Content-Length that counts the bytes of the body on the wire. */
export function serialize({ startLine, headers, body }: MessageParts): string {
  let text = startLine + '\r\n'
  for (const [name, value] of headers)
    if (!isContentLength(name)) text += name + ': ' + value + '\r\n'
  const length = body === '' ? 0 : byteLength(body)
  return text + 'Content-Length: ' + length + '\r\n\r\n' + body
}

const isContentLength = (name: string): boolean =>
  (name.length === 14 || name.length === 1) && canonicalName(name) === 'Content-Length'

export interface ResponseOptions {
  /** Added to To when the request has none (RFC 3261 §8.2.6.2). */
  readonly toTag?: string
  /** Replaces the topmost Via: the one with `received` and `rport` filled in (§18.2.1, RFC 3581 §4). */
  readonly topVia?: string
  /** Record-Route is copied into responses that may form a dialog (§12.1.1). */
  readonly withRecordRoute?: boolean
}

/** What every response takes from its request: Via, From, To, Call-ID, CSeq (RFC 3261 §8.2.6.2). */
export function responseHeaders(request: SipMessage, options: ResponseOptions): [string, string][] {
  const headers: [string, string][] = []
  for (const [name, value] of request.entries()) {
    if (name === 'To') headers.push([name, withTag(value, request.toTag, options.toTag)])
    else if (isCopied(name, options)) headers.push([name, value])
  }
  if (options.topVia !== undefined) replaceTopVia(headers, options.topVia)
  return headers
}

function isCopied(name: string, options: ResponseOptions): boolean {
  if (name === 'Record-Route') return options.withRecordRoute === true
  return name === 'Via' || name === 'From' || name === 'Call-ID' || name === 'CSeq'
}

const withTag = (to: string, existing: string, tag: string | undefined): string =>
  existing !== '' || tag === undefined ? to : `${to};tag=${tag}`

function replaceTopVia(headers: [string, string][], topVia: string): void {
  const top = headers.find(([name]) => name === 'Via')
  if (top === undefined) return
  top[1] = top[1].includes(',') ? [topVia, ...splitList(top[1]).slice(1)].join(', ') : topVia
}

/**
 * The ACK for a final response of 300 or above (RFC 3261 §17.1.1.3): same branch, the Via and Route of
 * the INVITE as it was sent, the To of the response, and the credentials of the INVITE (§22.1).
 */
export function ackForFailure(inviteText: string, response: SipMessage): string | undefined {
  const to = response.get('To')
  return to === undefined ? undefined : sibling(inviteText, 'ACK', to, credentials)
}

/** The CANCEL for an INVITE as it was sent (RFC 3261 §9.1). */
export const cancelFor = (inviteText: string): string | undefined =>
  sibling(inviteText, 'CANCEL', undefined, [])

const credentials = ['Authorization', 'Proxy-Authorization']

function sibling(
  inviteText: string,
  method: string,
  to: string | undefined,
  alsoCopied: readonly string[],
): string | undefined {
  const invite = parseAppMessage(inviteText)
  const number = invite?.cseq?.number
  if (invite === undefined || number === undefined) return undefined
  const copied = (name: string) => invite.all(name).map((value) => [name, value] as const)
  const topVia = invite.list('Via').slice(0, 1)
  return serialize({
    startLine: `${method} ${invite.uri} SIP/2.0`,
    headers: [
      ...topVia.map((value) => ['Via', value] as const),
      ['Max-Forwards', '70'],
      ...copied('Route'),
      ...copied('From'),
      ...(to === undefined ? copied('To') : [['To', to] as const]),
      ...copied('Call-ID'),
      ['CSeq', `${number} ${method}`],
      ...alsoCopied.flatMap(copied),
    ],
    body: '',
  })
}
