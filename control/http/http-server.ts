/**
 * The HTTP server of an application: bounds slow and idle connections, and answers requests that no
 * application sees.
 */
import { errorBody } from './envelope.ts'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  STATUS_CODES,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { ApiAnswer } from './api-answer.ts'
import { ApiError } from './api-error.ts'
import type { ControlEnv } from './control-env.ts'
import type { ConnectionLimit } from './connection-limit.ts'

export interface ConnectionLimits {
  /** Time from the connection to the end of the headers. Milliseconds, as for the next three. */
  readonly headersMs: number
  /** Time from the first to the last byte of a request; 408 after that. */
  readonly requestMs: number
  /** Closes a connection without a request. */
  readonly idleMs: number
  /** Closes a connection without progress, such as that of a client that does not read. */
  readonly stalledMs: number
  readonly headerBytes: number
  /** Connections of a listener; further ones are closed immediately. */
  readonly connections: number
  /** Connections of an address; further ones get 503. Trusted proxies have only the first limit. */
  readonly connectionsPerAddress: number
}

export const defaultLimits: ConnectionLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 60_000,
  stalledMs: 120_000,
  headerBytes: 16_384,
  connections: 4_096,
  connectionsPerAddress: 256,
}

/** A certificate and its key, which may be renewed while the server runs. */
export interface ServerCertificate {
  readonly settings: SecureContextOptions
  /** Calls `listener` with what holds from then on for new connections. */
  onChange(listener: (settings: SecureContextOptions) => void): void
}

/** RFC 6797 §6.1. A browser that has seen it opens this host by https:// for a year. */
const STRICT_TRANSPORT = ['Strict-Transport-Security', 'max-age=31536000'] as const

type RefusedStatus = 400 | 408 | 417 | 431 | 503

/** Runs before the response: counts it and sets the headers of every response. */
export type OnRefused = (
  status: number,
  address: string,
  set: (name: string, value: string) => void,
) => void

/** Observes requests and connections that no application sees. */
export interface Watch {
  /** Counts responses to requests that do not reach the application. */
  readonly unrouted: NonNullable<ApiAnswer['count']>
  readonly refused: OnRefused
  readonly perAddress: ConnectionLimit
  readonly connectionRefused: () => void
  readonly newId: () => string
}

/**
 * Makes the HTTP server of an application, bound to no port yet. Every request takes this path:
 * those of the tests come through a connection in memory (`test/support/in-memory-http.ts`).
 *
 * @param certificate undefined: plain HTTP.
 */
export function httpServer(
  app: Pick<Hono<ControlEnv>, 'fetch'>,
  limits: ConnectionLimits,
  watch: Watch,
  certificate?: ServerCertificate,
): Server {
  const listener = getRequestListener(app.fetch, {
    errorHandler: () => {
      const id = watch.newId()
      const headers = { 'X-Correlation-ID': id }
      return Response.json(errorBody(badRequest, id), { status: 400, headers })
    },
    // HTTP/1.0, which probes of load balancers use, has no Host.
    hostname: 'localhost',
  })
  const server = openServer(
    limits,
    (request, response) => {
      if (watch.perAddress.isRefused(request.socket)) return
      response.count = watch.unrouted
      if (certificate !== undefined) response.setEarly(...STRICT_TRANSPORT)
      // RFC 9112 §3.2.
      if (request.headers.host === undefined && request.httpVersion === '1.1')
        answerRefused(response, 400, watch.newId())
      else void listener(request, response)
    },
    certificate,
  )
  server.on('checkExpectation', (_, response: ApiAnswer) => {
    response.count = watch.unrouted
    if (certificate !== undefined) response.setEarly(...STRICT_TRANSPORT)
    answerRefused(response, 417, watch.newId())
  })
  server.maxConnections = limits.connections
  server.on('drop', watch.connectionRefused)
  server.on('connection', (socket: Socket) => {
    if (watch.perAddress.admit(socket)) return
    watch.connectionRefused()
    // An answer would need a handshake first.
    if (certificate === undefined) refuse(socket, 503, watch)
    else socket.destroy()
  })
  server.timeout = limits.stalledMs
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // A handshake that has failed, such as that of a client which speaks plain HTTP.
    if (certificate !== undefined && !isParsed(error)) socket.destroy()
    else refuse(socket, statusOf(error.code), watch)
  })
  return server
}

/** Whether the request came as far as the HTTP parser. */
const isParsed = ({ code = '' }: NodeJS.ErrnoException): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'

function openServer(
  limits: ConnectionLimits,
  onRequest: RequestListener<typeof IncomingMessage, typeof ApiAnswer>,
  certificate: ServerCertificate | undefined,
): Server<typeof IncomingMessage, typeof ApiAnswer> {
  const options = {
    ServerResponse: ApiAnswer,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    maxHeaderSize: limits.headerBytes,
    connectionsCheckingInterval: Math.min(1_000, limits.headersMs, limits.requestMs),
    // Node would respond without headers and without a body.
    requireHostHeader: false,
  }
  if (certificate === undefined) return createServer(options, onRequest)
  const server = createTlsServer(
    { ...options, ...certificate.settings, handshakeTimeout: limits.headersMs },
    onRequest,
  )
  certificate.onChange((settings) => server.setSecureContext(settings))
  return server
}

const badRequest = new ApiError(400, 'bad_request', 'The request is invalid')

/**
 * Responds to requests that never reach the application with the envelope, then closes the
 * connection.
 */
function refuse(socket: Socket, status: RefusedStatus, { refused, newId }: Watch): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const text = STATUS_CODES[status] ?? ''
  const id = newId()
  const body = refusalBody(status, id)
  const headers: string[] = []
  refused(status, socket.remoteAddress ?? '', (name, value) => headers.push(`${name}: ${value}`))
  socket.end(
    [
      `HTTP/1.1 ${status} ${text}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      'Cache-Control: no-store',
      `X-Correlation-ID: ${id}`,
      ...(status === 503 ? ['Retry-After: 10'] : []),
      ...headers,
      '',
      body,
    ].join('\r\n'),
    () => socket.destroy(),
  )
}

/** A request that is parsed, but asks for what no handler supports. */
function answerRefused(response: ApiAnswer, status: RefusedStatus, id: string): void {
  const body = refusalBody(status, id)
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Correlation-ID': id,
    Connection: 'close',
  })
  response.end(body)
}

function refusalBody(status: RefusedStatus, id: string): string {
  const text = STATUS_CODES[status] ?? ''
  const code = text.toLowerCase().replaceAll(' ', '_')
  return JSON.stringify({ success: false, error: text, statusCode: status, code, request_id: id })
}

function statusOf(code: string | undefined): RefusedStatus {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  return code === 'HPE_HEADER_OVERFLOW' ? 431 : 400
}

interface HostAndPort {
  readonly host: string
  readonly port: number
}

/** Load balancers and monitoring, which ask now and then. */
const MAX_CONNECTIONS = 64
const REQUEST_MS = 5_000

const waiting = new ApiError(
  503,
  'waiting_for_database',
  'This node waits for its database server, and takes no calls',
)
const alive = JSON.stringify({ success: true, data: { status: 'ok' } })

/**
 * Resolves with the function that closes the port.
 *
 * @throws {Error} the address cannot be listened on.
 */
export async function serveWaiting(
  { host, port }: HostAndPort,
  newId: () => string,
  certificate?: ServerCertificate,
): Promise<() => Promise<void>> {
  const onRequest: RequestListener = (request, answer) => {
    const isAlive = request.method !== 'POST' && /^\/livez(?:\?|$)/.test(request.url ?? '')
    answer.writeHead(isAlive ? 200 : 503, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      ...(!isAlive && { 'Retry-After': '5' }),
      Connection: 'close',
    })
    answer.end(isAlive ? alive : JSON.stringify(errorBody(waiting, newId())))
  }
  const server: Server =
    certificate === undefined
      ? createServer(onRequest)
      : createTlsServer({ ...certificate.settings, handshakeTimeout: REQUEST_MS }, onRequest)
  server.maxConnections = MAX_CONNECTIONS
  server.requestTimeout = REQUEST_MS
  server.headersTimeout = REQUEST_MS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}
