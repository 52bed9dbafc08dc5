/**
 * Call control without I/O: `(world, event, inputs) → commands`. One event is handled whole, with
 * all that follows from it; then the commands are performed, and may bring the next event.
 */
import type { PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import * as legs from './leg.ts'
import { type End, cause, failure } from '../cdr/end-reason.ts'
import {
  attemptEvent,
  attemptOf,
  attemptTimedOut,
  holderTimer,
  lostApplication,
  probed,
  redescribed,
  withheld,
} from './attempt.ts'
import {
  advance,
  callerGone,
  callerTaken,
  forwardEnded,
  mediaLost,
  stop,
  stopped,
  calleeConfirmed,
} from './call.ts'
import {
  callerMoved,
  sourceWaited,
  startSource,
  sourceConfirmed,
  sourceLost,
  sourceMoved,
  callOf,
  legOf,
  showMedia,
  leave,
} from './calling.ts'
import {
  attemptDecided,
  attemptOver,
  dialRoute,
  forwardDecided,
  lostHolder,
  phonesFound,
  redirectDecided,
  ringSource,
  ringTimedOut,
  roomTaken,
} from './dialing.ts'
import {
  giveUpReinvite,
  giveUpRinging,
  declineLate,
  onLateEvent,
  peerOf,
  reinviteRings,
  relayAck,
  relayedEnded,
  relayRequest,
} from './exchange.ts'
import { askParties, endedUnseen, noteHeard, questionEnded } from './doubt.ts'
import { askForMore, extended, grantEnd, isPutOff, limitGrant, resumeGrant } from './grant.ts'
import type {
  Admission,
  CallCommand,
  HookEffects,
  MachineEvent,
  Signal,
  MachineInputs,
  Timer,
  StepContext,
} from './protocol.ts'
import { MAX_NOTES, type InviteAttempt, type Call, type Leg, type World } from './state.ts'
import {
  beginAttended,
  beginBasicTransfer,
  beginEarlyReplacement,
  beginReplacement,
  onRefer,
  transferSignal,
} from './transfer.ts'
import { asOffer, canBeOffered } from '../sdp.ts'
import { identityClaims } from '../sip-headers.ts'
import type { LegEventData } from '../signalling.ts'

const nowhere = (): boolean => false

const notStored: End = { ...failure, code: 'storage_unavailable' }

/** Handles one event. The returned commands are to be performed in order. */
export function handle(
  world: World,
  event: MachineEvent,
  inputs: MachineInputs,
): readonly CallCommand[] {
  // Written out: spreading the inputs took 40 µs of every call.
  const ctx: StepContext = {
    now: inputs.now,
    server: inputs.server,
    filter: inputs.filter,
    timing: inputs.timing,
    asksAttempts: inputs.asksAttempts === true,
    leadsToGateway: inputs.leadsToGateway ?? nowhere,
    world,
    commands: [],
    signals: [],
    terminated: [],
  }
  onEvent(ctx, event)
  // Also those that are added meanwhile.
  for (const signal of ctx.signals) onSignal(ctx, signal)
  for (const legId of ctx.terminated) forgetLeg(ctx, world.legs.get(legId))
  return ctx.commands
}

/** Forgets a leg that is over, once the responses to its requests have been passed on. */
function forgetLeg(ctx: StepContext, leg: Leg | undefined): void {
  if (leg?.state !== 'terminated') return
  legs.answerOwed(ctx, leg, '')
  giveUpRinging(ctx, leg)
  const isWaiting = Object.values(leg.pending).some(({ kind }) => kind === 'relayed')
  if (!isWaiting) ctx.world.legs.delete(leg.id)
}

function onEvent(ctx: StepContext, event: MachineEvent): void {
  switch (event.type) {
    case 'timer':
      return onTimer(ctx, event.timer)
    case 'transferTo':
      return beginBasicTransfer(ctx, event)
    case 'attend':
      return beginAttended(ctx, event)
    case 'withheld':
    case 'presented':
    case 'numbered':
    case 'probed':
    case 'holderLost':
    case 'applicationLost':
    case 'forwardDecided':
      return onAttemptEvent(ctx, event)
    case 'phonesFound': {
      const call = ctx.world.calls.get(event.callUuid)
      return call && phonesFound(ctx, call, event.phones)
    }
    case 'referAccepted':
    case 'referRefused':
    case 'referFailed':
      return onRefer(ctx, event)
    case 'refuse':
    case 'stop':
    case 'admit':
    case 'charged':
    case 'dial':
    case 'ring':
    case 'roomTaken':
    case 'redirectDecided':
    case 'forwardStarted':
    case 'journalled':
    case 'resumed':
    case 'ask':
    case 'extended':
    case 'notExtended':
    case 'noted':
    case 'hooked':
    case 'verified':
    case 'signed':
    case 'attemptDecided':
    case 'mediaLost':
    case 'supervise':
    case 'replace':
    case 'replaceEarly': {
      const call = ctx.world.calls.get(event.callUuid)
      return call && onCallEvent(ctx, call, event)
    }
    default:
      return onLegEvent(ctx, event)
  }
}

/** Written out: spreading it took 12 µs of every call. */
function noteAdmission(call: Call, admission: Admission): void {
  call.notes.push(...admission.notes)
  call.origin = admission.origin
  call.direction = admission.direction
  call.account = admission.account
  call.grantedSeconds = admission.grantedSeconds
  call.isFree = admission.isFree
  call.isEmergency = admission.isEmergency
}

/** All that follows is of the number that a hook has chosen: rights, price, route and record. */
function takeHook(call: Call, { notes, calledNumber, tags, isToBeRecorded }: HookEffects): void {
  for (const note of notes) if (call.notes.length < MAX_NOTES) call.notes.push(note)
  const { start } = call
  if (calledNumber !== undefined)
    call.start = { ...start, calledNumber, dialledNumber: start.calledNumber }
  if (tags !== undefined) call.tags = tags
  if (isToBeRecorded !== undefined) call.isToBeRecorded = isToBeRecorded
}

type EventOf<T extends MachineEvent['type']> = Extract<MachineEvent, { readonly type: T }>

function takeVerification(
  call: Call,
  { verification, verstat, attestation, why }: EventOf<'verified'>['verified'],
  at: number,
): void {
  call.proof = { verification, verstat, attestation: attestation ?? undefined }
  call.notes.push({ at, what: 'verified', verification, attestation, why })
}

/** The network of a verified caller counts more than our own word. */
function takeSignature(call: Call, { attestation, note }: EventOf<'signed'>): void {
  if (call.proof?.verification === undefined) call.proof = { attestation }
  if (note !== undefined && call.notes.length < MAX_NOTES) call.notes.push(note)
}

type CallBound = Extract<MachineEvent, { readonly callUuid: string }>

function onCallEvent(ctx: StepContext, call: Call, event: CallBound): void {
  switch (event.type) {
    case 'refuse':
      return advance(ctx, call, 'refused', event.end)
    case 'stop':
      return stop(ctx, call, event.end)
    case 'admit':
      return noteAdmission(call, event)
    case 'charged':
      call.account = event.account
      call.grantedSeconds = event.grantedSeconds
      call.isFree = event.isFree
      return void call.notes.push(event.note)
    case 'ring':
      if (call.end) return advance(ctx, call, 'refused')
      advance(ctx, call, 'ring')
      call.connect = event.connect
      if (event.maxSeconds !== undefined) limitGrant(call, event.maxSeconds)
      return ringSource(ctx, call, event)
    case 'dial':
      if (call.end) return advance(ctx, call, 'refused')
      advance(ctx, call, 'dial')
      call.direction = event.route.direction
      return dialRoute(ctx, call, event)
    case 'roomTaken':
      return roomTaken(ctx, call, event.isTaken)
    case 'redirectDecided':
      return redirectDecided(ctx, call, event)
    case 'forwardStarted':
      call.forwardedTo = event.to
      return undefined
    case 'journalled':
      call.bought = event.bought ?? call.bought
      if (event.isStored || call.isEmergency) return advance(ctx, call, 'journalled')
      stop(ctx, call, notStored)
      return advance(ctx, call, 'notJournalled')
    case 'resumed':
      return resumeGrant(ctx, call)
    case 'ask':
      return askParties(ctx, call)
    case 'extended':
      return extended(ctx, call, event.grantedSeconds)
    case 'notExtended':
      call.grantDenial = event.code
      return undefined
    case 'noted':
      return void (call.notes.length < MAX_NOTES && call.notes.push(event.note))
    case 'hooked':
      return takeHook(call, event)
    case 'verified':
      return takeVerification(call, event.verified, ctx.now)
    case 'signed':
      return takeSignature(call, event)
    case 'attemptDecided':
      return attemptDecided(ctx, call, event.failover)
    case 'mediaLost':
      return mediaLost(ctx, call, event.lastPacketAt)
    case 'supervise':
      return void call.supervisedBy.push(event.by)
    case 'replace':
      advance(ctx, call, 'replace')
      return beginReplacement(ctx, event)
    case 'replaceEarly':
      advance(ctx, call, 'replace')
      return beginEarlyReplacement(ctx, event)
    default:
      return undefined
  }
}

function onSignal(ctx: StepContext, signal: Signal): void {
  const { world } = ctx
  if ('transferId' in signal) {
    const transfer = world.transfers.get(signal.transferId)
    return transfer && transferSignal(ctx, transfer, signal)
  }
  if (signal.type === 'callerMoved') return callerMoved(ctx, signal.legId, signal.result)
  if ('legId' in signal && !('callUuid' in signal)) {
    if (signal.type === 'refer') return void ctx.commands.push(signal)
    const leg = legOf(world, signal.legId)
    const call = leg && callOf(world, leg)
    return call && stop(ctx, call, silentEnd(call))
  }
  if (signal.type === 'media') return showMedia(ctx, signal.exchangeId, signal.isHeld)
  const call = world.calls.get(signal.callUuid)
  return call && onCallSignal(ctx, call, signal)
}

type CallSignal = Extract<Signal, { readonly callUuid: string }>

function onCallSignal(ctx: StepContext, call: Call, signal: CallSignal): void {
  const { callUuid } = call.start
  switch (signal.type) {
    case 'attemptOver': {
      const attempt = attemptOf(call, signal.legId)
      return attempt && attemptOver(ctx, call, attempt)
    }
    case 'exhausted':
      return advance(ctx, call, 'exhausted', signal.end)
    case 'stop':
      return stop(ctx, call, signal.end)
    case 'stopped':
      return stopped(ctx, call, signal)
    case 'forward':
    case 'calleeAnswered':
      return advance(ctx, call, signal.type)
    case 'pickedUp': {
      const leg = legOf(ctx.world, signal.legId)
      const offer = signal.offer ?? asOffer(leg?.media ?? '')
      startSource(ctx, call, signal.legId, offer, signal.offer === undefined)
      advance(ctx, call, 'pickedUp')
      // No destination can be called with such media, and none is to blame for that.
      if (!canBeOffered(offer)) return stop(ctx, call, failure)
      return void ctx.commands.push({ type: 'connectSource', callUuid, offer })
    }
    case 'callerTaken':
      return callerTaken(ctx, call, signal.legId)
    case 'callerGone':
      return callerGone(ctx, call)
    case 'forwardEnded':
    default:
      return forwardEnded(ctx, call, signal.end)
  }
}

function onAttemptEvent(
  ctx: StepContext,
  event: Extract<
    MachineEvent,
    {
      readonly type:
        | ('withheld' | 'presented' | 'numbered' | 'probed' | 'holderLost')
        | ('applicationLost' | 'forwardDecided')
    }
  >,
): void {
  const { legId } = event
  const call = ctx.world.calls.get(legs.callUuidOf(legId))
  const attempt = call && attemptOf(call, legId)
  if (!call) return undefined
  if (event.type === 'forwardDecided') return forwardDecided(ctx, call, legId, event.forward)
  if (!attempt) return undefined
  if (event.type === 'presented') return presented(ctx, attempt, event.identity)
  if (event.type === 'numbered') return void (attempt.sent = event.numbers)
  if (event.type === 'probed') return probed(ctx, attempt, event.isThere)
  if (event.type === 'holderLost') return lostHolder(ctx, call, attempt)
  if (event.type === 'applicationLost') return lostApplication(ctx, call, attempt)
  return withheld(ctx, call, attempt, event.why, event.end)
}

/** Who calls is decided for the whole dialog: no later request says another number (RFC 5876). */
function presented(ctx: StepContext, attempt: InviteAttempt, identity: PresentedIdentity): void {
  attempt.presented = identity
  const leg = ctx.world.legs.get(attempt.legId)
  if (leg) leg.withheld = [...(leg.withheld ?? []), ...identityClaims]
}

function onTimer(ctx: StepContext, timer: Timer): void {
  const { world } = ctx
  switch (timer.kind) {
    case 'attempt': {
      const leg = legOf(world, timer.legId)
      const call = leg && callOf(world, leg)
      const attempt = call && attemptOf(call, timer.legId)
      return attempt && attemptTimedOut(ctx, call, attempt)
    }
    case 'holder': {
      const call = world.calls.get(legs.callUuidOf(timer.legId))
      const attempt = call && attemptOf(call, timer.legId)
      return attempt && holderTimer(ctx, attempt)
    }
    case 'exchange': {
      const exchange = world.exchanges.get(timer.exchangeId)
      return exchange && giveUpReinvite(ctx, exchange)
    }
    case 'retry': {
      const leg = legOf(world, timer.legId)
      return leg && legs.retry(ctx, leg, timer.retryId)
    }
    case 'parting':
      return legs.closeLeg(ctx, legOf(world, timer.legId), {})
    case 'question':
    case 'ring':
    case 'source':
    case 'grant':
    case 'grant-end':
    default: {
      const call = world.calls.get(timer.callUuid)
      return call && onCallTimer(ctx, call, timer.kind)
    }
  }
}

function onCallTimer(
  ctx: StepContext,
  call: Call,
  kind: 'question' | 'ring' | 'source' | 'grant' | 'grant-end',
): void {
  switch (kind) {
    case 'question':
      return askParties(ctx, call)
    case 'ring':
      return ringTimedOut(ctx, call)
    case 'source':
      return sourceWaited(ctx, call)
    case 'grant':
      return askForMore(ctx, call)
    case 'grant-end':
    default:
      return isPutOff(call) ? undefined : stop(ctx, call, grantEnd(call))
  }
}

// Events of one leg, and their effect on its call.

/** The peer does not answer, or does not refresh its session. */
const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

const silentEnd = ({ doubt }: Call): End => (doubt === undefined ? timedOut : endedUnseen)

function onLegEvent(ctx: StepContext, event: LegEventData): void {
  const { legId } = event
  const leg = legOf(ctx.world, legId)
  if (leg === undefined) return onLateEvent(ctx, event)
  if (leg.isUnheard === true) noteHeard(ctx, leg, event)
  switch (event.type) {
    case 'request':
      return relayRequest(ctx, leg, event)
    case 'response':
    case 'requestFailed':
      return onResponse(ctx, leg, event)
    case 'offering': {
      const purpose = leg.pending[event.transactionId]
      if (purpose?.kind === 'question') purpose.isOffer = true
      return
    }
    case 'ack':
      return onAck(ctx, leg, event.body)
    case 'redescribed': {
      const attempt = attemptOfLeg(ctx.world, leg)
      return attempt && redescribed(attempt, event)
    }
    default: {
      if (event.type === 'lost') forgetRequests(ctx, leg)
      const details = 'dialog' in event ? { dialog: event.dialog } : {}
      if (!legs.stepLeg(ctx, leg, event.type, details)) return
      const call = callOf(ctx.world, leg)
      if (call) onLegReport(ctx, call, leg, event)
    }
  }
}

function attemptOfLeg(world: World, leg: Leg): InviteAttempt | undefined {
  const call = callOf(world, leg)
  return call && attemptOf(call, leg.id)
}

function onLegReport(ctx: StepContext, call: Call, leg: Leg, event: LegEventData): void {
  const { callUuid } = call.start
  switch (event.type) {
    case 'accepted':
      if (event.isRelayed) legs.notedRelay(leg, legOf(ctx.world, call.legs.callee))
      return callerTaken(ctx, call, leg.id)
    case 'gone':
    case 'lost':
      return callerGone(ctx, call)
    case 'cancelled': {
      // A caller that is replaced may leave.
      const isReplaced = call.calling.kind === 'invite' && call.calling.replacedBy !== undefined
      return isReplaced ? undefined : stop(ctx, call, { kind: 'cancelled', reason: event.reason })
    }
    case 'bye':
      return onBye(ctx, call, leg, event)
    case 'acknowledged':
      if (leg.side === 'caller') return sourceConfirmed(ctx, call, leg)
      return calleeConfirmed(ctx, call, leg)
    case 'acknowledgeFailed':
      if (leg.side === 'caller') return sourceLost(ctx, call)
      return void ctx.signals.push({ type: 'stop', callUuid, end: failure })
    default: {
      if (event.type === 'offered') leg.media = event.offer
      const attempt = attemptOf(call, leg.id)
      if (event.type === 'sent' && !attempt) call.callIds.push(event.callId)
      return attempt && attemptEvent(ctx, call, attempt, event)
    }
  }
}

function onBye(
  ctx: StepContext,
  call: Call,
  leg: Leg,
  { isOurs, headers }: Extract<LegEventData, { readonly type: 'bye' }>,
): void {
  const { side, excusedBy: transferId, id: legId } = leg
  if (call.departing.includes(legId)) {
    call.departing = call.departing.filter((id) => id !== legId)
    return undefined
  }
  if (transferId !== undefined) {
    ctx.signals.push({ type: 'legLeft', transferId, legId })
    return leave(ctx, leg)
  }
  if (call.answeredAt === null && call.calling.kind === 'source' && side === 'caller')
    return stop(ctx, call, { kind: 'cancelled' })
  // The server's own: no ACK, or a session that was not refreshed.
  if (!isOurs && !call.end) call.byeHeaders = ctx.filter.bye(headers)
  return stop(ctx, call, isOurs ? silentEnd(call) : { kind: 'hung-up', by: side })
}

function onAck(ctx: StepContext, leg: Leg, body: string | undefined): void {
  const { awaitedAck } = leg
  leg.awaitedAck = undefined
  const other = legOf(ctx.world, awaitedAck?.id)
  if (awaitedAck && other) {
    if (awaitedAck.kind === 'relayed') relayAck(ctx, leg, other.id, body)
    else {
      leg.media = body ?? ''
      if (awaitedAck.kind === 'replacement') legs.answerOwed(ctx, other, leg.media, leg.id)
      else legs.stepLeg(ctx, other, 'acknowledge', { sdp: leg.media, sdpOwner: leg.id })
    }
  }
  legs.stepLeg(ctx, leg, 'ack')
  if (leg.owesMove === true) legs.moveCaller(ctx, leg, peerOf(ctx, leg))
}

function onResponse(
  ctx: StepContext,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const { transactionId } = event
  const purpose = leg.pending[transactionId]
  if (purpose === undefined) return declineLate(ctx, leg, event)
  if (leg.state === 'terminated') ctx.terminated.push(leg.id)
  const response = event.type === 'response' ? event.response : undefined
  if (response && response.status < 200)
    return purpose.kind === 'relayed' ? reinviteRings(ctx, leg, transactionId) : undefined
  delete leg.pending[transactionId]
  switch (purpose.kind) {
    case 'relayed': {
      const owesAck = event.type === 'response' && event.owesAck
      return relayedEnded(ctx, leg, purpose, transactionId, response, owesAck)
    }
    case 'reinvite':
      return legs.reinviteEnded(ctx, leg, purpose.reinvite, event)
    case 'notify':
      return legs.notified(ctx, leg)
    case 'question':
      return questionEnded(ctx, leg, event)
    case 'source':
    default: {
      const call = callOf(ctx.world, leg)
      return call && sourceMoved(ctx, leg, call, response)
    }
  }
}

/** No response comes any more. */
function forgetRequests(ctx: StepContext, leg: Leg): void {
  leg.pending = {}
  ctx.terminated.push(leg.id)
}
