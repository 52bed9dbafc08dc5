/**
 * Call control without I/O: `(world, event, inputs) → commands`. One event is handled whole, with all that
 * follows from it; then the commands are performed, and may bring the next event.
 */
import * as legs from './leg.ts'
import { type End, cause } from '../cdr/end-reason.ts'
import { attemptOf, attemptTimedOut, probed, withheld, attemptEvent } from './attempt.ts'
import {
  advance,
  answerFailed,
  callerGone,
  callerTaken,
  forwardEnded,
  mediaLost,
  stop,
  stopped,
  calleeConfirmed,
} from './call.ts'
import {
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
  attemptOver,
  dialRoute,
  forwardDecided,
  ringSource,
  ringTimedOut,
  roomTaken,
} from './dialing.ts'
import {
  giveUpReinvite,
  giveUpRinging,
  declineLate,
  onLateEvent,
  reinviteRings,
  relayAck,
  relayedEnded,
  relayRequest,
} from './exchange.ts'
import { askForMore, extended, grantEnd, limitGrant, resumeGrant } from './grant.ts'
import type {
  Admission,
  Command,
  MachineEvent,
  Signal,
  MachineInputs,
  Timer,
  StepContext,
} from './protocol.ts'
import type { Call, Leg, World } from './state.ts'
import {
  beginAttended,
  beginBasicTransfer,
  beginEarlyReplacement,
  beginReplacement,
  onRefer,
  transferSignal,
} from './transfer.ts'
import { asOffer, canBeOffered } from '../sdp.ts'
import type { LegEventData } from '../signalling.ts'

/** A phone may report every few seconds. */
const MAX_NOTES = 100

const notStored: End = { ...answerFailed, code: 'storage_unavailable' }

/** Handles one event. What is returned is to be performed in its order. */
export function handle(
  world: World,
  event: MachineEvent,
  inputs: MachineInputs,
): readonly Command[] {
  // Written out: spreading the inputs took 40 µs of every call.
  const context: StepContext = {
    now: inputs.now,
    server: inputs.server,
    filter: inputs.filter,
    timing: inputs.timing,
    world,
    commands: [],
    signals: [],
    terminated: [],
  }
  onEvent(context, event)
  for (let signal = context.signals.shift(); signal; signal = context.signals.shift())
    onSignal(context, signal)
  for (const legId of context.terminated) forgetLeg(context, world.legs.get(legId))
  return context.commands
}

/** A leg that is over is kept until the responses that its requests wait for have been passed on. */
function forgetLeg(context: StepContext, leg: Leg | undefined): void {
  if (leg?.state !== 'terminated') return
  legs.answerOwed(context, leg, '')
  giveUpRinging(context, leg)
  const isWaiting = Object.values(leg.pending).some(({ kind }) => kind === 'relayed')
  if (!isWaiting) context.world.legs.delete(leg.id)
}

function onEvent(context: StepContext, event: MachineEvent): void {
  switch (event.type) {
    case 'timer':
      return onTimer(context, event.timer)
    case 'transferTo':
      return beginBasicTransfer(context, event)
    case 'attend':
      return beginAttended(context, event)
    case 'withheld':
    case 'probed':
    case 'forwardDecided':
      return onAttemptEvent(context, event)
    case 'referAccepted':
    case 'referRefused':
    case 'referFailed':
      return onRefer(context, event)
    case 'refuse':
    case 'stop':
    case 'admit':
    case 'charged':
    case 'dial':
    case 'ring':
    case 'roomTaken':
    case 'forwardBegun':
    case 'journalled':
    case 'resumed':
    case 'extended':
    case 'notExtended':
    case 'noted':
    case 'mediaLost':
    case 'supervise':
    case 'replace':
    case 'replaceEarly': {
      const call = context.world.calls.get(event.callUuid)
      return call && onCallEvent(context, call, event)
    }
    default:
      return onLegEvent(context, event)
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

type CallBound = Extract<MachineEvent, { readonly callUuid: string }>

function onCallEvent(context: StepContext, call: Call, event: CallBound): void {
  switch (event.type) {
    case 'refuse':
      return advance(context, call, 'refused', event.end)
    case 'stop':
      return stop(context, call, event.end)
    case 'admit':
      return noteAdmission(call, event)
    case 'charged':
      call.account = event.account
      call.grantedSeconds = event.grantedSeconds
      call.isFree = event.isFree
      return void call.notes.push(event.note)
    case 'ring':
      if (call.end) return advance(context, call, 'refused')
      advance(context, call, 'ring')
      call.connect = event.connect
      if (event.maxSeconds !== undefined) limitGrant(call, event.maxSeconds)
      return ringSource(context, call, event)
    case 'dial':
      if (call.end) return advance(context, call, 'refused')
      advance(context, call, 'dial')
      call.direction = event.route.direction
      return dialRoute(context, call, event)
    case 'roomTaken':
      return roomTaken(context, call, event.isTaken)
    case 'forwardBegun':
      call.forwardedTo = event.to
      return undefined
    case 'journalled':
      if (event.isStored || call.isEmergency) return advance(context, call, 'journalled')
      stop(context, call, notStored)
      return advance(context, call, 'notJournalled')
    case 'resumed':
      return resumeGrant(context, call)
    case 'extended':
      return extended(context, call, event.grantedSeconds)
    case 'notExtended':
      call.grantDenial = event.code
      return undefined
    case 'noted':
      return void (call.notes.length < MAX_NOTES && call.notes.push(event.note))
    case 'mediaLost':
      return mediaLost(context, call, event.lastPacketAt)
    case 'supervise':
      return void call.supervisedBy.push(event.by)
    case 'replace':
      advance(context, call, 'replace')
      return beginReplacement(context, event)
    case 'replaceEarly':
      advance(context, call, 'replace')
      return beginEarlyReplacement(context, event)
    default:
      return undefined
  }
}

function onSignal(context: StepContext, signal: Signal): void {
  const { world } = context
  if ('transferId' in signal) {
    const transfer = world.transfers.get(signal.transferId)
    return transfer && transferSignal(context, transfer, signal)
  }
  if ('legId' in signal && !('callUuid' in signal)) {
    if (signal.type === 'refer') return void context.commands.push(signal)
    const leg = legOf(world, signal.legId)
    const call = leg && callOf(world, leg)
    return call && stop(context, call, timedOut)
  }
  if (signal.type === 'media') return showMedia(context, signal.exchangeId, signal.isHeld)
  const call = world.calls.get(signal.callUuid)
  return call && onCallSignal(context, call, signal)
}

type CallSignal = Extract<Signal, { readonly callUuid: string }>

function onCallSignal(context: StepContext, call: Call, signal: CallSignal): void {
  const { callUuid } = call.start
  switch (signal.type) {
    case 'attemptOver': {
      const attempt = attemptOf(call, signal.legId)
      return attempt && attemptOver(context, call, attempt)
    }
    case 'exhausted':
      return advance(context, call, 'exhausted', signal.end)
    case 'stop':
      return stop(context, call, signal.end)
    case 'stopped':
      return stopped(context, call, signal)
    case 'forward':
    case 'calleeAnswered':
      return advance(context, call, signal.type)
    case 'pickedUp': {
      const leg = legOf(context.world, signal.legId)
      const offer = signal.offer ?? asOffer(leg?.media ?? '')
      startSource(context, call, signal.legId, offer, signal.offer === undefined)
      advance(context, call, 'pickedUp')
      // No destination can be called with such media, and none is to blame for that.
      if (!canBeOffered(offer)) return stop(context, call, answerFailed)
      return void context.commands.push({ type: 'connectSource', callUuid, offer })
    }
    case 'callerTaken':
      return callerTaken(context, call, signal.legId)
    case 'callerGone':
      return callerGone(context, call)
    case 'forwardEnded':
    default:
      return forwardEnded(context, call, signal.end)
  }
}

function onAttemptEvent(
  context: StepContext,
  event: Extract<MachineEvent, { readonly type: 'withheld' | 'probed' | 'forwardDecided' }>,
): void {
  const { legId } = event
  const call = context.world.calls.get(legs.callUuidOf(legId))
  const attempt = call && attemptOf(call, legId)
  if (!call) return undefined
  if (event.type === 'forwardDecided') return forwardDecided(context, call, legId, event.forward)
  if (!attempt) return undefined
  if (event.type === 'probed') return probed(context, attempt, event.isThere)
  return withheld(context, call, attempt, event.why, event.end)
}

function onTimer(context: StepContext, timer: Timer): void {
  const { world } = context
  switch (timer.kind) {
    case 'attempt': {
      const leg = legOf(world, timer.legId)
      const call = leg && callOf(world, leg)
      const attempt = call && attemptOf(call, timer.legId)
      return attempt && attemptTimedOut(context, call, attempt)
    }
    case 'exchange': {
      const exchange = world.exchanges.get(timer.exchangeId)
      return exchange && giveUpReinvite(context, exchange)
    }
    case 'retry': {
      const leg = legOf(world, timer.legId)
      return leg && legs.retry(context, leg, timer.retryId)
    }
    case 'parting':
      return legs.closeLeg(context, legOf(world, timer.legId), {})
    case 'ring':
    case 'source':
    case 'grant':
    case 'grant-end':
    default: {
      const call = world.calls.get(timer.callUuid)
      return call && onCallTimer(context, call, timer.kind)
    }
  }
}

function onCallTimer(
  context: StepContext,
  call: Call,
  kind: 'ring' | 'source' | 'grant' | 'grant-end',
): void {
  switch (kind) {
    case 'ring':
      return ringTimedOut(context, call)
    case 'source':
      return sourceWaited(context, call)
    case 'grant':
      return askForMore(context, call)
    case 'grant-end':
    default:
      return stop(context, call, grantEnd(call))
  }
}

// What happens to one leg, and what it means to its call.

/** The peer does not answer, or does not refresh its session. */
const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

function onLegEvent(context: StepContext, event: LegEventData): void {
  const { legId } = event
  const leg = legOf(context.world, legId)
  if (leg === undefined) return onLateEvent(context, event)
  switch (event.type) {
    case 'request':
      return relayRequest(context, leg, event)
    case 'response':
    case 'requestFailed':
      return onResponse(context, leg, event)
    case 'ack':
      return onAck(context, leg, event.body)
    default: {
      if (event.type === 'lost') forgetRequests(context, leg)
      const details = 'dialog' in event ? { dialog: event.dialog } : {}
      if (!legs.stepLeg(context, leg, event.type, details)) return
      const call = callOf(context.world, leg)
      if (call) onLegReport(context, call, leg, event)
    }
  }
}

function onLegReport(context: StepContext, call: Call, leg: Leg, event: LegEventData): void {
  const { callUuid } = call.start
  switch (event.type) {
    case 'accepted':
      return callerTaken(context, call, leg.id)
    case 'gone':
    case 'lost':
      return callerGone(context, call)
    case 'cancelled': {
      // A caller that is replaced may leave.
      const isReplaced = call.calling.kind === 'invite' && call.calling.replacedBy !== undefined
      return isReplaced ? undefined : stop(context, call, { kind: 'cancelled', reason: event.reason })
    }
    case 'bye':
      return onBye(context, call, leg, event)
    case 'acknowledged':
      if (leg.side === 'caller') return sourceConfirmed(context, call, leg)
      return calleeConfirmed(context, call, leg)
    case 'acknowledgeFailed':
      if (leg.side === 'caller') return sourceLost(context, call)
      return void context.signals.push({ type: 'stop', callUuid, end: answerFailed })
    default: {
      if (event.type === 'offered') leg.media = event.offer
      const attempt = attemptOf(call, leg.id)
      if (event.type === 'sent' && !attempt) call.callIds.push(event.callId)
      return attempt && attemptEvent(context, call, attempt, event)
    }
  }
}

function onBye(
  context: StepContext,
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
    context.signals.push({ type: 'legLeft', transferId, legId })
    return leave(context, leg)
  }
  if (call.answeredAt === null && call.calling.kind === 'source' && side === 'caller')
    return stop(context, call, { kind: 'cancelled' })
  // The server's own: no ACK, or a session that was not refreshed.
  if (!isOurs && !call.end) call.byeHeaders = context.filter.bye(headers)
  return stop(context, call, isOurs ? timedOut : { kind: 'hung-up', by: side })
}

function onAck(context: StepContext, leg: Leg, body: string | undefined): void {
  const { awaitedAck } = leg
  leg.awaitedAck = undefined
  const other = legOf(context.world, awaitedAck?.id)
  if (awaitedAck && other) {
    if (awaitedAck.kind === 'relayed') relayAck(context, leg, other.id, body)
    else {
      leg.media = body ?? ''
      if (awaitedAck.kind === 'replacement') legs.answerOwed(context, other, leg.media, leg.id)
      else legs.stepLeg(context, other, 'acknowledge', { sdp: leg.media, sdpOwner: leg.id })
    }
  }
  legs.stepLeg(context, leg, 'ack')
}

function onResponse(
  context: StepContext,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const { transactionId } = event
  const purpose = leg.pending[transactionId]
  if (purpose === undefined) return declineLate(context, leg, event)
  if (leg.state === 'terminated') context.terminated.push(leg.id)
  const response = event.type === 'response' ? event.response : undefined
  if (response && response.status < 200)
    return purpose.kind === 'relayed' ? reinviteRings(context, leg, transactionId) : undefined
  delete leg.pending[transactionId]
  switch (purpose.kind) {
    case 'relayed': {
      const owesAck = event.type === 'response' && event.owesAck
      return relayedEnded(context, leg, purpose, transactionId, response, owesAck)
    }
    case 'reinvite':
      return legs.reinviteEnded(context, leg, purpose.reinvite, event)
    case 'notify':
      return legs.notified(context, leg)
    case 'source':
    default: {
      const call = callOf(context.world, leg)
      return call && sourceMoved(context, leg, call, response)
    }
  }
}

/** No response comes any more. */
function forgetRequests(context: StepContext, leg: Leg): void {
  leg.pending = {}
  context.terminated.push(leg.id)
}
