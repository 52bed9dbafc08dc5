/** The TCP port that drachtio applications connect to. */
import { createServer, type Server, type Socket } from 'node:net'
import { listen, stopListening, type BoundAddress } from '../transport/listen.ts'
import type { Log } from '../options.ts'
import type { Clients } from './client.ts'
import { TcpClient } from './tcp-client.ts'

export interface AdminLimits {
  readonly maxClients: number
  /** Bytes that may wait for an application that does not read; beyond, it is dropped. */
  readonly maxBufferedBytes: number
}

export class AdminListener {
  readonly #clients: Clients
  readonly #limits: AdminLimits
  readonly #log: Log
  readonly #server: Server
  readonly #connections = new Set<TcpClient>()

  constructor(clients: Clients, limits: AdminLimits, log: Log) {
    this.#clients = clients
    this.#limits = limits
    this.#log = log
    this.#server = createServer((socket) => this.#accept(socket))
  }

  /** @throws ListenError when the address cannot be bound. */
  start(host: string, port: number): Promise<BoundAddress> {
    return listen(this.#server, 'admin', host, port)
  }

  /** Stops accepting, and cuts connections that have not ended by themselves. */
  stop(): Promise<void> {
    return stopListening(this.#server, this.#connections)
  }

  #accept(socket: Socket): void {
    const peer = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    if (this.#connections.size >= this.#limits.maxClients) {
      this.#log('warn', 'application refused: too many are connected', peer)
      socket.destroy()
      return
    }
    const client = new TcpClient(socket, {
      maxBufferedBytes: this.#limits.maxBufferedBytes,
      onPayload: (payload) => this.#clients.receive(clientId, payload),
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
