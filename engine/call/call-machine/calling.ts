/**
 * The calling side of a call until its answer: an INVITE that came in, a phone that was rung first,
 * the party of another call that is transferred here, or the caller of a call that was forwarded
 * here.
 */
import { denialWarning } from '../../../schema/contracts/denials.ts'
import { cutStatus, failure, reasonHeader, type End } from '../cdr/end-reason.ts'
import { agrees, asOffer, silentAnswer, silentOffer, isHold } from '../sdp.ts'
import type { SdpOwner, Headers, SipResponse } from '../signalling.ts'
import { peerOf, connectLegs, disconnectLegs } from './exchange.ts'
import {
  closeLeg,
  describeTo,
  firstAnswer,
  isClosing,
  isOffering,
  reinvite,
  respondProvisionally,
  sendRequest,
  stepLeg,
  type Progress,
} from './leg.ts'
import type { StepContext } from './protocol.ts'
import type { CallState } from '../../../schema/contracts/calls.ts'
import type { Call, Calling, Leg, ReinviteResult, Side, World } from './state.ts'

type Source = Extract<Calling, { readonly kind: 'source' }>

/**
 * Before its ACK a phone repeats the 200, and its user cannot hang up (RFC 3261 §15). So the ACK
 * does not wait longer for the called side.
 */
const SOURCE_WAIT_MS = 2_000

export function display({ commands }: StepContext, call: Call, to: CallState): void {
  const before = call.display
  call.display = to
  if (to !== before) commands.push({ type: 'display', callUuid: call.start.callUuid, before })
}

/** The leg whose offer the called side gets. */
export function offeringLeg(ctx: StepContext, { calling }: Call): SdpOwner {
  const { world } = ctx
  switch (calling.kind) {
    case 'transferee':
      return world.transfers.get(calling.transferId)?.transferee
    case 'forwarded': {
      const forwarded = world.calls.get(calling.callUuid)
      return forwarded && offeringLeg(ctx, forwarded)
    }
    case 'invite':
    case 'source':
    default:
      return calling.legId
  }
}

/** Passes a provisional response of the called side on. */
export function progress(ctx: StepContext, call: Call, response: Progress, headers: Headers): void {
  const { status, reason, body, sdpOwner } = response
  if (body) display(ctx, call, 'EARLY')
  else if (status === 180 && call.display === 'DIALING') display(ctx, call, 'RINGING')
  const { calling } = call
  switch (calling.kind) {
    case 'invite': {
      const { replacedBy: transferId, legId } = calling
      if (transferId !== undefined)
        ctx.signals.push({ type: 'transferProgress', transferId, status, reason })
      const leg = ctx.world.legs.get(legId)
      if (leg) respondProvisionally(ctx, leg, response, headers, call.offer === undefined)
      return
    }
    case 'source':
      // Early media is connected at once: it is the ringing tone.
      if (body && !call.end) giveMedia(ctx, call, calling, body, sdpOwner)
      return
    case 'transferee': {
      // The transferee is still connected to the transferor: no early media of the new call.
      const { transferId } = calling
      ctx.signals.push({ type: 'transferProgress', transferId, status, reason })
      return
    }
    case 'forwarded':
    default: {
      const forwarded = ctx.world.calls.get(calling.callUuid)
      if (forwarded === undefined || forwarded.end) return
      forwarded.firstProgressAt ??= ctx.now
      progress(ctx, forwarded, response, headers)
    }
  }
}

/**
 * The called side has answered, and the journal knows of it. `callerTaken` or `callerGone` follows.
 */
export function acceptCaller(ctx: StepContext, call: Call): void {
  const { calling, answering, start } = call
  const { callUuid } = start
  const { sdp, sdpOwner, headers, by } = answering ?? nothing
  const gone = (): void => void ctx.signals.push({ type: 'callerGone', callUuid })
  switch (calling.kind) {
    case 'invite': {
      const { replacedBy: transferId, legId } = calling
      if (transferId !== undefined) return reportAnswer(ctx, call, transferId, sdp, sdpOwner)
      const leg = ctx.world.legs.get(legId)
      if (leg?.state !== 'incoming') return gone()
      const answer = firstAnswer(leg, { sdp, by })
      return void stepLeg(ctx, leg, 'accept', { sdp: answer, sdpOwner, headers })
    }
    case 'source': {
      giveMedia(ctx, call, calling, sdp, sdpOwner)
      calling.isWanted = true
      const leg = ctx.world.legs.get(calling.legId ?? '')
      if (leg === undefined || leg.state === 'terminated') return gone()
      if (leg.state === 'confirmed')
        ctx.signals.push({ type: 'callerTaken', callUuid, legId: leg.id })
      return undefined
    }
    case 'transferee':
      return reportAnswer(ctx, call, calling.transferId, sdp, sdpOwner)
    case 'forwarded':
    default: {
      const forwarded = ctx.world.calls.get(calling.callUuid)
      if (forwarded === undefined || forwarded.end) return gone()
      forwarded.answering = { sdp, sdpOwner, headers, by }
      forwarded.acceptFor = callUuid
      return void ctx.signals.push({ type: 'calleeAnswered', callUuid: calling.callUuid })
    }
  }
}

const nothing = { sdp: '', sdpOwner: undefined, headers: {}, by: undefined }

/** Neither the call nor the transfer may have ended. */
function reportAnswer(
  { world, signals }: StepContext,
  call: Call,
  transferId: string,
  sdp: string,
  sdpOwner: SdpOwner,
): void {
  const { callUuid } = call.start
  const isAlive = call.end === undefined && world.transfers.has(transferId)
  if (isAlive) signals.push({ type: 'transferAnswered', transferId, sdp, sdpOwner })
  else signals.push({ type: 'callerGone', callUuid })
}

/** The call ends without an answer: its caller gets the final response. */
export function refuseCaller(ctx: StepContext, call: Call, end: End): void {
  const { calling } = call
  switch (calling.kind) {
    case 'invite': {
      const { replacedBy: transferId, legId } = calling
      const { status, reason, headers } = responseTo(end, ctx.timing.retryAfterSeconds)
      if (transferId !== undefined)
        ctx.signals.push({ type: 'transferRefused', transferId, status, reason: reason ?? '' })
      const leg = ctx.world.legs.get(legId)
      if (leg) stepLeg(ctx, leg, 'reject', { status, reason, headers })
      return
    }
    case 'source':
      return releaseSource(ctx, call, calling, end)
    case 'transferee': {
      const { status, reason } = responseToTransferor(end)
      const { transferId } = calling
      ctx.signals.push({ type: 'transferRefused', transferId, status, reason })
      return
    }
    case 'forwarded':
    default:
      ctx.signals.push({ type: 'forwardEnded', callUuid: calling.callUuid, end })
  }
}

/**
 * The final response to the caller's INVITE. After a CANCEL the SIP server has sent 487 already.
 */
function responseTo(
  end: End,
  retryAfterSeconds: number,
): { readonly status: number; readonly reason?: string; readonly headers: Headers } {
  switch (end.kind) {
    case 'refused': {
      const warning = denialWarning(end.code)
      const why = warning === undefined ? {} : { Warning: warning }
      return { status: end.status, reason: end.reason, headers: { ...why, ...end.headers } }
    }
    case 'rejected':
      return { status: end.status, reason: end.reason, headers: { ...end.headers } }
    case 'no-answer':
      return { status: 480, reason: 'Temporarily Unavailable', headers: {} }
    case 'cut': {
      const retry = end.by === 'system' ? { 'Retry-After': String(retryAfterSeconds) } : {}
      return { status: cutStatus(end.by), headers: { Reason: reasonHeader(end), ...retry } }
    }
    case 'cancelled':
    case 'hung-up':
    default:
      return { status: 487, reason: 'Request Terminated', headers: {} }
  }
}

function responseToTransferor(end: End): { readonly status: number; readonly reason: string } {
  switch (end.kind) {
    case 'refused':
    case 'rejected':
      return { status: end.status, reason: end.reason }
    case 'no-answer':
      return { status: 480, reason: 'Temporarily Unavailable' }
    case 'cancelled':
    case 'hung-up':
      return { status: 487, reason: 'Request Terminated' }
    case 'cut':
    default:
      return { status: 503, reason: 'Service Unavailable' }
  }
}

/**
 * A phone of click-to-call is picked up. RFC 3725: its offer goes to the called side, whose answer
 * goes back in the ACK (flow I). When that takes long, the ACK has no media, and a re-INVITE
 * follows with it.
 */
export function startSource(
  ctx: StepContext,
  call: Call,
  legId: string,
  offer: string,
  wasOffered: boolean,
): void {
  const { callUuid } = call.start
  const remoteSdp = wasOffered ? silentOffer : ''
  call.calling = { kind: 'source', legId, offer, remoteSdp: remoteSdp, isWanted: false }
  if (wasOffered) return
  const timer = { kind: 'source', callUuid } as const
  ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + SOURCE_WAIT_MS })
}

/** The phone has waited for long enough. */
export function sourceWaited(ctx: StepContext, call: Call): void {
  const { calling } = call
  if (calling.kind === 'source' && calling.remoteSdp === '')
    giveMedia(ctx, call, calling, silentAnswer(calling.offer), undefined)
}

function giveMedia(
  ctx: StepContext,
  call: Call,
  source: Source,
  sdp: string,
  sdpOwner: SdpOwner,
): void {
  if (sdp === source.remoteSdp) return
  source.remoteSdp = sdp
  source.remoteSdpOwner = sdpOwner
  stopSourceTimer(ctx, call)
  const leg = ctx.world.legs.get(source.legId ?? '')
  if (leg?.state === 'offered') stepLeg(ctx, leg, 'acknowledge', { sdp, sdpOwner })
  else if (leg?.state === 'confirmed') moveSource(ctx, leg, source)
}

function stopSourceTimer({ commands }: StepContext, { start: { callUuid } }: Call): void {
  commands.push({ type: 'stopTimer', timer: { kind: 'source', callUuid } })
}

/**
 * Sends the phone the SDP of the called side. If another offer is under way, this follows its
 * answer.
 */
function moveSource(ctx: StepContext, leg: Leg, source: Source): void {
  if (isOffering(leg)) return
  source.sentSdp = source.remoteSdp
  leg.hasOwnOrigin = true
  const body = describeTo(leg, source.remoteSdp)
  const request = { method: 'INVITE', headers: {}, body, sdpOwner: source.remoteSdpOwner }
  sendRequest(ctx, leg, request, { kind: 'source' })
}

/** The phone's dialog has begun. */
export function sourceConfirmed(ctx: StepContext, call: Call, leg: Leg): void {
  const { calling } = call
  if (calling.kind !== 'source') return
  if (calling.remoteSdp !== '' && calling.remoteSdp !== leg.lastSdpSent)
    moveSource(ctx, leg, calling)
  const { callUuid } = call.start
  if (calling.isWanted) ctx.signals.push({ type: 'callerTaken', callUuid, legId: leg.id })
}

/** The phone has answered the SDP of the called side. Undefined: the request was not sent. */
export function sourceMoved(
  ctx: StepContext,
  leg: Leg,
  call: Call,
  response: SipResponse | undefined,
): void {
  const { calling, start } = call
  const { callUuid } = start
  const { status, body } = response ?? { status: 500, body: '' }
  if (status < 300 && body) leg.media = body
  // 491: the phone offers something itself at this moment, and so comes to an agreement, too.
  if (status >= 300 && status !== 491) ctx.signals.push({ type: 'stop', callUuid, end: failure })
  else if (
    calling.kind === 'source' &&
    calling.sentSdp !== calling.remoteSdp &&
    leg.state === 'confirmed'
  )
    moveSource(ctx, leg, calling)
  else reconcileSource(ctx, call)
}

/**
 * If the phone's last answer differs from the offer to the called side, a re-INVITE passes it on.
 */
export function reconcileSource(ctx: StepContext, { calling, legs, end }: Call): void {
  const leg = ctx.world.legs.get(calling.kind === 'source' ? (calling.legId ?? '') : '')
  const callee = leg && peerOf(ctx, leg)
  if (calling.kind !== 'source' || !leg || !callee || callee.id !== legs.callee || end) return
  if (isOffering(leg)) return
  if (agrees(calling.offer, callee.media, leg.media)) return
  calling.offer = asOffer(leg.media)
  const offered = { offer: calling.offer, sdpOwner: leg.id }
  reinvite(ctx, callee, { ...offered, tries: 1, step: 'source' })
}

/** The phone could not be acknowledged. */
export function sourceLost({ signals }: StepContext, { start, calling }: Call): void {
  const { callUuid } = start
  signals.push({ type: 'stop', callUuid, end: failure })
  if (calling.kind === 'source' && calling.isWanted) signals.push({ type: 'callerGone', callUuid })
}

/** BYE has a Reason, unless the called side ended the call itself. */
function releaseSource(ctx: StepContext, call: Call, source: Source, end: End): void {
  const leg = ctx.world.legs.get(source.legId ?? '')
  if (source.remoteSdp === '') stopSourceTimer(ctx, call)
  if (leg === undefined || isClosing(leg)) return
  if (leg.state === 'offered') stepLeg(ctx, leg, 'acknowledge', { sdp: silentAnswer(source.offer) })
  closeLeg(ctx, leg, end.kind === 'cut' ? { Reason: reasonHeader(end) } : {})
}

/**
 * A caller has got the description of the callee with a re-INVITE. If its answer differs from what
 * the callee was offered, the callee gets it. Without an answer the two do not hear each other.
 */
export function callerMoved(ctx: StepContext, calleeId: string, result: ReinviteResult): void {
  const callee = legOf(ctx.world, calleeId)
  const [caller, call] = [callee && peerOf(ctx, callee), callee && callOf(ctx.world, callee)]
  if (!callee || !caller || !call || call.end) return
  const { callUuid } = call.start
  if (result.kind === 'refused') ctx.signals.push({ type: 'stop', callUuid, end: failure })
  else if (!agrees(callee.lastSdpSent, callee.media, caller.media)) {
    const offered = { offer: caller.media, sdpOwner: caller.id }
    reinvite(ctx, callee, { ...offered, tries: 1, step: 'callee' })
  }
}

// Which legs talk to each other, in one call or, after a transfer, in two.

export const oppositeSide = (side: Side): Side => (side === 'caller' ? 'callee' : 'caller')

export const legOf = ({ legs }: Pick<World, 'legs'>, legId: string | undefined): Leg | undefined =>
  legId === undefined ? undefined : legs.get(legId)

export const callOf = ({ calls }: Pick<World, 'calls'>, leg: Leg): Call | undefined =>
  calls.get(leg.callUuid)

/** The leg that this one is connected to. */
export function partnerOf(ctx: Pick<StepContext, 'world'>, leg: Leg): Leg | undefined {
  const peer = peerOf(ctx, leg)
  if (peer) return peer
  return leg.exchangeId === undefined
    ? legOf(ctx.world, callOf(ctx.world, leg)?.legs[oppositeSide(leg.side)])
    : undefined
}

/** Connects two legs; their former partners leave their calls. */
export function connectParties(ctx: StepContext, one: Leg, other: Leg): void {
  for (const leg of [one, other]) {
    leavePartner(ctx, leg)
    leg.hasOwnOrigin = true
  }
  connectLegs(ctx, one, other)
  const isHeld = isHold(one.media) || isHold(other.media)
  for (const leg of [one, other]) {
    const call = callOf(ctx.world, leg)
    if (call) display(ctx, call, isHeld ? 'HELD' : 'ACTIVE')
  }
}

/** The party that this leg talked to is out of its call, and will get or send a BYE. */
function leavePartner(ctx: StepContext, leg: Leg): void {
  const partner = partnerOf(ctx, leg)
  disconnectLegs(ctx, leg)
  if (partner === undefined) return
  partner.excusedBy = undefined
  disconnectLegs(ctx, partner)
  const call = callOf(ctx.world, partner)
  if (call === undefined) return
  call.departing.push(partner.id)
  removeLeg(ctx, call, partner)
}

/** Removes the leg of a party that left and does not end its call. */
export function leave(ctx: StepContext, leg: Leg): void {
  disconnectLegs(ctx, leg)
  const call = callOf(ctx.world, leg)
  if (call) removeLeg(ctx, call, leg)
}

/** A call without legs is over. */
function removeLeg({ signals }: StepContext, call: Call, { id, side }: Leg): void {
  if (call.legs[side] === id) call.legs[side] = undefined
  const { callUuid } = call.start
  if (call.legs.caller === undefined && call.legs.callee === undefined)
    signals.push({ type: 'stop', callUuid, end: { kind: 'hung-up', by: side } })
}

/** BYE, CANCEL or an abandoned offer for all of its legs. */
export function closeLegs(ctx: StepContext, call: Call): void {
  const { caller, callee } = call.legs
  for (const legId of [caller, callee, ...call.departing]) {
    const leg = legOf(ctx.world, legId)
    if (leg === undefined) continue
    disconnectLegs(ctx, leg)
    closeLeg(ctx, leg, call.byeHeaders)
  }
}

/**
 * Ends the calls that the legs of an ended call are connected to, as if their own party had ended
 * them.
 */
export function endPeers(ctx: StepContext, call: Call): void {
  const { end } = call
  if (end === undefined) return
  for (const legId of [call.legs.caller, call.legs.callee]) {
    const leg = legOf(ctx.world, legId)
    const peer = leg && peerOf(ctx, leg)
    const other = peer && callOf(ctx.world, peer)
    if (!other || other === call || other.end) continue
    other.byeHeaders = call.byeHeaders
    const { callUuid } = other.start
    const by = other.legs.caller === undefined ? 'caller' : 'callee'
    const peerEnd = end.kind === 'cut' ? { ...end, code: null } : ({ kind: 'hung-up', by } as const)
    ctx.signals.push({ type: 'stop', callUuid, end: peerEnd })
  }
}

/** Shows that one of two connected parties holds the other, or has resumed. */
export function showMedia(ctx: StepContext, exchangeId: string, isHeld: boolean): void {
  for (const legId of ctx.world.exchanges.get(exchangeId)?.legs ?? []) {
    const leg = legOf(ctx.world, legId)
    const call = leg && callOf(ctx.world, leg)
    if (call) display(ctx, call, isHeld ? 'HELD' : 'ACTIVE')
  }
}
