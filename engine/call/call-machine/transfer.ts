/**
 * Transfers by `transferTable` (RFC 5589, RFC 3725, RFC 3891). Each call has its own record and
 * account; calls whose legs are connected end together.
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
import { MAX_NOTES, type Call, type Leg, type ReinviteResult, type Transfer } from './state.ts'
import { type TransferAction, type TransferEvent, transferTable } from './tables.ts'
import type { End } from '../cdr/end-reason.ts'
import { agrees, asOffer } from '../sdp.ts'
import type { SdpOwner } from '../signalling.ts'

/** A transferor sends BYE itself when NOTIFY reports success; after this time Tollgate does. */
const PARTING_MS = 3_000
const requestTerminated = { status: 487, reason: 'Request Terminated' } as const

/** Makes one step of a transfer. */
function step(ctx: StepContext, transfer: Transfer, event: TransferEvent): boolean {
  const next = transferTable[transfer.state][event]
  if (next === undefined) return false
  transfer.state = next.to
  for (const action of next.do) perform(ctx, transfer, action)
  return true
}

function perform(ctx: StepContext, transfer: Transfer, action: TransferAction): void {
  const { id: transferId, body, offered } = transfer
  const transferee = legOf(ctx.world, transfer.transferee)
  const target = legOf(ctx.world, transfer.target)
  switch (action) {
    case 'pause':
      return pause(ctx, transferee, transferId, 'transferee')
    case 'pauseTarget':
      return pause(ctx, target, transferId, 'target')
    case 'offerTarget':
      return reinvite(ctx, target, {
        offer: offered,
        sdpOwner: transfer.transferee,
        tries: 1,
        transferId,
        step: 'offer',
      })
    case 'move': {
      const isAttended = transfer.kind === 'attended'
      const offer = isAttended ? (target?.media ?? '') : body
      return reinvite(ctx, transferee, {
        ...(offer && { offer, sdpOwner: isAttended ? transfer.target : transfer.party }),
        tries: 1,
        transferId,
        step: 'move',
      })
    }
    case 'answerNewCall':
      return answerNewCall(ctx, transfer)
    case 'connect':
      return connect(ctx, transfer)
    case 'fail':
    default:
      return fail(ctx, transfer)
  }
}

/** A signal for a transfer, or for the calls in one. */
export function transferSignal(ctx: StepContext, transfer: Transfer, signal: Signal): void {
  switch (signal.type) {
    case 'transferProgress':
      if (transfer.kind === 'early') return respondToWaiting(ctx, transfer, signal)
      if (transfer.isReferred)
        notify(ctx, legOf(ctx.world, transfer.transferor), signal.status, signal.reason)
      return undefined
    case 'transferAnswered':
      if (transfer.kind === 'early') return calleeOfEarly(ctx, transfer, signal.sdpOwner)
      return newCallAnswered(ctx, transfer, signal.sdp, signal.sdpOwner)
    case 'transferRefused':
      if (transfer.kind === 'early') return earlyRefused(ctx, transfer, signal)
      return refused(ctx, transfer, signal)
    case 'transferConnected':
      return reconcile(ctx, transfer)
    case 'paused':
      return paused(ctx, transfer, signal.step)
    case 'reinvited':
      return reinvited(ctx, transfer, signal.step, signal.result)
    case 'legLeft':
      return void transfer.endedLegs.push(signal.legId)
    case 'stopped':
      return callStopped(ctx, transfer, signal.callUuid)
    default:
      return undefined
  }
}

const isSettled = ({ state }: Transfer): boolean => state === 'transferred' || state === 'failed'

/** The new call is answered with `sdp`, which the transferee gets by re-INVITE. */
function newCallAnswered(
  ctx: StepContext,
  transfer: Transfer,
  sdp: string,
  sdpOwner: SdpOwner,
): void {
  const { newCall: callUuid = '' } = transfer
  if (sdp === '' || isSettled(transfer)) {
    // The transferee would make an offer then, which the called side could not answer.
    transfer.refusal ??= { status: 488, reason: 'Not Acceptable Here' }
    ctx.signals.push({ type: 'callerGone', callUuid })
    return
  }
  transfer.body = sdp
  transfer.party = sdpOwner
  step(ctx, transfer, 'answered')
}

/** Passes the status of the ringing call to the caller that waits, without early media. */
function respondToWaiting(
  ctx: StepContext,
  { newCall = '' }: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const { calling } = ctx.world.calls.get(newCall) ?? {}
  const leg = calling?.kind === 'invite' ? legOf(ctx.world, calling.legId) : undefined
  if (leg === undefined) return
  respondProvisionally(
    ctx,
    leg,
    { status, reason, body: undefined, sdpOwner: undefined },
    {},
    false,
  )
}

/**
 * The called party of the ringing call has answered: a re-INVITE gives it the media of the caller
 * that waits.
 */
function calleeOfEarly(ctx: StepContext, transfer: Transfer, callee: SdpOwner): void {
  transfer.transferee = callee ?? ''
  const leg = legOf(ctx.world, callee)
  // The leg of a call that a phone has forwarded belongs to a call of its own.
  const itsCall = leg && callOf(ctx.world, leg)
  if (itsCall?.transferIds.includes(transfer.id) === false) itsCall.transferIds.push(transfer.id)
  if (leg && step(ctx, transfer, 'answered')) return
  ctx.signals.push({ type: 'callerGone', callUuid: transfer.ringing ?? '' })
}

/** The caller that waits gets the response, and the call that it has waited for is over, too. */
function earlyRefused(
  ctx: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  if (isSettled(transfer)) return
  const { newCall = '', ringing = '' } = transfer
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  refused(ctx, transfer, { status, reason })
  ctx.signals.push({ type: 'stop', callUuid: newCall, end })
  ctx.signals.push({ type: 'callerGone', callUuid: ringing })
}

function paused(ctx: StepContext, transfer: Transfer, of: string): void {
  const { world } = ctx
  if (of === 'reconcile') {
    const reached = legOf(world, reconciled(ctx, transfer))
    const { media } = legOf(world, transfer.transferee) ?? { media: '' }
    const { id: transferId } = transfer
    return reinvite(ctx, reached, {
      offer: media,
      sdpOwner: transfer.transferee,
      tries: 1,
      transferId,
      step: 'reconcile',
    })
  }
  if (of === 'target') return void step(ctx, transfer, 'targetPaused')
  const isAttended = transfer.kind === 'attended'
  return void step(ctx, transfer, isAttended ? 'transfereePaused' : 'paused')
}

function reinvited(ctx: StepContext, transfer: Transfer, of: string, result: ReinviteResult): void {
  const { world } = ctx
  const transferee = legOf(world, transfer.transferee)
  if (of === 'restore') return resume(ctx, transferee)
  if (of === 'reconcile') return resume(ctx, legOf(world, reconciled(ctx, transfer)))
  if (of === 'offer' && result.kind === 'answered') {
    if (!step(ctx, transfer, 'targetAnswered')) restoreTarget(ctx, transfer)
    return undefined
  }
  if (of === 'offer' && result.kind === 'refused') return refused(ctx, transfer, result)
  if (of !== 'move') return undefined
  if (result.kind === 'answered') {
    transfer.isMoved = true
    if (step(ctx, transfer, 'moved') || transfer.kind === 'early') return undefined
    restore(ctx, transfer)
    return restoreTarget(ctx, transfer)
  }
  transfer.refusal = result
  if (transfer.kind === 'attended') {
    refused(ctx, transfer, result)
    return restoreTarget(ctx, transfer)
  }
  if (transfer.kind === 'replacement') return replacementRefused(ctx, transfer, result)
  if (transfer.kind === 'early') return earlyRefused(ctx, transfer, result)
  return void ctx.signals.push({ type: 'callerGone', callUuid: transfer.newCall ?? '' })
}

/** The transferee has its new media: its new call is accepted. */
function answerNewCall(ctx: StepContext, transfer: Transfer): void {
  const { kind, newCall: callUuid = '', transferee: legId } = transfer
  if (kind === 'replacement' || kind === 'early') {
    const call = ctx.world.calls.get(callUuid)
    const sdp = legOf(ctx.world, legId)?.media ?? ''
    if (call) call.answering = { sdp, sdpOwner: legId, headers: {} }
    return void ctx.signals.push({ type: 'calleeAnswered', callUuid })
  }
  step(ctx, transfer, 'taken')
  if (kind === 'basic') ctx.signals.push({ type: 'callerTaken', callUuid, legId })
  return undefined
}

/** The transferor leaves its call. */
function connect(ctx: StepContext, transfer: Transfer): void {
  const { world } = ctx
  const { kind, transferor, transferee, target, consulting, isReferred } = transfer
  show(ctx, transfer, 'transferred', null)
  const leaving = legOf(world, transferor)
  if (isReferred && leaving) {
    endSubscription(ctx, leaving, 200, 'OK')
    const timer = { kind: 'parting', legId: transferor } as const
    ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + PARTING_MS })
  } else if (kind === 'basic') closeLeg(ctx, leaving, {})
  for (const leg of [leaving, legOf(world, consulting)])
    if (leg?.side === 'callee') ctx.commands.push({ type: 'calleeLeft', callUuid: leg.callUuid })
  if (kind !== 'attended') return
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  if (!staying || !called) return
  connectParties(ctx, staying, called)
  // As the called party would do after an INVITE with Replaces (RFC 3891 §3).
  closeLeg(ctx, legOf(world, consulting), {})
  ctx.signals.push({ type: 'transferConnected', transferId: transfer.id })
}

/** The caller that takes a place has its dialog: it talks to the partner from now on. */
export function completeReplacement(ctx: StepContext, transfer: Transfer, leg: Leg): void {
  const { world } = ctx
  const partner = legOf(world, transfer.transferee)
  if (partner === undefined) return
  if (partner.owedAnswer !== undefined) leg.awaitedAck = { kind: 'replacement', id: partner.id }
  step(ctx, transfer, 'taken')
  const { ringing: callUuid } = transfer
  // The ringing call waits for this caller, instead of its own.
  if (callUuid !== undefined)
    return void ctx.signals.push({ type: 'callerTaken', callUuid, legId: leg.id })
  const replaced = legOf(world, transfer.transferor)
  connectParties(ctx, partner, leg)
  closeLeg(ctx, replaced, {})
}

/** If the transferee's answer differs from its offer to the target, a re-INVITE passes it on. */
function reconcile(ctx: StepContext, transfer: Transfer): void {
  const reached = legOf(ctx.world, reconciled(ctx, transfer))
  const transferee = legOf(ctx.world, transfer.transferee)
  const isReplacement = transfer.kind === 'replacement' || transfer.kind === 'early'
  if (isReplacement || !reached || !transferee) return
  // Two phones behind NAT may describe the same place: only what the transferee has offered itself
  // counts.
  const newCall = ctx.world.calls.get(transfer.newCall ?? '')
  const isItsOffer = newCall === undefined || offeringLeg(ctx, newCall) === transferee.id
  if (isItsOffer && agrees(transfer.offered, reached.media, transferee.media)) return
  pause(ctx, reached, transfer.id, 'reconcile')
}

const reconciled = ({ world }: StepContext, { newCall, target }: Transfer): string | undefined =>
  target ?? world.calls.get(newCall ?? '')?.legs.callee

/** Restores the legs as they were before, except for a party that is gone. */
function refused(
  ctx: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  transfer.refusal ??= { status, reason: reason || 'Declined' }
  step(ctx, transfer, 'refused')
}

function fail(ctx: StepContext, transfer: Transfer): void {
  const { world } = ctx
  const { kind, transferor, consulting, isReferred, refusal, endedLegs } = transfer
  const { status, reason } = refusal ?? requestTerminated
  const leaving = legOf(world, transferor)
  for (const leg of [leaving, legOf(world, consulting)]) if (leg) leg.excusedBy = undefined
  show(ctx, transfer, 'failed', kind === 'replacement' || kind === 'early' ? null : status)
  if (isReferred) {
    const call = leaving && callOf(world, leaving)
    if (call) call.failedTransfers += 1
    endSubscription(ctx, leaving, status, reason)
  }
  if (kind === 'attended') {
    for (const legId of [transfer.transferee, transfer.target]) resume(ctx, legOf(world, legId))
    if (endedLegs.includes(transferor)) hangUpAlone(ctx, transfer.transferee)
    if (consulting !== undefined && endedLegs.includes(consulting))
      hangUpAlone(ctx, transfer.target)
  } else if (kind === 'early') return
  else if (endedLegs.includes(transferor)) hangUpAlone(ctx, transfer.transferee)
  else restore(ctx, transfer)
}

/** Gives the transferee its old media again. */
function restore(ctx: StepContext, transfer: Transfer): void {
  const { id: transferId, endedLegs, transferor, transferee, isMoved } = transfer
  const leg = legOf(ctx.world, transferee)
  const old = legOf(ctx.world, transferor)
  if (leg === undefined || endedLegs.includes(transferor) || callOf(ctx.world, leg)?.end)
    return undefined
  answerOwed(ctx, leg, '')
  if (!isMoved || old === undefined) return resume(ctx, leg)
  return reinvite(ctx, leg, {
    offer: asOffer(old.media),
    sdpOwner: transferor,
    tries: 1,
    transferId,
    step: 'restore',
  })
}

/** Attended: gives the transfer target its old media again. */
function restoreTarget(
  ctx: StepContext,
  { id: transferId, endedLegs, target, consulting }: Transfer,
): void {
  const [leg, old] = [legOf(ctx.world, target), legOf(ctx.world, consulting)]
  if (!leg || !old || endedLegs.includes(old.id) || callOf(ctx.world, leg)?.end) return
  reinvite(ctx, leg, {
    offer: asOffer(old.media),
    sdpOwner: consulting,
    tries: 1,
    transferId,
    step: 'restored',
  })
}

/** The partner refuses the new media: so is the INVITE that would take a place. */
function replacementRefused(
  ctx: StepContext,
  transfer: Transfer,
  { status, reason }: { readonly status: number; readonly reason: string },
): void {
  const end = { kind: 'refused', status, reason, code: 'replaces_refused' } as const
  const { newCall: callUuid = '' } = transfer
  refused(ctx, transfer, { status, reason })
  ctx.signals.push({ type: 'exhausted', callUuid, end })
}

const endedMeanwhile: End = {
  kind: 'refused',
  status: 481,
  reason: 'Call/Transaction Does Not Exist',
  code: 'replaces_ended_call',
}

/** A call that takes part has ended. */
function callStopped(ctx: StepContext, transfer: Transfer, callUuid: string): void {
  const { kind, newCall = '', state } = transfer
  if (isSettled(transfer)) return undefined
  if (kind === 'attended') return refused(ctx, transfer, requestTerminated)
  // The waiting caller gets the same final response as the caller of the ringing call, whose status
  // is not known here yet.
  if (kind === 'early' && callUuid !== newCall) {
    for (const gone of new Set([callUuid, transfer.ringing ?? '']))
      ctx.signals.push({ type: 'callerGone', callUuid: gone })
    return undefined
  }
  if (kind === 'early') return earlyRefused(ctx, transfer, requestTerminated)
  if (callUuid === newCall) {
    if (kind === 'replacement') return refused(ctx, transfer, requestTerminated)
    if (state !== 'ringing') ctx.signals.push({ type: 'callerGone', callUuid })
    return undefined
  }
  const end: End = kind === 'replacement' ? endedMeanwhile : { kind: 'cancelled' }
  return void ctx.signals.push({ type: 'stop', callUuid: newCall, end })
}

function hangUpAlone({ world, signals }: StepContext, legId: string | undefined): void {
  const leg = legOf(world, legId)
  if (leg === undefined) return
  const { callUuid, side } = leg
  signals.push({ type: 'stop', callUuid, end: { kind: 'hung-up', by: oppositeSide(side) } })
}

/** Responds to a REFER, and begins its subscription (RFC 3515 §2.4). */
export function onRefer(
  ctx: StepContext,
  event: Extract<MachineEvent, { readonly type: 'referAccepted' | 'referRefused' | 'referFailed' }>,
): void {
  const leg = legOf(ctx.world, event.legId)
  if (leg === undefined) return
  if (event.type === 'referFailed') {
    const call = callOf(ctx.world, leg)
    if (call) call.failedTransfers += 1
    endSubscription(ctx, leg, event.status, event.reason)
    return
  }
  if (event.type === 'referRefused') {
    ctx.commands.push({ ...event, type: 'answerRequest' })
    return
  }
  const { legId, requestId, id, isSilent } = event
  const headers = isSilent ? { 'refer-sub': 'false' } : {}
  ctx.commands.push({ type: 'answerRequest', legId, requestId, status: 202, headers })
  subscribe(leg, id, isSilent)
  notify(ctx, leg, 100, 'Trying')
}

type Fields = Omit<Transfer, 'id' | 'state' | 'endedLegs' | 'isMoved'>

function begin(
  ctx: StepContext,
  fields: Fields,
  ...calls: readonly (Call | undefined)[]
): Transfer {
  const id = `transfer-${ctx.world.transferCount++}`
  const transfer: Transfer = { ...fields, id, state: 'ringing', endedLegs: [], isMoved: false }
  ctx.world.transfers.set(id, transfer)
  for (const call of calls) call?.transferIds.push(id)
  return transfer
}

/** The new call rings; until it is answered, the transferee stays connected to the transferor. */
export function beginBasicTransfer(ctx: StepContext, plan: BasicTransferPlan): void {
  const { world } = ctx
  const { transferor, transferee, callUuid, destination, offered, isReferred } = plan
  const [leaving, staying] = [legOf(world, transferor), legOf(world, transferee)]
  const call = world.calls.get(callUuid)
  if (!leaving || !staying || !call) return
  const transfer = begin(
    ctx,
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
  show(ctx, transfer, 'transferring', null)
  if (isReferred && call.firstProgressAt !== null) notify(ctx, leaving, 180, 'Ringing')
}

export function beginAttended(ctx: StepContext, plan: AttendedPlan): void {
  const { world } = ctx
  const { transferor, transferee, consulting, target } = plan
  const [staying, called] = [legOf(world, transferee), legOf(world, target)]
  const [one, other] = [staying && callOf(world, staying), called && callOf(world, called)]
  if (!staying || !called || !one || !other) return
  const destination = other.start.calledNumber
  const transfer = begin(
    ctx,
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
  show(ctx, transfer, 'transferring', null)
  step(ctx, transfer, 'begin')
}

export function beginReplacement(ctx: StepContext, plan: ReplacementPlan): void {
  const { world } = ctx
  const { callUuid, replaced, partner } = plan
  const [call, staying] = [world.calls.get(callUuid), legOf(world, partner)]
  if (!call || !staying) return
  const destination = call.start.callerNumber
  const transfer = begin(
    ctx,
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
  transfer.party = offeringLeg(ctx, call)
  show(ctx, transfer, 'transferring', null)
  step(ctx, transfer, 'begin')
}

/** The caller waits until the ringing call is answered, and takes the place of its caller then. */
export function beginEarlyReplacement(ctx: StepContext, plan: EarlyReplacementPlan): void {
  const { world } = ctx
  const { callUuid, ringing: ringingUuid } = plan
  const [call, ringing] = [world.calls.get(callUuid), world.calls.get(ringingUuid)]
  if (!call || ringing?.calling.kind !== 'invite') return
  const transfer = begin(
    ctx,
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
  transfer.party = offeringLeg(ctx, call)
  ringing.calling.replacedBy = transfer.id
  show(ctx, transfer, 'transferring', null)
  if (ringing.firstProgressAt !== null)
    respondToWaiting(ctx, transfer, { status: 180, reason: 'Ringing' })
}

function show(
  ctx: StepContext,
  transfer: Transfer,
  state: CallTransfer['state'],
  sipCode: number | null,
): void {
  const { world } = ctx
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
  noteTransfer(ctx, one, shown)
  const seen = { ...shown, callUuid: one.start.callUuid }
  if (kind === 'attended') noteTransfer(ctx, other, seen)
  else other.transfer = seen
}

function noteTransfer(
  { now: at, commands }: StepContext,
  call: Call,
  transfer: CallTransfer,
): void {
  call.transfer = transfer
  if (call.notes.length < MAX_NOTES) call.notes.push({ at, what: 'transfer', transfer })
  commands.push({ type: 'transfer', callUuid: call.start.callUuid, transfer })
}
