/** SIP over WebSocket, plain or over TLS (RFC 7118). */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { type Flow, type Listener, sideFor } from '../flow.ts'
import { maxMessageBytes } from '../../../schema/sip/stream-framer.ts'
import type { WebSocketOptions } from '../options.ts'
import { listen, stopListening } from './listen.ts'
import { Sources } from './sources.ts'
import type { Credentials } from './credentials.ts'
import type { StreamOptions } from './stream.ts'
import { boundListener, type Transport, type TransportCallbacks } from './transport.ts'
import { SocketConnection } from './socket-connection.ts'

export interface WebSocketTransportOptions extends StreamOptions, WebSocketOptions {
  /** Certificate and key of `wss`; undefined: `ws`. */
  readonly credentials: Credentials | undefined
}

/** Largest header part of an HTTP request. */
const maxHeaderBytes = 8_192

/** @throws ListenError when the address cannot be bound. */
export async function openWebSocket(
  options: WebSocketTransportOptions,
  callbacks: TransportCallbacks,
): Promise<Transport> {
  const protocol = options.credentials === undefined ? 'ws' : 'wss'
  const server = serverFor(options)
  const { host, port } = await listen(server, protocol, options)
  const bound = { address: host, port }
  const listener = boundListener(protocol, bound, options.advertisedHost, options)
  return new WebSocketTransport(server, listener, options, callbacks)
}

function serverFor({ credentials, limits }: WebSocketTransportOptions): Server {
  const { handshakeMs } = limits
  const http = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: handshakeMs,
    requestTimeout: handshakeMs,
    connectionsCheckingInterval: handshakeMs / 4,
    // There is no second request, so nothing to keep a connection for.
    keepAliveTimeout: 1,
  }
  if (credentials === undefined) return createHttpServer(http, answerPlainRequest)
  const server = createHttpsServer(
    { ...http, ...credentials.settings, handshakeTimeout: handshakeMs },
    answerPlainRequest,
  )
  credentials.onChange((settings) => server.setSecureContext(settings))
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return server
}

class WebSocketTransport implements Transport {
  readonly listener: Listener
  readonly #server: Server
  readonly #options: WebSocketTransportOptions
  readonly #callbacks: TransportCallbacks
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    autoPong: false,
    // Messages are small, and a decompressor costs memory for each connection.
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    handleProtocols: () => 'sip',
  })
  readonly #byId = new Map<number, SocketConnection>()
  readonly #byRemote = new Map<string, SocketConnection>()
  readonly #sources: Sources
  #stopped = false

  constructor(
    server: Server,
    listener: Listener,
    options: WebSocketTransportOptions,
    callbacks: TransportCallbacks,
  ) {
    this.listener = listener
    this.#server = server
    this.#options = options
    this.#callbacks = callbacks
    this.#sources = new Sources({
      listener,
      limits: options.limits,
      accepts: (source) => !this.#stopped && callbacks.accepts(source),
      sourceStatus: callbacks.sourceStatus,
      refused: callbacks.refused,
      opened: () => 0,
    })
    server.on('connection', this.#sources.admit)
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
  }

  get connections(): number {
    return this.#sources.size
  }

  send(text: string, flow: Flow, reference: string): void {
    const connection =
      flow.connectionId === 0
        ? this.#byRemote.get(remoteKey(flow))
        : this.#byId.get(flow.connectionId)
    if (connection) connection.send(text, reference)
    else setImmediate(this.#callbacks.sendFailed, reference, 'there is no such WebSocket')
  }

  close(flow: Flow): void {
    this.#byId.get(flow.connectionId)?.close()
  }

  isConnected(flow: Flow): boolean {
    return this.#byId.has(flow.connectionId)
  }

  stopReading(): void {
    this.#server.close()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await stopListening(this.#server, this.#byId.values(), () => this.#sources.destroyAll())
  }

  #upgrade(request: IncomingMessage, duplex: Duplex, head: Buffer): void {
    duplex.on('error', () => undefined)
    const { socket } = request
    const { remoteAddress: address, remotePort: port } = socket
    const rejection = rejectionFor(request, this.#options)
    if (rejection) return refuse(duplex, rejection)
    if (address === undefined || port === undefined) {
      socket.destroy()
      return
    }
    this.#webSockets.handleUpgrade(request, duplex, head, (webSocket) =>
      this.#add({ webSocket, socket, address, port }),
    )
  }

  #add({
    address,
    port,
    ...carried
  }: Pick<ConstructorParameters<typeof SocketConnection>[0], 'webSocket'> & {
    readonly socket: Socket
    readonly address: string
    readonly port: number
  }): void {
    const { limits, nextConnectionId } = this.#options
    const listener = sideFor(this.listener, address)
    const flow = { listener, address, port, connectionId: nextConnectionId() }
    const connection = new SocketConnection({
      ...carried,
      flow,
      limits,
      callbacks: this.#callbacks,
      onClosed: () => {
        this.#byId.delete(flow.connectionId)
        if (this.#byRemote.get(remoteKey(flow)) === connection)
          this.#byRemote.delete(remoteKey(flow))
      },
    })
    this.#byId.set(flow.connectionId, connection)
    this.#byRemote.set(remoteKey(flow), connection)
  }
}

const remoteKey = ({ address, port }: Flow): string => `${address}|${port}`

/** The HTTP request that becomes a WebSocket, and those that do not: RFC 6455 §4, RFC 7118 §4.1. */
interface Refusal {
  readonly status: number
  readonly reason: string
}

/** Why a WebSocket is refused; the library checks the rest of RFC 6455. */
function rejectionFor(
  request: Pick<IncomingMessage, 'headers'>,
  { origins }: WebSocketOptions,
): Refusal | undefined {
  const { origin } = request.headers
  // Only browsers send an Origin, and only pages are restricted by it.
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
 * Ends the connection with a plain answer, in both directions: a socket that was taken from Node's
 * HTTP server is under none of its timeouts, and a peer that leaves its side open would keep it
 * open.
 */
function refuse(socket: Duplex, { status, reason }: Refusal): void {
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

/**
 * There is nothing here but SIP: RFC 9110 §15.5.22, and 404 for requests that cannot be upgraded.
 */
function answerPlainRequest(request: IncomingMessage, response: ServerResponse): void {
  const isUpgradable = request.method === 'GET'
  response.writeHead(isUpgradable ? 426 : 404, {
    Connection: 'close',
    'Content-Length': 0,
    ...(isUpgradable ? { Upgrade: 'websocket' } : {}),
  })
  response.end()
}
