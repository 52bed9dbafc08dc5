/** Which SIP method goes to which handler; everything else is refused. */
import type {
  OriginateRequest,
  OriginateResult,
  SpyRequest,
  SpyResult,
  TransferRequest,
  TransferResult,
} from '../../schema/contracts/calls.ts'
import type { SavedEntry } from '../../schema/contracts/charging.ts'
import type { Registrar } from '../registrar/registrar.ts'
import type { Routing } from '../routing/routing.ts'
import type { CallDeps } from './call-deps.ts'
import { CallRunner, type CallRequest, type CallRunnerDeps } from './call-runner.ts'
import { credentialsOf } from './dialing/outgoing-invite.ts'
import type { Restored } from './saved-calls.ts'
import { originate } from './click-to-call.ts'
import { forwardBy, forwardOut } from './forward.ts'
import { dial } from './inbound/admission.ts'
import { handleInvite, type InboundCallDeps } from './inbound/inbound-call.ts'
import { retryAfter, routeCall } from './inbound/route.ts'
import { closedBy } from './inbound/validation.ts'
import { spy } from './monitoring/spy.ts'
import { Messages, type MessageTotals } from './phones/message.ts'
import { answerRegister } from './phones/register.ts'
import { ALLOW, ALLOW_OUTSIDE_CALLS, HeaderFilter, respond } from './sip-headers.ts'
import type { Answer, Credentials } from './signalling.ts'
import type { ReceivedRequest } from './user-agent/received-request.ts'
import type { RequestHandler } from './user-agent/server-link.ts'
import { takeRefer } from './transfer/refer.ts'
import { transferByApi } from './transfer/transfer-call.ts'

export interface CallControlDeps
  extends
    Omit<CallDeps, 'dispatch' | 'dispatcher' | 'registrar'>,
    Omit<CallRunnerDeps, keyof CallDeps | 'filter' | 'requests' | 'credentialsOf'>,
    Pick<InboundCallDeps, 'onUnknownSource'> {
  readonly dispatcher: CallDeps['dispatcher'] & CallRunnerDeps['dispatcher']
  readonly registrar: CallDeps['registrar'] & Pick<Registrar, 'handle'>
  readonly routing: CallDeps['routing'] & Pick<Routing, 'carrierAuth'>
  /** Takes what phones publish (RFC 3903). */
  readonly publications?: { take(request: ReceivedRequest, answer: Answer): void }
  /** Lower-case names of the `X-…` headers that pass between the legs. */
  readonly passX: ReadonlySet<string>
}

/** Handled so that they are refused here: the server answers methods without a handler with 503. */
const refusedMethods = ['subscribe', 'notify', 'info', 'refer']

export type { Restored } from './saved-calls.ts'

/** What the API starts, and what others report of calls. */
export interface CallControl {
  originate(request: OriginateRequest): Promise<OriginateResult>
  transfer(request: TransferRequest): Promise<TransferResult>
  spy(request: SpyRequest): SpyResult
  /** Calls of the last run go on. Before the first packet. */
  restore(entries: readonly SavedEntry[]): Restored
  /** Another process goes on with all calls next. Returns those with which it cannot. */
  saveAll(): readonly string[]
  /** No RTP has come since `lastPacketAt`: an answered call ends, as of then. */
  mediaLost(callUuid: string, lastPacketAt: number): void
  /** Between phones, outside calls; since the start. */
  readonly messages: MessageTotals
}

/** Call control on a client that is not connected yet. */
export function startCallControl(deps: CallControlDeps): CallControl {
  const { client, passX } = deps
  const filter = new HeaderFilter({ passX, ownHost: () => client.ownHost })
  const requests = (request: CallRequest): void => take(request, calls)
  const credentialsOfCarrier = (carrierId: number): Credentials | undefined => {
    const auth = deps.routing.carrierAuth(carrierId)
    return auth && credentialsOf({ auth })
  }
  const runner = new CallRunner({ ...deps, filter, requests, credentialsOf: credentialsOfCarrier })
  const calls: InboundCallDeps = {
    ...deps,
    dispatch: (event) => runner.dispatch(event),
    receive: (legId, request, isOtherNode) => runner.receive(legId, request, isOtherNode),
  }
  client.onLost((isLost) => deps.calls.connectionLost(isLost))
  client.handle('invite', (request, answer) => {
    if (request.dialogId !== '') return refuse(request, answer, deps.calls)
    try {
      return handleInvite(request, answer, calls)
    } catch (error) {
      // Before there was a call that could fail: its source could not be found out.
      deps.log('error', 'an INVITE could not be handled', { error })
      return respond(answer, 500)
    }
  })
  client.handle('options', (request, answer) => {
    if (request.dialogId !== '') return refuse(request, answer, deps.calls)
    // It is asked of all, and answered to all.
    request.isFromStranger = true
    return answerOptions(answer, calls)
  })
  client.handle('register', (request, answer) => answerRegister(request, answer, deps))
  const messages = new Messages(calls)
  client.handle('message', (request, answer) => {
    if (request.dialogId !== '') refuse(request, answer, deps.calls)
    else messages.take(request, answer)
  })
  client.handle('publish', (request, answer) => {
    if (request.dialogId !== '' || !deps.publications) refuse(request, answer, deps.calls)
    else deps.publications.take(request, answer)
  })
  const refuseHere: RequestHandler = (request, answer) => refuse(request, answer, deps.calls)
  for (const method of refusedMethods) client.handle(method, refuseHere)
  client.handle('*', refuseHere)
  return {
    originate: (request) => originate(request, calls),
    transfer: (request) => transferByApi(request, calls),
    spy: (request) => spy(request, calls),
    restore: (entries) => runner.restore(entries),
    saveAll: () => runner.saveAll(),
    mediaLost: (callUuid, lastPacketAt) =>
      runner.dispatch({ type: 'mediaLost', callUuid, lastPacketAt }),
    messages: messages.totals,
  }
}

/** What the machine of calls asks of routing and of the parties' rights. */
function take(request: CallRequest, deps: CallDeps): void {
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
    case 'forwardOut':
      return forwardOut(call, request.by, request.invite, deps)
    case 'connectSource':
    default: {
      if (call.connect === undefined) return undefined
      const { isEmergency, route } = call.connect
      const invite = { ...call.connect.invite, body: request.offer }
      return dial(invite, route ?? routeCall(invite, call.account, deps), isEmergency, deps)
    }
  }
}

/** RFC 3261 §11.2: what an INVITE would get at this moment. */
function answerOptions(answer: Answer, deps: CallDeps): void {
  if (closedBy(deps.calls)) respond(answer, 503, undefined, { headers: retryAfter(deps) })
  else respond(answer, 200, undefined, { headers: capabilities })
}

const capabilities = { Allow: ALLOW, Accept: 'application/sdp', Supported: 'timer, replaces' }

type Unanswered = Pick<CallDeps['calls'], 'isUnanswered'>

/** Refuses a request that has no handler: outside dialogs, or in one that has no legs. */
function refuse(request: ReceivedRequest, answer: Answer, calls: Unanswered): void {
  const { method } = request
  if (method === 'ACK') return
  if (request.dialogId !== '') return refuseInDialog(request, answer, calls)
  request.isFromStranger = true
  // RFC 3515 §2.4.4: outside a call there is no party to transfer.
  if (method === 'REFER') return respond(answer, 403)
  return respond(answer, 405, undefined, { headers: { Allow: ALLOW_OUTSIDE_CALLS } })
}

/** The dialog was ours a moment ago, or will be: to an early one 481 would be its end (RFC 5057 §5.3). */
function refuseInDialog(
  { method, headers }: ReceivedRequest,
  answer: Answer,
  calls: Unanswered,
): void {
  if (method === 'PRACK') respond(answer, 200)
  else if (!calls.isUnanswered(headers['call-id'] ?? '')) respond(answer, 481)
  else if (method === 'OPTIONS') respond(answer, 200, undefined, { headers: capabilities })
  else respond(answer, 500, undefined, { headers: { 'Retry-After': '1' } })
}
