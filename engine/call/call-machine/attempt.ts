/**
 * One INVITE to one destination, by `attemptTable`: a node, a gateway, an agent, a phone, a domain.
 * It reports its end by `attemptOver`, and its answer by `calleeAnswered` or `pickedUp`.
 */
import { tagOf } from '../../../schema/sip/index.ts'
import { cause, reasonHeader, type End } from '../cdr/end-reason.ts'
import { applicationAnswer } from '../application/final-answer.ts'
import { continues } from '../application/private-headers.ts'
import type { Callee } from '../dialing/outgoing-invite.ts'
import { PARTS } from '../multipart.ts'
import { silentOffer } from '../sdp.ts'
import { withoutAlerts, withoutClaims } from '../sip-headers.ts'
import type { Headers, LegEventData, SipResponse } from '../signalling.ts'
import { type AttemptEvent, attemptTable } from './tables.ts'
import { display, legOf, offeringLeg, progress } from './calling.ts'
import { wantsOffer } from './failover.ts'
import { closeLeg, newLeg, stepLeg } from './leg.ts'
import type { StepContext } from './protocol.ts'
import type { InviteAttempt, AttemptResult, Call, EarlyDialog } from './state.ts'

/** A late response is the fault of the node when the lag is less. */
const NOTICEABLE_LAG_MS = 50
/** The longest extension of a timeout while this process is busy. */
const MAX_EXTRA_MS = 3_000

/** Headers of a CANCEL for another destination, or because the caller has gone. */
export const givenUp: Headers = { Reason: reasonHeader({ by: 'system', cause: cause.normal }) }
/** RFC 3326 §2: another phone of the callee has answered. */
const answeredElsewhere: Headers = { Reason: 'SIP;cause=200;text="Call completed elsewhere"' }
const declinedElsewhere = (status: number): Headers => ({
  Reason: `SIP;cause=${status};text="Declined elsewhere"`,
})

export function startAttempt(
  ctx: StepContext,
  call: Call,
  candidate: Callee,
  isBranch: boolean,
  timeoutMs = ctx.timing.nodeTimeoutMs,
): void {
  const { dialing } = call
  if (dialing === undefined) return
  const leg = newLeg(ctx, call, dialing.purpose === 'source' ? 'caller' : 'callee', true)
  leg.isPhone = candidate.kind === 'phone'
  if ('stripHeaders' in candidate) leg.withheld = candidate.stripHeaders
  const { invite, purpose } = dialing
  leg.lastSdpSent = invite.body ?? ''
  const attempt: InviteAttempt = {
    legId: leg.id,
    destination: candidate.uri,
    isNode: candidate.kind === 'node',
    isBranch,
    startedAt: ctx.now,
    timeoutMs,
    state: 'silent',
    endedAt: ctx.now,
    status: 0,
    reason: '',
    result: undefined,
    candidate: purpose === 'source' ? candidate : undefined,
    ...throughInstance(candidate),
  }
  dialing.attempts.push(attempt)
  if (attempt.phone !== undefined) watchHolder(ctx, attempt)
  if (purpose === 'destination') startTimer(ctx, attempt, ctx.now + timeoutMs)
  const near = purpose === 'source' ? undefined : call.near
  const sdpOwner = invite.body === undefined ? undefined : offeringLeg(ctx, call)
  ctx.commands.push({
    type: 'invite',
    legId: leg.id,
    candidate,
    invite,
    sdpOwner,
    isBranch,
    near,
  })
}

/** Another instance, if the candidate is called through it. */
function throughInstance(candidate: Callee): Pick<InviteAttempt, 'holder' | 'holderRun' | 'phone'> {
  if (!('holder' in candidate) || candidate.holder === undefined) return {}
  const { holder } = candidate
  if (candidate.kind !== 'phone') return { holder }
  const { domain, extension, holderRun } = candidate
  return { holder, holderRun, phone: { domain, extension } }
}

/**
 * While a phone rings through another instance, it is asked so often whether that is still there.
 */
const HOLDER_CHECK_MS = 1_000

function watchHolder({ commands, now }: StepContext, { legId }: InviteAttempt): void {
  commands.push({ type: 'startTimer', timer: { kind: 'holder', legId }, at: now + HOLDER_CHECK_MS })
}

export function holderTimer(ctx: StepContext, attempt: InviteAttempt): void {
  const { legId, holder: name, holderRun: run, state } = attempt
  if (name === undefined || state === 'over' || state === 'answered') return
  ctx.commands.push({ type: 'checkHolder', legId, holder: { name, run } })
  watchHolder(ctx, attempt)
}

function startTimer({ commands }: StepContext, { legId }: InviteAttempt, at: number): void {
  commands.push({ type: 'startTimer', timer: { kind: 'attempt', legId }, at })
}

export function startRingTimer({ commands, now }: StepContext, call: Call, ringMs: number): void {
  const timer = { kind: 'ring', callUuid: call.start.callUuid } as const
  commands.push({ type: 'startTimer', timer, at: now + ringMs })
}

export function stopRingTimer({ commands }: StepContext, { start: { callUuid } }: Call): void {
  commands.push({ type: 'stopTimer', timer: { kind: 'ring', callUuid } })
}

export const attemptOf = (call: Call, legId: string): InviteAttempt | undefined =>
  call.dialing?.attempts.find((attempt) => attempt.legId === legId)

interface AttemptDetails {
  readonly result?: AttemptResult
  readonly headers?: Headers
}

const noDetails: AttemptDetails = {}
const silent: AttemptResult = { kind: 'silent' }

/** Makes one step of an attempt. */
export function stepAttempt(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  event: AttemptEvent,
  { result = silent, headers = givenUp }: AttemptDetails = noDetails,
): boolean {
  const next = attemptTable[attempt.state][event]
  if (next === undefined) return false
  attempt.state = next.to
  const { legId, holder } = attempt
  // A node that has sent any response is reachable: later silence is the phone's. If our own SIP
  // server cannot send the request, the node may be well.
  const isUnreachable = attempt.status === 0 && event === 'silence' && !isConnectionLost(result)
  if (holder !== undefined && isUnreachable)
    ctx.commands.push({ type: 'instanceSilent', name: holder })
  const { callUuid } = call.start
  for (const action of next.do)
    switch (action) {
      case 'startRingTimer':
        if (call.dialing?.purpose === 'destination')
          startTimer(ctx, attempt, ctx.now + ctx.timing.ringTimeoutMs)
        break
      case 'stopTimer':
        ctx.commands.push({ type: 'stopTimer', timer: { kind: 'attempt', legId } })
        break
      case 'close':
        closeLeg(ctx, ctx.world.legs.get(legId), headers)
        break
      case 'probe':
        startTimer(ctx, attempt, ctx.now + attempt.timeoutMs)
        ctx.commands.push({ type: 'probe', legId, uri: attempt.destination })
        break
      case 'endCall':
        ctx.signals.push({ type: 'stop', callUuid, end: { kind: 'no-answer' } })
        break
      case 'settle':
      default:
        attempt.result = result
        attempt.endedAt = ctx.now
        ctx.signals.push({ type: 'attemptOver', callUuid, legId })
    }
  return true
}

/** Something happened to the leg of an attempt, and the attempt is not over yet. */
export function attemptEvent(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  event: LegEventData,
): void {
  switch (event.type) {
    case 'sent':
      call.callIds.push(event.callId)
      if (event.heldMs !== undefined) sentLate(ctx, call, attempt)
      return undefined
    case 'provisional':
      return onProvisional(ctx, call, attempt, event.response)
    case 'rejected':
      return onRejected(ctx, call, attempt, event.response)
    case 'unusable': {
      noteResponse(attempt, event.response)
      const result = rejected(502, 'Bad Gateway', {}, true)
      return void stepAttempt(ctx, call, attempt, 'unusable', { result })
    }
    case 'failed': {
      const { reason, isConnectionLost } = event
      attempt.reason = reason
      const result = {
        kind: 'not-sent',
        reason,
        ...(isConnectionLost && { isConnectionLost }),
      } as const
      return void stepAttempt(ctx, call, attempt, 'failed', { result })
    }
    case 'answered':
    case 'offered':
      return onAnswered(ctx, call, attempt, event)
    default:
      return undefined
  }
}

/** The INVITE has waited for a media relay: the time of the destination begins now. */
function sentLate(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  if (attempt.state === 'silent' && call.dialing?.purpose === 'destination')
    startTimer(ctx, attempt, ctx.now + attempt.timeoutMs)
}

function noteResponse(attempt: InviteAttempt, { status, reason }: SipResponse): void {
  attempt.status = status
  attempt.reason = reason
}

function onProvisional(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  response: SipResponse,
): void {
  const { status, body } = response
  const isSource = call.dialing?.purpose === 'source'
  const isMedia = Boolean(body) && status > 100 && !attempt.isBranch
  stepAttempt(ctx, call, attempt, isMedia ? 'earlyMedia' : 'response')
  noteResponse(attempt, response)
  if (status <= 100) return undefined
  if (isSource) return call.display === 'DIALING' ? display(ctx, call, 'RINGING') : undefined
  attempt.progressAt ??= ctx.now
  call.firstProgressAt ??= ctx.now
  call.peers.callee ??= response.peer
  // One 180 without media for all phones: their answers to one offer would contradict each other.
  if (attempt.isBranch) {
    if (call.display !== 'DIALING') return undefined
    const ringing = { status: 180, reason: 'Ringing', body: undefined, sdpOwner: undefined }
    return progress(ctx, call, ringing, {})
  }
  if (isMedia) noteEarlyMedia(attempt, response)
  const { reason } = response
  const by = body ? speakerOf(attempt, response) : undefined
  const progressed = { status, reason, body, sdpOwner: attempt.legId, by }
  return progress(ctx, call, progressed, passedAnswer(ctx, call, attempt, response))
}

/** The most early dialogs of one attempt. */
const MAX_FORKS = 8

function noteEarlyMedia(attempt: InviteAttempt, { headers, body: sdp = '' }: SipResponse): void {
  if (!/^application\/sdp\b/i.test(headers['content-type'] ?? '')) return
  const tag = tagOf(headers['to'])
  const { first = sdp, updates = 0 } = earlyDialog(attempt, tag) ?? {}
  // It may repeat its answer, whatever it has said since.
  if (updates === 0) noteEarly(attempt, { tag, first: sdp, sdp, updates })
  else if (sdp !== first) noteEarly(attempt, { tag, first, sdp, updates })
}

const earlyDialog = ({ early }: InviteAttempt, tag: string): EarlyDialog | undefined =>
  early?.find((each) => each.tag === tag)

function noteEarly(attempt: InviteAttempt, dialog: EarlyDialog): void {
  const others = attempt.early?.filter(({ tag }) => tag !== dialog.tag) ?? []
  attempt.early = [...others, dialog].slice(-MAX_FORKS)
}

/** The called side has moved its media before its answer. */
export function redescribed(
  attempt: InviteAttempt,
  { tag, sdp }: Extract<LegEventData, { readonly type: 'redescribed' }>,
): void {
  const { first = '', updates = 0 } = earlyDialog(attempt, tag) ?? {}
  noteEarly(attempt, { tag, first, sdp, updates: updates + 1 })
}

/** Names the description of a response: the fork, and how often it has described itself anew. */
function speakerOf(attempt: InviteAttempt, { headers }: SipResponse): string {
  // Nearly every call: there is nothing to tell apart.
  if (attempt.early === undefined) return attempt.legId
  const tag = tagOf(headers['to'])
  return `${attempt.legId} ${tag} ${earlyDialog(attempt, tag)?.updates ?? 0}`
}

function passedAnswer(
  ctx: StepContext,
  call: Call,
  { legId }: InviteAttempt,
  { headers }: SipResponse,
): Headers {
  const passed = ctx.filter.inviteAnswer(headers)
  if (legOf(ctx.world, offeringLeg(ctx, call))?.isPhone === true) withoutAlerts(passed)
  return ctx.world.legs.get(legId)?.isPhone === true ? withoutClaims(passed) : passed
}

const rejected = (status: number, reason: string, headers: Headers, isFinal: boolean) =>
  ({ kind: 'rejected', status, reason, headers, isFinal }) as const

function onRejected(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  response: SipResponse,
): void {
  if (offerToSource(ctx, call, attempt, response)) return
  noteResponse(attempt, response)
  const { status, reason, headers } = response
  const { current } = call.dialing ?? {}
  if (current?.kind === 'application')
    return applicationRejected(ctx, call, attempt, response, current.secret)
  const passed = passedAnswer(ctx, call, attempt, response)
  // Whatever else a refusal says is for us: another destination may follow, and it may speak of
  // equipment behind us.
  delete passed[PARTS]
  const result = rejected(status, reason, passed, attempt.state === 'early')
  if (status >= 600 && attempt.isBranch && call.dialing?.purpose === 'destination')
    // RFC 3261 §16.7 step 5: 6xx is the callee's decision for all its phones.
    abandonOthers(ctx, call, attempt, 'declined elsewhere', declinedElsewhere(status))
  const redirect = status < 400 ? { redirect: headers } : {}
  stepAttempt(ctx, call, attempt, 'rejected', { result: { ...result, ...redirect } })
}

/** Its answers are the operator's: any status is final, and those of a refusal are not changed. */
function applicationRejected(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  response: SipResponse,
  secret: string,
): void {
  if (continues(response.headers, secret)) {
    attempt.reason = 'continue'
    return void stepAttempt(ctx, call, attempt, 'rejected', { result: { kind: 'continued' } })
  }
  const passed = passedAnswer(ctx, call, attempt, response)
  delete passed[PARTS]
  const { status, reason, headers } = applicationAnswer(response, passed, ctx.leadsToGateway)
  const result = { ...rejected(status, reason, headers, true), isVerbatim: true } as const
  return void stepAttempt(ctx, call, attempt, 'rejected', { result })
}

/** The worker of the application is gone. */
export function lostApplication(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  attempt.reason = 'the application is lost'
  stepAttempt(ctx, call, attempt, 'abandoned')
}

/** Gives up all attempts but one. `why` goes into the record, `headers` to the phones. */
export function abandonOthers(
  ctx: StepContext,
  call: Call,
  one: InviteAttempt | undefined,
  why: string,
  headers: Headers,
): void {
  for (const attempt of call.dialing?.attempts ?? []) {
    if (attempt === one || attempt.state === 'over') continue
    if (attempt.reason === '') attempt.reason = why
    stepAttempt(ctx, call, attempt, 'abandoned', { headers })
  }
}

function onAnswered(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  event: Extract<LegEventData, { readonly type: 'answered' | 'offered' }>,
): void {
  const { response, legId } = event
  noteResponse(attempt, response)
  const headers = passedAnswer(ctx, call, attempt, response)
  if (!stepAttempt(ctx, call, attempt, 'answered')) return
  abandonOthers(ctx, call, attempt, 'answered elsewhere', answeredElsewhere)
  if (call.dialing?.purpose === 'source') return pickedUp(ctx, call, event)
  attempt.progressAt ??= ctx.now
  call.firstProgressAt ??= ctx.now
  call.peers.callee = response.peer
  call.legs.callee = legId
  const sdp = descriptionIn(attempt, response)
  const leg = ctx.world.legs.get(legId)
  if (leg && event.type === 'answered' && sdp !== '') leg.media = sdp
  stopRingTimer(ctx, call)
  call.answering = { sdp, sdpOwner: legId, headers, by: speakerOf(attempt, response) }
  ctx.signals.push({ type: 'calleeAnswered', callUuid: call.start.callUuid })
}

/**
 * RFC 3262 §5: a callee that has answered our offer reliably does not do so again in the 200, or
 * says the same, whatever its UPDATE has said since. The caller got the answer unreliably, and must
 * find it in the 200 (RFC 3261 §13.3.1).
 */
function descriptionIn(attempt: InviteAttempt, { headers, body }: SipResponse): string {
  if (attempt.early === undefined) return body ?? ''
  const early = earlyDialog(attempt, tagOf(headers['to']))
  return body && body !== early?.first ? body : (early?.sdp ?? '')
}

/** A phone of the source is picked up: it is the calling side from now on. */
function pickedUp(
  ctx: StepContext,
  call: Call,
  event: Extract<LegEventData, { readonly type: 'answered' | 'offered' }>,
): void {
  stopRingTimer(ctx, call)
  call.peers.caller = event.response.peer
  call.near = event.legId
  call.dialing = undefined
  const { callUuid } = call.start
  const offer = event.type === 'offered' ? event.offer : undefined
  ctx.signals.push({ type: 'pickedUp', callUuid, legId: event.legId, offer })
}

/** The INVITE must not be sent. */
export function withheld(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  why: string,
  end: End & { readonly kind: 'refused' },
): void {
  attempt.reason = why
  const leg = ctx.world.legs.get(attempt.legId)
  if (leg) stepLeg(ctx, leg, 'failed')
  stepAttempt(ctx, call, attempt, 'withheld', { result: { kind: 'withheld', end } })
}

/** The time of an attempt is over: silence, or ringing for too long. */
export function attemptTimedOut(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  const { now, server } = ctx
  const { lagMs } = server
  const { startedAt, timeoutMs, state, isNode } = attempt
  if (state !== 'silent') return silence(ctx, call, attempt)
  // While this process is busy a response may wait to be read: silence counts only after that.
  if (lagMs > NOTICEABLE_LAG_MS && now < startedAt + timeoutMs + MAX_EXTRA_MS)
    return startTimer(ctx, attempt, now + lagMs)
  const isWithUs = server.isRemote && !hasLeft(ctx, attempt)
  if (server.reportsTrying || isWithUs) return silence(ctx, call, attempt)
  return void stepAttempt(ctx, call, attempt, isNode ? 'probe' : 'wait')
}

/**
 * A silent node that answers OPTIONS may be slow to ring: it gets more time, but not without limit.
 */
export function probed(ctx: StepContext, attempt: InviteAttempt, isThere: boolean): void {
  if (!isThere || attempt.state !== 'probing') return
  const at = attempt.startedAt + ctx.timing.nodeProgressTimeoutMs
  startTimer(ctx, attempt, Math.max(ctx.now, at))
}

const isConnectionLost = (result: AttemptResult): boolean =>
  result.kind === 'not-sent' && result.isConnectionLost === true

/** Whether the SIP server has confirmed that the INVITE was sent: no media relay delays it. */
const hasLeft = ({ world }: StepContext, { legId }: InviteAttempt): boolean =>
  world.legs.get(legId)?.state !== 'calling'

/** If the INVITE was never sent, its destination may be well. */
function silence(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  if (attempt.reason === '' && attempt.status === 0) attempt.reason = 'silence'
  const lost = { kind: 'not-sent', reason: 'silence', isConnectionLost: true } as const
  const result = hasLeft(ctx, attempt) ? silent : lost
  stepAttempt(ctx, call, attempt, 'silence', { result })
}

/** Repeats the INVITE with an offer where a phone requires one. True: it was repeated. */
function offerToSource(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  { status }: SipResponse,
): boolean {
  const { dialing } = call
  const { candidate, isOffering } = attempt
  if (dialing === undefined || candidate === undefined) return false
  if (isOffering === true || !wantsOffer(status)) return false
  const leg = newLeg(ctx, call, 'caller', true)
  leg.isPhone = true
  leg.lastSdpSent = silentOffer
  const again: InviteAttempt = { ...attempt, legId: leg.id, state: 'silent', isOffering: true }
  dialing.attempts = dialing.attempts.map((each) => (each === attempt ? again : each))
  const invite = { ...dialing.invite, body: silentOffer }
  ctx.commands.push({
    type: 'invite',
    legId: leg.id,
    candidate,
    invite,
    sdpOwner: undefined,
    isBranch: true,
    near: undefined,
  })
  return true
}
