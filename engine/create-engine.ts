/**
 * Builds an engine, each part on those before it. To plug in a new part, build it in the step of
 * its subject below, and pass it to those who ask it; `Engine` starts, stops and shows it.
 */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Clocks, Every, Schedule } from '../schema/clock.ts'
import type { CallRecord } from '../schema/contracts/call-record.ts'
import type { Unserved } from '../schema/contracts/calls.ts'
import type { Charging } from '../schema/contracts/charging.ts'
import type { EventSink, OutgoingEvent } from '../schema/contracts/engine.ts'
import type { HookPort } from '../schema/contracts/hooks.ts'
import type { InstanceIdentity } from '../schema/contracts/instances.ts'
import type { Shares } from '../schema/contracts/limits.ts'
import type { Log } from '../schema/contracts/log.ts'
import { innerCheck } from '../schema/rules/gateways.ts'
import type { Storage } from '../schema/storage/storage.ts'
import type { Store } from '../schema/storage/store.ts'
import { CallTotals } from './call-totals.ts'
import { ActiveCalls } from './call/active-calls.ts'
import { ApplicationRuns } from './call/application/application-runs.ts'
import { type CallControl, startCallControl } from './call/app.ts'
import { CallDeadlines } from './call/deadlines.ts'
import type { HookSources } from './call/hooks/call-hooks.ts'
import { CallerIdentities } from './call/identity/caller-identities.ts'
import { CallerPolicies } from './call/identity/caller-policies.ts'
import { policyReader } from './call/identity/caller-policy-store.ts'
import type { SimulationDeps } from './call/simulate.ts'
import { HeaderFilter } from './call/sip-headers.ts'
import { LossNotices } from './call/loss-notices.ts'
import { MessageLog } from './call/trace/message-log.ts'
import { TransferInstances } from './call/transfer/other-instances.ts'
import { registerThrough } from './call/user-agent/carrier-register.ts'
import { probeThrough } from './call/user-agent/probe.ts'
import { UserAgent } from './call/user-agent/user-agent.ts'
import { costMicros } from './charging/pricing/price.ts'
import { type Config, probeDefaults } from './config.ts'
import { Dispatcher, type NodeChange } from './dispatcher/dispatcher.ts'
import { HostAddresses, hostResolver, type ResolveHost } from './dispatcher/host-addresses.ts'
import { loadSets, saveOperatorState } from './dispatcher/set-store.ts'
import { Engine } from './engine.ts'
import { EventLog } from './event-log.ts'
import { FloodGuard } from './flood-guard/flood-guard.ts'
import { SharedBans, type SharedBansDeps } from './flood-guard/shared-bans.ts'
import { ChainedHooks } from './hooks/chained-hooks.ts'
import { loadRoutingWebhooks } from './hooks/webhook/routing-webhook-store.ts'
import { RoutingWebhooks } from './hooks/webhook/routing-webhooks.ts'
import { createMedia } from './media/create-media.ts'
import { createQuality } from './media/quality/quality.ts'
import { createRecordings } from './media/recording/recordings.ts'
import { createRelays } from './media/relay/relay-pool.ts'
import { NodeNotes } from './node-notes.ts'
import { noteQuality } from './quality-notes.ts'
import { NumberDirectory } from './numbers/number-directory.ts'
import { numberReader } from './numbers/number-store.ts'
import { RefusedCalls } from './refused-calls.ts'
import { type Installation, PeerInstances } from './registrar/hop/peer-instances.ts'
import { PhoneHop } from './registrar/hop/phone-hop.ts'
import { Registrar, type RegistrarDeps } from './registrar/registrar.ts'
import { WrongPasswords } from './registrar/wrong-passwords.ts'
import { DialledDomains } from './routing/dialled-domains.ts'
import { recentTalks } from './routing/expected-duration-store.ts'
import { ExpectedDurations } from './routing/expected-durations.ts'
import { ownNames, ownPlacesOf } from './routing/own-places.ts'
import { loadRouting } from './routing/routing-store.ts'
import { Routing, type RoutingDeps } from './routing/routing.ts'
import { TenantNames } from './routing/tenant-names.ts'
import { TrustedSources } from './routing/trusted-sources.ts'
import { UnpricedCalls } from './routing/unpriced-calls.ts'
import { ServedSip } from './served-sip.ts'
import { simulatorOf } from './simulator.ts'
import { sipDecisions } from './sip-decisions.ts'
import { createSipService, type SipDecisions } from './sip-service.ts'
import { StateChanges, stateOfNode } from './state-changes.ts'
import { Stir } from './stir/stir.ts'
import { loadStir } from './stir/stir-store.ts'
import { StorageNotes } from './storage-notes.ts'
import { TestPhones } from './test-phones.ts'
import { Trunks } from './trunks/trunks.ts'

export interface EngineDeps {
  readonly config: Config
  readonly store: Store
  /** The disk of the journal of calls. */
  readonly disk?: Pick<Storage, 'problem'>
  /** A random number of the database. */
  readonly databaseId: string
  /**
   * Why a call that is taken now cannot be stored, or is not this instance's to take; undefined:
   * neither.
   */
  readonly whyClosed: () => Unserved | undefined
  readonly charging: Charging
  /** This one. */
  readonly instance: Pick<InstanceIdentity, 'name'>
  /** Notices between instances that share the database; absent: no other one uses it. */
  readonly notices?: (NonNullable<RegistrarDeps['notices']> & SharedBansDeps['notices']) | undefined
  /** Shares of the limits that all instances have in common; absent: no other one uses them. */
  readonly shares?: Shares | undefined
  /** The instances of the installation; absent: this process is the only one. */
  readonly installation?: Installation | undefined
  /** The clocks of what crosses the installation; absent: those of this process. */
  readonly clocks?: Clocks | undefined
  /** Prices of carriers and customers. Absent when an external OCS holds the prices. */
  readonly prices?: Pick<RoutingDeps, 'carrierPrice' | 'sales'>
  /** Returns what charging would answer. Absent when an external OCS charges. */
  readonly foresee?: SimulationDeps['foresee']
  /** The operator's file of hooks; absent: there is none. */
  readonly hooks?: HookPort | undefined
  /** Returns the payer that a call's source names. Absent when an external OCS charges. */
  readonly payerOf?: HookSources['payerOf']
  /** Milliseconds by a clock that never steps (schema/clock.ts): what is measured goes by it. */
  readonly now: () => number
  /** Milliseconds UTC by the clock of the machine: for stamps. */
  readonly wallNow: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly newUuid: () => string
  readonly schedule: Schedule
  /** Absent: what the SIP server measures has timers of its own. */
  readonly every?: Every | undefined
  /** Absent: DNS. */
  readonly resolveHost?: ResolveHost
  /** Absent: calls are recorded where there is a relay, and a place for recordings. */
  readonly canRecord?: () => boolean
  /** Takes webhook events; absent: there are none. */
  readonly webhooks?: EventSink
  /** Webhooks are told of this. Absent: there are none. */
  readonly announce?: (event: OutgoingEvent) => void
  /** Whether a webhook is told of phones that are lost; absent: none is. */
  readonly keepsLostPhones?: (() => boolean) | undefined
  /** A node's state has changed. */
  readonly onNodeChange?: (change: NodeChange) => void
  readonly log: Log
}

/** `Retry-After` when a limit is reached or the process drains. */
const RETRY_AFTER_SECONDS = 5
/** About what the messages of one take in a trace. */
const BYTES_OF_A_CALL = 16_384

export function createEngine(deps: EngineDeps): Engine {
  const base = createBase(deps)
  // All send by the SIP server, so it is there first. It asks for decisions, and calls and
  // applications end, when everything below is there: nothing runs before `Engine.start`.
  const sip = createSip(deps, base, () => decisions)
  const calls = createCalls(deps, base, (record) => {
    media.recordings?.ended(record)
    sip.testPhones.end(record.callUuid)
  })
  const routes = createRoutes(deps, base, sip, calls)
  const applications = new ApplicationRuns({
    mustAnswer: deps.config.hooks?.fallback === 'refuse',
    onEnded: (run) => control.applicationEnded(run),
  })
  const access = createAccess(deps, base, sip, { ...routes, applications })
  const media = createMediaParts(deps, base, routes, access, calls)
  const hookedTo = hookSources(deps, { ...routes, ...access }, media)
  const parts = { ...base, ...sip, ...routes, ...access, ...media, calls, applications, hookedTo }
  const control = createCallControl(deps, parts)
  const { isInner } = base.tenantNames
  const decisions: SipDecisions = sipDecisions({ ...parts, control, isInner })
  const { sourceStatus } = decisions
  const simulate = createSimulator(deps, parts)
  const { now, schedule, log } = deps
  return new Engine({ ...parts, control, simulate, sourceStatus, now, schedule, log })
}

type Base = ReturnType<typeof createBase>
type Sip = ReturnType<typeof createSip>
type Routes = ReturnType<typeof createRoutes>
type Access = ReturnType<typeof createAccess>
type MediaParts = ReturnType<typeof createMediaParts>
interface CallParts {
  readonly applications: ApplicationRuns
  readonly calls: ActiveCalls
  readonly hookedTo: HookSources
}

/** Creates what knows no other part: names, addresses, deadlines, events. */
function createBase(deps: EngineDeps) {
  const { config, store, installation, now, wallNow, schedule, log } = deps
  const served = new ServedSip()
  const listeners = () => served.listeners
  const resolve = deps.resolveHost ?? hostResolver(config.sip.dnsServers)
  const hosts = new HostAddresses(resolve, schedule)
  hosts.watch('own', ownNames(config))
  const ownPlaces = ownPlacesOf({
    config,
    listeners,
    instances: () => installation?.instances() ?? [],
    addressesOf: (host) => hosts.addressesOf(host),
  })
  const events = new EventLog(wallNow)
  return {
    served,
    hosts,
    ownPlaces,
    events,
    tenantNames: new TenantNames({ innerCheck: () => innerCheck(ownPlaces), now }),
    domains: new DialledDomains({ ...config.sip, listeners }),
    proxies: new TrustedSources(config.trustedProxies),
    peers: installation && new PeerInstances({ ...installation, now, hosts, log }),
    deadlines: new CallDeadlines({ now, schedule }),
    storage: new StorageNotes([deps.disk ?? store.storage, store.storage], events, log),
    states: new StateChanges({ store, wallNow, schedule, instance: deps.instance.name, log }),
    totals: new CallTotals(),
    durations: new ExpectedDurations(),
    recentTalks: () => recentTalks(store),
    losses: new LossNotices({ now: wallNow, log, announce: deps.announce }),
    ownedNumbers: new NumberDirectory(numberReader(store)),
    callerPolicies: new CallerPolicies(policyReader(store, (problem) => log('warn', problem))),
  }
}

/** Creates the SIP server, and what sends and receives by it. */
function createSip(deps: EngineDeps, { peers }: Base, decisions: () => SipDecisions) {
  const { config, now, schedule, log } = deps
  const server = createSipService({ ...deps, hasPeers: peers !== undefined }, decisions)
  const port = server.createPort()
  const messages = new MessageLog(now, config.traceMemoryBytes)
  const client = new UserAgent({
    port,
    log,
    onMessage: messages.add.bind(messages),
    lagMs: () => server.load.lagMs,
    sessionSeconds: config.sessionExpiresSeconds,
  })
  return { server, port, messages, client, testPhones: new TestPhones({ server, schedule, log }) }
}

function createCalls(
  { config, charging, instance, whyClosed, now, wallNow }: EngineDeps,
  { deadlines, events, durations }: Base,
  onEnded: (record: CallRecord) => void,
): ActiveCalls {
  return new ActiveCalls({
    now,
    wallNow,
    deadlines,
    charging,
    instanceName: instance.name,
    whyClosed,
    findsEndedLegs: config.hep !== undefined,
    recentCalls: Math.max(2_000, config.traceMemoryBytes / BYTES_OF_A_CALL),
    onEvent: (event) => {
      events.add(event)
      if (event.type !== 'call.ended') return
      if (event.record.direction === 'outbound') durations.add(event.record)
      onEnded(event.record)
    },
  })
}

/** Creates the parts that say where a call goes: nodes, gateways, numbers. */
function createRoutes(deps: EngineDeps, base: Base, { client }: Sip, calls: ActiveCalls) {
  const { tenantNames, callerPolicies: policies, ownedNumbers: numbers } = base
  const { now, log } = deps
  const notes = new NodeNotes(base.events, log)
  const dispatcher = createDispatcher(deps, base, { notes, client, calls })
  const trunks = createTrunks(deps, base, client)
  const routing = createRouting(deps, base, { dispatcher, trunks, calls })
  const unpriced = new UnpricedCalls({ routing, tenantNames, now, log })
  const routingWebhooks = createRoutingWebhooks(deps, base, dispatcher)
  const stir = createStir(deps, base)
  const hooks = deps.hooks ? new ChainedHooks(deps.hooks, routingWebhooks) : routingWebhooks
  const identities = new CallerIdentities({
    policies,
    numbers,
    isListed: (tenantId, number) => routing.ownsNumber(tenantId, number),
    tenantOfSet: (setId) => dispatcher.setRecord(setId)?.tenantId ?? null,
  })
  const routes = { notes, dispatcher, trunks, routing, unpriced, routingWebhooks }
  return { ...routes, stir, hooks, identities }
}

/** Fewer authorities let fewer calls pass, so a missing file is no reason to stop. */
async function readAuthorities(file: string | undefined, log: Log): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    log('error', `STIR_AUTHORITIES cannot be read: ${String(error)}`)
    return undefined
  }
}

function createStir(deps: EngineDeps, { hosts, ownPlaces }: Base): Stir {
  const { store, config, now, wallNow, schedule, log } = deps
  const { authorities, signing } = config.stir
  return new Stir({
    load: () => loadStir(store, (problem) => log('warn', problem)),
    authoritiesFile: () => readAuthorities(authorities, log),
    publicUrl: config.publicUrl,
    maxAgeSeconds: config.stir.maxAgeSeconds,
    hosts: config.stir.certificateHosts,
    signingService: signing,
    resolve: async (host) => {
      const found = (await hosts.lookUp([host]))(host)
      return found.map((address) => ({ address, family: isIP(address) }))
    },
    allowPrivate: config.stir.privateTargets === 'allow',
    isOwn: (address) => innerCheck(ownPlaces)(address),
    now: wallNow,
    steadyNow: now,
    schedule,
    log,
  })
}

function createRoutingWebhooks(
  { store, config, now, wallNow, schedule, newUuid, log }: EngineDeps,
  { hosts, ownPlaces }: Base,
  dispatcher: Dispatcher,
): RoutingWebhooks {
  return new RoutingWebhooks({
    load: () => loadRoutingWebhooks(store, (problem) => log('warn', problem)),
    setOfNode: (nodeId) => dispatcher.setOfNode(nodeId),
    watch: (names) => hosts.watch('routing webhooks', names),
    resolve: async (host) => {
      const known = hosts.addressesOf(host)
      const found = known.length > 0 ? known : (await hosts.lookUp([host]))(host)
      return found.map((address) => ({ address, family: isIP(address) }))
    },
    allowPrivate: config.webhookPrivateTargets === 'allow',
    isOwn: (address) => innerCheck(ownPlaces)(address),
    now: wallNow,
    steadyNow: now,
    schedule,
    newUuid,
    log,
  })
}

function createDispatcher(
  deps: EngineDeps,
  { hosts, states, tenantNames }: Base,
  {
    notes,
    client,
    calls,
  }: { readonly notes: NodeNotes; readonly client: UserAgent; readonly calls: ActiveCalls },
): Dispatcher {
  const { config, store, now, random, schedule, every } = deps
  const dispatcher: Dispatcher = new Dispatcher({
    loadSets: async () => tenantNames.sets(await loadSets(store)),
    saveOperatorState: (nodeId, state) => saveOperatorState(store, nodeId, state),
    now,
    random,
    schedule,
    every,
    hosts,
    sendProbe: probeThrough(client, schedule),
    lagMs: () => client.lagMs(),
    activeCalls: (nodeId) => calls.countByNode(nodeId),
    shared: deps.shares && { shares: deps.shares, schedule },
    onNodeChange: (change) => {
      notes.note(change, dispatcher)
      states.add(stateOfNode(change, dispatcher))
      deps.onNodeChange?.(change)
    },
    probeDefaults: probeDefaults(config),
  })
  return dispatcher
}

function createTrunks(
  { config, now, random, schedule, newUuid, log }: EngineDeps,
  { states }: Base,
  client: UserAgent,
): Trunks {
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
    sendProbe: probeThrough(client, schedule),
    lagMs: () => client.lagMs(),
    send: registerThrough(client, schedule),
    onStateChange: (change) => states.add(change),
  })
}

function createRouting(
  deps: EngineDeps,
  { hosts, tenantNames, ownedNumbers, durations, events, deadlines }: Base,
  {
    dispatcher,
    trunks,
    calls,
  }: { readonly dispatcher: Dispatcher; readonly trunks: Trunks; readonly calls: ActiveCalls },
): Routing {
  const { config, store, now, wallNow, random, schedule, log } = deps
  const stampOf = (time: number): number => time - now() + wallNow()
  return new Routing({
    load: async (changed) => tenantNames.routing(await loadRouting(store, changed), changed),
    trustedSources: config.trustedSources,
    edgeProxies: config.edgeProxies,
    nodeAt: (address, port) => dispatcher.nodeAt(address, port),
    defaultSetId: (tenantId) => dispatcher.defaultSetId(tenantId),
    now,
    random,
    hosts,
    findNumber: (number) => ownedNumbers.find(number),
    exitCodes: config.exitCodes,
    shared: deps.shares && { shares: deps.shares, schedule },
    activeCarrierCalls: (carrierId) => calls.countByCarrier(carrierId),
    activeAgentCalls: (agentId) => calls.countByAgent(agentId),
    ...deps.prices,
    costOf: costMicros,
    expectedSeconds: (calledNumber) => durations.of(calledNumber),
    gatewayReachability: (gatewayId) => trunks.reachability(gatewayId),
    onLoaded: (carriers) => trunks.watch(carriers),
    onProblem: (problem) => log('warn', `routing: ${problem}`),
    at: (time, act) => void deadlines.at(time, act),
    onQuality: (change, status) => noteQuality(change, status, { events, log, stampOf }),
  })
}

/** Creates the parts that say who may call: the guard against strangers, and the phones. */
function createAccess(
  deps: EngineDeps,
  base: Base,
  { server, client }: Sip,
  { routing, dispatcher, hooks, applications }: Routes & { readonly applications: ApplicationRuns },
) {
  const { store, now, schedule, log, notices } = deps
  const { peers } = base
  // Carriers, nodes, other instances, applications and trusted networks are never shut out.
  const isKnown = (address: string, port: number): boolean =>
    peers?.has(address) === true ||
    applications.isAt(address, port) ||
    routing.recognize({ address, port }).kind !== 'unknown'
  const guard = new FloodGuard({
    now,
    log,
    isInstance: (address) => peers?.isAnnounced(address) === true,
    isExempt: isKnown,
  })
  const refused = new RefusedCalls({
    store,
    now,
    schedule,
    log,
    refusedByOverload: () => server.refusedCalls,
  })
  return {
    isKnown,
    guard,
    refused,
    sharedBans: notices && new SharedBans({ store, notices, guard, now, schedule, log }),
    ...createPhones(deps, base, { client, dispatcher, guard, hooks, routing }),
    /** True: the refused call gets a record. */
    onUnknownSource: (
      source: Parameters<FloodGuard['unknownSource']>[0],
      domain?: string,
    ): boolean => {
      if (domain !== undefined) guard.unknownDomain(source, domain)
      return refused.unknownSource(guard.unknownSource(source))
    },
  }
}

interface PhoneParts {
  readonly client: UserAgent
  readonly dispatcher: Dispatcher
  readonly guard: FloodGuard
  readonly hooks: HookPort
  readonly routing: Routing
}

function createPhones(
  deps: EngineDeps,
  { events, peers }: Base,
  { client, dispatcher, guard, hooks, routing }: PhoneParts,
) {
  const { store, now, wallNow, schedule, randomBytes, log, config, clocks, installation } = deps
  const wrongPasswords = new WrongPasswords({ store, wallNow, schedule, log })
  const stampNow = clocks?.now ?? wallNow
  const hop =
    installation &&
    peers &&
    new PhoneHop({
      ...installation,
      wallNow: stampNow,
      log,
      peer: (name) => peers.find(name),
      // The registrar asks the hop, which is there before it.
      bindingsOf: (home) => registrar.bindingsOf(home),
      onToken: (address) => peers.noteToken(address),
      onRefused: (source) => void guard.unknownSource(source),
    })
  const registrar: Registrar = new Registrar({
    notices: deps.notices,
    hooks,
    instance: deps.instance.name,
    hop,
    store,
    now: clocks?.steadyNow ?? now,
    wallNow: stampNow,
    schedule,
    secret: randomBytes(32),
    guard,
    nonceSeconds: config.nonceSeconds,
    keepAlive: ({ uri, nextHop }) => client.sendOptions(uri, () => undefined, nextHop),
    isProxy: ({ address, port }, tenantId) => {
      const origin = routing.recognize({ address, port })
      if (origin.kind === 'proxy') return origin.tenantIds.includes(tenantId)
      if (origin.kind !== 'node') return origin.kind === 'trusted'
      return dispatcher.setRecord(origin.setId)?.tenantId === null
    },
    onWrongPassword: (failure) => wrongPasswords.add(failure),
    keepsLost: deps.keepsLostPhones,
    onRegistration: (phones) => events.add({ type: 'registration', ...phones }),
    log,
  })
  return { hop, registrar, wrongPasswords }
}

/** Creates the relays, and what is done with the media of calls on them. */
function createMediaParts(
  deps: EngineDeps,
  { deadlines, events, hosts }: Base,
  { dispatcher, routing }: Routes,
  { registrar }: Access,
  calls: ActiveCalls,
) {
  const relays = createRelays(deps.config.relays, { ...deps, hosts, events })
  const media = createMedia(
    {
      relays,
      calls,
      routing,
      dispatcher,
      registrar,
      // Recordings are made of the media, which ask them of each call.
      recordings: {
        mayRecord: (callUuid) => recordings?.mayRecord(callUuid) === true,
        mustRecord: (callUuid) => recordings?.mustRecord(callUuid) === true,
      },
    },
    { ...deps, deadlines, hosts },
  )
  const recordings = createRecordings({ media, relays, calls, registrar, events }, deps)
  return { relays, media, recordings }
}

/** The operator's code, and what its decisions may name. */
function hookSources(
  { payerOf, canRecord }: EngineDeps,
  { routing, dispatcher, registrar, hooks: port }: Routes & Pick<Access, 'registrar'>,
  { recordings }: MediaParts,
): HookSources {
  const records: HookSources['records'] = {
    setsNamed: (wanted) => dispatcher.setsNamed(wanted),
    carriersNamed: (wanted) => routing.carriersNamed(wanted),
    agentsNamed: (wanted) => routing.agentsNamed(wanted),
    extensionsNamed: (extension, isMeant) => registrar.extensionsNamed(extension, isMeant),
  }
  const isRecording = () => recordings !== undefined
  return { port, payerOf, records, canRecord: canRecord ?? isRecording }
}

function createCallControl(
  deps: EngineDeps,
  parts: Base & Sip & Routes & Access & MediaParts & CallParts,
): CallControl {
  const { config, now, wallNow, log } = deps
  const { calls, deadlines, dispatcher, media, onUnknownSource, peers } = parts
  const { registrar, routing, totals, trunks } = parts
  // A call that loses its media is ended by call control, which asks for the quality of calls.
  const onLost = (callUuid: string, at: number): void => control.mediaLost(callUuid, at)
  const quality = createQuality(
    { calls, media, routing, registrar },
    { config, deadlines, now, wallNow, onUnknownSource, onLost },
  )
  const control: CallControl = startCallControl({
    ...quality,
    client: parts.client,
    calls,
    charging: deps.charging,
    onEnded: (record, measured) => totals.add(record, measured),
    onLoss: parts.losses.answered,
    hooks: parts.hookedTo,
    now,
    log,
    registrar,
    voicemailOf: (tenantId) => dispatcher.voicemailOf(tenantId),
    gatewayBehind: parts.unpriced.gatewayBehind,
    domains: parts.domains,
    mediaGate: media?.gate,
    listening: media?.listening,
    onUnknownSource,
    otherInstances: transferInstances(deps, parts),
    identities: parts.identities,
    applications: parts.applications,
    stir: parts.stir,
    ownedNumbers: parts.ownedNumbers,
    onInstanceSilent: (name) => peers?.suspect(name),
    isHolderLost: ({ name, run }) => peers?.isLost(name, run) === true,
    onGatewayOutcome: (gatewayId, outcome) => trunks.reportCall(gatewayId, outcome),
    routing,
    dispatcher,
    deadlines,
    newUuid: deps.newUuid,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    nodeTimeoutMs: config.nodeTimeoutMs,
    ringTimeoutMs: config.ringTimeoutMs,
    nodeProgressTimeoutMs: config.nodeProgressTimeoutMs,
    passX: config.passedHeaders,
  })
  return control
}

/** Undefined: there are no other instances. */
function transferInstances(
  { installation, wallNow, clocks, log }: EngineDeps,
  { guard, peers, recordings }: Base & Access & MediaParts,
): TransferInstances | undefined {
  if (installation === undefined || peers === undefined) return undefined
  const { self, key } = installation
  return new TransferInstances({
    self,
    key,
    wallNow: clocks?.now ?? wallNow,
    log,
    peers,
    isRecording: (callUuid) => recordings?.isRecording(callUuid) === true,
    onRefused: (source) => void guard.unknownSource(source),
    onInstanceAt: (address) => peers.noteToken(address),
  })
}

function createSimulator(
  { config, foresee, wallNow, log }: EngineDeps,
  parts: Base & Sip & Routes & Access & CallParts,
) {
  const { calls, client, dispatcher, domains, guard, isKnown, registrar, routing } = parts
  const ownHost = () => client.ownHost
  return simulatorOf({
    hooks: parts.hookedTo,
    identities: parts.identities,
    log,
    routing,
    dispatcher,
    registrar,
    calls,
    domains,
    guard,
    isKnown,
    wallNow,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    foresee,
    filter: new HeaderFilter({ passX: config.passedHeaders, ownHost }),
    ownHost,
    stir: parts.stir,
    ownedNumbers: parts.ownedNumbers,
    voicemailOf: (tenantId) => dispatcher.voicemailOf(tenantId),
    gatewayBehind: (uri, sender) => routing.gatewayBehind(uri, sender),
  })
}
