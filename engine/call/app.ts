/** Routes each SIP method to its handler, and refuses all others. */
import type {
  OriginateRequest,
  OriginateResult,
  SpyRequest,
  SpyResult,
  TestCallRequest,
  TransferRequest,
  TransferResult,
} from '../../schema/contracts/calls.ts'
import type { SavedEntry } from '../../schema/contracts/charging.ts'
import type { PhoneAnswer, Registrar } from '../registrar/registrar.ts'
import type { Routing } from '../routing/routing.ts'
import type { CallDeps, CallPorts } from './call-deps.ts'
import {
  CallRunner,
  type CallRequest,
  type CallRunnerDeps,
  type CallWatchers,
} from './call-runner.ts'
import { credentialsOf } from './dialing/outgoing-invite.ts'
import { originate, placeTestCall } from './click-to-call.ts'
import { forwardBy, forwardOut } from './forward.ts'
import {
  dial,
  closedBy,
  respondToPhone,
  sourceOf,
  identify,
  type Identification,
  isUnproven,
  admitAndDial,
  askRoute,
  onFault,
  planCall,
  refuse,
  carrierFull,
  rejectionFor,
} from './inbound/admission.ts'
import { type ReportedRefusal, RefusedInviteRecords } from './inbound/refused-invite.ts'
import { extensionAt, retryAfter, routeCall } from './inbound/route.ts'
import { fault } from './cdr/end-reason.ts'
import { askInvite } from './hooks/ask-invite.ts'
import { verifyCaller } from './stir/ask-verifier.ts'
import { CallSigner } from './stir/call-signer.ts'
import { CallerVerifier } from './stir/caller-verifier.ts'
import { noStir } from './stir/no-stir.ts'
import { CallHooks, type HookSources } from './hooks/call-hooks.ts'
import { spy } from './monitoring/spy.ts'
import { Messages, type MessageTotals } from './phones/message.ts'
import { ALLOW, HeaderFilter, respond, requires100rel } from './sip-headers.ts'
import type { Answer, DigestLogin } from './signalling.ts'
import type { ReceivedRequest } from './user-agent/received-request.ts'
import type { RequestHandler } from './user-agent/user-agent.ts'
import { takeRefer } from './transfer/refer.ts'
import { transferByApi } from './transfer/transfer-call.ts'
import { hostPort, tagOf } from '../../schema/sip/index.ts'
import { answerToPrack } from './call-machine/exchange.ts'
import type { LiveCall } from './call-machine/state.ts'
import { redirectionOf } from './redirect.ts'
import { replaceForOtherInstance, replaceParty } from './transfer/replace-party.ts'
import {
  type CallStart,
  readInvite,
  startOf,
  type IncomingInvite,
} from './inbound/incoming-invite.ts'
import type { Restored } from './saved-calls.ts'
import type { ApplicationRequest } from './application/application-runs.ts'
import { endRun } from './application/ended-run.ts'
import { applicationInvite, applicationOrigin, isUnpaid, noPayer } from './application/own-calls.ts'
import { withApplication } from './application/application-plan.ts'

interface CallControlDeps extends CallPorts, CallWatchers {
  /** Absent: the operator has no code of its own. */
  readonly hooks?: HookSources | undefined
  readonly dispatcher: CallPorts['dispatcher'] & CallRunnerDeps['dispatcher']
  readonly registrar: CallPorts['registrar'] & Pick<Registrar, 'handle'>
  readonly routing: CallPorts['routing'] & Pick<Routing, 'carrierAuth'>
  /** Takes what phones publish (RFC 3903). */
  readonly publications?: { take(request: ReceivedRequest, answer: Answer): void }
  /** Lower-case names of the `X-…` headers that pass between the legs. */
  readonly passX: ReadonlySet<string>
}

/** Handled so that they are refused here: the server answers methods without a handler with 503. */
const refusedMethods = ['subscribe', 'notify', 'info', 'refer']

export type { Restored } from './saved-calls.ts'

/** Call control as the engine uses it. */
export interface CallControl {
  originate(request: OriginateRequest): Promise<OriginateResult>
  /** `phoneUri`: of the phone of our own that takes the part of the caller. */
  placeTestCall(request: TestCallRequest, phoneUri: string): Promise<OriginateResult>
  transfer(request: TransferRequest): Promise<TransferResult>
  spy(request: SpyRequest): SpyResult
  /** Continues the calls of the last run. To be called before the first packet. */
  restore(entries: readonly SavedEntry[]): Restored
  /** Saves all calls for the next process. Returns the calls that it cannot continue. */
  saveAll(): readonly string[]
  /** No RTP has come since `lastPacketAt`: an answered call ends as of that time. */
  mediaLost(callUuid: string, lastPacketAt: number): void
  /** The worker of this run of the application is gone. */
  applicationEnded(run: number): void
  /** The SIP server has refused an INVITE by itself. */
  inviteRefused(invite: ReportedRefusal): void
  /** Signed and verified calls. */
  telemetry(): Readonly<Record<string, number>>
  /** Between phones, outside calls; since the start. */
  readonly messages: MessageTotals
}

/** Call control on a client that is not connected yet. */
export function startCallControl(deps: CallControlDeps): CallControl {
  const { client, passX } = deps
  const filter = new HeaderFilter({ passX, ownHost: () => client.ownHost })
  const requests = (request: CallRequest): void => perform(request, calls)
  const credentialsOfCarrier = (carrierId: number): DigestLogin | undefined => {
    const auth = deps.routing.carrierAuth(carrierId)
    return auth && credentialsOf({ auth })
  }
  const hooks = deps.hooks && new CallHooks(deps.hooks, deps)
  const { stir = noStir } = deps
  const signer = new CallSigner({ ...deps, stir })
  const verifier = new CallerVerifier({ ...deps, stir })
  const ofRunner = { filter, requests, hooks, signer, credentialsOf: credentialsOfCarrier }
  const runner = new CallRunner({ ...deps, ...ofRunner })
  const calls: CallDeps = {
    ...deps,
    hooks,
    verifier,
    dispatch: (event) => runner.dispatch(event),
    receive: (legId, request, isOtherInstance) => runner.receive(legId, request, isOtherInstance),
  }
  client.onLost((isLost) => deps.calls.connectionLost(isLost))
  const refuseHere: RequestHandler = (request, answer) => refuseRequest(request, answer, deps.calls)
  const handleOutside = (method: string, handler: RequestHandler): void =>
    client.handle(method, (request, answer) =>
      request.dialogId === '' ? handler(request, answer) : refuseHere(request, answer),
    )
  handleOutside('invite', (request, answer) => {
    try {
      return handleInvite(request, answer, calls)
    } catch (error) {
      // No call has begun that could fail: the source of the INVITE could not be identified.
      deps.log('error', 'an INVITE could not be handled', { error })
      return respond(answer, 500)
    }
  })
  handleOutside('options', (request, answer) => {
    // OPTIONS is answered to everybody, without authentication.
    request.isFromStranger = true
    return answerOptions(answer, calls)
  })
  client.handle('register', (request, answer) => answerRegister(request, answer, deps))
  const messages = new Messages(calls)
  const refusedInvites = new RefusedInviteRecords(calls)
  handleOutside('message', (request, answer) => messages.take(request, answer))
  handleOutside('publish', (request, answer) => {
    if (deps.publications) deps.publications.take(request, answer)
    else refuseHere(request, answer)
  })
  for (const method of refusedMethods) client.handle(method, refuseHere)
  client.handle('*', refuseHere)
  return {
    originate: (request) => originate(request, calls),
    placeTestCall: (request, phoneUri) => placeTestCall(request, phoneUri, calls),
    transfer: (request) => transferByApi(request, calls),
    spy: (request) => spy(request, calls),
    restore: (entries) => runner.restore(entries),
    saveAll: () => runner.saveAll(),
    applicationEnded: (run) => endRun(run, calls),
    mediaLost: (callUuid, lastPacketAt) =>
      runner.dispatch({ type: 'mediaLost', callUuid, lastPacketAt }),
    inviteRefused: (invite) => refusedInvites.take(invite),
    messages: messages.totals,
    telemetry: () => ({ ...verifier.telemetry(), ...signer.telemetry() }),
  }
}

/** Answers one REGISTER. */
function answerRegister(
  request: ReceivedRequest,
  answer: Answer,
  { registrar, client, log }: CallControlDeps,
): void {
  const { method, headers } = request
  const accept = (result: PhoneAnswer): void => {
    if (result.status < 300) client.noteRegistered(request)
    request.isFromStranger = result.isToStranger === true
    respondToPhone(answer, result)
  }
  registrar
    .handle({ method, headers, source: sourceOf(request) })
    .then(accept, (error: unknown) => {
      log('error', 'a REGISTER could not be handled', { error })
      respond(answer, 500)
    })
}

/** Performs a command of the call machine that needs routing or the rights of a party. */
function perform(request: CallRequest, deps: CallDeps): void {
  const { calls, dispatch } = deps
  if (request.type === 'refer') return takeRefer(request, deps)
  const { callUuid } = request
  const call = calls.call(callUuid)
  if (call === undefined) return undefined
  switch (request.type) {
    case 'decideForward': {
      const forward = forwardBy(call, request.headers, deps)
      return dispatch({ type: 'forwardDecided', callUuid, legId: request.legId, forward })
    }
    case 'decideRedirect': {
      const redirection = redirectionOf(call, request.headers, deps)
      return dispatch({ type: 'redirectDecided', callUuid, ...redirection })
    }
    case 'findPhones': {
      const { domain, extension } = request
      const phones = extensionAt(domain, extension, deps)?.phones ?? []
      return dispatch({ type: 'phonesFound', callUuid, phones })
    }
    case 'forwardOut':
      return forwardOut(call, request.by, request.invite, deps)
    case 'askAttempt':
      return void askAttempt(call, request, deps).catch(stopOnFault(callUuid, deps))
    case 'connectSource':
    default: {
      if (call.connect === undefined) return undefined
      return connectSource(call, call.connect, request.offer, deps)
    }
  }
}

/** The phone of click-to-call is picked up: its destination is dialled. */
function connectSource(
  call: LiveCall,
  { invite: waiting, route: known, isEmergency }: NonNullable<LiveCall['connect']>,
  offer: string,
  deps: CallDeps,
): void {
  const invite = { ...waiting, body: offer }
  const route = known ?? routeCall(invite, call.account, deps)
  const asked = isEmergency ? undefined : askRoute(call, route, invite, deps)
  if (asked === undefined) return dial(invite, route, isEmergency, deps)
  asked
    .then((chosen) => dial(invite, chosen, isEmergency, deps))
    .catch(stopOnFault(invite.callUuid, deps))
}

/** Ends a call that is being dialled, which nothing refuses any more. */
const stopOnFault =
  (callUuid: string, { log, dispatch }: Pick<CallDeps, 'log' | 'dispatch'>) =>
  (error: unknown): void => {
    log('error', 'a call failed', { callUuid, error })
    dispatch({ type: 'stop', callUuid, end: fault })
  }

/** Asks a hook whether the next destination is tried. */
async function askAttempt(
  call: LiveCall,
  attempt: Extract<CallRequest, { readonly type: 'askAttempt' }>,
  { hooks, dispatch }: CallDeps,
): Promise<void> {
  const { callUuid } = attempt
  const { failover, notes = [] } = (await hooks?.attempt(call, attempt)) ?? {}
  dispatch({ type: 'hooked', callUuid, notes })
  dispatch({ type: 'attemptDecided', callUuid, failover })
}

/** RFC 3261 §11.2: OPTIONS gets the status that an INVITE would get now. */
function answerOptions(answer: Answer, deps: CallDeps): void {
  if (closedBy(deps.calls)) respond(answer, 503, undefined, { headers: retryAfter(deps) })
  else respond(answer, 200, undefined, { headers: capabilities })
}

const capabilities = { Allow: ALLOW, Accept: 'application/sdp', Supported: 'timer, replaces' }

type Unanswered = Pick<CallDeps['calls'], 'isUnanswered'>

/** Refuses a request that has no handler: outside dialogs, or in one that has no legs. */
function refuseRequest(request: ReceivedRequest, answer: Answer, calls: Unanswered): void {
  const { method } = request
  if (method === 'ACK') return
  if (request.dialogId !== '') return refuseInDialog(request, answer, calls)
  request.isFromStranger = true
  // RFC 3515 §2.4.4: outside a call there is no party to transfer.
  if (method === 'REFER') return respond(answer, 403)
  // Both are taken in calls. RFC 6086 §4.2.2, RFC 6665 §4.1.3: their dialog is unknown.
  if (method === 'INFO' || method === 'NOTIFY') return respond(answer, 481)
  return respond(answer, 405, undefined, { headers: { Allow: ALLOW } })
}

/**
 * The dialog was ours a moment ago, or will be: to an early one 481 would be its end (RFC 5057
 * §5.3).
 */
function refuseInDialog(
  { method, headers, body }: ReceivedRequest,
  answer: Answer,
  calls: Unanswered,
): void {
  if (method === 'PRACK') respond(answer, answerToPrack({ body }))
  else if (!calls.isUnanswered(headers['call-id'] ?? '')) respond(answer, 481)
  else if (method === 'OPTIONS') respond(answer, 200, undefined, { headers: capabilities })
  else respond(answer, 500, undefined, { headers: { 'Retry-After': '1' } })
}

// An INVITE until its call is dialled: identified, validated, authorized, routed.

/**
 * Handles one INVITE outside any dialog. A challenge leaves no record, and neither do most calls of
 * unknown sources, which could fill the disk.
 */
function handleInvite(request: ReceivedRequest, answer: Answer, deps: CallDeps): void {
  const replacement = deps.otherInstances?.read(request)
  if (replacement === 'refused') {
    request.isFromStranger = true
    return respond(answer, 403, 'Forbidden')
  }
  if (replacement) return replaceForOtherInstance(request, answer, replacement, deps)
  const asked = deps.applications?.read(request)
  if (asked === 'refused') {
    request.isFromStranger = true
    return respond(answer, 403, 'Forbidden')
  }
  if (asked) return takeOfApplication(request, asked, deps)
  const identified = identify(request, deps)
  request.isFromStranger = isUnproven(identified)
  if (identified.kind === 'challenged') return respondToPhone(answer, identified.answer)
  const { origin } = identified
  const { unknownDomain } = identified
  if (request.isFromStranger && !deps.onUnknownSource(sourceOf(request), unknownDomain))
    return respond(answer, 403, 'Forbidden')
  const invite = readInvite(request, deps.newUuid(), origin, deps.routing)
  const source = hostPort(request.sourceAddress, request.sourcePort)
  const start = startOf(invite, source, deps.now())
  const beginning = { way: 'invite', stranger: strangerText(identified) } as const
  return begin(request, invite, start, beginning, deps)
}

/** The application of the operator calls: like a phone, and never for free outside. */
function takeOfApplication(
  request: ReceivedRequest,
  { callUuid }: ApplicationRequest,
  deps: CallDeps,
): void {
  const run = deps.applications?.runAt(request.sourceAddress, request.sourcePort)
  const madeIn = callUuid === undefined ? undefined : (deps.calls.call(callUuid) ?? 'ended')
  const origin = applicationOrigin(madeIn)
  const read = readInvite(request, deps.newUuid(), origin, deps.routing)
  const invite = applicationInvite(read, request.uri, madeIn, deps)
  const start = { ...startOf(invite, 'application', deps.now()), applicationRun: run }
  return begin(request, invite, start, { way: 'application' }, deps)
}

interface Beginning {
  readonly way: 'invite' | 'application'
  /** Describes an unknown source. */
  readonly stranger?: string | undefined
}

function begin(
  request: ReceivedRequest,
  invite: IncomingInvite,
  start: CallStart,
  beginning: Beginning,
  deps: CallDeps,
): void {
  const { headers } = request
  const leg = deps.calls.beginInvited(
    { start },
    {
      callerTag: tagOf(headers['from']),
      offer: request.body || undefined,
      isReliable: requires100rel(headers['require']),
      isPhone: beginning.way === 'invite' && invite.origin.kind === 'extension',
    },
  )
  deps.receive(leg.id, request)
  const call = deps.calls.call(invite.callUuid)
  if (call === undefined) return undefined
  return void admitInvite(request, call, invite, beginning, deps).catch(onFault(call, deps))
}

/** Describes an unknown source, for the record of its call. */
const strangerText = ({
  isAuthenticated,
  unknownDomain,
}: Extract<Identification, { readonly kind: 'origin' }>): string | undefined => {
  if (isAuthenticated) return 'the password is right, but From names another user than it is for'
  return unknownDomain === undefined ? undefined : `no tenant has the domain ${unknownDomain}`
}

/**
 * Verifies the caller of a carrier's call, and asks a hook about a call; neither, if the call would
 * be refused anyway. One with Replaces calls no number, and the application's own calls are the
 * doing of the same file: no hook is asked.
 */
async function admitInvite(
  request: ReceivedRequest,
  call: LiveCall,
  invite: IncomingInvite,
  { way, stranger }: Beginning,
  deps: CallDeps,
): Promise<unknown> {
  const { sourceAddress: address, sourcePort: port } = request
  const { headers } = way === 'invite' ? request : invite
  const received = { headers, hasUsableContact: (headers['contact'] ?? '') !== '', stranger }
  const isAsked =
    way === 'invite' && deps.hooks?.asksInvite(invite) === true && headers['replaces'] === undefined
  const isVerified = way === 'invite' && deps.verifier.isAsked(invite)
  if (!isAsked && !isVerified) return connect(way, received, call, invite, deps)
  // Its number may be changed: what it is, is checked afterwards.
  const early = { ...invite, irregular: undefined, isEmergency: false }
  const refusal = rejectionFor(received, early, deps)
  if (refusal) return refuse(call, refusal, deps)
  const verifying = isVerified ? verifyCaller(request, call, invite, deps) : undefined
  const verified = verifying instanceof Promise ? await verifying : verifying
  if (verified?.kind === 'ended') return refuse(call, verified.end, deps)
  const proved = verified?.invite ?? invite
  const asked = isAsked
    ? await askInvite(call, proved, { kind: 'request', address, port }, deps)
    : undefined
  if (asked?.kind === 'ended') return refuse(call, asked.end, deps)
  return connect(way, received, call, asked?.invite ?? proved, deps)
}

async function connect(
  way: Beginning['way'],
  received: Parameters<typeof rejectionFor>[0],
  call: LiveCall,
  invite: IncomingInvite,
  deps: CallDeps,
): Promise<unknown> {
  const { headers } = received
  const planned = planCall(way, invite, deps)
  const mayTake = way === 'invite' && headers['replaces'] === undefined
  const plan = mayTake ? withApplication(planned, invite.origin, deps) : planned
  const { isEmergency } = plan
  const isRouted = plan.route?.kind === 'candidates' || invite.target !== undefined
  const rejection = rejectionFor(received, { ...invite, isEmergency, isRouted }, deps)
  if (rejection) return refuse(call, rejection, deps)
  if (invite.origin.kind === 'carrier') {
    // The last check, because it counts the call. Other instances may have to be asked.
    const admitted = deps.routing.admitCarrierCall(invite.origin.carrierId)
    const isAdmitted = typeof admitted === 'boolean' ? admitted : await admitted
    if (call.end) return refuse(call, call.end, deps)
    if (!isAdmitted) {
      const limit = deps.routing.limitOf(invite.origin.carrierId)
      return refuse(call, carrierFull(deps, limit), deps)
    }
    deps.calls.counts.arrived(call, invite.origin.carrierId)
  }
  if (headers['replaces'] !== undefined) return replaceParty(headers, call, invite, deps)
  if (way === 'application' && isUnpaid(invite, plan)) return refuse(call, noPayer, deps)
  return admitAndDial(call, invite, plan, deps)
}
