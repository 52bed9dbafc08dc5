/** The HTTP request that becomes a WebSocket, and those that do not: RFC 6455 §4, RFC 7118 §4.1. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocketOptions } from '../../options.ts'

interface Refusal {
  readonly status: number
  readonly reason: string
}

/** Why a WebSocket is refused; the library checks the rest of RFC 6455. */
export function rejectionFor(
  request: Pick<IncomingMessage, 'headers'>,
  { origins }: WebSocketOptions,
): Refusal | undefined {
  const { origin } = request.headers
  // Only browsers say where a page comes from, and only for them it matters.
  if (origin !== undefined && origins?.every((allowed) => !isSameOrigin(allowed, origin)) === true)
    return { status: 403, reason: 'Forbidden' }
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',')
  if (!offered.some((name) => name.trim().toLowerCase() === 'sip'))
    return { status: 400, reason: 'Bad Request' }
  return undefined
}

const isSameOrigin = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase()

/**
 * Ends the connection with a plain answer, both directions of it: what was taken from node's HTTP
 * server is under none of its timeouts, and a peer that leaves its side open would keep its place.
 */
export function refuse(socket: Duplex, { status, reason }: Refusal): void {
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

/** There is nothing here but SIP: RFC 9110 §15.5.22, and 404 for what could not be upgraded. */
export function answerPlainRequest(request: IncomingMessage, response: ServerResponse): void {
  const isUpgradable = request.method === 'GET'
  response.writeHead(isUpgradable ? 426 : 404, {
    Connection: 'close',
    'Content-Length': 0,
    ...(isUpgradable ? { Upgrade: 'websocket' } : {}),
  })
  response.end()
}
