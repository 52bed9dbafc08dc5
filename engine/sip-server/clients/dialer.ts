/**
 * Applications that this server connects to, one connection for each request that is meant for them
 * (`srf.listen`). An application gets its events once it has authenticated.
 */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { errorCode } from '../errors.ts'
import type { ServerLog } from '../options.ts'
import type { Credentials } from '../transport/credentials.ts'
import type { FrameLength } from '../wire/frame.ts'
import type { Clients } from './clients.ts'
import { TcpClient } from './tcp-client.ts'

export interface DialerOptions {
  readonly maxConnections: number
  /** Bytes that may wait for an application that does not read; beyond, it is dropped. */
  readonly maxBufferedBytes: number
  /** The unit of frame lengths that applications expect. Default: bytes. */
  readonly frameLength?: FrameLength | undefined
  /** Trusted CA certificates for applications. Default: those of Node.js. */
  readonly credentials: () => Credentials | undefined
  readonly log: ServerLog
}

/** Short, because a caller waits meanwhile. Milliseconds. */
const connectTimeoutMs = 3_000

interface ApplicationAddress {
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
}

/**
 * `tcp://host:port`, `tls://host:port` or `host:port[;transport=tcp|tls]`; the port is mandatory.
 */
function addressOf(uri: string): ApplicationAddress | undefined {
  const parts =
    /^(?:(tcp|tls):\/\/)?(\[[^\]]+\]|[^:/;[\]]+):(\d{1,5})(?:;transport=(tcp|tls))?$/i.exec(uri)
  if (parts === null || Number(parts[3]) > 65_535) return undefined
  const [, scheme, host = '', port, transport] = parts
  const isSecure = (scheme ?? transport ?? 'tcp').toLowerCase() === 'tls'
  return { isSecure, host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

/** Whether an application can be connected to there. */
export const isApplicationUri = (uri: string): boolean => addressOf(uri) !== undefined

export class Dialer {
  readonly #clients: Clients
  readonly #options: DialerOptions
  readonly #sockets = new Set<Socket>()

  constructor(clients: Clients, options: DialerOptions) {
    this.#clients = clients
    this.#options = options
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Connects. A failure shows later, as the disconnection of `clientId`. */
  dial(clientId: number, uri: string): void {
    const address = addressOf(uri)
    const fail = (reason: string): void => {
      this.#options.log('warn', 'application not reached', { uri, reason })
      this.#clients.neverCame(clientId)
    }
    if (address === undefined) return void setImmediate(fail, 'no such address')
    if (this.#sockets.size >= this.#options.maxConnections)
      return void setImmediate(fail, 'too many connections')
    const socket = this.#open(address)
    let reason = 'connection refused'
    socket.setTimeout(connectTimeoutMs, () => {
      reason = 'no connection in time'
      socket.destroy()
    })
    socket.on('error', (error) => (reason = errorCode(error)))
    const failed = (): void => {
      this.#sockets.delete(socket)
      fail(reason)
    }
    socket.once('close', failed)
    socket.once(address.isSecure ? 'secureConnect' : 'connect', () => {
      socket.off('close', failed)
      this.#adopt(clientId, uri, socket)
    })
    return undefined
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #open({ isSecure, host, port }: ApplicationAddress): Socket {
    const secureContext = isSecure ? this.#options.credentials()?.context : undefined
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const socket = isSecure
      ? connectTls({ host, port, secureContext, ...servername })
      : connect({ host, port })
    this.#sockets.add(socket)
    return socket
  }

  #adopt(clientId: number, uri: string, socket: Socket): void {
    socket.removeAllListeners('timeout')
    const client = new TcpClient(socket, {
      maxBufferedBytes: this.#options.maxBufferedBytes,
      frameLength: this.#options.frameLength,
      onCommand: (command) => this.#clients.receive(clientId, command),
      onClosed: () => {
        this.#sockets.delete(socket)
        this.#clients.remove(clientId)
      },
      onDropped: (reason) => this.#options.log('warn', 'application dropped', { uri, reason }),
    })
    this.#clients.add(client, clientId)
  }
}
