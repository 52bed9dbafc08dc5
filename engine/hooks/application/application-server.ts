/**
 * The SIP server of one application: an embedded one, and the TCP port of loopback by which
 * drachtio-srf connects to it. Where a main process is named, only that is served and called.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import {
  createSipServer,
  encodeFrame,
  FrameReader,
  type InProcessLink,
  type SipPort,
  type SipServer,
} from '../../sip-server/index.ts'
import { APPLICATION_SECRET } from '../../call/application/private-headers.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { ConnectOptions } from './library.ts'
import { shownToApplication, toMain, type WayToMain } from './private-lines.ts'

export interface ApplicationServerOptions {
  readonly listen: {
    readonly protocol: 'udp' | 'tcp'
    readonly host: string
    readonly port: number
  }
  /** Absent: everybody may call, and everybody may be called. */
  readonly main?: WayToMain | undefined
  readonly randomSecret: () => string
  readonly log: Log
  /** An application has asked for INVITEs. */
  readonly onTaking?: () => void
}

const LOOPBACK = '127.0.0.1'
/** Several `ApplicationSrf` of one file. */
const MAX_CONNECTIONS = 64

export class ApplicationServer {
  readonly #options: ApplicationServerOptions
  readonly #server: SipServer
  readonly #door: Server
  readonly #secret: string
  readonly #sockets = new Set<Socket>()

  constructor(options: ApplicationServerOptions) {
    this.#options = options
    const { listen, main, randomSecret, log } = options
    this.#secret = randomSecret()
    const ofMain = main && {
      screen: ({ get }: { readonly get: (name: string) => string | undefined }) =>
        get(APPLICATION_SECRET) === main.secret || isInDialog(get('To')) ? undefined : forbidden,
      mayFollow: () => false,
    }
    this.#server = createSipServer({ listen: [listen], secret: this.#secret, log, ...ofMain })
    this.#door = createServer((socket) => this.#connected(socket))
    this.#door.maxConnections = MAX_CONNECTIONS
  }

  /** @throws {ListenError} the address cannot be bound. */
  async start(): Promise<void> {
    await this.#server.start()
    await new Promise<void>((resolve, reject) => {
      this.#door.once('error', reject)
      this.#door.listen(0, LOOPBACK, resolve)
    })
  }

  /** Where drachtio-srf connects to. */
  get door(): ConnectOptions {
    const { port } = this.#door.address() as AddressInfo
    return { host: LOOPBACK, port, secret: this.#secret }
  }

  /** The port of SIP. */
  get port(): number {
    return this.#server.listeners[0]?.port ?? 0
  }

  /** A port for a caller of this process at the same address; after the start. */
  createPort(): SipPort {
    return this.#server.createPort()
  }

  /** Calls and requests that have not come to their end. */
  get pending(): number {
    const { dialogs = 0, serverTransactions = 0 } = this.#server.stats()
    return dialogs + serverTransactions
  }

  async stop(): Promise<void> {
    this.#door.close()
    for (const socket of this.#sockets) socket.destroy()
    await this.#server.stop()
  }

  #connected(socket: Socket): void {
    const { main, log } = this.#options
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    const link: InProcessLink = this.#server.connectInProcess({
      onPayload: (payload) => {
        socket.write(encodeFrame(main === undefined ? payload : shownToApplication(payload)))
      },
      onClose: () => socket.end(),
    })
    const frames = new FrameReader()
    socket.on('data', (chunk) => {
      const { payloads, tooLong, problem } = frames.push(chunk)
      for (const payload of payloads) this.#command(payload, link)
      if (tooLong.length === 0 && problem === undefined) return
      log('warn', 'an application has sent what cannot be read', { problem: problem ?? 'too long' })
      socket.destroy()
    })
    socket.on('error', (error) => log('debug', 'an application has lost its connection', { error }))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      link.close()
    })
  }

  #command(payload: string, link: InProcessLink): void {
    const { main, onTaking } = this.#options
    link.send(main === undefined ? payload : toMain(payload, main))
    const [, type, verb = ''] = payload.split('\r\n', 1)[0]?.split('|') ?? []
    if (type === 'route' && verb.toLowerCase() === 'invite') onTaking?.()
  }
}

/** The server knows the dialogs of its applications, and those that they have forwarded. */
const isInDialog = (to = ''): boolean => /;\s*tag=/i.test(to)

const forbidden = { status: 403, reason: 'Forbidden' }
