/**
 * What would happen to a call: its INVITE is made up, and asked about of the functions that decide on a real one
 * (`inbound/`), which change nothing here: see `foreseen-routes.ts`. What only a real call shows (answers of nodes,
 * codecs, packets) is not foreseen.
 */
import type { Foreseen, AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import {
  type Simulation,
  type SimulatedOrigin,
  type SimulatedPayment,
  type SimulatedVerdict,
  type SimulationRequest,
  MAX_PASSED_OVER,
} from '../../../schema/contracts/simulation.ts'
import type { Origin } from '../../routing/routing.ts'
import { escapeUser } from '../../sip-server/message/index.ts'
import type { End } from '../cdr/end-reason.ts'
import { askedOf, expectedDirection, planRoute, refusalBy } from '../inbound/admission.ts'
import { originOf } from '../inbound/identify.ts'
import { readInvite, type IncomingInvite } from '../inbound/incoming-invite.ts'
import { routeCall, type Route } from '../inbound/route.ts'
import { carrierFull, rejectionFor, type ValidationDeps } from '../inbound/validation.ts'
import { foreseeDialing, type ForeseenDialing } from './foreseen-dialing.ts'
import { foreseenRoutes, type Engines, type ForeseenRoutes } from './foreseen-routes.ts'
import type { HeaderFilter } from '../sip/headers.ts'

export interface SimulationDeps extends Engines {
  readonly calls: ValidationDeps['calls']
  readonly filter: HeaderFilter
  /** Undefined: only an OCS elsewhere knows. */
  readonly foresee: ((request: Omit<AuthorizationRequest, 'callUuid'>) => Foreseen) | undefined
  readonly ownHost: () => string
  /** Milliseconds UTC. */
  readonly wallNow: () => number
}

/** Undefined: there is no such source, or it may not call. */
export function simulate(request: SimulationRequest, deps: SimulationDeps): Simulation | undefined {
  const origin = originIn(request, deps)
  if (origin === undefined) return undefined
  const foreseen = foreseenRoutes(deps)
  const invite = inviteOf(request, origin, deps)
  const decided = decide(request, invite, foreseen, deps)
  const { callerNumber, calledNumber } = invite
  const dialing = dialingOf(decided.route, invite, foreseen, deps)
  const { candidates, end, order } = dialing
  return {
    origin: describedOrigin(origin, foreseen),
    callerNumber,
    calledNumber,
    direction: decided.direction,
    isEmergency: decided.isEmergency,
    payment: decided.payment,
    verdict: verdictOf(decided.end ?? end),
    candidates,
    order,
    setId: foreseen.setId(),
    passedOver: foreseen.passedOver().slice(0, MAX_PASSED_OVER),
  }
}

function originIn({ source }: SimulationRequest, deps: SimulationDeps): Origin | undefined {
  switch (source.kind) {
    case 'address':
      return deps.routing.recognize(source)
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
  { from, to, callId = SIMULATED }: SimulationRequest,
  origin: Origin,
  deps: SimulationDeps,
): IncomingInvite {
  const host = origin.kind === 'extension' ? origin.domain : deps.ownHost()
  const uri = to.includes('@') ? `sip:${to}` : `sip:${escapeUser(to)}@${host}`
  const caller = `<sip:${escapeUser(from)}@${host}>;tag=${SIMULATED}`
  const headers = { from: caller, to: `<${uri}>`, 'call-id': callId }
  const place = { protocol: 'udp', sourceAddress: '', sourcePort: 0 }
  const request = { method: 'INVITE', uri, headers, body: '', ...place }
  return readInvite(request, SIMULATED, origin, deps.routing)
}

const SIMULATED = 'simulated'

interface Decided {
  /** Undefined: it goes on to its candidates. */
  readonly end: End | undefined
  readonly route: Route | undefined
  readonly direction: Simulation['direction']
  readonly isEmergency: boolean
  readonly payment: SimulatedPayment
}

/** The order of `inbound-call.ts` and `admission.ts`: planned, validated, authorized, routed. */
function decide(
  request: SimulationRequest,
  invite: IncomingInvite,
  { routes }: ForeseenRoutes,
  deps: SimulationDeps,
): Decided {
  const plan = planRoute(invite, routes)
  const { isEmergency } = plan
  const direction = plan.route?.direction ?? expectedDirection(invite.origin)
  const received = { headers: invite.headers, hasUsableContact: true }
  const { origin } = invite
  const full =
    origin.kind === 'carrier' && !deps.routing.hasRoom(origin.carrierId)
      ? carrierFull(routes, deps.routing.limitOf(origin.carrierId))
      : undefined
  const rejection =
    rejectionFor(
      received,
      { ...invite, isEmergency, isRouted: plan.route?.kind === 'candidates' },
      { ...routes, calls: deps.calls },
    ) ?? full
  const early = { direction, isEmergency, payment: { kind: 'not_asked' } } as const
  if (rejection) return { ...early, end: rejection, route: undefined }
  if (plan.route?.kind === 'refused') return { ...early, end: plan.route.end, route: undefined }
  if (plan.route) return { ...early, end: undefined, route: plan.route, payment: { kind: 'free' } }
  const asked = { ...askedOf(invite, routes), startedAt: request.at ?? deps.wallNow() }
  const foreseen = deps.foresee?.(asked)
  const refusal = foreseen && refusalBy(foreseen.verdict, invite, routes)
  const payment = foreseen ? paymentOf(foreseen) : ({ kind: 'elsewhere' } as const)
  if (refusal) return { ...early, payment, end: refusal, route: undefined }
  const account = foreseen && 'account' in foreseen.verdict ? foreseen.verdict.account : null
  const route = routeCall(invite, account, routes)
  const end = route.kind === 'refused' ? route.end : undefined
  return { ...early, direction: route.direction, payment, end, route }
}

function paymentOf({ verdict, tariff, longestSeconds }: Foreseen): SimulatedPayment {
  const code = verdict.kind === 'denied' ? verdict.code : null
  const { customerId = null, tenantId = null } =
    ('account' in verdict ? verdict.account : null) ?? {}
  const payer = customerId === null ? null : { customerId, tenantId }
  return { kind: 'asked', verdict: verdict.kind, code, payer, tariff, longestSeconds }
}

function dialingOf(
  route: Route | undefined,
  invite: IncomingInvite,
  { routes, sharesOf, order }: ForeseenRoutes,
  { filter }: SimulationDeps,
): ForeseenDialing & Pick<Simulation, 'order'> {
  if (route?.kind !== 'candidates') return { candidates: [], end: undefined, order: 'fixed' }
  const shares = sharesOf(route.candidates)
  const dialing = foreseeDialing(route.candidates, shares, invite, { ...routes, filter })
  return { ...dialing, order: order(route.candidates, shares) }
}

function verdictOf(end: End | undefined): SimulatedVerdict {
  if (end?.kind !== 'refused' && end?.kind !== 'rejected') return { kind: 'goes_on' }
  const { status, reason } = end
  if (end.kind === 'rejected') return { kind: 'refused', status, reason, code: null }
  return { kind: 'refused', status, reason, code: end.code, detail: end.detail }
}

function describedOrigin(origin: Origin, { routes, nodeName }: ForeseenRoutes): SimulatedOrigin {
  const { kind } = origin
  switch (origin.kind) {
    case 'carrier': {
      const { carrierId: id, name, tenantId } = origin
      return { kind, id, name, tenantIds: listOf(tenantId) }
    }
    case 'node': {
      const { nodeId: id, setId } = origin
      const tenantId = routes.dispatcher.setRecord(setId)?.tenantId ?? null
      return { kind, id, name: nodeName(setId, id), tenantIds: listOf(tenantId) }
    }
    case 'extension': {
      const { extensionId: id, extension, domain, tenantId } = origin
      return { kind, id, name: `${extension}@${domain}`, tenantIds: [tenantId] }
    }
    case 'proxy':
      return { kind, id: null, name: null, tenantIds: origin.tenantIds }
    case 'trusted':
    case 'unknown':
    default:
      return { kind, id: null, name: null, tenantIds: [] }
  }
}

const listOf = (tenantId: number | null): readonly number[] => (tenantId === null ? [] : [tenantId])
