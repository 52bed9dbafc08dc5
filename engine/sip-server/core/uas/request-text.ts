/** How a received request looks to an application, and the Via headers of every response to it. */
import type { Flow } from '../../flow.ts'
import { splitList } from '../../message/headers.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'

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
