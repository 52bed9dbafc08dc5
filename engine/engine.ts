/**
 * The data plane put together: the SIP server, call control on it, and what call control asks:
 * charging, routing, dispatcher, trunks, registrar, guard. Started, drained and stopped as one.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clocks, Schedule } from '../schema/clock.ts'
import type { InstanceIdentity } from '../schema/contracts/instances.ts'
import type { Store } from '../schema/storage/store.ts'
import { ActiveCalls } from './call/active-calls.ts'
import { type CallControl, type Restored, startCallControl } from './call/app.ts'
import { CallDeadlines } from './call/deadlines.ts'
import { ALLOW, calledOf, HeaderFilter } from './call/sip-headers.ts'
import { type DialogWay, type DialogWayDeps, mayFollow } from './call/dialog-way.ts'
import { type InDialogDeps, refusalInDialog } from './call/in-dialog-source.ts'
import { registerThrough } from './call/user-agent/carrier-register.ts'
import { drachtioService } from './call/user-agent/drachtio/drachtio-service.ts'
import type { RequestScreen } from './call/user-agent/drachtio/drachtio-servers.ts'
import { probeThrough } from './call/user-agent/probe.ts'
import { headersOf } from './call/user-agent/received-request.ts'
import { simulate, type SimulationDeps } from './call/simulate.ts'
import { TransferInstances } from './call/transfer/other-instances.ts'
import { MessageLog } from './call/trace/message-log.ts'
import { traceOf } from './call/trace/trace.ts'
import { UserAgent } from './call/user-agent/user-agent.ts'
import { CallTotals } from './call-totals.ts'
import type {
  OriginateResult,
  TestCallRequest,
  Trace,
  Unserved,
} from '../schema/contracts/calls.ts'
import type {
  EventSink,
  SimulatedSource,
  Simulation,
  SimulationRequest,
} from '../schema/contracts/engine.ts'
import type { HookPort } from '../schema/contracts/hooks.ts'
import type { Shares } from '../schema/contracts/limits.ts'
import type { Charging, SavedEntry } from '../schema/contracts/charging.ts'
import type { Log } from '../schema/contracts/log.ts'
import { type Config, probeDefaults, WrongSetting } from './config.ts'
import { Dispatcher, type NodeChange } from './dispatcher/dispatcher.ts'
import { HostAddresses, hostResolver } from './dispatcher/host-addresses.ts'
import { loadSets, saveOperatorState } from './dispatcher/set-store.ts'
import { EventLog } from './event-log.ts'
import { createQuality } from './media/quality/quality.ts'
import { FloodGuard } from './flood-guard/flood-guard.ts'
import { SharedBans, type SharedBansDeps } from './flood-guard/shared-bans.ts'
import { RefusedCalls } from './refused-calls.ts'
import { createHop, type Installation } from './registrar/hop/instance-hop.ts'
import { Registrar, type RegistrarDeps } from './registrar/registrar.ts'
import { WrongPasswords } from './registrar/wrong-passwords.ts'
import { Routing, type RoutingDeps } from './routing/routing.ts'
import { ownMachineCheck, ownNames, ownPlacesOf } from './routing/own-places.ts'
import { loadRouting } from './routing/routing-store.ts'
import { TenantNames } from './routing/tenant-names.ts'
import { innerCheck, type OwnNetwork } from '../schema/rules/gateways.ts'
import { UnpricedCalls } from './routing/unpriced-calls.ts'
import type { SipListener } from './sip-server/application.ts'
import { createSipServer, type SipPort, type SipService } from './sip-server/index.ts'
import { createMedia, type Media } from './media/create-media.ts'
import { createRecordings, type Recordings } from './media/recording/recordings.ts'
import { createRelays, type RelayPool } from './media/relay/relay-pool.ts'
import { StateChanges, stateOfNode } from './state-changes.ts'
import type { Storage } from '../schema/storage/storage.ts'
import { Trunks } from './trunks/trunks.ts'
import { DialledDomains } from './routing/dialled-domains.ts'
import { TestPhones } from './test-phones.ts'
import { TrustedSources } from './routing/trusted-sources.ts'
import { NodeNotes } from './node-notes.ts'
import { StorageNotes } from './storage-notes.ts'

export interface EngineDeps {
  readonly config: Config
  readonly store: Store
  /** The disk of the journal of calls. */
  readonly disk?: Pick<Storage, 'problem'>
  /** A random number of the database. */
  readonly databaseId: string
  /**
   * Why a call that is taken now cannot be stored, or is not this node's to take; undefined:
   * neither.
   */
  readonly whyClosed: () => Unserved | undefined
  readonly charging: Charging
  /** This one. */
  readonly node: Pick<InstanceIdentity, 'name'>
  /** Notices between instances that share the database; absent: no other one uses it. */
  readonly notices?: (NonNullable<RegistrarDeps['notices']> & SharedBansDeps['notices']) | undefined
  /** Shares of the limits that all instances have in common; absent: no other one uses them. */
  readonly shares?: Shares | undefined
  /** The nodes of the installation; absent: this process is the only one. */
  readonly installation?: Installation | undefined
  /** The clocks of what crosses the nodes of the installation; absent: those of this process. */
  readonly clocks?: Clocks | undefined
  /** Returns the price of a number. Absent when an external OCS holds the prices. */
  readonly priceOf?: RoutingDeps['carrierPrice']
  /** Returns what charging would answer. Absent when an external OCS charges. */
  readonly foresee?: SimulationDeps['foresee']
  /** The operator's own code; absent: there is none. */
  readonly hooks?: HookPort | undefined
  /** Milliseconds by a clock that never steps (schema/clock.ts): what is measured goes by it. */
  readonly now: () => number
  /** Milliseconds UTC by the clock of the machine: for stamps. */
  readonly wallNow: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly newUuid: () => string
  readonly schedule: Schedule
  /** Takes webhook events; absent: there are none. */
  readonly webhooks?: EventSink
  /** A node's state has changed. */
  readonly onNodeChange?: (change: NodeChange) => void
  readonly log: Log
}

/** `Retry-After` when a limit is reached or the process drains. */
const RETRY_AFTER_SECONDS = 5
/** How long callers may take to acknowledge a refusal of `leave`. */
const REFUSING_MS = 300
const LEAVING_POLL_MS = 20
/** About what the messages of one take in a trace. */
const BYTES_OF_A_CALL = 16_384

export class Engine {
  readonly #config: Config
  readonly #log: Log
  readonly #schedule: Schedule
  readonly #now: () => number
  readonly #server: SipService
  readonly #port: SipPort
  readonly #client: UserAgent
  readonly #messages: MessageLog
  readonly #deadlines: CallDeadlines
  readonly #control: CallControl
  readonly #hosts: HostAddresses
  readonly #unpriced: UnpricedCalls
  readonly #tenantNames: TenantNames
  readonly #domains: DialledDomains
  readonly #foresee: EngineDeps['foresee']
  /** Absent without other nodes. */
  readonly #others: ReturnType<typeof createHop> | undefined
  readonly #wallNow: () => number
  readonly #nodes: NodeNotes
  readonly #states: StateChanges
  readonly #wrongPasswords: WrongPasswords
  readonly #refused: RefusedCalls
  readonly #testPhones: TestPhones
  /** Proxies in front of WebSockets, which speak for many. */
  readonly #proxies: TrustedSources
  #isReady = false

  /** Counts all calls since the start. */
  readonly totals = new CallTotals()
  readonly calls: ActiveCalls
  readonly events: EventLog
  readonly storage: StorageNotes
  /** Absent without `RTPENGINE`. */
  readonly relays: RelayPool | undefined
  /** Absent without relays. */
  readonly media: Media | undefined
  /** Absent without relays, or without places for files. */
  readonly recordings: Recordings | undefined
  /** Addresses of this installation. */
  readonly ownPlaces: OwnNetwork
  readonly dispatcher: Dispatcher
  readonly routing: Routing
  readonly trunks: Trunks
  readonly registrar: Registrar
  readonly guard: FloodGuard
  /** Absent without other nodes. */
  readonly sharedBans: SharedBans | undefined

  constructor(deps: EngineDeps) {
    const { config, store, now, wallNow, schedule, log } = deps
    this.#config = config
    this.#log = log
    this.#schedule = schedule
    this.#tenantNames = new TenantNames({ innerCheck: () => innerCheck(this.ownPlaces), now })
    const tenantNames = this.#tenantNames
    this.#unpriced = new UnpricedCalls({ routing: () => this.routing, tenantNames, now, log })
    this.#domains = new DialledDomains({ ...config.sip, listeners: () => this.listeners })
    this.#foresee = deps.foresee
    this.#wallNow = wallNow
    this.#now = now
    this.#hosts = new HostAddresses(hostResolver(config.sip.dnsServers), schedule)
    const { installation } = deps
    this.#hosts.watch('own', ownNames(config))
    this.ownPlaces = ownPlacesOf({
      config,
      listeners: () => this.listeners,
      nodes: () => installation?.nodes() ?? [],
      addressesOf: (host) => this.#hosts.addressesOf(host),
    })
    if (installation !== undefined)
      this.#others = createHop(this, installation, {
        now,
        wallNow: deps.clocks?.now ?? wallNow,
        log,
        hosts: this.#hosts,
      })
    this.#server = this.#createServer(deps)
    this.#port = this.#server.createPort()
    this.#testPhones = new TestPhones({ server: this.#server, schedule, log })
    this.#messages = new MessageLog(now, config.traceMemoryBytes)
    const lagMs = (): number => this.#server.load.lagMs
    const sessionSeconds = config.sessionExpiresSeconds
    const onMessage = this.#messages.add.bind(this.#messages)
    this.#client = new UserAgent({ port: this.#port, log, onMessage, lagMs, sessionSeconds })
    this.#deadlines = new CallDeadlines({ now, schedule })
    this.events = new EventLog(wallNow)
    this.#nodes = new NodeNotes(this.events, log)
    this.#states = new StateChanges({ ...deps, node: deps.node.name })
    this.#wrongPasswords = new WrongPasswords(deps)
    this.storage = new StorageNotes([deps.disk ?? store.storage, store.storage], this.events, log)
    this.relays = createRelays(config.relays, { ...deps, hosts: this.#hosts, events: this.events })
    const isNode = (address: string): boolean => this.#others?.peers.isAnnounced(address) === true
    this.guard = new FloodGuard({
      now,
      log,
      isNode,
      isExempt: (...source) => this.#isKnown(...source),
    })
    const { guard } = this
    this.sharedBans =
      deps.notices && new SharedBans({ store, notices: deps.notices, guard, now, schedule, log })
    this.#proxies = new TrustedSources(config.trustedProxies)
    this.#refused = new RefusedCalls({
      store,
      now,
      schedule,
      log,
      refusedByOverload: () => this.#server.refusedCalls,
    })
    this.registrar = this.#createRegistrar(deps)
    this.calls = this.#createCalls(deps)
    this.media = createMedia(this, { ...deps, deadlines: this.#deadlines, hosts: this.#hosts })
    this.recordings = createRecordings(this, deps)
    this.dispatcher = this.#createDispatcher(deps)
    this.trunks = this.#createTrunks(deps)
    this.routing = this.#createRouting(deps)
    this.#control = this.#startCallControl(deps)
  }

  /**
   * Calls of the last run (`saved`) go on before the first packet is handled. `answers`: the last
   * ones that it has given.
   *
   * @throws {ListenError} an address cannot be bound; nothing is bound then.
   * @throws {CertificateError} a file for TLS cannot be used.
   * @throws {WrongSetting} the server of `DRACHTIO_URL` does not let us in.
   */
  async start(
    saved: readonly SavedEntry[] = [],
    answers: readonly string[] = [],
  ): Promise<Restored> {
    await this.#server.start({
      isHeld: true,
      answers,
      // Phones have registered: their addresses are proven.
      endsOrphanedInvitesOf: ({ address, port }) =>
        this.#sourceStatusOf(address, port) !== 'stranger',
    })
    this.relays?.start()
    await this.media?.start()
    const connected = await this.#client.connect()
    if (connected.kind === 'refused') throw new WrongSetting(connected.reason)
    const restored = this.#control.restore(saved)
    this.routing.noteCalls()
    this.dispatcher.noteCalls()
    this.#server.release()
    this.dispatcher.start()
    this.trunks.start()
    this.#refused.start()
    this.#isReady = true
    this.#log('info', 'SIP is served', { listeners: this.listeners, server: connected.version })
    return restored
  }

  /**
   * No other process of this installation has calls any more: what the last one has left at relays
   * and on disks is finished.
   */
  finishLast(): void {
    this.media?.deleteOrphans()
    void this.recordings?.resume()
  }

  /** Takes no new call; resolves when the live ones are over, which is soon after `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    this.#log('info', 'draining', { calls: this.calls.size })
    await this.calls.drain(deadlineMs)
  }

  /**
   * The process ends, and the next one has its sockets: answered calls go on there, as the journal
   * has them. What is being set up comes to its end within `boundMs`, or is refused. From then on
   * what arrives waits in the sockets.
   *
   * @returns the answers of the last seconds, for `start` of the next process.
   */
  async leave(boundMs: number): Promise<readonly string[]> {
    const { calls } = this
    this.dispatcher.stop()
    this.trunks.leave()
    this.#server.dropNew()
    this.#log('info', 'live calls are left for the next process', { calls: calls.size })
    await this.#untilAnswered(boundMs)
    calls.stopUnanswered()
    await this.#untilAnswered(REFUSING_MS)
    this.#server.stopReading()
    this.#control.saveAll()
    const answers = this.#server.answers()
    this.leaveCalls()
    return answers
  }

  /** Until each call can be continued by another process, or the time is up. */
  #untilAnswered(boundMs: number): Promise<void> {
    const { calls } = this
    const deadline = this.#now() + boundMs
    return new Promise((resolve) => {
      const poll = (): void => {
        // A call that is being authorized is an INVITE, and no call yet.
        const waiting = calls.unansweredCount + this.#server.unansweredCount
        const isSaved = waiting === 0 && this.#control.saveAll().length === 0
        if (isSaved || this.#now() >= deadline) resolve()
        else this.#schedule(poll, LEAVING_POLL_MS)
      }
      poll()
    })
  }

  /** Its calls go on in the next process, and until then as the journal has them. */
  leaveCalls(): void {
    this.#deadlines.stop()
    this.#server.silence()
  }

  async stop(): Promise<void> {
    this.#isReady = false
    this.dispatcher.stop()
    await this.trunks.stop()
    await this.media?.stop()
    await this.recordings?.stop()
    this.relays?.stop()
    this.#hosts.stop()
    this.sharedBans?.stop()
    this.#deadlines.stop()
    await this.registrar.stop()
    await this.#refused.stop()
    await this.#states.stop()
    await this.#wrongPasswords.stop()
    await this.#testPhones.stop()
    this.#client.disconnect()
    await this.#server.stop()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** Where SIP is served, once started. */
  get listeners(): readonly SipListener[] {
    return this.#isReady ? this.#port.listeners : []
  }

  /**
   * Where other nodes reach SIP of this one, once started: with the address that is shown where all
   * are bound.
   */
  get reachedAt(): readonly SipListener[] {
    const shown = this.#isReady ? this.#server.listeners : []
    return shown.map(({ protocol, address, port, advertisedHost }) => {
      const isAny = /^[0:.]+$/.test(address)
      return { protocol, host: isAny ? advertisedHost : address, port }
    })
  }

  /** Reads the database; before `start`. */
  async load(): Promise<void> {
    await this.dispatcher.reload()
    await this.routing.reload()
    await this.registrar.load()
    await this.sharedBans?.reload()
  }

  /** Reads what another process, or the API, wrote to the database; live calls are not touched. */
  async reload(): Promise<void> {
    await this.dispatcher.reload()
    await this.routing.reload()
    await this.registrar.reload()
  }

  /** Reads the certificates of `tls` and `wss` again, for new connections. */
  reloadCertificates(): void {
    this.#server.reloadCertificates()
  }

  /** Our certificate for `tls` and `wss`; undefined: there is none. */
  get certificate() {
    return this.#server.certificate
  }

  /** Click-to-call. Resolves before any phone rings. */
  readonly originate: CallControl['originate'] = (request) => this.#control.originate(request)

  /** A call from a phone of our own. Resolves before that is picked up. */
  readonly placeTestCall = (request: TestCallRequest): Promise<OriginateResult> =>
    this.#testPhones.place((phoneUri) => this.#control.placeTestCall(request, phoneUri))

  /** Blind transfer. Resolves before any phone rings. */
  readonly transfer: CallControl['transfer'] = (request) => this.#control.transfer(request)

  /** Connects a supervisor to a live call. Returns before any phone rings. */
  readonly spy: CallControl['spy'] = (request) => this.#control.spy(request)

  /**
   * Tells what would happen to a call now. Nothing changes. Undefined: the source does not exist,
   * or may not call.
   */
  simulate(request: SimulationRequest): Simulation | undefined {
    const { passedHeaders: passX } = this.#config
    const simulated = simulate(request, {
      routing: this.routing,
      dispatcher: this.dispatcher,
      registrar: this.registrar,
      calls: this.calls,
      domains: this.#domains,
      wallNow: this.#wallNow,
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      foresee: this.#foresee,
      filter: new HeaderFilter({ passX, ownHost: () => this.#client.ownHost }),
      ownHost: () => this.#client.ownHost,
      voicemailOf: (tenantId) => this.dispatcher.voicemailOf(tenantId),
      gatewayBehind: (...hop) => this.routing.gatewayBehind(...hop),
    })
    return simulated && this.#isBanned(request.source, simulated)
      ? { ...simulated, verdict: { kind: 'dropped', code: 'banned' } }
      : simulated
  }

  /**
   * An extension is banned when an operator has banned every address from which its phones have
   * registered.
   */
  #isBanned(source: SimulatedSource, { origin }: Pick<Simulation, 'origin'>): boolean {
    if (source.kind === 'address')
      return origin.kind === 'unknown' && this.guard.isBanned(source.address)
    if (source.kind !== 'extension') return false
    const phones = this.registrar.bindingsOf(source)
    return (
      phones.length > 0 &&
      phones.every(
        ({ source: { address, port } }) =>
          !this.#isKnown(address, port) && this.guard.isBannedByOperator(address),
      )
    )
  }

  /**
   * The trace of a live call, or of one that ended a moment ago; undefined: there is no trace of
   * it.
   */
  trace(callUuid: string): Promise<Trace | undefined> {
    const pause = (): Promise<void> => nextTurn()
    return traceOf(callUuid, { calls: this.calls, messages: this.#messages, pause })
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    return {
      active_calls: this.calls.size,
      ...this.totals.snapshot(),
      ...this.#nodes.telemetry(this.dispatcher),
      unpriced_gateway_refusals_total: this.#unpriced.total,
      ...this.recordings?.telemetry(),
      ...this.media?.digits.telemetry(),
      ...this.trunks.telemetry(),
      ...this.registrar.telemetry(),
      ...this.#others?.hop.telemetry(),
      ...this.guard.telemetry(),
      ...this.#refused.telemetry(),
      deadlines: this.#deadlines.size,
      ...this.storage.telemetry(),
      calls_without_record_total: this.calls.unstored.withoutRecord,
      messages_delivered_total: this.#control.messages.delivered,
      messages_refused_total: this.#control.messages.refused,
      ...prefixed('srf', this.#client.stats()),
      ...sipFigures(this.#server),
    }
  }

  #createCalls({ config, now, wallNow, ...deps }: EngineDeps): ActiveCalls {
    return new ActiveCalls({
      now,
      wallNow,
      deadlines: this.#deadlines,
      charging: deps.charging,
      nodeName: deps.node.name,
      whyClosed: deps.whyClosed,
      findsEndedLegs: config.hep !== undefined,
      recentCalls: Math.max(2_000, config.traceMemoryBytes / BYTES_OF_A_CALL),
      onEvent: (event) => {
        this.events.add(event)
        if (event.type !== 'call.ended') return
        this.recordings?.ended(event.record)
        this.#testPhones.end(event.record.callUuid)
      },
    })
  }

  /** The only place that knows whether SIP is served by this process or by drachtio-servers. */
  #createServer(deps: EngineDeps): SipService {
    const { servers } = deps.config.drachtio
    if (servers === undefined) return this.#createEmbeddedServer(deps)
    const { schedule, now, log, newUuid: newToken } = deps
    // Ours asks before it decodes anything.
    const admit: RequestScreen = (...request) => this.guard.admitRequest(...request)
    return drachtioService({ servers, schedule, now, log, newToken, admit })
  }

  #createEmbeddedServer({ config, wallNow, randomBytes, log }: EngineDeps): SipService {
    const { listen, secret } = config.drachtio
    const { advertisedHost, tls, webSocketOrigins: origins, dnsServers } = config.sip
    const { sessionExpiresSeconds: sessionSeconds } = config
    return createSipServer({
      listen: config.sip.listen,
      webSocket: { origins },
      secret,
      randomBytes,
      log,
      admit: ({ listener: { protocol }, address, port }, packet) =>
        this.guard.admit({ protocol, address, port }, packet),
      sourceStatus: (source) => this.#sourceStatusOf(source.address, source.port),
      connectionsPerAddress: config.sip.connectionsPerAddress,
      isUrgent: (uri) => this.routing.isEmergencyNumber(calledOf(uri).number),
      allow: ALLOW,
      mayReach: this.#unpriced.mayReach,
      // The second of two targets of a name has its turn before the call moves to another
      // candidate.
      timers: { inviteSilenceMs: config.nodeTimeoutMs / 2 },
      onRefusedInvite: (invite) =>
        this.#control.inviteRefused({ ...invite, headers: headersOf(invite) }),
      onRegisteredFlowClosed: ({ listener: { protocol }, address, port }) =>
        this.registrar.connectionClosed({ protocol, address, port }),
      readToken: this.#others && ((request) => this.#others?.hop.read(request)),
      admitInDialog: (request, dialog) => refusalInDialog(request, dialog, this.#inDialogDeps),
      mayFollow: (way) => mayFollow(way, this.#dialogWayDeps),
      // The settings do not allow less than the RFC's 90 s; a test does.
      ...(sessionSeconds > 0 ? { minSessionSeconds: Math.min(90, sessionSeconds) } : {}),
      ...(advertisedHost === undefined ? {} : { advertisedHost }),
      ...(dnsServers === undefined ? {} : { dnsServers }),
      ...(tls === undefined ? {} : { tls }),
      ...(listen === undefined ? {} : { admin: listen }),
      capture: config.hep && {
        ...config.hep,
        correlationOf: (callId) => this.calls.uuidOf(callId),
        now: wallNow,
      },
    })
  }

  get #inDialogDeps(): InDialogDeps {
    return {
      calls: this.calls,
      routing: this.routing,
      registrar: this.registrar,
      isNode: (address) => this.#others?.peers.has(address) === true,
      onRefused: ({ protocol, sourceAddress: address, sourcePort: port, method }, callUuid) =>
        this.guard.refusedInCall({ protocol, address, port }, method, callUuid),
    }
  }

  get #dialogWayDeps(): DialogWayDeps {
    return {
      calls: this.calls,
      routing: this.routing,
      isNode: (address) => this.#others?.peers.has(address) === true,
      isInner: this.#tenantNames.isInner,
      isOwnMachine: (address) => ownMachineCheck()(address),
      tenantOfSet: (setId) => this.dispatcher.setRecord(setId)?.tenantId ?? null,
      onRefused: ({ routes: [to], target, ...party }: DialogWay, callUuid) =>
        this.guard.wayNotFollowed(party, to ?? target, callUuid),
    }
  }

  /** True: the refused call gets a record. */
  readonly #onUnknownSource = (
    source: Parameters<FloodGuard['unknownSource']>[0],
    domain?: string,
  ): boolean => {
    if (domain !== undefined) this.guard.unknownDomain(source, domain)
    return this.#refused.unknownSource(this.guard.unknownSource(source))
  }

  #createDispatcher(deps: EngineDeps): Dispatcher {
    const { config, store, now, random, schedule } = deps
    return new Dispatcher({
      loadSets: async () => this.#tenantNames.sets(await loadSets(store)),
      saveOperatorState: (nodeId, state) => saveOperatorState(store, nodeId, state),
      now,
      random,
      schedule,
      hosts: this.#hosts,
      sendProbe: probeThrough(this.#client, schedule),
      lagMs: () => this.#client.lagMs(),
      activeCalls: (nodeId) => this.calls.countByNode(nodeId),
      shared: deps.shares && { shares: deps.shares, schedule },
      onNodeChange: (change) => {
        this.#nodes.note(change, this.dispatcher)
        this.#states.add(stateOfNode(change, this.dispatcher))
        deps.onNodeChange?.(change)
      },
      probeDefaults: probeDefaults(config),
    })
  }

  #createRouting(deps: EngineDeps): Routing {
    const { config, store, now, random, schedule, log } = deps
    return new Routing({
      load: async (changed) =>
        this.#tenantNames.routing(await loadRouting(store, changed), changed),
      trustedSources: config.trustedSources,
      edgeProxies: config.edgeProxies,
      nodeAt: (address, port) => this.dispatcher.nodeAt(address, port),
      defaultSetId: (tenantId) => this.dispatcher.defaultSetId(tenantId),
      now,
      random,
      hosts: this.#hosts,
      exitCodes: config.exitCodes,
      shared: deps.shares && { shares: deps.shares, schedule },
      activeCarrierCalls: (carrierId) => this.calls.countByCarrier(carrierId),
      activeAgentCalls: (agentId) => this.calls.countByAgent(agentId),
      carrierPrice: deps.priceOf ?? (() => undefined),
      gatewayReachability: (gatewayId) => this.trunks.reachability(gatewayId),
      onLoaded: (carriers) => this.trunks.watch(carriers),
      onProblem: (problem) => log('warn', `routing: ${problem}`),
    })
  }

  #startCallControl(deps: EngineDeps): CallControl {
    const { config, now, log } = deps
    return startCallControl({
      ...createQuality(this, {
        ...deps,
        deadlines: this.#deadlines,
        onUnknownSource: this.#onUnknownSource,
        onLost: (callUuid, at) => this.#control.mediaLost(callUuid, at),
      }),
      client: this.#client,
      calls: this.calls,
      charging: deps.charging,
      onEnded: (record, quality) => this.totals.add(record, quality),
      now,
      log,
      registrar: this.registrar,
      voicemailOf: (tenantId) => this.dispatcher.voicemailOf(tenantId),
      gatewayBehind: this.#unpriced.gatewayBehind,
      domains: this.#domains,
      mediaGate: this.media?.gate,
      listening: this.media?.listening,
      onUnknownSource: this.#onUnknownSource,
      otherInstances: this.#transfers(deps),
      onInstanceSilent: (name) => this.#others?.peers.suspect(name),
      isHolderLost: ({ name, run }) => this.#others?.peers.isLost(name, run) === true,
      onGatewayOutcome: (gatewayId, outcome) => this.trunks.reportCall(gatewayId, outcome),
      routing: this.routing,
      dispatcher: this.dispatcher,
      deadlines: this.#deadlines,
      newUuid: deps.newUuid,
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      nodeTimeoutMs: config.nodeTimeoutMs,
      ringTimeoutMs: config.ringTimeoutMs,
      nodeProgressTimeoutMs: config.nodeProgressTimeoutMs,
      passX: config.passedHeaders,
    })
  }

  #createTrunks({ config, now, random, schedule, newUuid, log }: EngineDeps): Trunks {
    const { gatewayIntervalMs: intervalMs, failures, successes } = config.probe
    return new Trunks({
      now,
      random,
      schedule,
      log,
      newCallId: newUuid,
      intervalMs,
      failuresToProbing: failures,
      successesToActive: successes,
      sendProbe: probeThrough(this.#client, schedule),
      lagMs: () => this.#client.lagMs(),
      send: registerThrough(this.#client, schedule),
      onStateChange: (change) => this.#states.add(change),
    })
  }

  #createRegistrar(deps: EngineDeps): Registrar {
    const { store, wallNow, schedule, randomBytes, log, config, notices, clocks } = deps
    return new Registrar({
      notices,
      node: deps.node.name,
      hop: this.#others?.hop,
      store,
      now: clocks?.steadyNow ?? deps.now,
      wallNow: clocks?.now ?? wallNow,
      schedule,
      secret: randomBytes(32),
      guard: this.guard,
      nonceSeconds: config.nonceSeconds,
      keepAlive: ({ uri, nextHop }) => this.#client.sendOptions(uri, () => undefined, nextHop),
      isProxy: ({ address, port }, tenantId) => {
        const origin = this.routing.recognize({ address, port })
        if (origin.kind === 'proxy') return origin.tenantIds.includes(tenantId)
        if (origin.kind !== 'node') return origin.kind === 'trusted'
        return this.dispatcher.setRecord(origin.setId)?.tenantId === null
      },
      onWrongPassword: (failure) => this.#wrongPasswords.add(failure),
      onRegistration: (phones) => this.events.add({ type: 'registration', ...phones }),
      log,
    })
  }

  #transfers({ installation, wallNow, clocks, log }: EngineDeps): TransferInstances | undefined {
    if (installation === undefined || this.#others === undefined) return undefined
    const { self, key } = installation
    return new TransferInstances({
      self,
      key,
      wallNow: clocks?.now ?? wallNow,
      log,
      peers: this.#others.peers,
      isRecording: (callUuid) => this.recordings?.isRecording(callUuid) === true,
      onRefused: (source) => void this.guard.unknownSource(source),
      onInstanceAt: (address) => this.#others?.peers.noteToken(address),
    })
  }

  /** Carriers, nodes of both kinds and trusted networks are never shut out. */
  #isKnown(address: string, port: number): boolean {
    const isOther = this.#others?.peers.has(address) === true
    return isOther || this.routing.recognize({ address, port }).kind !== 'unknown'
  }

  #sourceStatusOf(address: string, port: number): 'known' | 'proven' | 'stranger' {
    if (this.#isKnown(address, port) || this.#proxies.has(address)) return 'known'
    return this.guard.isProven(address) ? 'proven' : 'stranger'
  }
}

function sipFigures(server: SipService): Readonly<Record<string, number>> {
  const { lagMs, share } = server.load
  return {
    ...prefixed('sip', server.stats()),
    sip_connections_refused_total: server.refusedConnections,
    sip_refused_by_overload_total: server.refusedCalls,
    sip_bare_line_feeds_total: server.withLineFeeds,
    ...(server.captured && {
      hep_packets_total: server.captured.sent,
      hep_packets_dropped_total: server.captured.dropped,
    }),
    sip_lag_seconds: lagMs / 1_000,
    sip_admitted_ratio: share,
  }
}

const prefixed = (prefix: string, values: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value]))
