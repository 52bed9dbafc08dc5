/**
 * An embedded SIP server that speaks the drachtio protocol: core, sockets and applications, joined.
 */
import { performance } from 'node:perf_hooks'
import type { SipPort } from './application.ts'
import { Capture } from './capture/capture.ts'
import { Clients } from './clients/clients.ts'
import { Dialer } from './clients/dialer.ts'
import { EmbeddedPort } from './clients/embedded-port.ts'
import { connectInProcess, type InProcessClient, type InProcessLink } from './clients/in-process.ts'
import { AdminListener, type AdminOptions } from './clients/admin-listener.ts'
import { SipCore } from './core/core.ts'
import { NextHopResolver } from './dns/next-hop-resolver.ts'
import { systemDns } from './dns/system-dns.ts'
import { Driver, type Ports } from './driver.ts'
import type { Flow, Listener } from './flow.ts'
import { decodeMessage } from '../../schema/sip/message.ts'
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
  type ServerLog,
  type SipServerOptions,
} from './options.ts'
import { MetricsListener, prometheusText } from './metrics-listener.ts'
import { type Load, Overload } from './overload.ts'
import { defaultTimers } from './transaction/machine.ts'
import type { BoundAddress } from './transport/listen.ts'
import { TransportOpener } from './transport/transport-opener.ts'
import type { Transport, TransportCallbacks } from './transport/transport.ts'

export interface StartOptions {
  /**
   * Messages from the network wait for `release`, within bounds, so that dialogs can be restored
   * before. Default: nothing waits.
   */
  readonly isHeld?: boolean
  /**
   * The process before this one has crashed: for 32 s its INVITEs are ended at callees that answer
   * them, with CANCEL, or ACK and BYE, if this is true for their source. Default: such responses
   * are dropped.
   */
  readonly endsOrphanedInvitesOf?: (source: Flow) => boolean
  /** The `answers` of the process before this one. Default: none. */
  readonly answers?: readonly string[]
}

/** @param machine instead of sockets and the real clock */
export const createSipServer = (options: SipServerOptions, machine?: Machine): SipServer =>
  new SipServer(options, machine ?? thisMachine)

function adminSettings({ frameLength, adminKeepAliveSeconds }: SipServerOptions): AdminOptions {
  if (adminKeepAliveSeconds === undefined) return { ...adminLimits, frameLength }
  return { ...adminLimits, frameLength, keepAliveMs: adminKeepAliveSeconds * 1_000 }
}

const silent: ServerLog = () => undefined

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

export class SipServer {
  readonly #options: SipServerOptions
  readonly #machine: Machine
  readonly #core: SipCore
  readonly #driver: Driver<SipCore>
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
      ...options,
      listeners: () => this.#listeners,
      sameSecret,
      seal: sealWith(bytes(32)),
      timers: { ...defaultTimers, ...options.timers },
      limits: { ...defaultLimits, ...options.limits },
      minSessionSeconds: options.minSessionSeconds ?? defaultMinSessionSeconds,
      refusesCall: (invite, source) => this.#overload.refuses(invite, source),
      isConnected: (flow) => this.#transportOf(flow)?.isConnected(flow) === true,
      graceMs: options.graceMs ?? defaultGraceMs,
      token,
      version: serverVersion,
      log,
    })
    const { schedule } = machine
    const driver = new Driver(this.#core, this.#ports(), { now, schedule, log, admit })
    this.#driver = driver
    this.#clients = new Clients({
      connected: (clientId, isInProcess) =>
        driver.run('new client', (core) => core.clientConnected(clientId, isInProcess)),
      command: (clientId, command) => driver.command(clientId, command),
      handled: (clientId, transactionId) =>
        driver.run('handled request', (core, now) => core.handled(clientId, transactionId, now)),
      disconnected: (clientId) =>
        driver.run('lost client', (core, now) => core.clientDisconnected(clientId, now)),
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
      (reference, targets) =>
        driver.run('resolved host', (core, now) => core.resolved(reference, targets, now)),
      options.mayReach,
    )
  }

  /** The listeners in the order of the options; empty before the start. */
  get listeners(): readonly Listener[] {
    return this.#listeners
  }

  /** New calls that got 503, by overload or because there were too many, since the start. */
  get refusedCalls(): number {
    return this.#overload.refused + this.#core.traffic.refusedWhenFull
  }

  /** Peers that wanted to connect and might not, since the start. */
  get refusedConnections(): number {
    return this.#refusedConnections
  }

  get load(): Load {
    return this.#overload
  }

  /** Messages taken so far although their lines end with bare line feeds. */
  get withLineFeeds(): number {
    return this.#core.traffic.withLineFeeds
  }

  /** Packets for Homer since the start; undefined: there are none. */
  get captured() {
    return this.#capture?.figures
  }

  /** Address for applications; undefined without `admin`, and before the start. */
  get adminAddress(): BoundAddress | undefined {
    return this.#adminAddress
  }

  /** The same for TLS. */
  get adminTlsAddress(): BoundAddress | undefined {
    return this.#adminTlsAddress
  }

  /** Address for Prometheus. */
  get metricsAddress(): BoundAddress | undefined {
    return this.#metricsAddress
  }

  /** The text that Prometheus gets there. */
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

  /**
   * Binds all addresses, or none.
   * @throws ListenError when one cannot be bound.
   * @throws CertificateError when a file for TLS cannot be used.
   */
  async start({
    isHeld = false,
    endsOrphanedInvitesOf,
    answers = [],
  }: StartOptions = {}): Promise<void> {
    if (isHeld) this.#driver.hold()
    if (endsOrphanedInvitesOf)
      this.#driver.run('strays', (core, now) => core.endOrphanedInvites(endsOrphanedInvitesOf, now))
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

  /**
   * Ends the hold of a start: handles the messages that have come meanwhile, and then all others.
   */
  release(): void {
    this.#driver.release()
  }

  /**
   * The next process has the same sockets. From now on requests by UDP that begin something are
   * dropped: they are repeated, and the next process takes them.
   */
  dropNew(): void {
    this.#dropsNew = true
  }

  /** How many requests wait for their final response. */
  get unansweredCount(): number {
    return this.#core.unansweredCount
  }

  /** Nothing is read or accepted any more: packets and connections wait in the sockets. */
  stopReading(): void {
    for (const transport of this.#transports.values()) transport.stopReading()
  }

  /**
   * The answers of the last seconds as texts, for copies of requests that the next process reads.
   */
  answers(): readonly string[] {
    const { now = monotonicNow } = this.#options
    return this.#core.saved.answers(now())
  }

  /** Nothing happens any more. */
  silence(): void {
    this.#driver.stop()
  }

  /** A port for call control of this process, which opens it after the start. */
  createPort(): SipPort {
    return new EmbeddedPort(this.#clients, this.#driver, this.#core.saved, () => this.#listeners)
  }

  /** Connects an application of this process that speaks the drachtio protocol; after the start. */
  connectInProcess(client: InProcessClient): InProcessLink {
    return connectInProcess(this.#clients, client)
  }

  /** Reads the TLS files again; they are also watched. Bad ones are logged and change nothing. */
  reloadCertificates(): void {
    this.#opener.reloadCertificates()
  }

  /**
   * File of our certificate, and until when it is valid (milliseconds UTC); undefined: there is
   * none.
   */
  get certificate() {
    return this.#opener.certificate
  }

  /** Sizes of every table. Those of calls return to 0 when the calls are over. */
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

  /** Closes every connection and port. Calls are not ended: that is the applications' part. */
  async stop(): Promise<void> {
    this.#overload.stop()
    this.#clients.disconnectAll()
    this.#dialer.stop()
    this.#driver.run('orphans', (core, now) => core.endOrphanedCalls(now))
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

  #sendFailed(reference: string, reason: string): void {
    this.#driver.run('failed send', (core, now) => core.sendFailed(reference, reason, now))
  }

  #transportOf({ listener }: Flow): Transport | undefined {
    return this.#transports.get(listener.outside ?? listener)
  }

  #ports(): Ports {
    return {
      send: (text, flow, reference) => {
        const transport = this.#transportOf(flow)
        if (transport === undefined)
          setImmediate(() => this.#sendFailed(reference, 'the listener is closed'))
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
      registeredFlowClosed: (flow) => this.#options.onRegisteredFlowClosed?.(flow),
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
      sendFailed: (reference, reason) => this.#sendFailed(reference, reason),
      accepts: (source) => this.#driver.accepts(source),
      sourceStatus: (source) => this.#options.sourceStatus?.(source) ?? 'proven',
      refused: () => void (this.#refusedConnections += 1),
      connectionClosed: (flow) =>
        this.#driver.run('closed connection', (core, now) => core.connectionClosed(flow, now)),
    }
    return this.#machine.bind?.(address, callbacks) ?? this.#opener.open(address, callbacks)
  }
}

/** SIP of a process, as whoever starts and stops the process sees it. */
export type SipService = Pick<
  SipServer,
  | 'answers'
  | 'captured'
  | 'certificate'
  | 'createPort'
  | 'dropNew'
  | 'listeners'
  | 'load'
  | 'refusedCalls'
  | 'refusedConnections'
  | 'release'
  | 'reloadCertificates'
  | 'silence'
  | 'start'
  | 'stats'
  | 'stop'
  | 'stopReading'
  | 'unansweredCount'
  | 'withLineFeeds'
>
