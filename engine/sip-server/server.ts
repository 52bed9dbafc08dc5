/** An embedded SIP server that speaks the drachtio protocol: core, sockets and applications, joined. */
import { performance } from 'node:perf_hooks'
import type { Application, ApplicationLink } from './application.ts'
import { Capture } from './capture/capture.ts'
import {
  Clients,
  connectApplication,
  connectInProcess,
  type InProcessClient,
  type InProcessLink,
} from './clients/client.ts'
import { Dialer } from './clients/dialer.ts'
import { AdminListener, type AdminOptions } from './clients/listener.ts'
import { SipCore } from './core/core.ts'
import { NextHopResolver } from './dns/next-hop.ts'
import { systemDns } from './dns/system-dns.ts'
import { Driver, type Ports } from './driver.ts'
import type { Flow, Listener } from './flow.ts'
import { decodeMessage } from './message/message.ts'
import { type Machine, randomNumbers, randomTokens, thisMachine } from './machine.ts'
import {
  adminLimits,
  maxDialled,
  defaultGraceMs,
  defaultLimits,
  defaultMinSessionSeconds,
  monotonicNow,
  sameSecret,
  sealWith,
  secureRandomBytes,
  serverVersion,
  type Log,
  type SipServerOptions,
} from './options.ts'
import { MetricsListener, prometheusText } from './metrics.ts'
import { type Load, Overload } from './overload.ts'
import { defaultTimers } from './transaction/machine.ts'
import type { BoundAddress } from './transport/listen.ts'
import { TransportOpener } from './transport/open.ts'
import type { Transport, TransportCallbacks } from './transport/transport.ts'

export interface StartOptions {
  /**
   * Messages from the network wait for `release`, within bounds, so that dialogs can be restored before. Default:
   * nothing waits.
   */
  readonly isHeld?: boolean
  /**
   * The process before this one has crashed: for 32 s a callee that answers its INVITEs from a source for which this
   * is true is let go, with CANCEL, or ACK and BYE. Default: such responses are dropped.
   */
  readonly endsStraysOf?: (source: Flow) => boolean
  /** What the process before this one has answered (`answers`). Default: nothing. */
  readonly answers?: readonly string[]
}

export interface SipServer {
  /**
   * Binds all addresses, or none.
   * @throws ListenError when one cannot be bound.
   * @throws CertificateError when a file for TLS cannot be used.
   */
  start(how?: StartOptions): Promise<void>
  /** After a start that is held: handles what has come meanwhile, and then all else. */
  release(): void
  /** In the order of the options; empty before the start. */
  readonly listeners: readonly Listener[]
  /** Where applications connect; absent without `admin`, and before the start. */
  readonly adminAddress: BoundAddress | undefined
  /** The same for TLS. */
  readonly adminTlsAddress: BoundAddress | undefined
  /** Where Prometheus may ask. */
  readonly metricsAddress: BoundAddress | undefined
  /** What it is told there. */
  metrics(): string
  /** Connects an application of this process; after the start. */
  connectApplication(application: Application): ApplicationLink
  /** The same for one that speaks the drachtio protocol. */
  connectInProcess(client: InProcessClient): InProcessLink
  readonly load: Load
  /** New calls that got 503, by overload or because there were too many, since the start. */
  readonly refusedCalls: number
  /** Peers that wanted to connect and might not, since the start. */
  readonly refusedConnections: number
  /** Messages taken so far although their lines end with bare line feeds. */
  readonly withLineFeeds: number
  /**
   * The next process has the same sockets. From now on requests by UDP that begin something are dropped: they are
   * repeated, and the next process takes them.
   */
  dropNew(): void
  /** How many requests wait for their final response. */
  readonly unansweredCount: number
  /** Nothing is read or accepted any more: what arrives waits in the sockets. */
  stopReading(): void
  /** The answers of the last seconds as texts, for copies of requests that the next process reads. */
  answers(): readonly string[]
  /** Nothing happens any more. */
  silence(): void
  /** Packets for Homer since the start; undefined: there are none. */
  readonly captured: { readonly sent: number; readonly dropped: number } | undefined
  /** Reads the TLS files again; they are also watched. Bad ones are logged and change nothing. */
  reloadCertificates(): void
  /** Sizes of every table. Those of calls return to 0 when the calls are over. */
  stats(): Readonly<Record<string, number>>
  /** Closes every connection and port. Calls are not ended: that is the applications' part. */
  stop(): Promise<void>
}

/** @param machine instead of sockets and the real clock */
export const createSipServer = (options: SipServerOptions, machine?: Machine): SipServer =>
  new EmbeddedServer(options, machine ?? thisMachine)

function adminSettings({ frameLength, adminKeepAliveSeconds }: SipServerOptions): AdminOptions {
  if (adminKeepAliveSeconds === undefined) return { ...adminLimits, frameLength }
  return { ...adminLimits, frameLength, keepAliveMs: adminKeepAliveSeconds * 1_000 }
}

const silent: Log = () => undefined

const isEmergency = (uri: string): boolean => /^urn:service:sos\b/i.test(uri)

/** The part of the time since it was asked last in which the event loop had work to do. */
function measureLoop(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
}

class EmbeddedServer implements SipServer {
  readonly #options: SipServerOptions
  readonly #machine: Machine
  readonly #core: SipCore
  readonly #driver: Driver
  readonly #clients: Clients
  readonly #admin: AdminListener
  readonly #dialer: Dialer
  readonly #overload: Overload
  readonly #resolver: NextHopResolver
  readonly #opener: TransportOpener
  #capture: Capture | undefined
  readonly #transports = new Map<Listener, Transport>()
  #listeners: readonly Listener[] = []
  #adminAddress: BoundAddress | undefined
  #adminTls: AdminListener | undefined
  #adminTlsAddress: BoundAddress | undefined
  readonly #metrics = new MetricsListener(() => this.metrics())
  #metricsAddress: BoundAddress | undefined
  #startedAt = 0
  #refusedConnections = 0
  #dropsNew = false

  constructor(options: SipServerOptions, machine: Machine) {
    const { now = monotonicNow, log = silent, admit = () => true } = options
    const bytes = options.randomBytes ?? secureRandomBytes
    const token = randomTokens(bytes)
    this.#options = options
    this.#machine = machine
    this.#opener = new TransportOpener(options, log)
    this.#overload = new Overload({
      now,
      token,
      log,
      repeat: machine.repeat,
      utilization: measureLoop(),
      isStranger: (source) => options.sourceStatus?.(source) === 'stranger',
      isUrgent: (uri) => isEmergency(uri) || options.isUrgent?.(uri) === true,
      send: (text, flow) => this.#transportOf(flow)?.send(text, flow, ''),
    })
    this.#core = new SipCore({
      listeners: () => this.#listeners,
      secret: options.secret,
      sameSecret,
      seal: sealWith(bytes(32)),
      timers: { ...defaultTimers, ...options.timers },
      limits: { ...defaultLimits, ...options.limits },
      minSessionSeconds: options.minSessionSeconds ?? defaultMinSessionSeconds,
      refusesCall: (invite, source) => this.#overload.refuses(invite, source),
      routeRequest: options.routeRequest,
      screen: options.screen,
      admitInDialog: options.admitInDialog,
      readToken: options.readToken,
      outboundProxy: options.outboundProxy,
      defaultRefresher: options.defaultRefresher,
      alwaysSend180: options.alwaysSend180,
      detectsNat: options.detectsNat,
      graceMs: options.graceMs ?? defaultGraceMs,
      token,
      version: serverVersion,
      log,
    })
    const { schedule } = machine
    const driver = new Driver(this.#core, this.#ports(), { now, schedule, log, admit })
    this.#driver = driver
    this.#clients = new Clients({
      connected: (clientId, isInProcess) => driver.clientConnected(clientId, isInProcess),
      command: (clientId, command) => driver.command(clientId, command),
      handled: (clientId, transactionId) => driver.handled(clientId, transactionId),
      disconnected: (clientId) => driver.clientDisconnected(clientId),
    })
    const { frameLength } = options
    this.#admin = new AdminListener(this.#clients, adminSettings(options), log)
    this.#dialer = new Dialer(this.#clients, {
      log,
      maxConnections: maxDialled,
      maxBufferedBytes: adminLimits.maxBufferedBytes,
      frameLength,
      credentials: () => (options.tls === undefined ? undefined : this.#opener.credentials()),
    })
    this.#resolver = new NextHopResolver(
      systemDns(options.dnsServers ?? []),
      now,
      randomNumbers(options.randomBytes ?? secureRandomBytes),
      (reference, targets) => driver.resolved(reference, targets),
      options.mayReach,
    )
  }

  get listeners(): readonly Listener[] {
    return this.#listeners
  }

  get refusedCalls(): number {
    return this.#overload.refused + this.#core.traffic.refusedWhenFull
  }

  get refusedConnections(): number {
    return this.#refusedConnections
  }

  get load(): Load {
    return this.#overload
  }

  get withLineFeeds(): number {
    return this.#core.traffic.withLineFeeds
  }

  get captured() {
    return this.#capture?.figures
  }

  get adminAddress(): BoundAddress | undefined {
    return this.#adminAddress
  }

  get adminTlsAddress(): BoundAddress | undefined {
    return this.#adminTlsAddress
  }

  get metricsAddress(): BoundAddress | undefined {
    return this.#metricsAddress
  }

  metrics(): string {
    return prometheusText({
      version: serverVersion,
      startedAt: this.#startedAt,
      load: this.#overload,
      traffic: this.#core.traffic,
      dialogs: this.#core.dialogCounts(),
      callTimes: this.#core.callTimes,
      applications: this.#clients.size,
      sizes: this.#core.stats(),
    })
  }

  async start({ isHeld = false, endsStraysOf, answers = [] }: StartOptions = {}): Promise<void> {
    if (isHeld) this.#driver.hold()
    if (endsStraysOf) this.#driver.endStrays(endsStraysOf)
    const { metrics, capture, now = monotonicNow, log = silent } = this.#options
    try {
      const { schedule } = this.#machine
      if (capture) this.#capture = new Capture(capture, { now, schedule, log })
      for (const address of this.#options.listen) {
        const transport = await this.#open(address)
        this.#transports.set(transport.listener, transport)
        this.#listeners = [...this.#transports.keys()]
      }
      this.#core.saved.restoreAnswers(answers, now())
      await this.#openAdmin()
      this.#startedAt = Math.floor(now() / 1_000)
      if (metrics) this.#metricsAddress = await this.#metrics.start(metrics.host, metrics.port)
      this.#overload.start(this.#listeners)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  release(): void {
    this.#driver.release()
  }

  dropNew(): void {
    this.#dropsNew = true
  }

  get unansweredCount(): number {
    return this.#core.unansweredCount
  }

  stopReading(): void {
    for (const transport of this.#transports.values()) transport.stopReading()
  }

  answers(): readonly string[] {
    const { now = monotonicNow } = this.#options
    return this.#core.saved.answers(now())
  }

  silence(): void {
    this.#driver.stop()
  }

  connectApplication(application: Application): ApplicationLink {
    const driver = this.#driver
    return connectApplication(this.#clients, application, {
      savedDialogs: (clientId) => driver.savedDialogs(clientId),
      ping: (target, done) => driver.ping(target, done),
    })
  }

  connectInProcess(client: InProcessClient): InProcessLink {
    return connectInProcess(this.#clients, client)
  }

  reloadCertificates(): void {
    this.#opener.reloadCertificates()
  }

  stats(): Readonly<Record<string, number>> {
    let connections = 0
    for (const transport of this.#transports.values()) connections += transport.connections
    return {
      ...this.#core.stats(),
      clients: this.#clients.size,
      dialled: this.#dialer.size,
      connections,
      lookups: this.#resolver.pending,
    }
  }

  async stop(): Promise<void> {
    this.#overload.stop()
    this.#clients.disconnectAll()
    this.#dialer.stop()
    this.#driver.endOrphans()
    await Promise.all([this.#admin.stop(), this.#adminTls?.stop(), this.#metrics.stop()])
    const transports = [...this.#transports.values()]
    this.#transports.clear()
    await Promise.all(transports.map((transport) => transport.stop()))
    this.#driver.stop()
    this.#opener.stop()
    this.#capture?.stop()
  }

  #datagram(bytes: Buffer, flow: Flow): void {
    if (this.#overload.takes(bytes, flow.listener)) return
    this.#capture?.received(bytes, flow)
    this.#driver.datagram(bytes, flow)
  }

  #transportOf({ listener }: Flow): Transport | undefined {
    return this.#transports.get(listener.outside ?? listener)
  }

  #ports(): Ports {
    return {
      send: (text, flow, reference) => {
        const transport = this.#transportOf(flow)
        if (transport === undefined)
          setImmediate(() => this.#driver.sendFailed(reference, 'the listener is closed'))
        else {
          this.#capture?.sent(text, flow)
          transport.send(text, flow, reference)
        }
      },
      close: (flow) => this.#transportOf(flow)?.close(flow),
      deliver: (clientId, event) => this.#clients.deliver(clientId, event),
      disconnect: (clientId) => this.#clients.disconnect(clientId),
      dialOut: (clientId, uri) => this.#dialer.dial(clientId, uri),
      resolve: (question, reference) => this.#resolver.resolve(question, reference),
    }
  }

  async #openAdmin(): Promise<void> {
    const { admin, adminTls, log = silent } = this.#options
    if (admin) this.#adminAddress = await this.#admin.start(admin.host, admin.port)
    if (!adminTls) return
    const credentials = this.#opener.credentials()
    this.#adminTls = new AdminListener(
      this.#clients,
      adminSettings(this.#options),
      log,
      credentials,
    )
    this.#adminTlsAddress = await this.#adminTls.start(adminTls.host, adminTls.port)
  }

  #open(address: SipServerOptions['listen'][number]): Promise<Transport> {
    const callbacks: TransportCallbacks = {
      datagram: (bytes, flow) => {
        if (!this.#dropsNew || this.#core.isKnown(decodeMessage(bytes))) this.#datagram(bytes, flow)
      },
      message: (text, flow) => {
        this.#capture?.received(text, flow)
        this.#driver.message(text, flow)
      },
      sendFailed: (reference, reason) => this.#driver.sendFailed(reference, reason),
      accepts: (source) => this.#driver.accepts(source),
      sourceStatus: (source) => this.#options.sourceStatus?.(source) ?? 'proven',
      refused: () => void (this.#refusedConnections += 1),
      connectionClosed: (flow) => this.#driver.connectionClosed(flow),
    }
    return this.#machine.bind?.(address, callbacks) ?? this.#opener.open(address, callbacks)
  }
}
