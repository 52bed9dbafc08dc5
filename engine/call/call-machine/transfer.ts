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
  StepContext,
} from './protocol.ts'
import type { Call, Leg, ReinviteResult, Transfer } from './state.ts'
import { type TransferAction, type TransferEvent, transferTable } from './tables.ts'
import type { End } from '../cdr/end-reason.ts'
import { agrees, asOffer } from '../sdp.ts'
import type { SdpOwner } from '../signalling.ts'

/** A transferor sends BYE itself when NOTIFY reports success; after this time Tollgate does. */
const PARTING_MS = 3_000
const requestTerminated = { status: 487, reason: 'Request Terminated' } as const

/** Makes one step of a transfer. */
function step(context: StepContext, transfer: Transfer, event: TransferEvent): boolean {
  const next = transferTable[transfer.state][event]
  if (next === undefined) return false
  transfer.state = next.to
  for (const action of next.do) perform(context, transfer, action)
  return true
}

function perform(context: StepContext, transfer: Transfer, action: TransferAction): void {
  const { id: transferId, body, offered } = transfer
  const transferee = legOf(context.world, transfer.transferee)
  const target = legOf(context.world, transfer.target)
  switch (action) {
    case 'pause':
      return pause(context, transferee, transferId, 'transferee')
    case 'pauseTarget':
      return pause(context, target, transferId, 'target')
    case 'offerTarget':
      return reinvite(context, target, {
        offer: offered,
        sdpOwner: transfer.transferee,
        tries: 1,
        transferId,
        step: 'offer',
      })
    case 'move': {
      const isAttended = transfer.kind === 'attended'
      const offer = isAttended ? (target?.media ?? '') : body
      return reinvite(context, transferee, {
        ...(offer && { offer, sdpOwner: isAttended ? transfer.target : transfer.party }),
        tries: 1,
        transferId,
        step: 'move',
      })
    }
    case 'answerNewCall':
      return answerNewCall(context, transfer)
    case 'connect':
      return connect(context, transfer)
    case 'fail':
    default:
      return fail(context, transfer)
  }
}

/** A signal for a transfer, or for the calls in one. */
export function transferSignal(context: StepContext, transfer: Transfer, signal: Signal): void {
  switch (signal.type) {
    case 'transferProgress':
      if (transfer.kind === 'early') return respondToWaiting(context, transfer, signal)
      if (transfer.isReferred)
        notify(context, legOf(context.world, transfer.transferor), signal.status, signal.reason)
      return undefined
    case 'transferAnswered':
      if (transfer.kind === 'early') return calleeOfEarly(context, transfer, signal.sdpOwner)
      return newCallAnswered(context, transfer, signal.sdp, signal.sdpOwner)
    case 'transferRefused':
      if (transfer.kind === 'early') return earlyRefused(context, transfer, signal)
      return refused(context, transfer, signal)
    case 'transferConnected':
      return reconcile(context, transfer)
    case 'paused':
      return paused(context, transfer, signal.step)
    case 'reinvited':
      return reinvited(context, transfer, signal.step, signal.result)
    case 'legLeft':
      return void transfer.endedLegs.push(signal.legId)
    case 'stopped':
      return callStopped(context, transfer, signal.callUuid)
    default:
      return undefined
  }
}

const isSettled = ({ state }: Transfer): boolean => state === 'transferred' || state === 'failed'

/** The new call is answered with `sdp`, which the transferee gets by re-INVITE. */
function newCallAnswered(context: StepContext, transfer: Transfer, sdp: string, sdpOwner: SdpOwner): void {
  const { newCall: callUuid = '' } = transfer
  if (sdp === '' || isSettled(transfer)) {
    // The transferee would make an offer then, which the called side could not answer.
    transfer.refusal ??= { status: 488, reason: 'Not Acceptable Here' }
    context.signals.push({ type: 'callerGone', callUuid })
    return
  }
  transfer.body = sdp
  transfer.party = sdpOwner
  step(context, transfer, 'answered')
}

/** The caller that waits hears what the ringing call tells, without early media. */
function respondToWaiting(
  context: StepContext,
  { newCall = '' }: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const { calling } = context.world.calls.get(newCall) ?? {}
  const leg = calling?.kind === 'invite' ? legOf(context.world, calling.legId) : undefined
  if (leg === undefined) return
  respondProvisionally(
    context,
    leg,
    { status, reason, body: undefined, sdpOwner: undefined },
    {},
    false,
  )
}

/** The called party of the ringing call has answered: a re-INVITE gives it the media of the caller that waits. */
function calleeOfEarly(context: StepContext, transfer: Transfer, callee: SdpOwner): void {
  transfer.transferee = callee ?? ''
  const leg = legOf(context.world, callee)
  // That of a phone's 3xx is in a call of its own.
  const itsCall = leg && callOf(context.world, leg)
  if (itsCall?.transferIds.includes(transfer.id) === false) itsCall.transferIds.push(transfer.id)
  if (leg && step(context, transfer, 'answered')) return
  context.signals.push({ type: 'callerGone', callUuid: transfer.ringing ?? '' })
}

/** The caller that waits gets the response, and the call that it has waited for is over, too. */
function earlyRefused(
  context: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  if (isSettled(transfer)) return
  const { newCall = '', ringing = '' } = transfer
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  refused(context, transfer, { status, reason })
  context.signals.push({ type: 'stop', callUuid: newCall, end })
  context.signals.push({ type: 'callerGone', callUuid: ringing })
}

function paused(context: StepContext, transfer: Transfer, of: string): void {
  const { world } = context
  if (of === 'reconcile') {
    const reached = legOf(world, reconciled(context, transfer))
    const { media } = legOf(world, transfer.transferee) ?? { media: '' }
    const { id: transferId } = transfer
    return reinvite(context, reached, {
      offer: media,
      sdpOwner: transfer.transferee,
      tries: 1,
      transferId,
      step: 'reconcile',
    })
  }
  if (of === 'target') return void step(context, transfer, 'targetPaused')
  const isAttended = transfer.kind === 'attended'
  return void step(context, transfer, isAttended ? 'transfereePaused' : 'paused')
}

function reinvited(context: StepContext, transfer: Transfer, of: string, result: ReinviteResult): void {
  const { world } = context
  const transferee = legOf(world, transfer.transferee)
  if (of === 'restore') return resume(context, transferee)
  if (of === 'reconcile') return resume(context, legOf(world, reconciled(context, transfer)))
  if (of === 'offer' && result.kind === 'answered') {
    if (!step(context, transfer, 'targetAnswered')) restoreTarget(context, transfer)
    return undefined
  }
  if (of === 'offer' && result.kind === 'refused') return refused(context, transfer, result)
  if (of !== 'move') return undefined
  if (result.kind === 'answered') {
    transfer.isMoved = true
    if (step(context, transfer, 'moved') || transfer.kind === 'early') return undefined
    restore(context, transfer)
    return restoreTarget(context, transfer)
  }
  transfer.refusal = result
  if (transfer.kind === 'attended') {
    refused(context, transfer, result)
    return restoreTarget(context, transfer)
  }
  if (transfer.kind === 'replacement') return replacementRefused(context, transfer, result)
  if (transfer.kind === 'early') return earlyRefused(context, transfer, result)
  return void context.signals.push({ type: 'callerGone', callUuid: transfer.newCall ?? '' })
}

/** The transferee has its new media: its new call is accepted. */
function answerNewCall(context: StepContext, transfer: Transfer): void {
  const { kind, newCall: callUuid = '', transferee: legId } = transfer
  if (kind === 'replacement' || kind === 'early') {
    const call = context.world.calls.get(callUuid)
    const sdp = legOf(context.world, legId)?.media ?? ''
    if (call) call.answering = { sdp, sdpOwner: legId, headers: {} }
    return void context.signals.push({ type: 'calleeAnswered', callUuid })
  }
  step(context, transfer, 'taken')
  if (kind === 'basic') context.signals.push({ type: 'callerTaken', callUuid, legId })
  return undefined
}

/** The transferor is out of its call. */
function connect(context: StepContext, transfer: Transfer): void {
  const { world } = context
  const { kind, transferor, transferee, target, consulting, isReferred } = transfer
  show(context, transfer, 'transferred', null)
  const leaving = legOf(world, transferor)
  if (isReferred && leaving) {
    endSubscription(context, leaving, 200, 'OK')
    const timer = { kind: 'parting', legId: transferor } as const
    context.commands.push({ type: 'startTimer', timer, at: context.now + PARTING_MS })
  } else if (kind === 'basic') closeLeg(context, leaving, {})
  for (const leg of [leaving, legOf(world, consulting)])
    if (leg?.side === 'callee') context.commands.push({ type: 'calleeLeft', callUuid: leg.callUuid })
  if (kind !== 'attended') return
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  if (!staying || !called) return
  connectParties(context, staying, called)
  // As the called party would do, had it got an INVITE with Replaces (RFC 3891 §3).
  closeLeg(context, legOf(world, consulting), {})
  context.signals.push({ type: 'transferConnected', transferId: transfer.id })
}

/** The caller that takes a place has its dialog: it talks to the partner from now on. */
export function completeReplacement(context: StepContext, transfer: Transfer, leg: Leg): void {
  const { world } = context
  const partner = legOf(world, transfer.transferee)
  if (partner === undefined) return
  if (partner.owedAnswer !== undefined) leg.awaitedAck = { kind: 'replacement', id: partner.id }
  step(context, transfer, 'taken')
  const { ringing: callUuid } = transfer
  // It has waited for this caller, in place of its own.
  if (callUuid !== undefined)
    return void context.signals.push({ type: 'callerTaken', callUuid, legId: leg.id })
  const replaced = legOf(world, transfer.transferor)
  connectParties(context, partner, leg)
  closeLeg(context, replaced, {})
}

/** Where the transferee's answer differs from its earlier description, the target gets it by re-INVITE. */
function reconcile(context: StepContext, transfer: Transfer): void {
  const reached = legOf(context.world, reconciled(context, transfer))
  const transferee = legOf(context.world, transfer.transferee)
  const isReplacement = transfer.kind === 'replacement' || transfer.kind === 'early'
  if (isReplacement || !reached || !transferee) return
  // Two phones behind NAT may describe the same place: only what the transferee has offered itself counts.
  const newCall = context.world.calls.get(transfer.newCall ?? '')
  const isItsOffer = newCall === undefined || offeringLeg(context, newCall) === transferee.id
  if (isItsOffer && agrees(transfer.offered, reached.media, transferee.media)) return
  pause(context, reached, transfer.id, 'reconcile')
}

const reconciled = ({ world }: StepContext, { newCall, target }: Transfer): string | undefined =>
  target ?? world.calls.get(newCall ?? '')?.legs.callee

/** Restores the legs as they were before, except for a party that is gone. */
function refused(
  context: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  transfer.refusal ??= { status, reason: reason || 'Declined' }
  step(context, transfer, 'refused')
}

function fail(context: StepContext, transfer: Transfer): void {
  const { world } = context
  const { kind, transferor, consulting, isReferred, refusal, endedLegs } = transfer
  const { status, reason } = refusal ?? requestTerminated
  const leaving = legOf(world, transferor)
  for (const leg of [leaving, legOf(world, consulting)]) if (leg) leg.excusedBy = undefined
  show(context, transfer, 'failed', kind === 'replacement' || kind === 'early' ? null : status)
  if (isReferred) {
    const call = leaving && callOf(world, leaving)
    if (call) call.failedTransfers += 1
    endSubscription(context, leaving, status, reason)
  }
  if (kind === 'attended') {
    for (const legId of [transfer.transferee, transfer.target]) resume(context, legOf(world, legId))
    if (endedLegs.includes(transferor)) hangUpAlone(context, transfer.transferee)
    if (consulting !== undefined && endedLegs.includes(consulting)) hangUpAlone(context, transfer.target)
  } else if (kind === 'early') return
  else if (endedLegs.includes(transferor)) hangUpAlone(context, transfer.transferee)
  else restore(context, transfer)
}

/** Gives the transferee its old media again. */
function restore(context: StepContext, transfer: Transfer): void {
  const { id: transferId, endedLegs, transferor, transferee, isMoved } = transfer
  const leg = legOf(context.world, transferee)
  const old = legOf(context.world, transferor)
  if (leg === undefined || endedLegs.includes(transferor) || callOf(context.world, leg)?.end)
    return undefined
  answerOwed(context, leg, '')
  if (!isMoved || old === undefined) return resume(context, leg)
  return reinvite(context, leg, {
    offer: asOffer(old.media),
    sdpOwner: transferor,
    tries: 1,
    transferId,
    step: 'restore',
  })
}

/** Attended: gives the transfer target its old media again. */
function restoreTarget(context: StepContext, { id: transferId, endedLegs, target, consulting }: Transfer): void {
  const [leg, old] = [legOf(context.world, target), legOf(context.world, consulting)]
  if (!leg || !old || endedLegs.includes(old.id) || callOf(context.world, leg)?.end) return
  reinvite(context, leg, {
    offer: asOffer(old.media),
    sdpOwner: consulting,
    tries: 1,
    transferId,
    step: 'restored',
  })
}

/** The partner refuses the new media: so is the INVITE that would take a place. */
function replacementRefused(
  context: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  const { newCall: callUuid = '' } = transfer
  refused(context, transfer, { status, reason })
  context.signals.push({ type: 'exhausted', callUuid, end })
}

const endedMeanwhile: End = {
  kind: 'refused',
  status: 481,
  reason: 'Call/Transaction Does Not Exist',
  code: 'replaces_ended_call',
}

/** A call that takes part has ended. */
function callStopped(context: StepContext, transfer: Transfer, callUuid: string): void {
  const { kind, newCall = '', state } = transfer
  if (isSettled(transfer)) return undefined
  if (kind === 'attended') return refused(context, transfer, requestTerminated)
  // What the ringing call tells its caller, the caller that waits hears, too: its status is not known here yet.
  if (kind === 'early' && callUuid !== newCall) {
    for (const gone of new Set([callUuid, transfer.ringing ?? '']))
      context.signals.push({ type: 'callerGone', callUuid: gone })
    return undefined
  }
  if (kind === 'early') return earlyRefused(context, transfer, requestTerminated)
  if (callUuid === newCall) {
    if (kind === 'replacement') return refused(context, transfer, requestTerminated)
    if (state !== 'ringing') context.signals.push({ type: 'callerGone', callUuid })
    return undefined
  }
  const end: End = kind === 'replacement' ? endedMeanwhile : { kind: 'cancelled' }
  return void context.signals.push({ type: 'stop', callUuid: newCall, end })
}

function hangUpAlone({ world, signals }: StepContext, legId: string | undefined): void {
  const leg = legOf(world, legId)
  if (leg === undefined) return
  const { callUuid, side } = leg
  signals.push({ type: 'stop', callUuid, end: { kind: 'hung-up', by: oppositeSide(side) } })
}

/** Responds to a REFER, and begins its subscription (RFC 3515 §2.4). */
export function onRefer(
  context: StepContext,
  event: Extract<MachineEvent, { readonly type: 'referAccepted' | 'referRefused' | 'referFailed' }>,
): void {
  const leg = legOf(context.world, event.legId)
  if (leg === undefined) return
  if (event.type === 'referFailed') {
    const call = callOf(context.world, leg)
    if (call) call.failedTransfers += 1
    endSubscription(context, leg, event.status, event.reason)
    return
  }
  if (event.type === 'referRefused') {
    context.commands.push({ ...event, type: 'answerRequest' })
    return
  }
  const { legId, requestId, id, isSilent } = event
  const headers = isSilent ? { 'refer-sub': 'false' } : {}
  context.commands.push({ type: 'answerRequest', legId, requestId, status: 202, headers })
  subscribe(leg, id, isSilent)
  notify(context, leg, 100, 'Trying')
}

type Fields = Omit<Transfer, 'id' | 'state' | 'endedLegs' | 'isMoved'>

function begin(context: StepContext, fields: Fields, ...calls: readonly (Call | undefined)[]): Transfer {
  const id = `transfer-${context.world.transferCount++}`
  const transfer: Transfer = { ...fields, id, state: 'ringing', endedLegs: [], isMoved: false }
  context.world.transfers.set(id, transfer)
  for (const call of calls) call?.transferIds.push(id)
  return transfer
}

/** The new call rings; until it is answered, the transferee stays connected to the transferor. */
export function beginBasicTransfer(context: StepContext, plan: BasicTransferPlan): void {
  const { world } = context
  const { transferor, transferee, callUuid, destination, offered, isReferred } = plan
  const [leaving, staying] = [legOf(world, transferor), legOf(world, transferee)]
  const call = world.calls.get(callUuid)
  if (!leaving || !staying || !call) return
  const transfer = begin(
    context,
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
  show(context, transfer, 'transferring', null)
  if (isReferred && call.firstProgressAt !== null) notify(context, leaving, 180, 'Ringing')
}

export function beginAttended(context: StepContext, plan: AttendedPlan): void {
  const { world } = context
  const { transferor, transferee, consulting, target } = plan
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  const [one, other] = [staying && callOf(world, staying), called && callOf(world, called)]
  if (!staying || !called || !one || !other) return
  const destination = other.start.calledNumber
  const transfer = begin(
    context,
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
  show(context, transfer, 'transferring', null)
  step(context, transfer, 'begin')
}

export function beginReplacement(context: StepContext, plan: ReplacementPlan): void {
  const { world } = context
  const { callUuid, replaced, partner } = plan
  const [call, staying] = [world.calls.get(callUuid), legOf(world, partner)]
  if (!call || !staying) return
  const destination = call.start.callerNumber
  const transfer = begin(
    context,
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
  transfer.party = offeringLeg(context, call)
  show(context, transfer, 'transferring', null)
  step(context, transfer, 'begin')
}

/** The caller waits until the ringing call is answered, and takes the place of its caller then. */
export function beginEarlyReplacement(context: StepContext, plan: EarlyReplacementPlan): void {
  const { world } = context
  const { callUuid, ringing: ringingUuid } = plan
  const [call, ringing] = [world.calls.get(callUuid), world.calls.get(ringingUuid)]
  if (!call || ringing?.calling.kind !== 'invite') return
  const transfer = begin(
    context,
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
  transfer.party = offeringLeg(context, call)
  ringing.calling.replacedBy = transfer.id
  show(context, transfer, 'transferring', null)
  if (ringing.firstProgressAt !== null)
    respondToWaiting(context, transfer, { status: 180, reason: 'Ringing' })
}

/** A phone may ask for transfers again and again. */
const MAX_NOTES = 100

function show(
  context: StepContext,
  transfer: Transfer,
  state: CallTransfer['state'],
  sipCode: number | null,
): void {
  const { world } = context
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
  noteTransfer(context, one, shown)
  const seen = { ...shown, callUuid: one.start.callUuid }
  if (kind === 'attended') noteTransfer(context, other, seen)
  else other.transfer = seen
}

function noteTransfer({ now: at, commands }: StepContext, call: Call, transfer: CallTransfer): void {
  call.transfer = transfer
  if (call.notes.length < MAX_NOTES) call.notes.push({ at, what: 'transfer', transfer })
  commands.push({ type: 'transfer', callUuid: call.start.callUuid, transfer })
}
