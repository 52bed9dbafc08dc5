/**
 * Call control on the embedded server, with scripted peers as callers and nodes, on a network and a
 * clock in memory. Routing, dispatcher and charging are answers that a test sets; time stands until
 * a test moves it. Only applications and drachtio servers by TCP need sockets: then SIP runs on
 * sockets, too, and its timers by the real clock.
 */
import type { Log } from '../../schema/contracts/log.ts'
import { expect } from 'vitest'
import { ApplicationRuns } from '../../engine/call/application/application-runs.ts'
import { ActiveCalls, type CallProgress } from '../../engine/call/active-calls.ts'
import { startCallControl } from '../../engine/call/app.ts'
import { mayFollow } from '../../engine/call/dialog-way.ts'
import { createQuality } from '../../engine/media/quality/quality.ts'
import { CallDeadlines } from '../../engine/call/deadlines.ts'
import { ALLOW } from '../../engine/call/sip-headers.ts'
import { headersOf } from '../../engine/call/user-agent/received-request.ts'
import { UserAgent } from '../../engine/call/user-agent/user-agent.ts'
import { MessageLog } from '../../engine/call/trace/message-log.ts'
import type {
  AuthorizationRequest,
  GrantExtension,
  Quality,
  RevokedCall,
  Verdict,
} from '../../schema/contracts/charging.ts'
import type { Candidate } from '../../engine/dispatcher/destination-set.ts'
import type { ContactTarget } from '../../engine/registrar/bindings.ts'
import type { Caller, PhoneAnswer } from '../../engine/registrar/registrar.ts'
import type { ExtensionRecord } from '../../engine/registrar/extension-directory.ts'
import type { AgentDecision } from '../../engine/routing/agents.ts'
import type { Origin, OutboundDecision, Routing } from '../../engine/routing/routing.ts'
import type { InboundTarget } from '../../engine/routing/routing-records.ts'
import { createSipServer } from '../../engine/sip-server/index.ts'
import type { CallCost, OpenCall, CallRecord } from '../../schema/contracts/call-record.ts'
import type { BoughtPrice } from '../../schema/contracts/tariff.ts'
import { sampleSet } from '../engine/dispatcher/samples.ts'
import { type CallRigOptions, dialled } from './call-rig-options.ts'
import { drachtioPort, portWraps, socketWorld, type World } from './call-world.ts'
import { ofCarriers } from './gateway.ts'
import { ManualTime } from './manual-time.ts'
import { type Leg, type PeerMessage, sdp, SipPeer } from './sip-peer.ts'
import { fastTimers } from './sip-rig.ts'
import { VirtualWorld } from './virtual-world.ts'

export const startedAt = Date.UTC(2026, 0, 1)

export const granted = (grantedSeconds: number): Verdict => ({
  kind: 'granted',
  grantedSeconds,
  account: {
    customerId: 7,
    tenantId: 3,
    ratePrefix: '1',
    currency: 'USD',
    isUnauthorizedByOcs: false,
  },
})

export async function startCallRig(options: CallRigOptions = {}) {
  const {
    app = 'in process',
    servers,
    withSipTimers = false,
    withTcp,
    registrar,
    sessionSeconds = 1_800,
    passX = [],
    after,
    canResume = true,
    ways,
    media: mediaOf,
  } = options
  const time = (after ?? options.beside)?.time ?? new ManualTime(startedAt)
  const hasSockets = app === 'tcp' || servers !== undefined || withTcp === true
  const world: World =
    (after ?? options.beside)?.world ?? (hasSockets ? socketWorld(time) : new VirtualWorld(time))
  const { machine, kill } = world.process?.() ?? {}
  const [before] = after?.server.listeners ?? []
  const address = { host: '127.0.0.1', port: before?.port ?? 0 }
  const server = createSipServer(
    {
      listen: [
        { protocol: 'udp', ...address },
        ...(withTcp === true ? [{ protocol: 'tcp', ...address } as const] : []),
      ],
      secret: 'cymru',
      readToken: options.readToken,
      mayFollow: ways && ((way) => mayFollow(way, { ...ways, calls })),
      allow: ALLOW,
      onRefusedInvite: (invite) => control.inviteRefused({ ...invite, headers: headersOf(invite) }),
      onRegisteredFlowClosed: ({ listener: { protocol }, address, port }) =>
        registrar?.connectionClosed({ protocol, address, port }),
      dnsServers: options.dnsServers ?? [],
      ...(hasSockets
        ? { admin: address, timers: withSipTimers ? fastTimers : {} }
        : { now: time.now }),
    },
    machine,
  )
  await server.start()
  const [listener] = server.listeners
  if (!listener) throw new Error('the server has no listener')

  const asked: AuthorizationRequest[] = []
  const opened: OpenCall[] = [...(after?.opened ?? [])]
  const alive: string[][] = []
  let aliveAt = time.now()
  const records: CallRecord[] = []
  const events: CallProgress[] = []
  const outcomes: [number, string][] = []
  const measured: unknown[][] = []
  const strangers: string[] = []
  const silent: string[] = []
  /** The calls that go on, as the journal has them; after a tab what has changed since. */
  const saved = new Map<string, string>(after?.saved)
  const abandoned: string[] = []
  const unsafe: (() => void)[] = []
  const faults: unknown[] = []
  const warnings: unknown[] = []
  /** The answers of the ports; a test may change it at any time. */
  const answers = {
    authorize: (): Promise<Verdict> => Promise.resolve(granted(60)),
    extend: (): Promise<GrantExtension> => Promise.resolve({ kind: 'denied', code: 'limit' }),
    origin: { kind: 'trusted' } as Origin,
    /** Calls that may not go on at their next sign of life. */
    revoked: [] as RevokedCall[],
    outbound: { kind: 'none' } as OutboundDecision,
    /** Instead of `outbound`, where it depends on the number. */
    outboundOf: undefined as ((calledNumber: string) => OutboundDecision) | undefined,
    emergencyNumber: undefined as string | undefined,
    candidates: [] as Candidate[],
    isAtCapacity: false,
    admitsCarrier: true,
    boughtPrice: undefined as BoughtPrice | undefined,
    redirected: (() => 'unknown_gateway') as Routing['redirected'],
    fullNodes: new Set<number>(),
    inbound: { kind: 'set', setId: 1 } as InboundTarget,
    caller: { kind: 'stranger' } as Caller,
    /** The extensions by `number@domain`. */
    extensions: new Map<string, ExtensionRecord>(),
    contacts: new Map<string, ContactTarget[]>(),
    /** Whether the journal has taken a call that is answered. */
    journalled: (): Promise<boolean> => Promise.resolve(true),
    unserved: undefined as ActiveCalls['unserved'],
    /** Whether the end of a call is in the journal at once, or when a test says so (`unsafe`). */
    endIsSafe: true,
    /** When a record is stored. */
    stored: (): Promise<CallCost | undefined> => Promise.resolve(undefined),
    voicemail: undefined as string | undefined,
    /** The spy URI of every set. */
    spyUri: null as string | null,
    agent: undefined as AgentDecision | undefined,
    /** Whether a call of an unknown source gets a record. */
    isSampled: true,
    /** How long what has arrived waits to be read. */
    lagMs: 0,
    /** Whether an outbound route takes the number. */
    knowsNumber: false,
    /** Domains that are not ours, and those of them that may be called. */
    foreign: [] as readonly string[],
    allowed: [] as readonly string[],
    /** The carrier behind a next hop. */
    gatewayBehind: (_uri: string): string | undefined => undefined,
    registered: { status: 403, reason: 'Forbidden', headers: {} } as PhoneAnswer,
  }

  const messages = new MessageLog(time.now, 1_048_576)
  const log: Log = (level, message, fields) => {
    if (level === 'error') faults.push({ message, ...fields })
  }
  const { host, port } = server.adminAddress ?? { host: '', port: 0 }
  const elsewhere = servers ?? (app === 'tcp' ? [{ host, port, secret: 'cymru' }] : undefined)
  const client = new UserAgent({
    port: elsewhere
      ? drachtioPort(elsewhere, time, log)
      : portWraps[app === 'tcp' ? 'in process' : app](server.createPort(), world),
    log,
    onMessage: (...message) => {
      world.moved()
      messages.add(...message)
    },
    lagMs: () => answers.lagMs,
    sessionSeconds,
  })
  const { schedule = time.schedule } = machine ?? {}
  const deadlines = new CallDeadlines({ now: time.now, schedule })
  const charging = {
    authorize: (request: AuthorizationRequest) => {
      asked.push(request)
      return answers.authorize()
    },
    extend: () => answers.extend(),
    answered: (call: OpenCall, state?: string) => {
      opened.push(structuredClone(call))
      if (state !== undefined) saved.set(call.callUuid, state)
      return answers.journalled()
    },
    changed: (callUuid: string, state: string, isChange?: true) => {
      const [first] = saved.get(callUuid)?.split('\t') ?? []
      saved.set(callUuid, isChange === true ? `${first}\t${state}` : state)
    },
    begun: () => undefined,
    resume: () => canResume,
    abandon: (callUuid: string) => void abandoned.push(callUuid),
    alive: (callUuids: readonly string[]) => {
      alive.push([...callUuids])
      return answers.revoked
    },
    running: (nowMs: number) => void (aliveAt = nowMs),
    report: (record: CallRecord, safe?: () => void, known?: Quality) => {
      if (known === undefined) records.push(record)
      else void known.then((each) => records.push({ ...record, quality: each }))
      saved.delete(record.callUuid)
      if (answers.endIsSafe) safe?.()
      else unsafe.push(() => safe?.())
      return known === undefined ? answers.stored() : known.then(() => answers.stored())
    },
  }
  const calls = new ActiveCalls({
    now: time.now,
    wallNow: time.wallNow,
    deadlines,
    charging,
    instanceName: 'sbc-1',
    whyClosed: () => answers.unserved,
    findsEndedLegs: true,
    onEvent: (event) => void events.push(event),
  })
  const media = mediaOf?.({ calls, deadlines, now: time.now, schedule })
  let lastUuid = opened.length
  const routing = { recognize: () => answers.origin }
  const doors = { authenticate: () => answers.caller, claimedTenant: () => undefined }
  const onUnknownSource = ({ address }: { readonly address: string }): boolean => {
    strangers.push(address)
    return answers.isSampled
  }
  const quality = createQuality(
    { calls, media: undefined, routing, registrar: registrar ?? doors },
    {
      config: { mediaTimeoutMs: 0, mediaTimeoutCharge: 'last_packet' },
      deadlines,
      now: time.now,
      wallNow: time.wallNow,
      onUnknownSource,
      onLost: () => undefined,
    },
  )
  const applications = new ApplicationRuns({
    mustAnswer: options.applicationMustAnswer === true,
    onEnded: (run) => control.applicationEnded(run),
  })
  const control = startCallControl({
    ...quality,
    client,
    calls,
    charging,
    deadlines,
    mediaGate: media?.gate,
    hooks: options.hooks,
    identities: options.identities,
    otherInstances: options.otherInstances,
    stir: options.stir,
    ownedNumbers: options.ownedNumbers,
    applications,
    onInstanceSilent: (name) => void silent.push(name),
    now: time.now,
    newUuid: () => `uuid-${++lastUuid}`,
    routing: {
      ...routing,
      inboundNumber: (_origin, number) => number,
      dialledNumber: dialled,
      registeredUser: () => undefined,
      headerRulesOf: () => undefined,
      isNumberBlocked: () => false,
      sentNumbers: () => [],
      inboundTarget: () => answers.inbound,
      outboundCandidates: (_customerId, number, _tenantId, _look, only) =>
        ofCarriers(only, answers.outboundOf?.(number) ?? answers.outbound),
      isEmergencyNumber: (number) => {
        const decision = answers.outboundOf?.(number) ?? answers.outbound
        const isRouted = decision.kind === 'gateways' && decision.isEmergency
        return isRouted || answers.emergencyNumber === number
      },
      admitCarrierCall: () => answers.admitsCarrier,
      admitAgentCall: () => true,
      boughtPrice: () => answers.boughtPrice,
      redirected: (call, target) => answers.redirected(call, target),
      noteAttempt: ({ measuredBy }, isAnswered, delayMs) =>
        void measured.push([measuredBy, isAnswered, delayMs]),
      noteTalk: ({ measuredBy }, talkMs) => void measured.push([measuredBy, 'talked', talkMs]),
      limitOf: (carrierId) => `carrier ${carrierId}, max_calls 1`,
      agent: () => answers.agent,
      dialledAgent: () => answers.agent,
      knowsNumber: () => answers.knowsNumber,
      carrierAuth: () => options.carrierAuth,
    },
    dispatcher: {
      candidates: () => answers.candidates,
      isAtCapacity: () => answers.isAtCapacity,
      admitCall: (nodeId) => !answers.fullNodes.has(nodeId),
      setRecord: (setId) => sampleSet([], { setId, spyUri: answers.spyUri }),
      nodeCalled: ({ host, port }) => {
        const found = answers.candidates.find((each) => each.host === host && each.port === port)
        return found && { ...found, isNamed: false }
      },
      reportOutcome: (nodeId, outcome) => void outcomes.push([nodeId, outcome]),
    },
    registrar: registrar ?? {
      handle: () => Promise.resolve(answers.registered),
      ...doors,
      extensionAt: (domain, number) => answers.extensions.get(`${number}@${domain}`),
      tenantOf: (domain) =>
        [...answers.extensions.values()].find((record) => record.domain === domain)?.tenantId,
      contactsOf: (domain, number) => answers.contacts.get(`${number}@${domain}`) ?? [],
      homeDomain: () => 'acme.example',
    },
    voicemailOf: () => answers.voicemail,
    gatewayBehind: (uri) => answers.gatewayBehind(uri),
    domains: {
      isOwn: (host) => !answers.foreign.includes(host),
      isAllowed: (host) => answers.allowed.includes(host),
    },
    onGatewayOutcome: (gatewayId, outcome) => void outcomes.push([gatewayId, outcome]),
    onUnknownSource,
    retryAfterSeconds: 5,
    nodeTimeoutMs: 1_500,
    nodeProgressTimeoutMs: 6_000,
    passX: new Set(passX),
    ringTimeoutMs: 180_000,
    log: (level, message, fields) => {
      if (level === 'error') faults.push({ message, ...fields })
      if (level === 'warn') warnings.push({ message, ...fields })
    },
  })
  await client.connect()

  const restored = control.restore(
    [...saved].flatMap(([callUuid, states]) => {
      const call = opened.find((each) => each.callUuid === callUuid)
      const [state = '', change] = states.split('\t')
      const aliveAt = after?.aliveAt ?? time.now()
      return call ? [{ callUuid, call, state, change, shiftMs: 0, aliveAt }] : []
    }),
  )

  const peers: SipPeer[] = []
  const openPeer = async () => {
    const open = withSipTimers ? SipPeer.openPatient : SipPeer.open
    const peer = await open(listener, {}, world.network)
    peers.push(peer)
    return peer
  }

  return {
    world,
    applications,
    saved,
    abandoned,
    unsafe,
    restored,
    media,
    /** When the journal heard of this process for the last time. */
    get aliveAt() {
      return aliveAt
    },
    /** As by `kill -9`. */
    crash: () => kill?.(),
    time,
    server,
    client,
    calls,
    deadlines,
    answers,
    peers,
    control,
    messages,
    asked,
    opened,
    alive,
    records,
    events,
    outcomes,
    /** Calls of carriers that are measured: by which route, the outcome, the milliseconds. */
    measured,
    faults,
    warnings,
    strangers,
    silent,
    uri: (user: string) => `sip:${user}@127.0.0.1:${listener.port}`,
    caller: openPeer,
    /** A node that is a candidate, after those that are there already. */
    node: async (): Promise<SipPeer> => {
      const peer = await openPeer()
      answers.candidates.push(candidate(answers.candidates.length + 1, peer.port))
      return peer
    },
    /** The record of the next call that ends, or the first that has. */
    record: async (): Promise<CallRecord> => {
      await world.until(() => records.length > 0)
      const record = records.shift()
      if (!record) throw new Error('no record')
      return record
    },
    /** Waits until nothing of any call is left anywhere. */
    idle: async (): Promise<void> => {
      const left = (): readonly (readonly [string, number])[] => {
        const { clients: _c, applications: _a, ...tables } = withSipTimers ? server.stats() : {}
        const { legs, exchanges, transfers } = calls.world
        const machine = { legs: legs.size, exchanges: exchanges.size, transfers: transfers.size }
        const sizes = { calls: calls.size, ...machine, ...client.stats(), ...tables }
        return Object.entries(sizes).filter(([, size]) => size !== 0)
      }
      const isEmpty = (): boolean => left().length === 0
      await (withSipTimers ? world.untilSipTimersEnd(isEmpty) : world.until(isEmpty))
      expect(left()).toEqual([])
    },
    /** Waits until everything that the peer has sent so far has been handled. */
    seen: async (peer: SipPeer): Promise<void> => {
      peer.request('OPTIONS', peer.leg(`sip:127.0.0.1:${listener.port}`))
      await peer.next('200 OPTIONS')
    },
    until: async (holds: () => boolean): Promise<void> => {
      expect(await world.until(holds), `${String(holds)} never holds`).toBe(true)
    },
    /** Lets time pass; what follows from one deadline comes before the next. */
    advance: (ms: number) => world.advance(ms),
    /** Waits until nothing is on its way any more. */
    settle: () => world.settle(),
    stop: async () => {
      client.disconnect()
      for (const peer of peers) peer.close()
      await server.stop()
      expect(faults).toEqual([])
    },
  }
}

export type CallRig = Awaited<ReturnType<typeof startCallRig>>

/** A node on loopback. */
export function candidate(nodeId: number, port: number): Candidate {
  return {
    kind: 'node',
    nodeId,
    setId: 1,
    tenantId: null,
    uri: `sip:127.0.0.1:${port};transport=udp`,
    host: '127.0.0.1',
    port,
    transport: 'udp',
  }
}

export interface Talk {
  readonly caller: SipPeer
  readonly node: SipPeer
  readonly leg: Leg
  readonly nodeLeg: Leg
  readonly invite: PeerMessage
}

/** A caller and a node that talk to each other. */
export async function talk(rig: CallRig): Promise<Talk> {
  const caller = await rig.caller()
  const node = await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  return { caller, node, leg, nodeLeg: node.calledLeg(invite, 'b'), invite }
}
