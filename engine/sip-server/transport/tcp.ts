/** SIP over TCP (RFC 3261 §18): accepts connections, and opens them where none can be used again. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { errorCode } from '../errors.ts'
import type { Flow, Listener } from '../flow.ts'
import { Connection } from './connection.ts'
import { Connections } from './connections.ts'
import { listen, stopListening } from './listen.ts'
import { boundListener, type Transport, type TransportCallbacks } from './transport.ts'

export interface StreamLimits {
  /** Open connections of one listener, in both directions. */
  readonly maxConnections: number
  /** Bytes that may wait for a peer that does not read; beyond, sending fails. */
  readonly maxBufferedBytes: number
  readonly connectMs: number
  /** An accepted connection without a whole message by then is closed. */
  readonly firstMessageMs: number
  /** Closed after this long without traffic; longer than the longest registration. */
  readonly idleMs: number
  /** First probe of the kernel on a silent connection. */
  readonly keepAliveMs: number
}

export const defaultStreamLimits: StreamLimits = {
  maxConnections: 10_000,
  maxBufferedBytes: 1024 * 1024,
  connectMs: 4_000,
  firstMessageMs: 32_000,
  idleMs: 7_500_000,
  keepAliveMs: 30_000,
}

export interface TcpOptions {
  readonly host: string
  readonly port: number
  readonly advertisedHost: string | undefined
  readonly limits: StreamLimits
  /** Ids are unique in the whole server, and never 0. */
  readonly nextConnectionId: () => number
}

/** @throws ListenError when the address cannot be bound. */
export async function openTcp(
  options: TcpOptions,
  callbacks: TransportCallbacks,
): Promise<Transport> {
  const server = createServer()
  const bound = await listen(server, 'tcp', options.host, options.port)
  const listener = boundListener(
    'tcp',
    { address: bound.host, port: bound.port },
    options.advertisedHost,
  )
  return new TcpTransport(server, listener, options, callbacks)
}

class TcpTransport implements Transport {
  readonly listener: Listener
  readonly #server: Server
  readonly #options: TcpOptions
  readonly #callbacks: TransportCallbacks
  readonly #connections = new Connections()
  #stopped = false

  constructor(
    server: Server,
    listener: Listener,
    options: TcpOptions,
    callbacks: TransportCallbacks,
  ) {
    this.listener = listener
    this.#server = server
    this.#options = options
    this.#callbacks = callbacks
    server.on('connection', (socket) => this.#accept(socket))
  }

  get connections(): number {
    return this.#connections.size
  }

  send(text: string, flow: Flow, reference: string): void {
    const connection = this.#connectionFor(flow)
    if (typeof connection === 'string')
      setImmediate(this.#callbacks.sendFailed, reference, connection)
    else connection.send(text, reference)
  }

  close(flow: Flow): void {
    this.#connections.byId(flow.connectionId)?.close()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await stopListening(this.#server, this.#connections.all())
  }

  /** The connection to send on, or why there is none. */
  #connectionFor(flow: Flow): Connection | string {
    const { address, port, connectionId, returnPort } = flow
    if (connectionId === 0) return this.#connectionTo(address, port)
    const named = this.#connections.byId(connectionId)
    if (named !== undefined) return named
    if (returnPort === undefined) return 'the connection is closed'
    return this.#connectionTo(address, returnPort)
  }

  #connectionTo(address: string, port: number): Connection | string {
    return this.#connections.byRemote(address, port) ?? this.#open(address, port)
  }

  #open(remoteAddress: string, remotePort: number): Connection | string {
    if (this.#stopped) return 'the server has stopped'
    if (this.#connections.size >= this.#options.limits.maxConnections) return 'too many connections'
    const { address } = this.listener
    const isWildcard = address === '0.0.0.0' || address === '::'
    try {
      const socket = connect({
        host: remoteAddress,
        port: remotePort,
        ...(isWildcard ? {} : { localAddress: address }),
      })
      return this.#add(socket, remoteAddress, remotePort)
    } catch (error) {
      // A port out of range.
      return errorCode(error)
    }
  }

  #accept(socket: Socket): void {
    const { remoteAddress, remotePort } = socket
    const isFull = this.#connections.size >= this.#options.limits.maxConnections
    if (isFull || this.#stopped || remoteAddress === undefined || remotePort === undefined)
      socket.destroy()
    else this.#add(socket, remoteAddress, remotePort)
  }

  #add(socket: Socket, address: string, port: number): Connection {
    const connectionId = this.#options.nextConnectionId()
    const flow = { listener: this.listener, address, port, connectionId }
    const connection: Connection = new Connection(
      socket,
      flow,
      this.#options.limits,
      this.#callbacks,
      () => this.#connections.remove(connection),
    )
    this.#connections.add(connection)
    return connection
  }
}
