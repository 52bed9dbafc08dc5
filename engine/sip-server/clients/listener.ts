/** The ports that drachtio applications connect to: TCP, and TLS. */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Credentials } from '../transport/credentials.ts'
import { listen, stopListening, type BoundAddress } from '../transport/listen.ts'
import type { AdminLimits, Log } from '../options.ts'
import { type FrameLength, encodeFrame, FrameReader, maxFrameBytes } from '../wire/frame.ts'
import type { Clients, Client } from './client.ts'
import type { AppCommand, AppEvent } from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'

export interface AdminOptions extends AdminLimits {
  /** The unit of frame lengths that applications expect. Default: bytes. */
  readonly frameLength?: FrameLength | undefined
}

/** Milliseconds. */
const handshakeTimeoutMs = 5_000

export class AdminListener {
  readonly #clients: Clients
  readonly #options: AdminOptions
  readonly #log: Log
  readonly #server: Server
  readonly #connections = new Set<TcpClient>()
  /** Connections without a whole frame yet, TLS handshakes included, by address and port. */
  readonly #newcomers = new Map<string, Socket>()

  /** With credentials the port speaks TLS. */
  constructor(clients: Clients, options: AdminOptions, log: Log, credentials?: Credentials) {
    this.#clients = clients
    this.#options = options
    this.#log = log
    this.#server = credentials ? this.#secureServer(credentials) : createServer()
    this.#server.on('connection', (socket: Socket) => {
      if (this.#admit(socket) && !credentials) this.#accept(socket)
    })
  }

  /** @throws ListenError when the address cannot be bound. */
  start(host: string, port: number): Promise<BoundAddress> {
    return listen(this.#server, 'admin', { host, port })
  }

  /** Stops accepting, and cuts connections that have not ended by themselves. */
  stop(): Promise<void> {
    return stopListening(this.#server, this.#connections, () => {
      for (const socket of this.#newcomers.values()) socket.destroy()
    })
  }

  #secureServer(credentials: Credentials): Server {
    const { handshakeMs = handshakeTimeoutMs } = this.#options
    const server = createTlsServer(
      { ...credentials.settings, handshakeTimeout: handshakeMs },
      (socket) => this.#accept(socket),
    )
    credentials.onChange((settings) => server.setSecureContext(settings))
    server.on('tlsClientError', (error, socket) => {
      const { remoteAddress } = socket
      this.#log('debug', 'application refused: no TLS', { remoteAddress, reason: error.message })
      // Node leaves one open that has said nothing in time.
      socket.destroy()
    })
    return server
  }

  /** Decided before TLS. Strangers that say nothing keep half of the places free. */
  #admit(socket: Socket): boolean {
    const { maxClients } = this.#options
    if (this.#connections.size >= maxClients)
      this.#log('warn', 'application refused: too many are connected', peerOf(socket))
    else if (this.#newcomers.size < Math.ceil(maxClients / 2)) {
      const name = nameOf(socket)
      this.#newcomers.set(name, socket)
      socket.once('close', () => this.#newcomers.delete(name))
      return true
    } else
      this.#log(
        'debug',
        'application refused: too many connections have not authenticated',
        peerOf(socket),
      )
    socket.destroy()
    return false
  }

  #accept(socket: Socket): void {
    const { maxClients, maxBufferedBytes, firstFrameMs, unreadMs, frameLength, keepAliveMs } =
      this.#options
    const peer = peerOf(socket)
    const name = nameOf(socket)
    // Connections that were in a handshake may have become too many.
    if (this.#connections.size >= maxClients) {
      socket.destroy()
      return
    }
    const client = new TcpClient(socket, {
      maxBufferedBytes,
      firstFrameMs,
      unreadMs,
      frameLength,
      keepAliveMs,
      onFramed: () => this.#newcomers.delete(name),
      onCommand: (command) => this.#clients.receive(clientId, command),
      onClosed: () => {
        this.#connections.delete(client)
        this.#clients.remove(clientId)
      },
      onDropped: (reason) => this.#log('warn', 'application dropped', { ...peer, reason }),
    })
    this.#connections.add(client)
    const clientId = this.#clients.add(client)
  }
}

const peerOf = ({ remoteAddress: address = '', remotePort: port = 0 }: Socket) => ({
  address,
  port,
})

/** The same for a connection and the TLS in it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

// An application connected by TCP: frames in, frames out.

/** Milliseconds. */
const defaultFirstFrameMs = 10_000

/** Milliseconds. */
const defaultKeepAliveMs = 45_000

/** An application that takes nothing for so long is no use to its callers either. Milliseconds. */
const defaultUnreadMs = 10_000

/** How long a peer may take to close its side after we closed ours. Milliseconds. */
const closeTimeoutMs = 5_000

interface TcpClientOptions {
  /** Bytes that may wait for an application that does not read; beyond, it is dropped. */
  readonly maxBufferedBytes: number
  /** TCP keep-alive; 0: none. Default: 45 s. */
  readonly keepAliveMs?: number | undefined
  /** A connection that has not sent one whole frame by then is no application. Default: 10 s. */
  readonly firstFrameMs?: number | undefined
  /**
   * A connection is dropped that reads nothing for so long while data waits for it. Default: 10 s.
   */
  readonly unreadMs?: number | undefined
  /** The unit of frame lengths that the application expects. Default: bytes. */
  readonly frameLength?: FrameLength | undefined
  /** The first whole frame is there. */
  readonly onFramed?: () => void
  readonly onCommand: (command: AppCommand) => void
  /** Called once, when the connection is gone for whatever reason. */
  readonly onClosed: () => void
  /** The connection is dropped for this reason. */
  readonly onDropped: (reason: string) => void
}

export class TcpClient implements Client {
  readonly isInProcess = false
  readonly #socket: Socket
  readonly #options: TcpClientOptions
  readonly #frames = new FrameReader()
  #events = 0
  /** Until the first frame. */
  #patience: NodeJS.Timeout | undefined
  /** While something waits that the application does not read. */
  #unread: NodeJS.Timeout | undefined

  constructor(socket: Socket, options: TcpClientOptions) {
    this.#socket = socket
    this.#options = options
    socket.setNoDelay(true)
    const { firstFrameMs = defaultFirstFrameMs, keepAliveMs = defaultKeepAliveMs } = options
    socket.setKeepAlive(keepAliveMs > 0, keepAliveMs)
    this.#patience = setTimeout(() => this.#drop('no frame in time'), firstFrameMs)
    socket.on('data', (chunk) => this.#read(chunk))
    // Every error is followed by `close`, which is where the connection ends.
    socket.on('error', (error) => this.#options.onDropped(error.message))
    socket.on('drain', () => this.#stopWaiting())
    socket.on('close', () => {
      clearTimeout(this.#patience)
      this.#stopWaiting()
      this.#options.onClosed()
    })
  }

  deliver(event: AppEvent): void {
    if (!this.#socket.writable) return
    this.#events += 1
    const payload = encodeEvent(event, this.#events.toString(36))
    const frame = encodeFrame(payload, this.#options.frameLength)
    // A slow reader gets its full time again with each frame that it has read.
    if (this.#socket.writableNeedDrain) this.#socket.write(frame, () => this.#unread?.refresh())
    else if (!this.#socket.write(frame)) this.#waitForReader()
    if (this.#socket.writableLength > this.#options.maxBufferedBytes) this.#drop('it does not read')
  }

  #waitForReader(): void {
    const { unreadMs = defaultUnreadMs } = this.#options
    this.#unread ??= setTimeout(() => this.#drop('it does not read'), unreadMs)
  }

  #stopWaiting(): void {
    clearTimeout(this.#unread)
    this.#unread = undefined
  }

  close(): void {
    if (this.#socket.destroyed) return
    this.#socket.setTimeout(closeTimeoutMs, () => this.#drop('no close in time'))
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    const { payloads, tooLong, problem } = this.#frames.push(chunk)
    if (this.#patience && payloads.length > 0) {
      clearTimeout(this.#patience)
      this.#patience = undefined
      this.#options.onFramed?.()
    }
    for (const payload of payloads) this.#options.onCommand(decodeCommand(payload))
    for (const start of tooLong) {
      const [id = ''] = start.split('|', 1)
      const problem = `a message of more than ${maxFrameBytes} bytes`
      this.deliver({ kind: 'refused', commandId: id, problem })
    }
    if (problem !== undefined) this.#drop(problem)
  }

  #drop(reason: string): void {
    if (this.#socket.destroyed) return
    this.#options.onDropped(reason)
    this.#socket.destroy()
  }
}
