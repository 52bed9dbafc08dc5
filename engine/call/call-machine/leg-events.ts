/** What happens to one leg, and what it means to its call. */
import { cause, type End } from '../cdr/end-reason.ts'
import type { LegEventData } from '../signalling.ts'
import { attemptEvent, attemptOf } from './attempt.ts'
import { answerFailed, calleeConfirmed, callerGone, callerTaken, stop } from './call.ts'
import { sourceConfirmed, sourceLost, sourceMoved } from './calling.ts'
import {
  declineLate,
  onLateEvent,
  reinviteRings,
  relayAck,
  relayedEnded,
  relayRequest,
} from './exchange.ts'
import { callOf, leave, legOf } from './parties.ts'
import type { Turn } from './protocol.ts'
import type { Call, Leg } from './state.ts'
import * as legs from './leg.ts'

/** The peer does not answer, or does not refresh its session. */
export const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

export function onLegEvent(turn: Turn, event: LegEventData): void {
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
