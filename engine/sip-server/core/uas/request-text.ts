/** How a received request looks to an application, and the Via headers of every response to it. */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'

/**
 * All Via values, the top one completed: `received` where the sender's name for itself is not its
 * address (RFC 3261 §18.2.1), `rport` and then always `received` where it asks for them (RFC 3581 §4).
 */
export function annotateVia(request: SipMessage, via: Via, flow: Flow): readonly string[] {
  const [top = '', ...others] = request.list('Via')
  const asksForPort = via.params.has('rport')
  const isOwnName = via.host.toLowerCase() === flow.address.toLowerCase()
  if (!asksForPort && isOwnName) return request.list('Via')
  const bare = via.params.has('received') ? top.replace(/;\s*received=[^;]*/i, '') : top
  const withPort = asksForPort
    ? bare.replace(/;\s*rport(\s*=[^;]*)?/i, `;rport=${flow.port}`)
    : bare
  return [`${withPort};received=${flow.address}`, ...others]
}

/** The request with unfolded, long-form header lines, which is all that drachtio-srf can read. */
export function requestText(request: SipMessage, vias: readonly string[]): string {
  const [top = ''] = request.list('Via')
  const [annotated = ''] = vias
  if (!request.hasPlainHeaders) return plainText(request, top, annotated)
  if (top === annotated) return request.text
  const start = request.text.indexOf(top)
  return request.text.slice(0, start) + annotated + request.text.slice(start + top.length)
}

/** A response as an application can read it. */
export const responseText = (response: SipMessage): string =>
  response.hasPlainHeaders ? response.text : plainText(response, '', '')

function plainText(message: SipMessage, top: string, annotated: string): string {
  const lines = message
    .entries()
    .map(([name, value]) =>
      name === 'Via' && top !== '' && value.startsWith(top)
        ? `${name}: ${annotated}${value.slice(top.length)}`
        : `${name}: ${value}`,
    )
  const startLine = message.text.slice(0, message.text.indexOf('\r\n'))
  return `${startLine}\r\n${lines.join('\r\n')}\r\n\r\n${message.body}`
}
