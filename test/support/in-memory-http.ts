/**
 * Requests to the API through a connection in memory. They pass everything that a request on a port
 * passes: node's parser, `control/http/http-server.ts`, the middleware and the answer.
 */
import { request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import { type Duplex, duplexPair, Readable } from 'node:stream'
import type { ControlApp } from '../../control/app.ts'
import { defaultLimits, httpServer } from '../../control/http/http-server.ts'
import { ConnectionLimit } from '../../control/http/connection-limit.ts'

/** An application behind its HTTP server. */
export interface ServedApp {
  readonly routes: ControlApp['routes']
  request(path: string, init?: RequestInit, from?: string): Promise<Response>
}

/** The peer's address where a test does not say it. */
const somePeer = '192.0.2.1'

export const served = ({ routes }: Pick<ControlApp, 'routes'>, server: Server): ServedApp => ({
  routes,
  request: (path, init, from = somePeer) => fetchOver(connectionTo(server, from), path, init),
})

/** An application of a test behind a server of its own. */
export const serve = (app: ControlApp): ServedApp =>
  served(
    app,
    httpServer(app, defaultLimits, {
      unrouted: { add: () => undefined },
      refused: () => undefined,
      perAddress: new ConnectionLimit(defaultLimits.connectionsPerAddress, []),
      connectionRefused: () => undefined,
      newId: () => 'test',
    }),
  )

/** The answer to one request over a connection of its own. */
async function fetchOver(
  connection: Duplex,
  path: string,
  { method = 'GET', headers, body, signal }: RequestInit = {},
): Promise<Response> {
  const { pathname, search } = new URL(path, 'http://localhost')
  const given = new Headers(headers)
  const outgoing = httpRequest({
    method,
    path: `${pathname}${search}`,
    setHost: !given.has('host'),
    headers: Object.fromEntries(given),
    ...(signal && { signal }),
    createConnection: () => connection,
  })
  const incoming = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject)
  })
  if (body instanceof ReadableStream) Readable.fromWeb(body).pipe(outgoing)
  else if (body === undefined || body === null) outgoing.end()
  else outgoing.end(Buffer.from(await new Response(body).arrayBuffer()))
  return responseOf(await incoming, method)
}

/** Connects to a server without a port, as a client with this address. */
export function connectionTo(server: Server, from: string): Duplex {
  const [client, peer] = duplexPair()
  client.once('close', () => peer.destroy())
  server.emit('connection', Object.assign(peer, { remoteAddress: from }))
  return client
}

function responseOf(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 0, rawHeaders } = incoming
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  const isEmpty = method === 'HEAD' || status === 204 || status === 304
  // A reader that does not read holds up its connection, as one at the other end of a network
  // would.
  const strategy = new ByteLengthQueuingStrategy({ highWaterMark: 16_384 })
  if (!isEmpty) return new Response(Readable.toWeb(incoming, { strategy }), { status, headers })
  incoming.resume()
  return new Response(null, { status, headers })
}
