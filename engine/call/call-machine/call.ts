/**
 * One call by `callTable`: what each step does, and how a call is answered, forwarded and ended.
 */
import {
  cause,
  failure,
  mediaTimeout,
  reasonHeader,
  summarize,
  type End,
} from '../cdr/end-reason.ts'
import { type CallAction, type CallEvent, callTable } from './tables.ts'
import {
  acceptCaller,
  display,
  reconcileSource,
  refuseCaller,
  closeLegs,
  connectParties,
  endPeers,
  legOf,
} from './calling.ts'
import { endDialing, giveUpAttempts } from './dialing.ts'
import { connectLegs } from './exchange.ts'
import { startGrant, stopGrant, stopQuestions } from './grant.ts'
import { callUuidOf, closeLeg, stepLeg, newLeg } from './leg.ts'
import type { Signal, StepContext } from './protocol.ts'
import { type Call, type Leg, type World, type Calling, nowhere } from './state.ts'
import { completeReplacement, transferSignal } from './transfer.ts'
import type { CallStart } from '../inbound/incoming-invite.ts'

/**
 * Makes one step of a call. `end` is why it is over, where the step leads there and no other end
 * was first.
 */
export function advance(ctx: StepContext, call: Call, event: CallEvent, end?: End): void {
  const next = callTable[call.phase][event]
  if (next === undefined) return
  call.phase = next.to
  const { callUuid } = call.start
  if (next.to === 'over' && call.end === undefined && end) {
    call.end = end
    ctx.signals.push({ type: 'stopped', callUuid, end })
  }
  for (const action of next.do) perform(ctx, call, action)
  if (next.to === 'answered' || next.to === 'over') endDialing(ctx, call, next.to === 'answered')
  if (next.to === 'over' && call.acceptFor !== undefined)
    ctx.signals.push({ type: 'callerGone', callUuid: call.acceptFor })
}

function perform(ctx: StepContext, call: Call, action: CallAction): void {
  const { end = failure, start } = call
  const { callUuid } = start
  switch (action) {
    case 'giveUpAttempts':
      return giveUpAttempts(ctx, call, end)
    case 'stopForwarded':
      return stopForwarded(ctx, call, end)
    case 'closeLegs':
      return closeLegs(ctx, call)
    case 'endPeers':
      return endPeers(ctx, call)
    case 'refuseCaller':
      return refuseCaller(ctx, call, end)
    case 'acceptCaller':
      return acceptCaller(ctx, call)
    case 'journal':
      return void ctx.commands.push({ type: 'journal', callUuid })
    case 'startGrant':
      return startGrant(ctx, call)
    case 'store':
    default:
      stopGrant(ctx, call)
      stopQuestions(ctx, call)
      return void ctx.commands.push({ type: 'store', callUuid, end })
  }
}

/**
 * Ends a call in whatever it is doing. The first end counts: crossing BYEs, or a hang-up that meets
 * an answer.
 */
export function stop(ctx: StepContext, call: Call, end: End): void {
  if (call.end) return
  call.end = end
  if (end.kind === 'cut') call.byeHeaders = { Reason: reasonHeader(end) }
  ctx.signals.push({ type: 'stopped', callUuid: call.start.callUuid, end })
  advance(ctx, call, 'stop')
}

/**
 * The record ends with the last packet. On hold no party has to send any, and an emergency call is
 * never cut.
 */
export function mediaLost(ctx: StepContext, call: Call, lastPacketAt: number): void {
  if (call.phase !== 'answered' || call.display === 'HELD' || call.isEmergency) return
  stop(ctx, call, mediaTimeout(lastPacketAt))
}

/** Ends what depends on a call that is over: its transfers and the calls of supervisors. */
export function stopped(
  ctx: StepContext,
  call: Call,
  signal: Signal & { readonly type: 'stopped' },
): void {
  for (const transferId of call.transferIds) {
    const transfer = ctx.world.transfers.get(transferId)
    if (transfer) transferSignal(ctx, transfer, signal)
  }
  for (const callUuid of call.supervisedBy) {
    const by = ctx.world.calls.get(callUuid)
    const end = {
      kind: 'cut',
      by: 'system',
      cause: cause.normal,
      code: 'spied_call_ended',
    } as const
    if (by) stop(ctx, by, end)
  }
}

/** The calling side has its dialog, or is the party of another call: the call is answered. */
export function callerTaken(ctx: StepContext, call: Call, legId: string): void {
  const { world, now } = ctx
  const leg = legOf(world, legId)
  const isOwn = leg?.callUuid === call.start.callUuid
  const { acceptFor, calling } = call
  if (call.phase !== 'accepting' || leg === undefined) {
    if (isOwn) closeLeg(ctx, leg, call.byeHeaders)
    return
  }
  if (acceptFor !== undefined) {
    call.acceptFor = undefined
    ctx.signals.push({ type: 'callerTaken', callUuid: acceptFor, legId })
    if (!isOwn) return callerGone(ctx, call)
  }
  // After a crash at this point the answer is in the journal, and may have been sent.
  call.answeredAt ??= now
  display(ctx, call, 'ACTIVE')
  if (isOwn) call.legs.caller = legId
  advance(ctx, call, 'callerTaken')
  call.answering = undefined
  if (calling.kind === 'forwarded') noteForwarded(ctx, world.calls.get(calling.callUuid), 200)
  if (!call.end) joinSides(ctx, call, leg)
  if (!isOwn && calling.kind === 'invite') giveWay(ctx, legOf(world, calling.legId))
  if (call.end) advance(ctx, call, 'stop')
}

/** The caller waited until the transferee took its place. */
function giveWay(ctx: StepContext, leg: Leg | undefined): void {
  if (leg) stepLeg(ctx, leg, 'reject', { status: 487, reason: 'Request Terminated' })
}

/** The two sides of an answered call talk to each other. */
function joinSides(ctx: StepContext, call: Call, caller: Leg): void {
  const { world } = ctx
  const isOwn = caller.callUuid === call.start.callUuid
  const replacement = world.transfers.get(call.replacement ?? '')
  if (replacement) return completeReplacement(ctx, replacement, caller)
  const callee = legOf(world, call.legs.callee)
  if (callee === undefined) return undefined
  if (!isOwn) {
    connectParties(ctx, caller, callee)
    for (const transferId of call.transferIds)
      ctx.signals.push({ type: 'transferConnected', transferId })
    return undefined
  }
  // The callee was offered what the phone had answered, as an offer (asOffer): not word for word.
  if (call.calling.kind === 'source') for (const leg of [caller, callee]) leg.hasOwnOrigin = true
  if (callee.state === 'offered') caller.awaitedAck = { kind: 'first-offer', id: callee.id }
  else connectLegs(ctx, caller, callee)
  reconcileSource(ctx, call)
  return undefined
}

/** The calling side had left when the callee answered. */
export function callerGone(ctx: StepContext, call: Call): void {
  stop(ctx, call, { kind: 'cancelled' })
  advance(ctx, call, 'callerGone')
}

/** Callers do not learn whether the forwarding extension has money or may call there. */
const endShownToCaller = (end: End): End =>
  end.kind === 'refused'
    ? { kind: 'rejected', status: 480, reason: 'Temporarily Unavailable', headers: {} }
    : end

export function forwardEnded(ctx: StepContext, call: Call, end: End): void {
  const shown = endShownToCaller(end)
  noteForwarded(ctx, call, summarize(shown, false).sipCode)
  advance(ctx, call, 'exhausted', shown)
}

/** The forward as an attempt in the record of the forwarded call. */
function noteForwarded(
  { now: endedAt }: StepContext,
  call: Call | undefined,
  status: number,
): void {
  if (call?.forwardedTo === undefined) return
  const { destination, startedAt } = call.forwardedTo
  call.forwardedTo = undefined
  call.attempts.push({ destination, status, reason: 'forwarded', startedAt, endedAt })
}

function stopForwarded({ signals }: StepContext, { forwardedTo }: Call, end: End): void {
  if (forwardedTo === undefined) return
  const { callUuid } = forwardedTo
  const forwardedEnd: End = end.kind === 'cut' ? { ...end, code: null } : { kind: 'cancelled' }
  signals.push({ type: 'stop', callUuid, end: forwardedEnd })
}

/** The caller's ACK has answered the callee's offer. */
export function calleeConfirmed(ctx: StepContext, call: Call, leg: Leg): void {
  const caller = legOf(ctx.world, call.legs.caller)
  if (caller && !call.end) connectLegs(ctx, caller, leg)
}

/** Removes a call whose record is stored. */
export function forgetCall(world: World, callUuid: string): void {
  const call = world.calls.get(callUuid)
  if (call === undefined) return
  world.calls.delete(callUuid)
  for (const transferId of call.transferIds) {
    const { transferee = '', target = transferee } = world.transfers.get(transferId) ?? {}
    const isUsed = [transferee, target].some((legId) => world.calls.has(callUuidOf(legId)))
    if (!isUsed) world.transfers.delete(transferId)
  }
}

// A call as it begins.

/** The beginning of a call, with or without an INVITE. */
export interface NewCall {
  readonly start: CallStart
  readonly stampOffsetMs: number
  readonly calling?: Calling
  /** New legs go by the SIP server of this leg. */
  readonly near?: string | undefined
  /** `address:port` of the caller. */
  readonly callerPeer?: string | null
  readonly payerTenantId?: number | null
  readonly forwardedBy?: string
  readonly transfersBefore?: number
}

/** Facts of an INVITE that its leg stores. */
export interface ReceivedInvite {
  readonly callerTag: string
  readonly offer: string | undefined
  /** The INVITE requires reliable provisional responses. */
  readonly isReliable: boolean
  /** The INVITE comes from a phone. */
  readonly isPhone: boolean
}

export function beginCall(world: World, newCall: NewCall): Call {
  const { start, stampOffsetMs, calling, near, callerPeer, forwardedBy } = newCall
  const caller = callerPeer ?? (start.isOurs === true ? null : start.sourceAddress)
  // One shape for all calls, and no spreads: they took 6 µs of every call.
  const call: Call = {
    start,
    instance: world.instance,
    stampOffsetMs,
    phase: 'admitting',
    display: 'DIALING',
    direction: 'inbound',
    calling: calling ?? { kind: 'source', offer: '', remoteSdp: '', isWanted: false },
    callerTag: '',
    offer: undefined,
    account: null,
    payerTenantId: newCall.payerTenantId ?? null,
    origin: undefined,
    destination: undefined,
    dialing: undefined,
    answering: undefined,
    legs: { caller: undefined, callee: undefined },
    departing: [],
    transferIds: [],
    supervisedBy: [],
    near,
    forwardedBy,
    transfersBefore: newCall.transfersBefore ?? 0,
    failedTransfers: 0,
    place: nowhere,
    attempts: [],
    callIds: [start.callId],
    notes: [],
    peers: { caller, callee: null },
    isFree: false,
    isEmergency: false,
    grantedSeconds: null,
    firstProgressAt: null,
    answeredAt: null,
    tags: undefined,
    proof: undefined,
    isToBeRecorded: undefined,
    end: undefined,
    byeHeaders: {},
    legCount: 0,
  }
  world.calls.set(start.callUuid, call)
  return call
}

/** A call that an INVITE begins, and the leg of its caller. */
export function beginInvitedCall(world: World, newCall: NewCall, invite: ReceivedInvite): Leg {
  const call = beginCall(world, newCall)
  const leg = newLeg({ world }, call, 'caller', false)
  leg.callId = call.start.callId
  leg.remoteTag = invite.callerTag
  leg.isPhone = invite.isPhone
  if (invite.isReliable) leg.isReliable = true
  call.calling = { kind: 'invite', legId: leg.id }
  call.callerTag = invite.callerTag
  if (invite.offer !== undefined) call.offer = invite.offer
  call.near = leg.id
  return leg
}
