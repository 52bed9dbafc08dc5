/** How transfers begin: a REFER that is accepted or refused, and each kind of `transferTable`. */
import { asOffer } from '../sdp/third-party.ts'
import { offeringLeg } from './calling.ts'
import { endSubscription, notify, subscribe } from './leg.ts'
import { callOf, legOf } from './parties.ts'
import type {
  AttendedPlan,
  BasicTransferPlan,
  EarlyReplacementPlan,
  MachineEvent,
  ReplacementPlan,
  Turn,
} from './protocol.ts'
import type { Call, Transfer } from './state.ts'
import { step, tellWaiting } from './transfer.ts'
import { show } from './transfer-shown.ts'

/** Responds to a REFER, and begins its subscription (RFC 3515 §2.4). */
export function onRefer(
  turn: Turn,
  event: Extract<MachineEvent, { readonly type: 'referAccepted' | 'referRefused' | 'referFailed' }>,
): void {
  const leg = legOf(turn.world, event.legId)
  if (leg === undefined) return
  if (event.type === 'referFailed') {
    const call = callOf(turn.world, leg)
    if (call) call.failedTransfers += 1
    endSubscription(turn, leg, event.status, event.reason)
    return
  }
  if (event.type === 'referRefused') {
    turn.commands.push({ ...event, type: 'answerRequest' })
    return
  }
  const { legId, requestId, id, isSilent } = event
  const headers = isSilent ? { 'refer-sub': 'false' } : {}
  turn.commands.push({ type: 'answerRequest', legId, requestId, status: 202, headers })
  subscribe(leg, id, isSilent)
  notify(turn, leg, 100, 'Trying')
}

type Fields = Omit<Transfer, 'id' | 'state' | 'gone' | 'isMoved'>

function begin(turn: Turn, fields: Fields, ...calls: readonly (Call | undefined)[]): Transfer {
  const id = `transfer-${turn.world.transferCount++}`
  const transfer: Transfer = { ...fields, id, state: 'ringing', gone: [], isMoved: false }
  turn.world.transfers.set(id, transfer)
  for (const call of calls) call?.transferIds.push(id)
  return transfer
}

/** The new call rings; until it is answered, the transferee stays connected to the transferor. */
export function beginBasicTransfer(turn: Turn, plan: BasicTransferPlan): void {
  const { world } = turn
  const { transferor, transferee, callUuid, destination, offered, isReferred } = plan
  const [leaving, staying] = [legOf(world, transferor), legOf(world, transferee)]
  const call = world.calls.get(callUuid)
  if (!leaving || !staying || !call) return
  const transfer = begin(
    turn,
    {
      kind: 'basic',
      transferor,
      transferee,
      newCall: callUuid,
      destination,
      offered,
      isReferred,
    },
    callOf(world, staying),
    call,
  )
  call.callIds.push(staying.callId)
  if (call.calling.kind === 'invite') call.calling.replacedBy = transfer.id
  else call.calling = { kind: 'transferee', transferId: transfer.id }
  leaving.excusedBy = transfer.id
  show(turn, transfer, 'transferring', null)
  if (isReferred && call.firstProgressAt !== null) notify(turn, leaving, 180, 'Ringing')
}

export function beginAttended(turn: Turn, plan: AttendedPlan): void {
  const { world } = turn
  const { transferor, transferee, consulting, target } = plan
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  const [one, other] = [staying && callOf(world, staying), called && callOf(world, called)]
  if (!staying || !called || !one || !other) return
  const destination = other.start.calledNumber
  const transfer = begin(
    turn,
    {
      kind: 'attended',
      transferor,
      transferee,
      consulting,
      target,
      destination,
      offered: asOffer(staying.media),
      isReferred: true,
    },
    one,
    other,
  )
  for (const legId of [transferor, consulting]) {
    const leg = legOf(world, legId)
    if (leg) leg.excusedBy = transfer.id
  }
  show(turn, transfer, 'transferring', null)
  step(turn, transfer, 'begin')
}

export function beginReplacement(turn: Turn, plan: ReplacementPlan): void {
  const { world } = turn
  const { callUuid, replaced, partner } = plan
  const [call, staying] = [world.calls.get(callUuid), legOf(world, partner)]
  if (!call || !staying) return
  const destination = call.start.callerNumber
  const transfer = begin(
    turn,
    {
      kind: 'replacement',
      transferor: replaced,
      transferee: partner,
      newCall: callUuid,
      destination,
      offered: call.offer ?? '',
      isReferred: false,
    },
    callOf(world, staying),
    call,
  )
  call.replacement = transfer.id
  if (call.offer !== undefined) transfer.body = call.offer
  transfer.party = offeringLeg(turn, call)
  show(turn, transfer, 'transferring', null)
  step(turn, transfer, 'begin')
}

/** The caller waits until the ringing call is answered, and takes the place of its caller then. */
export function beginEarlyReplacement(turn: Turn, plan: EarlyReplacementPlan): void {
  const { world } = turn
  const { callUuid, ringing: ringingUuid } = plan
  const [call, ringing] = [world.calls.get(callUuid), world.calls.get(ringingUuid)]
  if (!call || ringing?.calling.kind !== 'invite') return
  const transfer = begin(
    turn,
    {
      kind: 'early',
      transferor: ringing.calling.legId,
      transferee: '',
      newCall: callUuid,
      ringing: ringingUuid,
      destination: ringing.start.calledNumber,
      offered: call.offer ?? '',
      isReferred: false,
    },
    ringing,
    call,
  )
  call.replacement = transfer.id
  transfer.body = call.offer
  transfer.party = offeringLeg(turn, call)
  ringing.calling.replacedBy = transfer.id
  show(turn, transfer, 'transferring', null)
  if (ringing.firstProgressAt !== null)
    tellWaiting(turn, transfer, { status: 180, reason: 'Ringing' })
}
