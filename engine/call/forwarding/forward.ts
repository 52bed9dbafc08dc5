/**
 * A call that its callee's phone sends elsewhere. Inside the house the call itself goes on. To the outside
 * goes a call of its own, on the account of the extension that forwards: both keep their record, their
 * payer and their leg, and end together, as after a transfer.
 */
import type { Attempt } from '../../../schema/call-record.ts'
import type { ExtensionOrigin } from '../../routing/routing.ts'
import type { Call, CallStart } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import type { Caller } from '../legs/caller.ts'
import { Conversation, type ConversationDeps, type Participant } from '../legs/conversation.ts'
import { closedBy } from '../inbound/validation.ts'
import type { ExtensionDestination } from '../inbound/extension-route.ts'
import { divertedBy, forwardingOf, type Forwarding } from './redirect.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import { summarize, type End } from '../cdr/end-reason.ts'
import { journalled } from '../record/journal.ts'
import { emergencyRoute, innerRoute, type Route, type RouteDeps } from '../inbound/route.ts'
import type { Headers, SipResponse, SrfDialog } from '../srf/drachtio.ts'
import type { SrfClient } from '../srf/srf-client.ts'
import { admit, type AdmissionDeps, type FreeRoute } from '../inbound/admission.ts'
import { store, talk, type TalkDeps } from '../setup/talk.ts'

/** From one phone to the next, to the next. */
const MAX_FORWARDS = 5
/** What an extension forwards to the outside may come back by a carrier that counts no hops. */
const MAX_UNANSWERED = 10

/** A call on its way, and the extensions that it has come to. */
export interface Journey {
  readonly caller: Caller
  readonly call: Call
  readonly reading: Reading
  readonly visited: readonly string[]
}

export interface Forward {
  /** As the call goes on: who has sent it there, and what is called. */
  readonly reading: Reading
  /** Inside the house; undefined: outside, and somebody has to pay for it. */
  readonly route: Route | undefined
}

export interface ForwardDeps extends AdmissionDeps, TalkDeps, ConversationDeps {
  readonly calls: TalkDeps['calls']
  readonly newUuid: () => string
}

/** What a 3xx of the extension's phone asks. Undefined: it is not followed. */
export function forwardBy(
  { uri }: ExtensionDestination,
  headers: Headers,
  { call, reading, visited }: Journey,
  deps: RouteDeps & Pick<ForwardDeps, 'calls'>,
): Forward | undefined {
  const forwarding = forwardingOf(headers)
  const origin = extensionIn(uri, deps)
  const isFar = visited.length > MAX_FORWARDS || reading.hopsLeft < 1
  if (forwarding === undefined || origin === undefined || isFar) return undefined
  const forwarded = readingOf(reading, uri, origin, forwarding)
  // It is no emergency of whoever calls; and nobody should be able to flood such a number through a phone.
  if (deps.routing.isEmergencyNumber(forwarded.calledNumber) || emergencyRoute(forwarded, deps))
    return undefined
  const route = innerRoute(forwarded, deps)?.route
  if (route?.kind === 'refused') return undefined
  if (route) {
    const isLoop = route.candidates.some((candidate) => visited.includes(candidate.uri))
    return isLoop ? undefined : { reading: { ...forwarded, origin: reading.origin }, route }
  }
  const { calls } = deps
  const mayGoOut =
    call.start.isOurs !== true &&
    reading.body !== undefined &&
    closedBy(calls) === undefined &&
    calls.countForwarding(uri) < MAX_UNANSWERED
  return mayGoOut ? { reading: forwarded, route: undefined } : undefined
}

function extensionIn(uri: string, { registrar }: RouteDeps): ExtensionOrigin | undefined {
  const [number = '', home = ''] = uri.slice('sip:'.length).split('@')
  const record = registrar.extensionAt(home, number)
  if (record === undefined) return undefined
  const { extensionId, tenantId, customerId, domain, extension, displayName } = record
  return { kind: 'extension', extensionId, tenantId, customerId, domain, extension, displayName }
}

/** Who is called sees who has called at first, and in Diversion who has sent the call on (RFC 5806). */
function readingOf(
  reading: Reading,
  uri: string,
  origin: ExtensionOrigin,
  { number, user, domain, isSecure, reason }: Forwarding,
): Reading {
  return {
    ...reading,
    ...{ origin, calledNumber: number, calledUser: user, domain: domain || origin.domain },
    headers: divertedBy(uri, reason, reading.headers),
    isSecure: isSecure || reading.isSecure === true,
    hopsLeft: reading.hopsLeft - 1,
  }
}

/** Resolves with what became of the forwarded call, as an outcome of the one that it was made for. */
export async function forwardOut(
  { caller, call }: Journey,
  uri: string,
  given: Reading,
  reach: (caller: Caller, call: Call, reading: Reading, free: FreeRoute) => Promise<Outcome>,
  deps: ForwardDeps,
): Promise<Outcome> {
  const { origin } = given
  if (origin.kind !== 'extension') throw new Error('only extensions forward')
  const reading: Reading = {
    ...given,
    callUuid: deps.newUuid(),
    ...{ callerNumber: origin.extension, callerName: origin.displayName || null },
  }
  const forwarded = deps.calls.begin(startOf(reading, deps.now()))
  forwarded.near = call.near
  forwarded.peers.caller = call.peers.caller
  forwarded.payerTenantId = origin.tenantId
  forwarded.forwardedBy = uri
  const standIn = new StandIn(caller, call, deps)
  const forget = call.whenStopped((end) =>
    forwarded.stop(end.kind === 'cut' ? { ...end, code: null } : { kind: 'cancelled' }),
  )
  const free: FreeRoute = { isEmergency: false, route: undefined, tenantId: null }
  const outcome = await admit(forwarded, reading, free, deps)
    .then((refusal): Outcome | Promise<Outcome> =>
      refusal ? { kind: 'over', end: refusal } : reach(standIn, forwarded, reading, free),
    )
    .catch((error: unknown): Outcome => {
      // A bug ends one call, not the process.
      deps.log('error', 'a call failed', { callUuid: reading.callUuid, error })
      const code = 'fault'
      return {
        kind: 'over',
        end: { kind: 'refused', status: 500, reason: 'Server Internal Error', code },
      }
    })
  forget()
  call.attempts.push(attemptOf(forwarded.start.startedAt, reading, outcome, deps))
  if (outcome.kind === 'over') forwarded.stop(outcome.end)
  const ended = outcome.kind === 'over' ? outcome.end : talk(forwarded, outcome.ended, deps)
  void Promise.resolve(ended).then((end) => store(forwarded, end, deps))
  if (outcome.kind === 'over') return { kind: 'over', end: call.stopped ?? heard(outcome.end) }
  // Without a leg: somebody else has taken the caller's place.
  return standIn.conversation
    ? { kind: 'answered', ended: standIn.conversation.ended }
    : { kind: 'over', end: { kind: 'cancelled' } }
}

/** How the forward stands in the record of the call that was forwarded. */
function attemptOf(
  startedAt: number,
  { calledUser, domain }: Reading,
  outcome: Outcome,
  { now }: Pick<ForwardDeps, 'now'>,
): Attempt {
  const destination = `sip:${calledUser}@${domain}`
  const status = outcome.kind === 'answered' ? 200 : summarize(heard(outcome.end), false).sipCode
  return { destination, status, reason: 'forwarded', startedAt, endedAt: now() }
}

function startOf(reading: Reading, startedAt: number): CallStart {
  const { callUuid, callId, callerNumber, callerName, calledNumber } = reading
  return {
    ...{ callUuid, callId, callerNumber, callerName, calledNumber },
    ...{ sourceAddress: 'forward', isOurs: true, startedAt },
  }
}

/** Whether the extension has money, or may call there, is nothing that its callers are told. */
const heard = (end: End): End =>
  end.kind === 'refused'
    ? { kind: 'rejected', status: 480, reason: 'Temporarily Unavailable', headers: {} }
    : end

/** The caller of the forwarded call: that of the call that was forwarded, where its leg stays. */
class StandIn implements Caller {
  readonly owesAck = false
  readonly keepsOrigin = false
  /** Since the answer. */
  conversation: Conversation | undefined
  readonly #caller: Caller
  readonly #call: Call
  readonly #deps: ForwardDeps

  constructor(caller: Caller, call: Call, deps: ForwardDeps) {
    this.#caller = caller
    this.#call = call
    this.#deps = deps
  }

  progress(response: Pick<SipResponse, 'status' | 'reason' | 'body'>, headers: Headers): void {
    const call = this.#call
    call.firstProgressAt ??= this.#deps.now()
    if (response.body) call.state = 'EARLY'
    else if (response.status === 180 && call.state === 'DIALING') call.state = 'RINGING'
    this.#caller.progress(response, headers)
  }

  accept(
    client: SrfClient,
    body: string,
    headers: Headers,
    done: (taken: Participant | undefined) => void,
  ): void {
    const take = (): void =>
      this.#caller.accept(client, body, headers, (taken) =>
        done(taken === undefined || 'leg' in taken ? taken : this.#joined(taken)),
      )
    const drop = (): void => done(undefined)
    void journalled(this.#call, this.#call.attempts, this.#deps).then((isSafe) =>
      isSafe ? take() : drop(),
    )
  }

  #joined(dialog: SrfDialog): Participant {
    const call = this.#call
    call.answeredAt = this.#deps.now()
    call.state = 'ACTIVE'
    const conversation = new Conversation(call, this.#deps)
    this.conversation = conversation
    const leg = conversation.join('caller', dialog, !this.#caller.owesAck)
    return { conversation, side: 'caller', leg }
  }
}
