/** An embedded SIP server that speaks the drachtio protocol: core, sockets and applications, joined. */
import { Clients } from './clients/client.ts'
import { connectInProcess, type InProcessClient, type InProcessLink } from './clients/in-process.ts'
import { AdminListener } from './clients/listener.ts'
import { SipCore } from './core/core.ts'
import { Driver, type Ports } from './driver.ts'
import type { Listener } from './flow.ts'
import {
  adminLimits,
  defaultLimits,
  monotonicNow,
  sameSecret,
  secureRandomBytes,
  serverVersion,
  type Log,
  type SipServerOptions,
} from './options.ts'
import { randomTokens } from './random-token.ts'
import { defaultTimers } from './transaction/timers.ts'
import type { BoundAddress } from './transport/listen.ts'
import { NextHopResolver, systemLookup } from './transport/next-hop.ts'
import { defaultStreamLimits, openTcp } from './transport/tcp.ts'
import type { Transport, TransportCallbacks } from './transport/transport.ts'
import { openUdp } from './transport/udp.ts'

export interface SipServer {
  /** Binds all addresses, or none. @throws ListenError when one cannot be bound. */
  start(): Promise<void>
  /** In the order of the options; empty before the start. */
  readonly listeners: readonly Listener[]
  /** Where applications connect; absent without `admin`, and before the start. */
  readonly adminAddress: BoundAddress | undefined
  /** Connects an application of this process; after the start. */
  connectInProcess(client: InProcessClient): InProcessLink
  /** Sizes of every table. Those of calls return to 0 when the calls are over. */
  stats(): Readonly<Record<string, number>>
  /** Closes every connection and port. Calls are not ended: that is the applications' part. */
  stop(): Promise<void>
}

export const createSipServer = (options: SipServerOptions): SipServer => new EmbeddedServer(options)

const silent: Log = () => undefined

class EmbeddedServer implements SipServer {
  readonly #options: SipServerOptions
  readonly #core: SipCore
  readonly #driver: Driver
  readonly #clients: Clients
  readonly #admin: AdminListener
  readonly #resolver: NextHopResolver
  readonly #transports = new Map<Listener, Transport>()
  #listeners: readonly Listener[] = []
  #adminAddress: BoundAddress | undefined
  #lastConnectionId = 0

  constructor(options: SipServerOptions) {
    const { now = monotonicNow, log = silent, admit = () => true } = options
    this.#options = options
    this.#core = new SipCore({
      listeners: () => this.#listeners,
      secret: options.secret,
      sameSecret,
      timers: { ...defaultTimers, ...options.timers },
      limits: { ...defaultLimits, ...options.limits },
      token: randomTokens(options.randomBytes ?? secureRandomBytes),
      version: serverVersion,
      log,
    })
    const driver = new Driver(this.#core, this.#ports(), { now, log, admit })
    this.#driver = driver
    this.#clients = new Clients({
      connected: (clientId, isInProcess) => driver.clientConnected(clientId, isInProcess),
      payload: (clientId, payload) => driver.command(clientId, payload),
      disconnected: (clientId) => driver.clientDisconnected(clientId),
    })
    this.#admin = new AdminListener(this.#clients, adminLimits, log)
    this.#resolver = new NextHopResolver(systemLookup, now, (host, addresses) =>
      driver.resolved(host, addresses),
    )
  }

  get listeners(): readonly Listener[] {
    return this.#listeners
  }

  get adminAddress(): BoundAddress | undefined {
    return this.#adminAddress
  }

  async start(): Promise<void> {
    try {
      for (const address of this.#options.listen) {
        const transport = await this.#open(address)
        this.#transports.set(transport.listener, transport)
        this.#listeners = [...this.#transports.keys()]
      }
      const { admin } = this.#options
      if (admin) this.#adminAddress = await this.#admin.start(admin.host, admin.port)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  connectInProcess(client: InProcessClient): InProcessLink {
    return connectInProcess(this.#clients, client)
  }

  stats(): Readonly<Record<string, number>> {
    let connections = 0
    for (const transport of this.#transports.values()) connections += transport.connections
    return {
      ...this.#core.stats(),
      clients: this.#clients.size,
      connections,
      lookups: this.#resolver.pending,
    }
  }

  async stop(): Promise<void> {
    this.#clients.disconnectAll()
    await this.#admin.stop()
    const transports = [...this.#transports.values()]
    this.#transports.clear()
    await Promise.all(transports.map((transport) => transport.stop()))
    this.#driver.stop()
  }

  #ports(): Ports {
    return {
      send: (text, flow, reference) => {
        const transport = this.#transports.get(flow.listener)
        if (transport === undefined)
          setImmediate(() => this.#driver.sendFailed(reference, 'the listener is closed'))
        else transport.send(text, flow, reference)
      },
      close: (flow) => this.#transports.get(flow.listener)?.close(flow),
      deliver: (clientId, payload) => this.#clients.deliver(clientId, payload),
      disconnect: (clientId) => this.#clients.disconnect(clientId),
      resolve: (host) => this.#resolver.resolve(host),
    }
  }

  #open(address: SipServerOptions['listen'][number]): Promise<Transport> {
    const { protocol, host, port } = address
    const { advertisedHost } = this.#options
    const callbacks: TransportCallbacks = {
      datagram: (bytes, flow) => this.#driver.datagram(bytes, flow),
      message: (text, flow) => this.#driver.message(text, flow),
      sendFailed: (reference, reason) => this.#driver.sendFailed(reference, reason),
      connectionClosed: (flow) => this.#driver.connectionClosed(flow),
    }
    if (protocol === 'udp') return openUdp(host, port, advertisedHost, callbacks)
    const nextConnectionId = () => ++this.#lastConnectionId
    const limits = defaultStreamLimits
    return openTcp({ host, port, advertisedHost, limits, nextConnectionId }, callbacks)
  }
}
