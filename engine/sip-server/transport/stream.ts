/** SIP over TCP and over TLS: connections, accepted, opened and used again. */
import type { Server, Socket } from 'node:net'
import { errorCode } from '../errors.ts'
import { type Flow, type Listener, sideFor } from '../flow.ts'
import { byteLength, encodeMessage } from '../message/message.ts'
import { type Frame, maxMessageBytes, StreamFramer } from '../message/stream-framer.ts'
import { type BindAddress, stopListening } from './listen.ts'
import { maxWaitingPongs, Sources, type StreamLimits } from './sources.ts'
import type { Transport, TransportCallbacks } from './transport.ts'

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
  #connectionFor(flow: Flow): Connection | string {
    const { connectionId, returnPort } = flow
    if (connectionId === 0) return this.#connectionTo(flow)
    const named = this.#connections.byId(connectionId)
    if (named !== undefined) return named
    if (returnPort === undefined) return 'the connection is closed'
    return this.#connectionTo({ ...flow, port: returnPort })
  }

  #connectionTo(flow: Flow): Connection | string {
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
  #proved(connection: Connection | undefined, hostName: string): Connection | undefined {
    return connection && this.#wire.hasProved(connection.socket, hostName) ? connection : undefined
  }

  /** @param connectMs shorter than the usual limit: the sender has another target */
  #open(
    flow: Flow,
    hostName: string | undefined,
    connectMs: number | undefined,
  ): Connection | string {
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
  ): Connection {
    const flow = { ...remote, connectionId: this.#options.nextConnectionId() }
    const connection: Connection = new Connection({
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

  #lookingForAlias(connection: () => Connection): TransportCallbacks {
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

/** One TCP or TLS connection: a stream of SIP messages both ways (RFC 3261 §18.3). */
export interface ConnectionOptions {
  readonly socket: Socket
  readonly flow: Flow
  /** The event after which a connection that we open can be used; undefined: it was accepted. */
  readonly readyEvent: 'connect' | 'secureConnect' | undefined
  readonly limits: StreamLimits
  readonly callbacks: TransportCallbacks
  /** Called once, when the connection is gone or could not be opened, and then with the reason. */
  readonly onClosed: (failure: string | undefined) => void
}

export class Connection {
  readonly flow: Flow
  readonly socket: Socket
  readonly #limits: StreamLimits
  readonly #callbacks: TransportCallbacks
  readonly #framer = new StreamFramer()
  #established: boolean
  /** Messages to send once the connection is open, and their size. */
  readonly #waiting: { readonly text: string; readonly reference: string }[] = []
  #waitingBytes = 0
  /**
   * Until it can be used, or its first or a begun message is whole: dripping bytes gains no time.
   */
  #patience: NodeJS.Timeout | undefined
  #failure: string | undefined
  #waitingPongs = 0

  constructor({ socket, flow, readyEvent, limits, callbacks, onClosed }: ConnectionOptions) {
    this.flow = flow
    this.socket = socket
    this.#limits = limits
    this.#callbacks = callbacks
    this.#established = readyEvent === undefined
    socket.setNoDelay(true)
    socket.setKeepAlive(true, limits.keepAliveMs)
    this.#allow(readyEvent === undefined ? limits.messageMs : limits.connectMs)
    if (readyEvent) socket.once(readyEvent, () => this.#settle())
    socket.setTimeout(limits.idleMs)
    socket.on('timeout', () => this.#giveUp())
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#failure ??= errorCode(error)
    })
    socket.on('close', () => {
      clearTimeout(this.#patience)
      const failure = this.#established ? undefined : (this.#failure ?? 'closed')
      onClosed(failure)
      for (const { reference } of this.#takeWaiting())
        callbacks.sendFailed(reference, failure ?? 'closed')
      if (failure === undefined) callbacks.connectionClosed(flow)
    })
  }

  /** Never throws; a message that cannot be written comes back as `sendFailed`. */
  send(text: string, reference: string): void {
    // A peer such as ours would end the connection, and with it all else that is under way on it.
    if (text.length * 3 > maxMessageBytes && byteLength(text) > maxMessageBytes)
      return void setImmediate(this.#callbacks.sendFailed, reference, 'the message is too large')
    const buffered = this.socket.writableLength + this.#waitingBytes
    if (buffered + text.length > this.#limits.maxBufferedBytes) {
      setImmediate(this.#callbacks.sendFailed, reference, 'the peer does not read')
      return
    }
    if (this.#established) return this.#write(text, reference)
    // Not given to the socket: a peer that has not proved its name must not get it, and the socket
    // would take it as sent.
    this.#waiting.push({ text, reference })
    this.#waitingBytes += text.length
  }

  /** Closes after the data that was written, but does not wait for a peer that reads nothing. */
  close(): void {
    if (this.#established) this.socket.destroySoon()
    else this.socket.destroy()
  }

  destroy(): void {
    this.socket.destroy()
  }

  #write(text: string, reference: string): void {
    this.socket.write(encodeMessage(text), (error) => {
      if (error) this.#callbacks.sendFailed(reference, this.#failure ?? errorCode(error))
    })
  }

  #settle(): void {
    clearTimeout(this.#patience)
    this.#patience = undefined
    if (this.#established) return
    this.#established = true
    for (const { text, reference } of this.#takeWaiting()) this.#write(text, reference)
  }

  #takeWaiting() {
    this.#waitingBytes = 0
    return this.#waiting.splice(0)
  }

  #allow(delayMs: number): void {
    this.#patience = setTimeout(() => this.#giveUp(), delayMs)
  }

  #giveUp(): void {
    this.#failure ??= this.#established ? 'idle' : 'ETIMEDOUT'
    this.socket.destroy()
  }

  #read(chunk: Buffer): void {
    for (const frame of this.#framer.receive(chunk)) this.#take(frame)
    if (this.#framer.isIncomplete && !this.#patience) this.#allow(this.#limits.messageMs)
  }

  #pong(): void {
    if (this.#waitingPongs >= maxWaitingPongs) return
    this.#waitingPongs += 1
    this.socket.write('\r\n', () => {
      this.#waitingPongs -= 1
    })
  }

  #take(frame: Frame): void {
    if (frame.kind === 'ping') return this.#pong()
    if (this.#patience) this.#settle()
    if (frame.kind === 'message') return this.#callbacks.message(frame.text, this.flow)
    // A header part that can be read is answered (400, 413) before the end.
    if (frame.head !== '') this.#callbacks.message(frame.head, this.flow)
    this.#failure ??= frame.reason
    this.close()
  }
}

/** The open stream connections of one listener, to be found by id and by remote address. */
class Connections {
  readonly #byId = new Map<number, Connection>()
  /** The newest connection to each remote address and port, under the name it was opened for. */
  readonly #byRemote = new Map<string, Connection>()
  /** Accepted connections by the address that their peer listens on (RFC 5923), and back. */
  readonly #byAlias = new Map<string, Connection>()
  readonly #aliases = new Map<Connection, string>()

  get size(): number {
    return this.#byId.size
  }

  add(connection: Connection): void {
    const { flow } = connection
    this.#byId.set(flow.connectionId, connection)
    this.#byRemote.set(keyOf(flow), connection)
  }

  remove(connection: Connection): void {
    const { flow } = connection
    this.#byId.delete(flow.connectionId)
    forget(this.#byRemote, keyOf(flow), connection)
    const alias = this.#aliases.get(connection)
    if (alias === undefined) return
    this.#aliases.delete(connection)
    forget(this.#byAlias, alias, connection)
  }

  byId(connectionId: number): Connection | undefined {
    return this.#byId.get(connectionId)
  }

  /**
   * Reuse of a connection, opened by either side (RFC 3261 §18.1.1, §18.2.2). With a name only one
   * that was opened for the same name; without it, one that was accepted or opened without.
   */
  byRemote(address: string, port: number, hostName?: string): Connection | undefined {
    return this.#byRemote.get(remoteKey(address, port, hostName))
  }

  /** To be used only once its peer has proved the name that is looked for. */
  byAlias(address: string, port: number): Connection | undefined {
    return this.#byAlias.get(remoteKey(address, port))
  }

  addAlias(connection: Connection, port: number): void {
    const key = remoteKey(connection.flow.address, port)
    this.#aliases.set(connection, key)
    this.#byAlias.set(key, connection)
  }

  all(): Iterable<Connection> {
    return this.#byId.values()
  }
}

function forget(map: Map<string, Connection>, key: string, connection: Connection): void {
  if (map.get(key) === connection) map.delete(key)
}

const remoteKey = (address: string, port: number, hostName = ''): string =>
  `${address}|${port}|${hostName}`

const keyOf = ({ address, port, hostName }: Flow): string => remoteKey(address, port, hostName)
