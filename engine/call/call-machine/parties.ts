/** Which legs talk to each other, in one call or, after a transfer, in two. */
import { isHold } from '../sdp.ts'
import { display } from './calling.ts'
import { connectLegs, disconnectLegs, peerOf } from './exchange.ts'
import { closeLeg } from './leg.ts'
import type { Turn } from './protocol.ts'
import type { Call, Leg, Side, World } from './state.ts'

export const oppositeSide = (side: Side): Side => (side === 'caller' ? 'callee' : 'caller')

export const legOf = ({ legs }: Pick<World, 'legs'>, legId: string | undefined): Leg | undefined =>
  legId === undefined ? undefined : legs.get(legId)

export const callOf = ({ calls }: Pick<World, 'calls'>, leg: Leg): Call | undefined =>
  calls.get(leg.callUuid)

/** The leg that this one is connected to. */
export function partnerOf(turn: Pick<Turn, 'world'>, leg: Leg): Leg | undefined {
  const peer = peerOf(turn, leg)
  if (peer) return peer
  return leg.exchangeId === undefined
    ? legOf(turn.world, callOf(turn.world, leg)?.legs[oppositeSide(leg.side)])
    : undefined
}

/** Connects two legs; their former partners leave their calls. */
export function connectParties(turn: Turn, one: Leg, other: Leg): void {
  for (const leg of [one, other]) {
    leavePartner(turn, leg)
    leg.hasOwnOrigin = true
  }
  connectLegs(turn, one, other)
  const isHeld = isHold(one.media) || isHold(other.media)
  for (const leg of [one, other]) {
    const call = callOf(turn.world, leg)
    if (call) display(turn, call, isHeld ? 'HELD' : 'ACTIVE')
  }
}

/** The party that this leg talked to is out of its call, and will get or send a BYE. */
function leavePartner(turn: Turn, leg: Leg): void {
  const partner = partnerOf(turn, leg)
  disconnectLegs(turn, leg)
  if (partner === undefined) return
  partner.excusedBy = undefined
  disconnectLegs(turn, partner)
  const call = callOf(turn.world, partner)
  if (call === undefined) return
  call.departing.push(partner.id)
  removeLeg(turn, call, partner)
}

/** Removes the leg of a party that left and does not end its call. */
export function leave(turn: Turn, leg: Leg): void {
  disconnectLegs(turn, leg)
  const call = callOf(turn.world, leg)
  if (call) removeLeg(turn, call, leg)
}

/** A call without legs is over. */
function removeLeg({ signals }: Turn, call: Call, { id, side }: Leg): void {
  if (call.legs[side] === id) call.legs[side] = undefined
  const { callUuid } = call.start
  if (call.legs.caller === undefined && call.legs.callee === undefined)
    signals.push({ type: 'stop', callUuid, end: { kind: 'hung-up', by: side } })
}

/** BYE, CANCEL or an abandoned offer for all of its legs. */
export function closeLegs(turn: Turn, call: Call): void {
  const { caller, callee } = call.legs
  for (const legId of [caller, callee, ...call.departing]) {
    const leg = legOf(turn.world, legId)
    if (leg === undefined) continue
    disconnectLegs(turn, leg)
    closeLeg(turn, leg, call.byeHeaders)
  }
}

/** Ends the calls that the legs of an ended call are connected to, as if their own party had ended them. */
export function endPeers(turn: Turn, call: Call): void {
  const { end } = call
  if (end === undefined) return
  for (const legId of [call.legs.caller, call.legs.callee]) {
    const leg = legOf(turn.world, legId)
    const peer = leg && peerOf(turn, leg)
    const other = peer && callOf(turn.world, peer)
    if (!other || other === call || other.end) continue
    other.byeHeaders = call.byeHeaders
    const { callUuid } = other.start
    const by = other.legs.caller === undefined ? 'caller' : 'callee'
    const told = end.kind === 'cut' ? { ...end, code: null } : ({ kind: 'hung-up', by } as const)
    turn.signals.push({ type: 'stop', callUuid, end: told })
  }
}

/** One of the two holds the other now, or does not any more. */
export function showMedia(turn: Turn, exchangeId: string, isHeld: boolean): void {
  for (const legId of turn.world.exchanges.get(exchangeId)?.legs ?? []) {
    const leg = legOf(turn.world, legId)
    const call = leg && callOf(turn.world, leg)
    if (call) display(turn, call, isHeld ? 'HELD' : 'ACTIVE')
  }
}
