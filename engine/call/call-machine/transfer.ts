/**
 * Transfers by `transferTable` (RFC 5589, RFC 3725, RFC 3891). Each call keeps its record and its account; calls
 * whose legs are connected end together.
 */
import type { CallTransfer } from '../../../schema/contracts/calls.ts'
import { offeringLeg, callOf, connectParties, legOf, oppositeSide } from './calling.ts'
import { pause, resume } from './exchange.ts'
import {
  answerOwed,
  closeLeg,
  endSubscription,
  notify,
  reinvite,
  respondProvisionally,
  subscribe,
} from './leg.ts'
import type {
  AttendedPlan,
  BasicTransferPlan,
  EarlyReplacementPlan,
  MachineEvent,
  ReplacementPlan,
  Signal,
  Turn,
} from './protocol.ts'
import type { Call, Leg, Reinvited, Transfer } from './state.ts'
import { type TransferAction, type TransferEvent, transferTable } from './tables.ts'
import type { End } from '../cdr/end-reason.ts'
import { agrees, asOffer } from '../sdp.ts'
import type { Described } from '../signalling.ts'

/** A transferor sends BYE itself when NOTIFY reports success; after this time Tollgate does. */
const PARTING_MS = 3_000
const requestTerminated = { status: 487, reason: 'Request Terminated' } as const

/** Makes one step of a transfer. */
function step(turn: Turn, transfer: Transfer, event: TransferEvent): boolean {
  const next = transferTable[transfer.state][event]
  if (next === undefined) return false
  transfer.state = next.to
  for (const action of next.do) perform(turn, transfer, action)
  return true
}

function perform(turn: Turn, transfer: Transfer, action: TransferAction): void {
  const { id: transferId, body, offered } = transfer
  const transferee = legOf(turn.world, transfer.transferee)
  const target = legOf(turn.world, transfer.target)
  switch (action) {
    case 'pause':
      return pause(turn, transferee, transferId, 'transferee')
    case 'pauseTarget':
      return pause(turn, target, transferId, 'target')
    case 'offerTarget':
      return reinvite(turn, target, {
        offer: offered,
        describes: transfer.transferee,
        tries: 1,
        transferId,
        step: 'offer',
      })
    case 'move': {
      const isAttended = transfer.kind === 'attended'
      const offer = isAttended ? (target?.media ?? '') : body
      return reinvite(turn, transferee, {
        ...(offer && { offer, describes: isAttended ? transfer.target : transfer.party }),
        tries: 1,
        transferId,
        step: 'move',
      })
    }
    case 'tellNewCall':
      return tellNewCall(turn, transfer)
    case 'connect':
      return connect(turn, transfer)
    case 'fail':
    default:
      return fail(turn, transfer)
  }
}

/** A signal for a transfer, or for the calls in one. */
export function transferSignal(turn: Turn, transfer: Transfer, signal: Signal): void {
  switch (signal.type) {
    case 'transferProgress':
      if (transfer.kind === 'early') return tellWaiting(turn, transfer, signal)
      if (transfer.isReferred)
        notify(turn, legOf(turn.world, transfer.transferor), signal.status, signal.reason)
      return undefined
    case 'transferAnswered':
      if (transfer.kind === 'early') return calleeOfEarly(turn, transfer, signal.describes)
      return newCallAnswered(turn, transfer, signal.sdp, signal.describes)
    case 'transferRefused':
      if (transfer.kind === 'early') return earlyRefused(turn, transfer, signal)
      return refused(turn, transfer, signal)
    case 'transferConnected':
      return reconcile(turn, transfer)
    case 'paused':
      return paused(turn, transfer, signal.step)
    case 'reinvited':
      return reinvited(turn, transfer, signal.step, signal.result)
    case 'legLeft':
      return void transfer.gone.push(signal.legId)
    case 'stopped':
      return callStopped(turn, transfer, signal.callUuid)
    default:
      return undefined
  }
}

const isSettled = ({ state }: Transfer): boolean => state === 'transferred' || state === 'failed'

/** The new call is answered with `sdp`, which the transferee gets by re-INVITE. */
function newCallAnswered(turn: Turn, transfer: Transfer, sdp: string, describes: Described): void {
  const { newCall: callUuid = '' } = transfer
  if (sdp === '' || isSettled(transfer)) {
    // The transferee would make an offer then, which the called side could not answer.
    transfer.refusal ??= { status: 488, reason: 'Not Acceptable Here' }
    turn.signals.push({ type: 'callerGone', callUuid })
    return
  }
  transfer.body = sdp
  transfer.party = describes
  step(turn, transfer, 'answered')
}

/** The caller that waits hears what the ringing call tells, without early media. */
function tellWaiting(
  turn: Turn,
  { newCall = '' }: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const { calling } = turn.world.calls.get(newCall) ?? {}
  const leg = calling?.kind === 'invite' ? legOf(turn.world, calling.legId) : undefined
  if (leg === undefined) return
  respondProvisionally(
    turn,
    leg,
    { status, reason, body: undefined, describes: undefined },
    {},
    false,
  )
}

/** The called party of the ringing call has answered: a re-INVITE gives it the media of the caller that waits. */
function calleeOfEarly(turn: Turn, transfer: Transfer, callee: Described): void {
  transfer.transferee = callee ?? ''
  const leg = legOf(turn.world, callee)
  // That of a phone's 3xx is in a call of its own.
  const itsCall = leg && callOf(turn.world, leg)
  if (itsCall?.transferIds.includes(transfer.id) === false) itsCall.transferIds.push(transfer.id)
  if (leg && step(turn, transfer, 'answered')) return
  turn.signals.push({ type: 'callerGone', callUuid: transfer.ringing ?? '' })
}

/** The caller that waits gets the response, and the call that it has waited for is over, too. */
function earlyRefused(
  turn: Turn,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  if (isSettled(transfer)) return
  const { newCall = '', ringing = '' } = transfer
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  refused(turn, transfer, { status, reason })
  turn.signals.push({ type: 'stop', callUuid: newCall, end })
  turn.signals.push({ type: 'callerGone', callUuid: ringing })
}

function paused(turn: Turn, transfer: Transfer, of: string): void {
  const { world } = turn
  if (of === 'reconcile') {
    const told = legOf(world, reconciled(turn, transfer))
    const { media } = legOf(world, transfer.transferee) ?? { media: '' }
    const { id: transferId } = transfer
    return reinvite(turn, told, {
      offer: media,
      describes: transfer.transferee,
      tries: 1,
      transferId,
      step: 'reconcile',
    })
  }
  if (of === 'target') return void step(turn, transfer, 'targetPaused')
  const isAttended = transfer.kind === 'attended'
  return void step(turn, transfer, isAttended ? 'transfereePaused' : 'paused')
}

function reinvited(turn: Turn, transfer: Transfer, of: string, result: Reinvited): void {
  const { world } = turn
  const transferee = legOf(world, transfer.transferee)
  if (of === 'restore') return resume(turn, transferee)
  if (of === 'reconcile') return resume(turn, legOf(world, reconciled(turn, transfer)))
  if (of === 'offer' && result.kind === 'answered') {
    if (!step(turn, transfer, 'targetAnswered')) restoreTarget(turn, transfer)
    return undefined
  }
  if (of === 'offer' && result.kind === 'refused') return refused(turn, transfer, result)
  if (of !== 'move') return undefined
  if (result.kind === 'answered') {
    transfer.isMoved = true
    if (step(turn, transfer, 'moved') || transfer.kind === 'early') return undefined
    restore(turn, transfer)
    return restoreTarget(turn, transfer)
  }
  transfer.refusal = result
  if (transfer.kind === 'attended') {
    refused(turn, transfer, result)
    return restoreTarget(turn, transfer)
  }
  if (transfer.kind === 'replacement') return replacementRefused(turn, transfer, result)
  if (transfer.kind === 'early') return earlyRefused(turn, transfer, result)
  return void turn.signals.push({ type: 'callerGone', callUuid: transfer.newCall ?? '' })
}

/** The transferee has its new media: its new call is accepted. */
function tellNewCall(turn: Turn, transfer: Transfer): void {
  const { kind, newCall: callUuid = '', transferee: legId } = transfer
  if (kind === 'replacement' || kind === 'early') {
    const call = turn.world.calls.get(callUuid)
    const sdp = legOf(turn.world, legId)?.media ?? ''
    if (call) call.answering = { sdp, describes: legId, headers: {} }
    return void turn.signals.push({ type: 'calleeAnswered', callUuid })
  }
  step(turn, transfer, 'taken')
  if (kind === 'basic') turn.signals.push({ type: 'callerTaken', callUuid, legId })
  return undefined
}

/** The transferor is out of its call. */
function connect(turn: Turn, transfer: Transfer): void {
  const { world } = turn
  const { kind, transferor, transferee, target, consulting, isReferred } = transfer
  show(turn, transfer, 'transferred', null)
  const leaving = legOf(world, transferor)
  if (isReferred && leaving) {
    endSubscription(turn, leaving, 200, 'OK')
    const timer = { kind: 'parting', legId: transferor } as const
    turn.commands.push({ type: 'startTimer', timer, at: turn.now + PARTING_MS })
  } else if (kind === 'basic') closeLeg(turn, leaving, {})
  for (const leg of [leaving, legOf(world, consulting)])
    if (leg?.side === 'callee') turn.commands.push({ type: 'calleeLeft', callUuid: leg.callUuid })
  if (kind !== 'attended') return
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  if (!staying || !called) return
  connectParties(turn, staying, called)
  // As the called party would do, had it got an INVITE with Replaces (RFC 3891 §3).
  closeLeg(turn, legOf(world, consulting), {})
  turn.signals.push({ type: 'transferConnected', transferId: transfer.id })
}

/** The caller that takes a place has its dialog: it talks to the partner from now on. */
export function completeReplacement(turn: Turn, transfer: Transfer, leg: Leg): void {
  const { world } = turn
  const partner = legOf(world, transfer.transferee)
  if (partner === undefined) return
  if (partner.owedAnswer !== undefined) leg.awaitedAck = { kind: 'replacement', id: partner.id }
  step(turn, transfer, 'taken')
  const { ringing: callUuid } = transfer
  // It has waited for this caller, in place of its own.
  if (callUuid !== undefined)
    return void turn.signals.push({ type: 'callerTaken', callUuid, legId: leg.id })
  const replaced = legOf(world, transfer.transferor)
  connectParties(turn, partner, leg)
  closeLeg(turn, replaced, {})
}

/** Where the transferee's answer differs from its earlier description, the target gets it by re-INVITE. */
function reconcile(turn: Turn, transfer: Transfer): void {
  const reached = legOf(turn.world, reconciled(turn, transfer))
  const transferee = legOf(turn.world, transfer.transferee)
  const isReplacement = transfer.kind === 'replacement' || transfer.kind === 'early'
  if (isReplacement || !reached || !transferee) return
  // Two phones behind NAT may describe the same place: only what the transferee has offered itself counts.
  const newCall = turn.world.calls.get(transfer.newCall ?? '')
  const isItsOffer = newCall === undefined || offeringLeg(turn, newCall) === transferee.id
  if (isItsOffer && agrees(transfer.offered, reached.media, transferee.media)) return
  pause(turn, reached, transfer.id, 'reconcile')
}

const reconciled = ({ world }: Turn, { newCall, target }: Transfer): string | undefined =>
  target ?? world.calls.get(newCall ?? '')?.legs.callee

/** Restores the legs as they were before, except for a party that is gone. */
function refused(
  turn: Turn,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  transfer.refusal ??= { status, reason: reason || 'Declined' }
  step(turn, transfer, 'refused')
}

function fail(turn: Turn, transfer: Transfer): void {
  const { world } = turn
  const { kind, transferor, consulting, isReferred, refusal, gone } = transfer
  const { status, reason } = refusal ?? requestTerminated
  const leaving = legOf(world, transferor)
  for (const leg of [leaving, legOf(world, consulting)]) if (leg) leg.excusedBy = undefined
  show(turn, transfer, 'failed', kind === 'replacement' || kind === 'early' ? null : status)
  if (isReferred) {
    const call = leaving && callOf(world, leaving)
    if (call) call.failedTransfers += 1
    endSubscription(turn, leaving, status, reason)
  }
  if (kind === 'attended') {
    for (const legId of [transfer.transferee, transfer.target]) resume(turn, legOf(world, legId))
    if (gone.includes(transferor)) hangUpAlone(turn, transfer.transferee)
    if (consulting !== undefined && gone.includes(consulting)) hangUpAlone(turn, transfer.target)
  } else if (kind === 'early') return
  else if (gone.includes(transferor)) hangUpAlone(turn, transfer.transferee)
  else restore(turn, transfer)
}

/** Gives the transferee its old media again. */
function restore(turn: Turn, transfer: Transfer): void {
  const { id: transferId, gone, transferor, transferee, isMoved } = transfer
  const leg = legOf(turn.world, transferee)
  const old = legOf(turn.world, transferor)
  if (leg === undefined || gone.includes(transferor) || callOf(turn.world, leg)?.end)
    return undefined
  answerOwed(turn, leg, '')
  if (!isMoved || old === undefined) return resume(turn, leg)
  return reinvite(turn, leg, {
    offer: asOffer(old.media),
    describes: transferor,
    tries: 1,
    transferId,
    step: 'restore',
  })
}

/** Attended: gives the transfer target its old media again. */
function restoreTarget(turn: Turn, { id: transferId, gone, target, consulting }: Transfer): void {
  const [leg, old] = [legOf(turn.world, target), legOf(turn.world, consulting)]
  if (!leg || !old || gone.includes(old.id) || callOf(turn.world, leg)?.end) return
  reinvite(turn, leg, {
    offer: asOffer(old.media),
    describes: consulting,
    tries: 1,
    transferId,
    step: 'restored',
  })
}

/** The partner refuses the new media: so is the INVITE that would take a place. */
function replacementRefused(
  turn: Turn,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  const { newCall: callUuid = '' } = transfer
  refused(turn, transfer, { status, reason })
  turn.signals.push({ type: 'exhausted', callUuid, end })
}

const endedMeanwhile: End = {
  kind: 'refused',
  status: 481,
  reason: 'Call/Transaction Does Not Exist',
  code: 'replaces_ended_call',
}

/** A call that takes part has ended. */
function callStopped(turn: Turn, transfer: Transfer, callUuid: string): void {
  const { kind, newCall = '', state } = transfer
  if (isSettled(transfer)) return undefined
  if (kind === 'attended') return refused(turn, transfer, requestTerminated)
  // What the ringing call tells its caller, the caller that waits hears, too: its status is not known here yet.
  if (kind === 'early' && callUuid !== newCall) {
    for (const gone of new Set([callUuid, transfer.ringing ?? '']))
      turn.signals.push({ type: 'callerGone', callUuid: gone })
    return undefined
  }
  if (kind === 'early') return earlyRefused(turn, transfer, requestTerminated)
  if (callUuid === newCall) {
    if (kind === 'replacement') return refused(turn, transfer, requestTerminated)
    if (state !== 'ringing') turn.signals.push({ type: 'callerGone', callUuid })
    return undefined
  }
  const end: End = kind === 'replacement' ? endedMeanwhile : { kind: 'cancelled' }
  return void turn.signals.push({ type: 'stop', callUuid: newCall, end })
}

function hangUpAlone({ world, signals }: Turn, legId: string | undefined): void {
  const leg = legOf(world, legId)
  if (leg === undefined) return
  const { callUuid, side } = leg
  signals.push({ type: 'stop', callUuid, end: { kind: 'hung-up', by: oppositeSide(side) } })
}

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

/** A phone may ask for transfers again and again. */
const MAX_NOTES = 100

function show(
  turn: Turn,
  transfer: Transfer,
  state: CallTransfer['state'],
  sipCode: number | null,
): void {
  const { world } = turn
  const { kind, transferor, transferee, consulting, target, newCall, destination } = transfer
  const isReplacement = kind === 'replacement' || kind === 'early'
  const callAt = (legId: string | undefined): Call | undefined => {
    const leg = legOf(world, legId)
    return leg && callOf(world, leg)
  }
  const one = callAt(transferee) ?? world.calls.get(transfer.ringing ?? '')
  const other = kind === 'attended' ? callAt(target) : world.calls.get(newCall ?? '')
  if (!one || !other) return
  const shown = { state, destination, sipCode, callUuid: other.start.callUuid }
  if (!isReplacement)
    for (const call of [callAt(transferor), callAt(consulting)]) if (call) call.transfer = shown
  tell(turn, one, shown)
  const seen = { ...shown, callUuid: one.start.callUuid }
  if (kind === 'attended') tell(turn, other, seen)
  else other.transfer = seen
}

function tell({ now: at, commands }: Turn, call: Call, transfer: CallTransfer): void {
  call.transfer = transfer
  if (call.notes.length < MAX_NOTES) call.notes.push({ at, what: 'transfer', transfer })
  commands.push({ type: 'transfer', callUuid: call.start.callUuid, transfer })
}
