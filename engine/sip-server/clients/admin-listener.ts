/** The ports that drachtio applications connect to: TCP, and TLS. */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Credentials } from '../transport/credentials.ts'
import { listen, stopListening, type BoundAddress } from '../transport/listen.ts'
import type { AdminLimits, ServerLog } from '../options.ts'
import type { FrameLength } from '../wire/frame.ts'
import type { Clients } from './clients.ts'
import { TcpClient } from './tcp-client.ts'

export interface AdminOptions extends AdminLimits {
  /** The unit of frame lengths that applications expect. Default: bytes. */
  readonly frameLength?: FrameLength | undefined
}

/** Milliseconds. */
const handshakeTimeoutMs = 5_000

export class AdminListener {
  readonly #clients: Clients
  readonly #options: AdminOptions
  readonly #log: ServerLog
  readonly #server: Server
  readonly #connections = new Set<TcpClient>()
  /** Connections without a whole frame yet, TLS handshakes included, by address and port. */
  readonly #newcomers = new Map<string, Socket>()

  /** @param credentials present: the port speaks TLS. */
  constructor(clients: Clients, options: AdminOptions, log: ServerLog, credentials?: Credentials) {
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
