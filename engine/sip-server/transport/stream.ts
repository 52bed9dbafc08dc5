/** SIP over TCP and over TLS: connections, accepted, opened and used again. */
import type { Server, Socket } from 'node:net'
import { errorCode } from '../errors.ts'
import { type Flow, type Listener, sideFor } from '../flow.ts'
import { type BindAddress, stopListening } from './listen.ts'
import { Sources, type StreamLimits } from './sources.ts'
import type { Transport, TransportCallbacks } from './transport.ts'
import { StreamConnection } from './stream-connection.ts'
import { Connections } from './connections.ts'

export interface StreamOptions extends BindAddress {
  readonly advertisedHost: string | undefined
  readonly limits: StreamLimits
  /** Ids are unique in the whole server, and never 0. */
  readonly nextConnectionId: () => number
}

/** The part of a transport that differs between TCP and TLS. */
export interface Wire {
  /** The server's event for a connection that can be used. */
  readonly acceptEvent: 'connection' | 'secureConnection'
  readonly readyEvent: 'connect' | 'secureConnect'
  /** Begins a connection. @throws for a port out of range. */
  dial(flow: Flow): Socket
  /** The name that a connection for `flow` must have been opened for; undefined: any will do. */
  nameFor(flow: Flow): string | undefined
  /** Whether the peer of an accepted connection has proved to be `hostName`. */
  hasProved(socket: Socket, hostName: string): boolean
  /** The port that the peer of an accepted connection offers as an alias in this first message. */
  aliasOf(socket: Socket, text: string): number | undefined
  /** A connection could not be made. */
  failed(flow: Flow, reason: string): void
}

export class StreamTransport implements Transport {
  readonly listener: Listener
  readonly #server: Server
  readonly #wire: Wire
  readonly #options: StreamOptions
  readonly #callbacks: TransportCallbacks
  readonly #connections = new Connections()
  readonly #sources: Sources
  /** Connections that were opened from here. */
  #opened = 0
  #stopped = false

  constructor(
    server: Server,
    wire: Wire,
    listener: Listener,
    options: StreamOptions,
    callbacks: TransportCallbacks,
  ) {
    this.listener = listener
    this.#server = server
    this.#wire = wire
    this.#options = options
    this.#callbacks = callbacks
    this.#sources = new Sources({
      listener,
      limits: options.limits,
      accepts: (source) => !this.#stopped && callbacks.accepts(source),
      sourceStatus: callbacks.sourceStatus,
      refused: callbacks.refused,
      opened: () => this.#opened,
    })
    server.on('connection', this.#sources.admit)
    server.on(wire.acceptEvent, (socket: Socket) => this.#accept(socket))
  }

  get connections(): number {
    return this.#sources.size + this.#opened
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

  isConnected(flow: Flow): boolean {
    return this.#connections.byId(flow.connectionId) !== undefined
  }

  stopReading(): void {
    // Its part of the socket is closed at once, the server itself with its last connection.
    this.#server.close()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await stopListening(this.#server, this.#connections.all(), () => this.#sources.destroyAll())
  }

  /** The connection to send on, or why there is none. */
  #connectionFor(flow: Flow): StreamConnection | string {
    const { connectionId, returnPort } = flow
    if (connectionId === 0) return this.#connectionTo(flow)
    const named = this.#connections.byId(connectionId)
    if (named !== undefined) return named
    if (returnPort === undefined) return 'the connection is closed'
    return this.#connectionTo({ ...flow, port: returnPort })
  }

  #connectionTo(flow: Flow): StreamConnection | string {
    const { address, port, connectMs } = flow
    const hostName = this.#wire.nameFor(flow)
    return (
      this.#connections.byRemote(address, port, hostName) ??
      this.#proved(this.#connections.byAlias(address, port), hostName ?? address) ??
      (hostName === undefined
        ? undefined
        : this.#proved(this.#connections.byRemote(address, port), hostName)) ??
      this.#open({ ...this.#sideFor(address), port, connectionId: 0 }, hostName, connectMs)
    )
  }

  #sideFor(address: string): Pick<Flow, 'listener' | 'address'> {
    return { listener: sideFor(this.listener, address), address }
  }

  /** The connection if its peer was accepted as `hostName`. */
  #proved(
    connection: StreamConnection | undefined,
    hostName: string,
  ): StreamConnection | undefined {
    return connection && this.#wire.hasProved(connection.socket, hostName) ? connection : undefined
  }

  /** @param connectMs shorter than the usual limit: the sender has another target */
  #open(
    flow: Flow,
    hostName: string | undefined,
    connectMs: number | undefined,
  ): StreamConnection | string {
    if (this.#stopped) return 'the server has stopped'
    if (this.connections >= this.#options.limits.maxConnections) return 'too many connections'
    const named = hostName === undefined ? flow : { ...flow, hostName }
    try {
      const socket = this.#wire.dial(named)
      this.#opened += 1
      const { limits } = this.#options
      const patient = connectMs === undefined ? limits : { ...limits, connectMs }
      return this.#add(socket, named, this.#wire.readyEvent, patient)
    } catch (error) {
      return errorCode(error)
    }
  }

  #accept(socket: Socket): void {
    const { remoteAddress: address, remotePort: port } = socket
    if (socket.destroyed || address === undefined || port === undefined) {
      socket.destroy()
      return
    }
    const remote = { ...this.#sideFor(address), port, connectionId: 0 }
    this.#add(socket, remote, undefined, this.#options.limits)
  }

  #add(
    socket: Socket,
    remote: Flow,
    readyEvent: Wire['readyEvent'] | undefined,
    limits: StreamLimits,
  ): StreamConnection {
    const flow = { ...remote, connectionId: this.#options.nextConnectionId() }
    const connection: StreamConnection = new StreamConnection({
      socket,
      flow,
      readyEvent,
      limits,
      callbacks: readyEvent ? this.#callbacks : this.#lookingForAlias(() => connection),
      onClosed: (failure) => {
        if (readyEvent) this.#opened -= 1
        this.#connections.remove(connection)
        if (failure !== undefined) this.#wire.failed(flow, failure)
      },
    })
    this.#connections.add(connection)
    return connection
  }

  #lookingForAlias(connection: () => StreamConnection): TransportCallbacks {
    let isFirst = true
    return {
      ...this.#callbacks,
      message: (text, flow) => {
        if (isFirst) {
          isFirst = false
          const port = this.#wire.aliasOf(connection().socket, text)
          if (port !== undefined) this.#connections.addAlias(connection(), port)
        }
        this.#callbacks.message(text, flow)
      },
    }
  }
}
