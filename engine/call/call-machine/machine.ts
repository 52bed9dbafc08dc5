/**
 * Call control without I/O: `(world, event, surroundings) → commands`. One event is handled whole, with all that
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
  Surroundings,
  Timer,
  Turn,
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
  surroundings: Surroundings,
): readonly Command[] {
  // Written out: spreading the surroundings took 40 µs of every call.
  const turn: Turn = {
    now: surroundings.now,
    server: surroundings.server,
    filter: surroundings.filter,
    timing: surroundings.timing,
    world,
    commands: [],
    signals: [],
    terminated: [],
  }
  onEvent(turn, event)
  for (let signal = turn.signals.shift(); signal; signal = turn.signals.shift())
    onSignal(turn, signal)
  for (const legId of turn.terminated) forgetLeg(turn, world.legs.get(legId))
  return turn.commands
}

/** A leg that is over is kept until the responses that its requests wait for have been passed on. */
function forgetLeg(turn: Turn, leg: Leg | undefined): void {
  if (leg?.state !== 'terminated') return
  legs.answerOwed(turn, leg, '')
  giveUpRinging(turn, leg)
  const isWaiting = Object.values(leg.pending).some(({ kind }) => kind === 'relayed')
  if (!isWaiting) turn.world.legs.delete(leg.id)
}

function onEvent(turn: Turn, event: MachineEvent): void {
  switch (event.type) {
    case 'timer':
      return onTimer(turn, event.timer)
    case 'transferTo':
      return beginBasicTransfer(turn, event)
    case 'attend':
      return beginAttended(turn, event)
    case 'withheld':
    case 'probed':
    case 'forwardDecided':
      return onAttemptEvent(turn, event)
    case 'referAccepted':
    case 'referRefused':
    case 'referFailed':
      return onRefer(turn, event)
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
      const call = turn.world.calls.get(event.callUuid)
      return call && onCallEvent(turn, call, event)
    }
    default:
      return onLegEvent(turn, event)
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

function onCallEvent(turn: Turn, call: Call, event: CallBound): void {
  switch (event.type) {
    case 'refuse':
      return advance(turn, call, 'refused', event.end)
    case 'stop':
      return stop(turn, call, event.end)
    case 'admit':
      return noteAdmission(call, event)
    case 'charged':
      call.account = event.account
      call.grantedSeconds = event.grantedSeconds
      call.isFree = event.isFree
      return void call.notes.push(event.note)
    case 'ring':
      if (call.end) return advance(turn, call, 'refused')
      advance(turn, call, 'ring')
      call.connect = event.connect
      if (event.maxSeconds !== undefined) limitGrant(call, event.maxSeconds)
      return ringSource(turn, call, event)
    case 'dial':
      if (call.end) return advance(turn, call, 'refused')
      advance(turn, call, 'dial')
      call.direction = event.route.direction
      return dialRoute(turn, call, event)
    case 'roomTaken':
      return roomTaken(turn, call, event.isTaken)
    case 'forwardBegun':
      call.forwardedTo = event.to
      return undefined
    case 'journalled':
      if (event.isStored || call.isEmergency) return advance(turn, call, 'journalled')
      stop(turn, call, notStored)
      return advance(turn, call, 'notJournalled')
    case 'resumed':
      return resumeGrant(turn, call)
    case 'extended':
      return extended(turn, call, event.grantedSeconds)
    case 'notExtended':
      call.grantDenial = event.code
      return undefined
    case 'noted':
      return void (call.notes.length < MAX_NOTES && call.notes.push(event.note))
    case 'mediaLost':
      return mediaLost(turn, call, event.lastPacketAt)
    case 'supervise':
      return void call.supervisedBy.push(event.by)
    case 'replace':
      advance(turn, call, 'replace')
      return beginReplacement(turn, event)
    case 'replaceEarly':
      advance(turn, call, 'replace')
      return beginEarlyReplacement(turn, event)
    default:
      return undefined
  }
}

function onSignal(turn: Turn, signal: Signal): void {
  const { world } = turn
  if ('transferId' in signal) {
    const transfer = world.transfers.get(signal.transferId)
    return transfer && transferSignal(turn, transfer, signal)
  }
  if ('legId' in signal && !('callUuid' in signal)) {
    if (signal.type === 'refer') return void turn.commands.push(signal)
    const leg = legOf(world, signal.legId)
    const call = leg && callOf(world, leg)
    return call && stop(turn, call, timedOut)
  }
  if (signal.type === 'media') return showMedia(turn, signal.exchangeId, signal.isHeld)
  const call = world.calls.get(signal.callUuid)
  return call && onCallSignal(turn, call, signal)
}

type CallSignal = Extract<Signal, { readonly callUuid: string }>

function onCallSignal(turn: Turn, call: Call, signal: CallSignal): void {
  const { callUuid } = call.start
  switch (signal.type) {
    case 'attemptOver': {
      const attempt = attemptOf(call, signal.legId)
      return attempt && attemptOver(turn, call, attempt)
    }
    case 'exhausted':
      return advance(turn, call, 'exhausted', signal.end)
    case 'stop':
      return stop(turn, call, signal.end)
    case 'stopped':
      return stopped(turn, call, signal)
    case 'forward':
    case 'calleeAnswered':
      return advance(turn, call, signal.type)
    case 'pickedUp': {
      const leg = legOf(turn.world, signal.legId)
      const offer = signal.offer ?? asOffer(leg?.media ?? '')
      startSource(turn, call, signal.legId, offer, signal.offer === undefined)
      advance(turn, call, 'pickedUp')
      // No destination can be called with such media, and none is to blame for that.
      if (!canBeOffered(offer)) return stop(turn, call, answerFailed)
      return void turn.commands.push({ type: 'connectSource', callUuid, offer })
    }
    case 'callerTaken':
      return callerTaken(turn, call, signal.legId)
    case 'callerGone':
      return callerGone(turn, call)
    case 'forwardEnded':
    default:
      return forwardEnded(turn, call, signal.end)
  }
}

function onAttemptEvent(
  turn: Turn,
  event: Extract<MachineEvent, { readonly type: 'withheld' | 'probed' | 'forwardDecided' }>,
): void {
  const { legId } = event
  const call = turn.world.calls.get(legs.callUuidOf(legId))
  const attempt = call && attemptOf(call, legId)
  if (!call) return undefined
  if (event.type === 'forwardDecided') return forwardDecided(turn, call, legId, event.forward)
  if (!attempt) return undefined
  if (event.type === 'probed') return probed(turn, attempt, event.isThere)
  return withheld(turn, call, attempt, event.why, event.end)
}

function onTimer(turn: Turn, timer: Timer): void {
  const { world } = turn
  switch (timer.kind) {
    case 'attempt': {
      const leg = legOf(world, timer.legId)
      const call = leg && callOf(world, leg)
      const attempt = call && attemptOf(call, timer.legId)
      return attempt && attemptTimedOut(turn, call, attempt)
    }
    case 'exchange': {
      const exchange = world.exchanges.get(timer.exchangeId)
      return exchange && giveUpReinvite(turn, exchange)
    }
    case 'retry': {
      const leg = legOf(world, timer.legId)
      return leg && legs.retry(turn, leg, timer.retryId)
    }
    case 'parting':
      return legs.closeLeg(turn, legOf(world, timer.legId), {})
    case 'ring':
    case 'source':
    case 'grant':
    case 'grant-end':
    default: {
      const call = world.calls.get(timer.callUuid)
      return call && onCallTimer(turn, call, timer.kind)
    }
  }
}

function onCallTimer(
  turn: Turn,
  call: Call,
  kind: 'ring' | 'source' | 'grant' | 'grant-end',
): void {
  switch (kind) {
    case 'ring':
      return ringTimedOut(turn, call)
    case 'source':
      return sourceWaited(turn, call)
    case 'grant':
      return askForMore(turn, call)
    case 'grant-end':
    default:
      return stop(turn, call, grantEnd(call))
  }
}

// What happens to one leg, and what it means to its call.

/** The peer does not answer, or does not refresh its session. */
const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

function onLegEvent(turn: Turn, event: LegEventData): void {
  const { legId } = event
  const leg = legOf(turn.world, legId)
  if (leg === undefined) return onLateEvent(turn, event)
  switch (event.type) {
    case 'request':
      return relayRequest(turn, leg, event)
    case 'response':
    case 'requestFailed':
      return onResponse(turn, leg, event)
    case 'ack':
      return onAck(turn, leg, event.body)
    default: {
      if (event.type === 'lost') forgetRequests(turn, leg)
      const details = 'dialog' in event ? { dialog: event.dialog } : {}
      if (!legs.stepLeg(turn, leg, event.type, details)) return
      const call = callOf(turn.world, leg)
      if (call) onLegReport(turn, call, leg, event)
    }
  }
}

function onLegReport(turn: Turn, call: Call, leg: Leg, event: LegEventData): void {
  const { callUuid } = call.start
  switch (event.type) {
    case 'accepted':
      return callerTaken(turn, call, leg.id)
    case 'gone':
    case 'lost':
      return callerGone(turn, call)
    case 'cancelled': {
      // A caller that is replaced may leave.
      const isReplaced = call.calling.kind === 'invite' && call.calling.replacedBy !== undefined
      return isReplaced ? undefined : stop(turn, call, { kind: 'cancelled', reason: event.reason })
    }
    case 'bye':
      return onBye(turn, call, leg, event)
    case 'acknowledged':
      if (leg.side === 'caller') return sourceConfirmed(turn, call, leg)
      return calleeConfirmed(turn, call, leg)
    case 'acknowledgeFailed':
      if (leg.side === 'caller') return sourceLost(turn, call)
      return void turn.signals.push({ type: 'stop', callUuid, end: answerFailed })
    default: {
      if (event.type === 'offered') leg.media = event.offer
      const attempt = attemptOf(call, leg.id)
      if (event.type === 'sent' && !attempt) call.callIds.push(event.callId)
      return attempt && attemptEvent(turn, call, attempt, event)
    }
  }
}

function onBye(
  turn: Turn,
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
    turn.signals.push({ type: 'legLeft', transferId, legId })
    return leave(turn, leg)
  }
  if (call.answeredAt === null && call.calling.kind === 'source' && side === 'caller')
    return stop(turn, call, { kind: 'cancelled' })
  // The server's own: no ACK, or a session that was not refreshed.
  if (!isOurs && !call.end) call.byeHeaders = turn.filter.bye(headers)
  return stop(turn, call, isOurs ? timedOut : { kind: 'hung-up', by: side })
}

function onAck(turn: Turn, leg: Leg, body: string | undefined): void {
  const { awaitedAck } = leg
  leg.awaitedAck = undefined
  const other = legOf(turn.world, awaitedAck?.id)
  if (awaitedAck && other) {
    if (awaitedAck.kind === 'relayed') relayAck(turn, leg, other.id, body)
    else {
      leg.media = body ?? ''
      if (awaitedAck.kind === 'replacement') legs.answerOwed(turn, other, leg.media, leg.id)
      else legs.stepLeg(turn, other, 'acknowledge', { sdp: leg.media, describes: leg.id })
    }
  }
  legs.stepLeg(turn, leg, 'ack')
}

function onResponse(
  turn: Turn,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const { transactionId } = event
  const purpose = leg.pending[transactionId]
  if (purpose === undefined) return declineLate(turn, leg, event)
  if (leg.state === 'terminated') turn.terminated.push(leg.id)
  const response = event.type === 'response' ? event.response : undefined
  if (response && response.status < 200)
    return purpose.kind === 'relayed' ? reinviteRings(turn, leg, transactionId) : undefined
  delete leg.pending[transactionId]
  switch (purpose.kind) {
    case 'relayed': {
      const owesAck = event.type === 'response' && event.owesAck
      return relayedEnded(turn, leg, purpose, transactionId, response, owesAck)
    }
    case 'reinvite':
      return legs.reinviteEnded(turn, leg, purpose.reinvite, event)
    case 'notify':
      return legs.notified(turn, leg)
    case 'source':
    default: {
      const call = callOf(turn.world, leg)
      return call && sourceMoved(turn, leg, call, response)
    }
  }
}

/** No response comes any more. */
function forgetRequests(turn: Turn, leg: Leg): void {
  leg.pending = {}
  turn.terminated.push(leg.id)
}
