/**
 * Click-to-call: the phones of an extension ring first; the one that is picked up is connected to a
 * number. A test call is the same with a phone of our own.
 */
import {
  type OriginateRequest,
  type OriginateResult,
  type TestCallRequest,
  TEST_CALL_SECONDS,
} from '../../schema/contracts/calls.ts'
import type { CallDeps } from './call-deps.ts'
import type { LiveCall } from './call-machine/state.ts'
import type { HookedInvite } from './hooks/call-hooks.ts'
import { refused, type CallRefusal } from './cdr/end-reason.ts'
import type { PhoneCandidate } from './dialing/outgoing-invite.ts'
import { admit, closedBy, originOf, planCall } from './inbound/admission.ts'
import { outboundRoute, phoneAt, type Route, type RouteDeps, tenantOf } from './inbound/route.ts'
import { type IncomingInvite, startOf } from './inbound/incoming-invite.ts'
import type { Headers } from './signalling.ts'
import { partyOfNumber } from './sip-headers.ts'
import type { ExtensionRecord } from '../registrar/extension-directory.ts'
import type { Registrar } from '../registrar/registrar.ts'
import { escapeUser } from '../../schema/sip/index.ts'

/** Resolves before any phone rings. The record has the result of the call. */
export async function originate(
  request: OriginateRequest,
  deps: CallDeps,
): Promise<OriginateResult> {
  const { domain, extension, ringMs } = request
  const source = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const destination = deps.routing.dialledNumber(request.destination)
  const dialled = inviteOfSource({ ...request, destination, callUuid: deps.newUuid() }, source)
  const { callUuid } = dialled
  const { testedCarrierId } = request
  const way = testedCarrierId === undefined ? 'click-to-call' : 'carrier test'
  // The carrier of a test is chosen: no hook has a say.
  const asking = testedCarrierId === undefined ? askUnbegun(dialled, deps) : undefined
  const asked = asking && (await asking)
  if (asked?.kind === 'refused') return { kind: 'denied', code: asked.end.code }
  const invite = asked?.invite ?? dialled
  const plan = planCall(way, invite, deps)
  if (plan.refusal) return notBegun(plan.refusal, deps)
  // Checked before the authorization, which reserves money.
  const notTested =
    testedCarrierId === undefined ? undefined : testDenial(invite, testedCarrierId, source, deps)
  if (notTested !== undefined) return { kind: 'denied', code: notTested }
  const call = beginOurs(invite, asked, deps)
  const denied = (code: string): OriginateResult => {
    deps.calls.finish(call)
    return { kind: 'denied', code }
  }
  const refusal = await admit(call, invite, plan, deps)
  if (refusal?.kind === 'refused') return denied(refusal.code)
  const { isEmergency } = plan
  const payer = call.account?.customerId ?? null
  const route =
    testedCarrierId === undefined ? plan.route : testRoute(invite, testedCarrierId, payer, deps)
  const connect = { invite, isEmergency, ...(route && { route }) }
  deps.dispatch({
    type: 'ring',
    callUuid,
    phones,
    invite: toSource(request, invite),
    ringMs,
    connect,
    ...(testedCarrierId !== undefined && { maxSeconds: TEST_CALL_SECONDS }),
  })
  return { kind: 'originating', callUuid }
}

type Unbegun = HookedInvite | undefined

/** Asks a hook about a call of which there is nothing yet. Undefined: none is asked. */
const askUnbegun = (
  invite: IncomingInvite,
  { hooks }: CallDeps,
): Promise<HookedInvite> | undefined =>
  hooks?.asksInvite(invite) === true ? hooks.invite(invite, { kind: 'api' }) : undefined

function beginOurs(invite: IncomingInvite, asked: Unbegun, deps: CallDeps): LiveCall {
  const { callUuid } = invite
  const start = { ...startOf(invite, 'api', deps.now()), isOurs: true }
  const call = deps.calls.begin({ start })
  // The call has begun with the number that the hook has chosen.
  const { calledNumber: _, ...effects } = asked?.effects ?? {}
  if (asked) deps.dispatch({ type: 'hooked', callUuid, notes: [], ...effects })
  return call
}

const notBegun = ({ code }: CallRefusal, { calls }: CallDeps): OriginateResult => {
  const closed = closedBy(calls)
  return closed === code ? { kind: closed } : { kind: 'denied', code }
}

/** How long the phone of a test call, which is picked up at once, may ring. */
const TEST_RING_MS = 10_000

/** A call whose caller is a phone of our own, at `phoneUri`. Resolves before it rings. */
export async function placeTestCall(
  { from, destination: number, maxSeconds }: TestCallRequest,
  phoneUri: string,
  deps: CallDeps,
): Promise<OriginateResult> {
  const destination = deps.routing.dialledNumber(number)
  const dialled = inviteOfTest(from, { destination, callUuid: deps.newUuid() }, deps)
  if (dialled === undefined) return { kind: 'unknown_extension' }
  const { callUuid, domain } = dialled
  const asking = askUnbegun(dialled, deps)
  const asked = asking && (await asking)
  if (asked?.kind === 'refused') return { kind: 'denied', code: asked.end.code }
  const invite = asked?.invite ?? dialled
  const plan = planCall('test call', invite, deps)
  if (plan.refusal) return notBegun(plan.refusal, deps)
  const call = beginOurs(invite, asked, deps)
  const refusal = await admit(call, invite, plan, deps)
  if (refusal?.kind === 'refused') {
    deps.calls.finish(call)
    return { kind: 'denied', code: refusal.code }
  }
  const { isEmergency, route } = plan
  deps.dispatch({
    type: 'ring',
    callUuid,
    phones: [
      {
        kind: 'phone',
        uri: phoneUri,
        routes: [],
        nextHop: undefined,
        extension: TEST_PHONE,
        domain,
        tenantId: call.account?.tenantId ?? 0,
      },
    ],
    invite: {
      ...invite,
      added: undefined,
      from: partyOfNumber(destination, domain),
      calledUser: TEST_PHONE,
    },
    ringMs: TEST_RING_MS,
    connect: { invite, isEmergency, ...(route && { route }) },
    maxSeconds,
  })
  return { kind: 'originating', callUuid }
}

const TEST_PHONE = 'test'

interface TestedCall {
  readonly callUuid: string
  readonly destination: string
}

/** The INVITE of the caller that the test stands for. Undefined: there is no such extension. */
function inviteOfTest(
  from: TestCallRequest['from'],
  { callUuid, destination }: TestedCall,
  deps: CallDeps,
): IncomingInvite | undefined {
  if (from.kind === 'extension') {
    const source = deps.registrar.extensionAt(from.domain, from.extension)
    const as = { callUuid, destination, callerNumber: undefined, callerName: undefined }
    return source && inviteOfSource(as, source)
  }
  const { number } = from
  const domain = deps.client.ownHost
  return {
    origin: { kind: 'trusted' },
    callUuid,
    callId: callUuid,
    domain,
    headers: {},
    body: undefined,
    from: partyOfNumber(number, domain),
    callerNumber: number,
    callerName: null,
    calledNumber: destination,
    calledUser: escapeUser(destination),
    hopsLeft: 70,
  }
}

/** Why such a test call is refused, as far as its payer is known before charging. */
function testDenial(
  invite: IncomingInvite,
  carrierId: number,
  { customerId }: Pick<ExtensionRecord, 'customerId'>,
  deps: CallDeps,
): string | undefined {
  const route = testRoute(invite, carrierId, customerId, deps)
  return route.kind === 'refused' && 'code' in route.end ? (route.end.code ?? undefined) : undefined
}

/** The destination as the caller of the source's phones. */
function toSource(request: OriginateRequest, invite: IncomingInvite): IncomingInvite {
  const { destination, autoAnswer, domain } = request
  const from = partyOfNumber(destination, domain)
  const headers = autoAnswer ? pickUp : {}
  const calledUser = escapeUser(request.extension)
  // The headers that a hook has set are for the destination.
  const added = undefined
  return { ...invite, headers, added, alerts: 'all', body: undefined, from, calledUser }
}

/** RFC 5373 has no phones; these two have nearly all of them. */
const pickUp: Headers = {
  'alert-info': '<http://127.0.0.1>;info=alert-autoanswer;delay=0',
  'call-info': '<sip:localhost>;answer-after=0',
}

/** The extension whose phones ring first: in click-to-call, and for a supervisor. */
export function phonesOf(
  { domain, extension, tenantId }: ExtensionRecord,
  { registrar }: { readonly registrar: Pick<Registrar, 'contactsOf'> },
): readonly PhoneCandidate[] {
  return registrar
    .contactsOf(domain, extension)
    .map((contact) => ({ ...phoneAt(contact), extension, domain, tenantId }))
}

export interface SourceCall {
  readonly callUuid: string
  readonly destination: string
  /** The caller as the called side sees it. Undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
}

/** Returns the INVITE that the extension itself would have sent. */
export function inviteOfSource(
  { callUuid, destination, callerNumber, callerName }: SourceCall,
  source: ExtensionRecord,
): IncomingInvite {
  const { domain, extension, displayName } = source
  const number = callerNumber ?? extension
  const name = callerName ?? (callerNumber === undefined ? displayName : '')
  return {
    origin: originOf(source),
    callUuid,
    callId: callUuid,
    domain,
    headers: {},
    body: undefined,
    from: partyOfNumber(number, domain, name),
    callerNumber: number,
    callerName: name || null,
    calledNumber: destination,
    calledUser: escapeUser(destination),
    hopsLeft: 70,
  }
}

/** The gateways of the carrier, by the caller's own routes, blocks and limits. */
function testRoute(
  invite: IncomingInvite,
  carrierId: number,
  customerId: number | null,
  deps: RouteDeps,
): Route {
  const tenantId = tenantOf(invite.origin, deps)
  const { calledNumber } = invite
  const query = [customerId, calledNumber, tenantId, undefined, [carrierId]] as const
  const decision = deps.routing.outboundCandidates(...query)
  const isEmergency = decision.kind === 'gateways' && decision.isEmergency
  const route = isEmergency ? undefined : outboundRoute(decision, calledNumber, deps)
  return route ?? { kind: 'refused', direction: 'outbound', end: noRoute }
}

const noRoute = refused(404, 'Not Found', 'no_route')
