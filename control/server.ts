/** Binds the API and the customer edge to their ports, and bounds slow and idle connections. */
import { createServer, STATUS_CODES, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { createApi, createEdge, type ControlApp } from './app.ts'
import { openAccess } from './auth/access.ts'
import { canonicalAddress } from '../schema/net/source-address.ts'
import { USAGE_FLUSH_INTERVAL_MS } from './auth/keys/key-usage.ts'
import type { ControlDeps } from './deps.ts'
import { EventHub, FLUSH_MS, KEEP_ALIVE_MS } from './events/event-hub.ts'
import { ApiAnswer } from './http/api-answer.ts'
import { ApiError } from './http/api-error.ts'
import { ConnectionLimit } from './http/connection-limit.ts'
import { errorBody } from './http/error-handler.ts'
import { correlationIds } from './middleware/correlation-id.ts'
import { describeRefused } from './middleware/rate-limit.ts'
import { TICK_MS } from './telemetry/recent.ts'
import { Telemetry } from './telemetry/telemetry.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface ServerOptions {
  readonly api: Address
  readonly edge: Address
  /** Runs `work` every `intervalMs` until the returned function is called. */
  readonly every: (intervalMs: number, work: () => void) => () => void
  readonly limits?: Partial<ConnectionLimits>
}

export interface ConnectionLimits {
  /** From the connection to the end of the headers. Milliseconds, as for the next three. */
  readonly headersMs: number
  /** From the first to the last byte of a request; 408 after that. */
  readonly requestMs: number
  /** Closes a connection without a request. */
  readonly idleMs: number
  /** Closes a connection without progress, such as that of a client that does not read. */
  readonly stalledMs: number
  readonly headerBytes: number
  /** Per listener; further connections are closed immediately. */
  readonly connections: number
  /** Per address; further connections get 503. Trusted proxies are limited per listener only. */
  readonly connectionsPerAddress: number
}

const defaultLimits: ConnectionLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 60_000,
  stalledMs: 120_000,
  headerBytes: 16_384,
  connections: 4_096,
  connectionsPerAddress: 256,
}

/** How long a stopping server waits for pending responses. */
const STOP_MS = 2_000

export interface ControlServer {
  readonly api: Address
  readonly edge: Address
  /** Accepts no further request, lets pending ones finish, and writes the key counters. */
  stop(): Promise<void>
}

export async function startControl(
  deps: ControlDeps,
  options: ServerOptions,
): Promise<ControlServer> {
  const access = openAccess(deps)
  await access.passwords.prepare()
  const telemetry = new Telemetry(deps)
  const hub = new EventHub(deps.engine.events, deps.steadyNow)
  const limits = { ...defaultLimits, ...options.limits }
  const refused: OnRefused = (status, address, set) => {
    telemetry.requests.unrouted.add(status)
    describeRefused(access.limits, canonicalAddress(address), deps, set)
  }
  const newId = correlationIds(deps.randomBytes)
  const unrouted: Watch['unrouted'] = {
    add(status, answer) {
      const set = (name: string, value: string) => answer.setEarly(name, value)
      refused(status, answer.req.socket.remoteAddress ?? '', set)
      set('Cache-Control', 'no-store')
    },
  }
  const open = (app: ControlApp, address: Address) =>
    listen(app, address, limits, {
      ...{ unrouted, refused, newId },
      perAddress: new ConnectionLimit(limits.connectionsPerAddress, deps.settings.trustedProxies),
      connectionRefused: () => void (telemetry.refused.connections += 1),
    })
  const api = await open(createApi(deps, access, telemetry, hub), options.api)
  const edge = await open(createEdge(deps, access, telemetry), options.edge).catch(
    async (error: unknown) => {
      await close(api)
      throw error
    },
  )
  const stopTelemetry = options.every(TICK_MS, () => telemetry.tick())
  const stopHub = [
    options.every(FLUSH_MS, () => hub.flush()),
    options.every(KEEP_ALIVE_MS, () => hub.keepAlive()),
  ]
  const cancel = options.every(USAGE_FLUSH_INTERVAL_MS, () => {
    try {
      access.tick()
    } catch (error) {
      deps.log('warn', 'key counters could not be written', { error: String(error) })
    }
  })
  return {
    api: addressOf(api),
    edge: addressOf(edge),
    async stop() {
      cancel()
      stopTelemetry()
      for (const stop of stopHub) stop()
      // The server cannot wait for streams: they do not end by themselves.
      hub.close()
      await Promise.all([close(api), close(edge)])
      await deps.reports.stop()
      access.tick()
    },
  }
}

type RefusedStatus = 400 | 408 | 417 | 431 | 503

/** Runs before the response: counts it and sets the headers of every response. */
type OnRefused = (
  status: number,
  address: string,
  set: (name: string, value: string) => void,
) => void

interface Watch {
  /** For responses to requests that do not reach the application. */
  readonly unrouted: NonNullable<ApiAnswer['count']>
  readonly refused: OnRefused
  readonly perAddress: ConnectionLimit
  readonly connectionRefused: () => void
  readonly newId: () => string
}

function listen(
  app: ControlApp,
  address: Address,
  limits: ConnectionLimits,
  watch: Watch,
): Promise<Server> {
  const listener = getRequestListener(app.fetch, {
    errorHandler: () => {
      const id = watch.newId()
      const headers = { 'X-Correlation-ID': id }
      return Response.json(errorBody(badRequest, id), { status: 400, headers })
    },
    // HTTP/1.0, which probes of load balancers use, has no Host.
    hostname: 'localhost',
  })
  const server = createServer(
    {
      ServerResponse: ApiAnswer,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: Math.min(1_000, limits.headersMs, limits.requestMs),
      // Node would respond without headers and without a body.
      requireHostHeader: false,
    },
    (request, response) => {
      if (watch.perAddress.isRefused(request.socket)) return
      response.count = watch.unrouted
      // RFC 9112 §3.2.
      if (request.headers.host === undefined && request.httpVersion === '1.1')
        answerRefused(response, 400, watch.newId())
      else void listener(request, response)
    },
  )
  server.on('checkExpectation', (_, response: ApiAnswer) => {
    response.count = watch.unrouted
    answerRefused(response, 417, watch.newId())
  })
  server.maxConnections = limits.connections
  server.on('drop', watch.connectionRefused)
  server.on('connection', (socket: Socket) => {
    if (watch.perAddress.admit(socket)) return
    watch.connectionRefused()
    refuse(socket, 503, watch)
  })
  server.timeout = limits.stalledMs
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuse(socket, statusOf(error.code), watch)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}

const badRequest = new ApiError(400, 'bad_request', 'The request is invalid')

/** Responds to requests that never reach the application with the envelope, then closes the connection. */
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

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  const patience = AbortSignal.timeout(STOP_MS)
  patience.addEventListener('abort', () => server.closeAllConnections())
  await closed
}

function addressOf(server: Server): Address {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not bound to a port')
  return hostAndPort(address)
}

const hostAndPort = ({ address, port }: AddressInfo): Address => ({ host: address, port })
