/**
 * Simulates a call: passes an invented INVITE to the functions that decide about real ones
 * (`inbound/`), without any effect. Answers of nodes, codecs and packets are not simulated.
 */
import type { CallTags } from '../../schema/contracts/call-record.ts'
import type { Account, AuthorizationRequest, Forecast } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { OwnedNumber, OwnedNumbers } from '../../schema/contracts/owned-numbers.ts'
import type { StirPort } from '../../schema/contracts/stir.ts'
import {
  type CandidateOrder,
  MAX_PASSED_OVER,
  type PassedOverCandidate,
  type SimulatedCandidate,
  type SimulatedHook,
  type SimulatedInvite,
  type SimulatedOrigin,
  type SimulatedPayment,
  type SimulatedVerdict,
  type Simulation,
  type SimulationRequest,
} from '../../schema/contracts/engine.ts'
import { isUntaken, resultOfPhones } from './call-machine/failover.ts'
import type { FailedAttempt } from './call-machine/protocol.ts'
import type { AttemptResult, Note } from './call-machine/state.ts'
import type { End } from './cdr/end-reason.ts'
import { type Callee, type DialFacts, inviteFor, withheld } from './dialing/outgoing-invite.ts'
import {
  authorizationOf,
  expectedDirection,
  planCall,
  carrierFull,
  rejectionFor,
  type ValidationDeps,
  originOf,
} from './inbound/admission.ts'
import { type IncomingInvite, readInvite, startOf } from './inbound/incoming-invite.ts'
import {
  type CallDestination,
  type ExtensionDestination,
  type Route,
  routeCall,
  type RouteDeps,
  tenantOf,
} from './inbound/route.ts'
import { type CallerIdentities, refusedIdentity } from './identity/caller-identities.ts'
import type { IdentityDecision } from './identity/decide.ts'
import { foreseenSignature } from './stir/foreseen-signature.ts'
import { CallHooks, type HookSources } from './hooks/call-hooks.ts'
import { type AnswerOf, type AskAttempt, attemptsOf } from './simulated-attempts.ts'
import type { HeaderFilter } from './sip-headers.ts'
import { costMicros } from '../charging/pricing/price.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import type { Registrar } from '../registrar/registrar.ts'
import type { Origin, Routing } from '../routing/routing.ts'
import { escapeUser } from '../../schema/sip/index.ts'
import { refusalBy } from './inbound/charging-refusal.ts'

export interface SimulationDeps extends RouteDeps {
  readonly routing: RouteDeps['routing'] &
    Pick<
      Routing,
      | ('recognize' | 'trustedOrigin' | 'carrierOrigin' | 'hasRoom' | 'limitOf')
      | ('outboundCandidates' | 'tenantOfCarrier' | 'turns' | 'qualityOf')
    >
  readonly dispatcher: RouteDeps['dispatcher'] & Pick<Dispatcher, 'foreseen' | 'selection'>
  readonly registrar: RouteDeps['registrar'] & Pick<Registrar, 'extensionAt'>
  readonly calls: ValidationDeps['calls']
  readonly filter: HeaderFilter
  /** Which number a call shows; absent: no rules say anything. */
  readonly identities?: Pick<CallerIdentities, 'decide'> | undefined
  /** The operator's own code; absent: there is none. */
  readonly hooks?: HookSources | undefined
  readonly log: Log
  /** Absent: nothing is signed, and nobody owns a number. */
  readonly stir?: StirPort | undefined
  readonly ownedNumbers?: OwnedNumbers | undefined
  /** Undefined: an external OCS decides. */
  readonly foresee: ((request: Omit<AuthorizationRequest, 'callUuid'>) => Forecast) | undefined
  readonly ownHost: () => string
  /** Milliseconds UTC. */
  readonly wallNow: () => number
}

/** A simulated call with details that tests of hooks look at. */
export interface ForeseenCall extends Simulation {
  /** The status of each candidate that is tried, 0 without a response; null: it is not tried. */
  readonly attempts: readonly (number | null)[]
  /** The INVITE to the first candidate that gets one. Undefined: none is sent. */
  readonly invite: SimulatedInvite | undefined
  readonly tags: CallTags
  /** Absent: no hook has said whether the call is recorded. */
  readonly isToBeRecorded: boolean | undefined
}

export interface ForeseenRequest extends SimulationRequest {
  /** Absent: the first that gets an INVITE takes the call. */
  readonly answerOf?: AnswerOf
}

/** Undefined: there is no such source, or it may not call. */
export async function simulate(
  request: ForeseenRequest,
  deps: SimulationDeps,
): Promise<ForeseenCall | undefined> {
  const origin = originIn(request, deps)
  if (origin === undefined) return undefined
  const received = inviteOf(request, origin, deps)
  const { tenantId } = request
  const isOfAsker = tenantId === null || tenantOf(origin, deps) === tenantId
  const hooks = isOfAsker ? simulatedHooks(deps) : undefined
  const hooked = await hooks?.invite(received, request)
  const invite = hooked?.kind === 'goes_on' ? hooked.invite : received
  const foreseen = foreseenRoutes(deps)
  const planned =
    hooked?.kind === 'refused'
      ? refusedByHook(hooked.end, invite)
      : decide(request, invite, foreseen, deps)
  const left = (planned.route && hooks?.leftOut(invite, planned.route)) ?? []
  const routed = await hooks?.route(planned, invite)
  const decided = routed?.decision ?? planned
  const { callerNumber, calledNumber } = invite
  const { answerOf = taken } = request
  const answers = [answerOf, hooks?.attemptOf(decided, invite)] as const
  const dialing = await dialingOf({ planned, decided }, invite, foreseen, deps, answers)
  const { attempts, end, order } = dialing
  const facts = dialFactsOf(invite, decided, hooked?.effects.tags)
  const sent = presenting(decided, deps)
  const shownInvite = (destination: CallDestination) =>
    inviteView(destination, invite, facts, sent, deps.ownHost())
  const destinations = decided.route?.kind === 'candidates' ? decided.route.candidates : []
  const candidates = dialing.candidates.map((candidate, index) => {
    const destination = destinations[index]
    if (destination === undefined || !isShown(destination, tenantId, deps))
      return { ...candidate, ...unshown, hunting: null }
    return { ...candidate, ...shownInvite(destination) }
  })
  return {
    invite: decided.end ? undefined : firstInvite(decided.route, invite, facts, sent),
    attempts,
    tags: hooked?.effects.tags ?? {},
    isToBeRecorded: hooked?.effects.isToBeRecorded,
    origin: describedOrigin(origin, foreseen),
    callerNumber,
    calledNumber,
    direction: decided.direction,
    verification: origin.kind === 'carrier' && origin.verify !== undefined ? 'not_asked' : null,
    isEmergency: decided.isEmergency,
    payment: decided.payment,
    verdict: verdictOf(decided.end ?? end),
    candidates,
    order,
    setId: foreseen.setId(),
    decidedByNumber: foreseen.decidedByNumber(),
    hooks: [
      ...hookShown('onInvite', tenantId, [...(hooked?.effects.notes ?? []), ...left]),
      ...hookShown('onRoute', tenantId, routed?.notes),
      ...hookShown('onAttemptFailed', tenantId, dialing.notes),
    ],
    passedOver: foreseen.passedOver().slice(0, MAX_PASSED_OVER),
  }
}

/** Asks hooks as `inbound/admission.ts` does. Undefined: the operator has no code of its own. */
function simulatedHooks(deps: SimulationDeps) {
  const { hooks: sources, wallNow: now, log } = deps
  if (sources === undefined) return undefined
  const hooks = new CallHooks(sources, { ...deps, now, log })
  return {
    invite: (invite: IncomingInvite, { source }: SimulationRequest) => {
      const { address, port } = source.kind === 'address' ? source : nowhere
      const begins = { kind: 'request', address, port } as const
      return hooks.asksInvite(invite) ? hooks.invite(invite, begins, true) : undefined
    },
    leftOut: (invite: IncomingInvite, route: Route) => hooks.leftOut(invite, route, true),
    route: async (planned: Decision, invite: IncomingInvite) => {
      const { route, isEmergency } = planned
      if (route === undefined || isEmergency) return undefined
      const start = startOf(invite, '', now())
      const hooked = await hooks.route({ start }, route, invite.calledNumber, true)
      if (hooked === undefined) return undefined
      const { direction } = hooked.route
      const end = hooked.route.kind === 'refused' ? hooked.route.end : planned.end
      const decision: Decision = { ...planned, route: hooked.route, direction, end }
      return { decision, notes: hooked.notes }
    },
    attemptOf: ({ isEmergency }: Decision, invite: IncomingInvite) => {
      const start = startOf(invite, '', now())
      return isEmergency || !hooks.asksAttempts
        ? undefined
        : (attempt: FailedAttempt) => hooks.attempt({ start }, attempt, true)
    },
  }
}

const nowhere = { address: '', port: 0 }
const taken: AnswerOf = () => 200

/** A tenant does not learn paths and addresses of the platform. */
const PLATFORM_FAILED = 'it has failed'

function hookShown(
  hook: SimulatedHook['hook'],
  asker: number | null,
  noted: readonly Note[] = [],
): readonly SimulatedHook[] {
  const notes = noted.flatMap((note) => (note.what === 'hook' ? [note] : []))
  const [first] = notes
  if (first === undefined) return []
  const failure = notes.find((note) => note.failed !== undefined)
  const isTold = asker === null || failure?.tenantId === asker
  const failed = (isTold || failure === undefined ? failure?.failed : PLATFORM_FAILED) ?? null
  return [{ hook, by: first.by, decision: first.decision ?? null, failed }]
}

const refusedByHook = (end: End, { origin }: IncomingInvite): Decision => ({
  end,
  account: null,
  route: undefined,
  direction: expectedDirection(origin),
  isEmergency: false,
  payment: { kind: 'not_asked' },
})

function originIn({ source }: SimulationRequest, deps: SimulationDeps): Origin | undefined {
  switch (source.kind) {
    case 'address':
      return deps.routing.recognize(source)
    case 'trusted':
      return deps.routing.trustedOrigin()
    case 'carrier':
      return deps.routing.carrierOrigin(source.carrierId)
    case 'extension':
    default: {
      const record = deps.registrar.extensionAt(source.domain, source.extension)
      return record && originOf(record)
    }
  }
}

/** A dialled number is sent to the domain of a phone, by others to an address of ours. */
function inviteOf(
  { from, to, callId = SIMULATED, headers: given = {} }: SimulationRequest,
  origin: Origin,
  deps: SimulationDeps,
): IncomingInvite {
  const host = origin.kind === 'extension' ? origin.domain : deps.ownHost()
  const uri = to.includes('@') ? `sip:${to}` : `sip:${escapeUser(to)}@${host}`
  const caller = `<sip:${escapeUser(from)}@${host}>;tag=${SIMULATED}`
  const headers = { from: caller, to: `<${uri}>`, ...given, 'call-id': callId }
  const source = { protocol: 'udp', sourceAddress: '', sourcePort: 0 }
  const request = { method: 'INVITE', uri, headers, body: '', ...source }
  return readInvite(request, SIMULATED, origin, deps.routing)
}

const SIMULATED = 'simulated'

interface Decision {
  /** Undefined: the candidates are tried. */
  readonly end: End | undefined
  readonly route: Route | undefined
  readonly direction: Simulation['direction']
  readonly isEmergency: boolean
  readonly payment: SimulatedPayment
  /** Absent: nobody is asked to pay. */
  readonly account: Account | null
}

/**
 * The order of `connect` in `app.ts` and of `inbound/admission.ts`: planned, validated, authorized,
 * routed.
 */
function decide(
  request: SimulationRequest,
  invite: IncomingInvite,
  { routes }: ForeseenRoutes,
  deps: SimulationDeps,
): Decision {
  const plan = planCall('invite', invite, { ...routes, calls: deps.calls })
  const { isEmergency } = plan
  const direction = plan.route?.direction ?? expectedDirection(invite.origin)
  const received = { headers: invite.headers, hasUsableContact: true }
  const { origin } = invite
  const isSentElsewhere = invite.target !== undefined
  const full =
    origin.kind === 'carrier' && !deps.routing.hasRoom(origin.carrierId)
      ? carrierFull(routes, deps.routing.limitOf(origin.carrierId))
      : undefined
  const rejection =
    rejectionFor(
      received,
      { ...invite, isEmergency, isRouted: plan.route?.kind === 'candidates' || isSentElsewhere },
      { ...routes, calls: deps.calls },
    ) ?? full
  const early = { direction, isEmergency, payment: { kind: 'not_asked' }, account: null } as const
  if (rejection) return { ...early, end: rejection, route: undefined }
  if (plan.route?.kind === 'refused') return { ...early, end: plan.route.end, route: undefined }
  if (plan.route) return { ...early, end: undefined, route: plan.route, payment: { kind: 'free' } }
  const authorization = {
    ...authorizationOf(invite, routes),
    startedAt: request.at ?? deps.wallNow(),
  }
  const foreseen = deps.foresee?.(authorization)
  const refusal = foreseen && refusalBy(foreseen.verdict, invite, routes)
  const payment = foreseen ? paymentOf(foreseen) : ({ kind: 'elsewhere' } as const)
  if (refusal) return { ...early, payment, end: refusal, route: undefined }
  const account = foreseen && 'account' in foreseen.verdict ? foreseen.verdict.account : null
  const route = routeCall(invite, account, routes)
  const end = route.kind === 'refused' ? route.end : undefined
  return { ...early, direction: route.direction, payment, account, end, route }
}

function paymentOf({ verdict, ...forecast }: Forecast): SimulatedPayment {
  const code = verdict.kind === 'denied' ? verdict.code : null
  const { customerId = null, tenantId = null } =
    ('account' in verdict ? verdict.account : null) ?? {}
  const payer = customerId === null ? null : { customerId, tenantId }
  return { kind: 'asked', verdict: verdict.kind, code, payer, ...forecast }
}

/** `planned`: before a hook has changed the order of its candidates. */
async function dialingOf(
  { planned, decided }: Readonly<Record<'planned' | 'decided', Decision>>,
  invite: IncomingInvite,
  { sharesOf, order }: ForeseenRoutes,
  deps: SimulationDeps,
  answers: readonly [AnswerOf, AskAttempt | undefined],
): Promise<ForeseenDialing & Pick<Simulation, 'order'>> {
  const { route } = decided
  if (route?.kind !== 'candidates')
    return { candidates: [], attempts: [], end: undefined, notes: [], order: 'fixed' }
  const all = planned.route?.kind === 'candidates' ? planned.route.candidates : []
  const shares = sharesOf(all)
  const [first] = route.candidates
  const sent = presenting(decided, deps)
  const isByHook = route !== planned.route && first !== undefined
  const dialing = await foreseeDialing(
    route.candidates,
    isByHook ? new Map([[first, 1]]) : shares,
    invite,
    sent,
    ...answers,
  )
  const facts = dialFactsOf(invite, decided)
  const candidates = route.candidates.flatMap((destination, index) => {
    const foreseen = dialing.candidates[index]
    const shown = identified(invite, sent.decide(destination, invite))
    const signature = foreseenSignature(destination, shown, facts, decided.payment, deps)
    return foreseen ? [{ ...foreseen, signature }] : []
  })
  return { ...dialing, candidates, order: order(all, shares) }
}

function verdictOf(end: End | undefined): SimulatedVerdict {
  if (end?.kind !== 'refused' && end?.kind !== 'rejected') return { kind: 'goes_on' }
  const { status, reason } = end
  if (end.kind === 'rejected') return { kind: 'refused', status, reason, code: null }
  return { kind: 'refused', status, reason, code: end.code, detail: end.detail }
}

function describedOrigin(origin: Origin, { routes, nodeName }: ForeseenRoutes): SimulatedOrigin {
  switch (origin.kind) {
    case 'carrier': {
      const { kind, carrierId: id, name, tenantId } = origin
      return { kind, id, name, tenantIds: listOf(tenantId) }
    }
    case 'node': {
      const { kind, nodeId: id, setId } = origin
      const tenantId = routes.dispatcher.setRecord(setId)?.tenantId ?? null
      return { kind, id, name: nodeName(setId, id), tenantIds: listOf(tenantId) }
    }
    case 'extension': {
      const { kind, extensionId: id, extension, domain, tenantId } = origin
      return { kind, id, name: `${extension}@${domain}`, tenantIds: [tenantId] }
    }
    case 'proxy':
      return { kind: origin.kind, id: null, name: null, tenantIds: origin.tenantIds }
    case 'trusted':
      return { kind: origin.kind, id: null, name: null, tenantIds: [] }
    case 'application':
    case 'unknown':
    default:
      return { kind: 'unknown', id: null, name: null, tenantIds: [] }
  }
}

const listOf = (tenantId: number | null): readonly number[] => (tenantId === null ? [] : [tenantId])

/** The part of many such calls that each destination would get first. */
type Shares = ReadonlyMap<CallDestination, number>

type ForeseenRoutes = ReturnType<typeof foreseenRoutes>

/** A question to the outbound routes. */
interface OutboundQuestion {
  readonly caller: readonly [number | null, string, number | null]
  readonly only: readonly number[] | undefined
  readonly routingNumber: string | undefined
}

/** The most probable order: of equal preference, the greatest weight first. */
const likely = (): number => 0.5
/** Draws among gateways: their parts are estimates. */
const DRAWS = 200

function foreseenRoutes(engines: SimulationDeps) {
  const { routing, dispatcher } = engines
  const passed: PassedOverCandidate[] = []
  let setId: number | null = null
  let isInTurn = false
  let byNumber: OwnedNumber | null = null
  let lastQuestion: OutboundQuestion | undefined
  const routes: RouteDeps = {
    ...engines,
    routing: {
      inboundNumber: (...question) => routing.inboundNumber(...question),
      dialledNumber: (number) => routing.dialledNumber(number),
      sentNumbers: (...question) => routing.sentNumbers(...question),
      registeredUser: (origin) => routing.registeredUser(origin),
      inboundTarget: (...question) => {
        const target = routing.inboundTarget(...question)
        byNumber = 'byNumber' in target ? target.byNumber : null
        return target
      },
      isEmergencyNumber: (number) => routing.isEmergencyNumber(number),
      agent: (agentId) => routing.agent(agentId),
      dialledAgent: (...question) => routing.dialledAgent(...question),
      knowsNumber: (...question) => routing.knowsNumber(...question),
      headerRulesOf: (carrierId) => routing.headerRulesOf(carrierId),
      isNumberBlocked: (...question) => routing.isNumberBlocked(...question),
      outboundCandidates: (customerId, number, tenantId, _search, only, routingNumber) => {
        const caller = [customerId, number, tenantId ?? null] as const
        const question = { caller, only, routingNumber }
        lastQuestion = question
        // The candidates of an emergency call are drawn twice.
        passed.length = 0
        const passOver = (each: PassedOverCandidate) => void passed.push(each)
        const search = { random: likely, passOver, isExplained: true }
        const decision = routing.outboundCandidates(...caller, search, only, routingNumber)
        isInTurn = decision.kind === 'gateways' && decision.isInTurn === true
        return decision
      },
    },
    dispatcher: {
      candidates: (id, callId) => {
        setId = id
        return dispatcher.foreseen(id, callId, likely)
      },
      isAtCapacity: (id) => dispatcher.isAtCapacity(id),
      setRecord: (id) => dispatcher.setRecord(id),
      reportOutcome: () => undefined,
    },
  }
  const nodes = () => (setId === null ? [] : dispatcher.selection(setId))

  const idleNodes = (): readonly PassedOverCandidate[] => {
    const tenantId = setId === null ? null : (dispatcher.setRecord(setId)?.tenantId ?? null)
    return nodes().flatMap(({ destination: uri, why }) =>
      why === null ? [] : [{ kind: 'node', name: uri, uri, tenantId, why }],
    )
  }

  const drawn = (): ReadonlyMap<number, number> => {
    const firsts = new Map<number, number>()
    const question = lastQuestion
    if (question === undefined) return firsts
    const random = evenDraws()
    const turns = routing.turns()
    for (let draw = 0; draw < DRAWS; draw += 1) {
      const options = { random, passOver: () => undefined, turns }
      const { caller, only, routingNumber } = question
      const decision = routing.outboundCandidates(...caller, options, only, routingNumber)
      const [first] = decision.kind === 'gateways' ? decision.gateways : []
      if (first) firsts.set(first.gatewayId, (firsts.get(first.gatewayId) ?? 0) + 1 / DRAWS)
    }
    return firsts
  }

  return {
    routes,
    /** The dispatcher set of the route. */
    setId: () => setId,
    decidedByNumber: () => byNumber,
    passedOver: () => [...passed, ...idleNodes()],
    /** The part of many such calls that each candidate would get first. */
    sharesOf: (candidates: readonly CallDestination[]): Shares => {
      if (candidates.length < 2) return new Map(candidates.map((candidate) => [candidate, 1]))
      const shares = candidates.some(({ kind }) => kind === 'gateway')
        ? drawn()
        : new Map(nodes().map(({ nodeId, share }) => [nodeId, share]))
      return new Map(candidates.map((each) => [each, shares.get(idOf(each)) ?? 0]))
    },
    order: (candidates: readonly CallDestination[], shares: Shares): CandidateOrder => {
      const isCertain = candidates.every((candidate) => (shares.get(candidate) ?? 0) % 1 === 0)
      if (isCertain) return 'fixed'
      if (setId === null) return isInTurn ? 'turn' : 'drawn'
      return orders[dispatcher.setRecord(setId)?.algorithm ?? 6]
    },
    nodeName: (id: number, nodeId: number): string | null =>
      dispatcher.selection(id).find((node) => node.nodeId === nodeId)?.destination ?? null,
  }
}

const orders: Readonly<Record<0 | 4 | 6 | 8 | 9, CandidateOrder>> = {
  0: 'call_id',
  4: 'turn',
  6: 'drawn',
  8: 'turn',
  9: 'turn',
}

function idOf(destination: CallDestination): number {
  if (destination.kind === 'gateway') return destination.gatewayId
  return destination.kind === 'node' ? destination.nodeId : 0
}

/**
 * The fractions of multiples of the golden ratio: they fill [0, 1) evenly, and always in the same
 * way.
 */
function evenDraws(): () => number {
  let point = 0
  return () => {
    point = (point + 0.618_033_988_749_895) % 1
    return point
  }
}

/** The candidates of a simulated call, and its end if none of them takes it. */
interface ForeseenDialing {
  readonly candidates: readonly Omit<SimulatedCandidate, 'invite' | 'ruledBy'>[]
  readonly attempts: ForeseenCall['attempts']
  /** Undefined: one takes it, or there is no route. */
  readonly end: End | undefined
  readonly notes: readonly Note[]
}

async function foreseeDialing(
  destinations: readonly CallDestination[],
  shares: ReadonlyMap<CallDestination, number>,
  invite: IncomingInvite,
  deps: SentInvites,
  ...answers: readonly [AnswerOf, AskAttempt | undefined]
): Promise<ForeseenDialing> {
  const judged = destinations.map((destination) => ({
    destination,
    withheld: resultWithout(destination, invite, deps),
  }))
  const candidates = judged.map(({ destination, withheld: result }) => ({
    ...candidateView(destination),
    presented: presentedTo(destination, invite, deps),
    share: shares.get(destination) ?? 0,
    withheld: result === undefined ? null : codeOf(result),
    lowQuality: lowQualityOf(destination, deps),
  }))
  const { end, notes, statuses } = await attemptsOf(judged, ...answers)
  const attempts = destinations.map((each) => statuses.get(each) ?? null)
  return { candidates, attempts, end, notes }
}

/** Times are those of the steady clock. */
function lowQualityOf(destination: CallDestination, { qualityOf }: SentInvites) {
  if (destination.kind !== 'gateway' || destination.measuredBy === undefined) return null
  const quality = qualityOf(destination.measuredBy)
  return quality?.state === 'low' ? quality : null
}

/** The parts that decide about the INVITEs of a call. */
interface SentInvites extends Pick<SimulationDeps, 'filter' | 'gatewayBehind'> {
  readonly qualityOf: Routing['qualityOf']

  readonly decide: (
    callee: Callee | CallDestination,
    invite: IncomingInvite,
  ) => IdentityDecision | undefined
}

type PresentingDeps = Pick<SimulationDeps, 'filter' | 'gatewayBehind' | 'identities' | 'routing'>

const presenting = (
  { account, isEmergency }: Pick<Decision, 'account' | 'isEmergency'>,
  { filter, gatewayBehind, identities, routing }: PresentingDeps,
): SentInvites => ({
  filter,
  gatewayBehind,
  qualityOf: (routeId) => routing.qualityOf(routeId),
  decide: (callee, invite) => identities?.decide(invite, callee, { account, isEmergency }),
})

const identified = (invite: IncomingInvite, decided?: IdentityDecision): IncomingInvite =>
  decided?.kind === 'presented' ? { ...invite, identity: decided.identity } : invite

function presentedTo(
  destination: CallDestination,
  invite: IncomingInvite,
  { decide }: SentInvites,
): SimulatedCandidate['presented'] {
  const decided = decide(destination, invite)
  if (decided === undefined) return null
  if (decided.kind === 'refused') return { ...nothingShown, why: decided.why }
  const { number, asserted, isPrivate, attestation, why } = decided.identity
  return { number, asserted, isPrivate, attestation, why }
}

const nothingShown = { number: '', asserted: '', isPrivate: true, attestation: 'C' } as const

/** How an attempt ends without an INVITE; undefined: one is sent. */
function resultWithout(
  destination: CallDestination,
  invite: IncomingInvite,
  deps: SentInvites,
): AttemptResult | undefined {
  if (destination.kind === 'extension') return withheldPhones(destination, invite, deps)
  return withheldFrom(destination, invite, deps)
}

const unshown = { invite: null, ruledBy: [] }

/** A tenant does not learn what the platform tells its carriers. */
function isShown(
  destination: CallDestination,
  asker: number | null,
  { routing }: SimulationDeps,
): boolean {
  if (destination.kind !== 'gateway') return destination.kind !== 'extension'
  return asker === null || routing.tenantOfCarrier(destination.carrierId) === asker
}

/** Private headers between parts of this platform are none of an INVITE outside. */
function inviteView(
  destination: CallDestination,
  invite: IncomingInvite,
  facts: DialFacts,
  { filter, decide }: SentInvites,
  ownHost: string,
): Pick<SimulatedCandidate, 'invite' | 'ruledBy'> {
  const { kind } = destination
  if (kind === 'extension' || kind === 'application' || kind === 'other-node') return unshown
  const decided = decide(destination, invite)
  if (decided?.kind === 'refused') return unshown
  const sent = identified(invite, decided)
  const { uri, headers, ruledBy = [] } = inviteFor(destination, sent, filter, false, facts)
  const shown = Object.entries(headers).map(
    ([name, value]) => [name, value.replaceAll('@localhost', `@${ownHost}`)] as const,
  )
  return { invite: { uri, headers: Object.fromEntries(shown) }, ruledBy }
}

function dialFactsOf(
  { callerNumber: caller, calledNumber: called }: IncomingInvite,
  { payment }: Decision,
  tags?: CallTags,
): DialFacts {
  const customerId = payment.kind === 'asked' ? (payment.payer?.customerId ?? null) : null
  return { caller, called, customerId, tags }
}

function firstInvite(
  route: Route | undefined,
  invite: IncomingInvite,
  facts: DialFacts,
  deps: SentInvites,
): SimulatedInvite | undefined {
  const destinations = route?.kind === 'candidates' ? route.candidates : []
  const first = destinations.find((each) => resultWithout(each, invite, deps) === undefined)
  if (first === undefined) return undefined
  if (first.kind !== 'extension') {
    const shown = identified(invite, deps.decide(first, invite))
    return inviteFor(first, shown, deps.filter, false, facts)
  }
  const { phones, voicemail } = first
  const callee = phones.find((each) => withheldFrom(each, invite, deps) === undefined) ?? voicemail
  return callee && inviteFor(callee, invite, deps.filter, phones.length > 1)
}

function withheldPhones(
  extension: ExtensionDestination,
  invite: IncomingInvite,
  deps: SentInvites,
): AttemptResult | undefined {
  const { phones, voicemail } = extension
  const results = phones.map((phone) => withheldFrom(phone, invite, deps))
  if (results.some((result) => result === undefined)) return undefined
  const sent = results.flatMap((result) => result ?? [])
  const best = resultOfPhones(extension, sent)
  const isForVoicemail = voicemail !== undefined && isUntaken(best)
  return isForVoicemail && withheldFrom(voicemail, invite, deps) === undefined ? undefined : best
}

function withheldFrom(
  callee: Callee,
  invite: IncomingInvite,
  deps: SentInvites,
): AttemptResult | undefined {
  const decided = deps.decide(callee, invite)
  if (decided?.kind === 'refused') return { kind: 'withheld', end: refusedIdentity(decided.why) }
  const sent = identified(invite, decided)
  const refusal = withheld(callee, inviteFor(callee, sent, deps.filter), sent, deps.gatewayBehind)
  return refusal && { kind: 'withheld', end: refusal.end }
}

const codeOf = (result: AttemptResult): string =>
  result.kind === 'withheld' ? result.end.code : 'extension_unregistered'

type CandidateView = Omit<
  SimulatedCandidate,
  'share' | 'withheld' | 'presented' | 'invite' | 'ruledBy' | 'lowQuality'
>

const plain = {
  name: null,
  id: null,
  number: null,
  route: null,
  phones: null,
  minuteMicros: null,
  profit: null,
  signature: null,
  hunting: null,
}

function candidateView(destination: CallDestination): CandidateView {
  const { uri } = destination
  switch (destination.kind) {
    case 'gateway': {
      const { carrierName: name, carrierId: id, number, routeName: route, price } = destination
      const minuteMicros = price ? costMicros(price.tariff, 60) : null
      const { hunting = null } = destination
      const money = { minuteMicros, profit: destination.profit ?? null }
      return { ...plain, kind: 'gateway', uri, name, id, number, route, ...money, hunting }
    }
    case 'agent':
      return { ...plain, kind: 'agent', uri, name: destination.name, id: destination.agentId }
    case 'extension': {
      const phones = destination.phones.length
      return { ...plain, kind: 'extension', uri, name: uri.slice('sip:'.length), phones }
    }
    case 'node':
      return { ...plain, kind: 'node', uri, id: destination.nodeId }
    case 'application':
      return { ...plain, kind: 'application', uri }
    case 'domain':
    case 'spy':
    case 'listener':
    case 'other-node':
    default:
      return { ...plain, kind: 'domain', uri }
  }
}
