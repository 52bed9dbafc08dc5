/** Converts a call to its record. */
import {
  type DialledCall,
  type OpenCall,
  type Attempt,
  billedSeconds,
  type CallRecord,
} from '../../../schema/contracts/call-record.ts'
import type { BoughtPrice } from '../../../schema/contracts/tariff.ts'
import { carrierCostOf } from '../../charging/pricing/carrier-cost.ts'
import { recordOf } from '../call-machine/dialing.ts'
import type { LiveCall } from '../call-machine/state.ts'
import { type End, denialTextOf, summarize } from './end-reason.ts'

/**
 * The record of a call that is over. `now` is a time of the steady clock, as the times of the call;
 * the record has milliseconds UTC. An end may have a time of its own, before now. A call of the
 * last process that ends before its parties are heard ends when it was known to go on for the last
 * time.
 */
export function callRecord(call: LiveCall, end: End, now: number): CallRecord {
  const { start, account, place, answeredAt, stampOffsetMs, doubt } = call
  const cutAt = end.kind === 'cut' ? (end.endedAt ?? now) : now
  const endedAt = doubt === undefined ? cutAt : Math.min(cutAt, doubt.aliveAt)
  const summary = summarize(end, answeredAt !== null)
  const billsec =
    answeredAt === null ? 0 : chargedSeconds(endedAt - answeredAt, call.grantedSeconds ?? Infinity)
  // Written out: spreading the parts took 15 µs of every call.
  return {
    callUuid: start.callUuid,
    callId: start.callId,
    direction: call.direction,
    callerNumber: start.callerNumber,
    callerName: start.callerName,
    calledNumber: start.calledNumber,
    dialledNumber: start.asDialled,
    startedAt: start.startedAt + stampOffsetMs,
    answeredAt: answeredAt === null ? null : answeredAt + stampOffsetMs,
    endedAt: Math.max(endedAt, answeredAt ?? start.startedAt) + stampOffsetMs,
    postDialDelayMs: postDialDelayOf(call),
    billsec,
    disposition: summary.disposition,
    sipCode: summary.sipCode,
    hangupCause: summary.hangupCause,
    hangupBy: summary.hangupBy,
    denialCode: summary.denialCode,
    denialText: denialTextOf(end),
    // A set that had no room is no place where the call counted.
    setId: place.setId ?? (end.kind === 'refused' ? (end.setId ?? null) : null),
    node: place.node,
    instance: call.instance,
    carrier: place.carrier,
    attempts: call.attempts.map((attempt) => stamped(attempt, call)),
    ...ownerOf(call),
    customerId: account?.customerId ?? null,
    ratePrefix: account?.ratePrefix ?? null,
    currency: account?.currency ?? null,
    sourceAddress: start.sourceAddress,
    isRecovered: doubt !== undefined && summary.hangupBy === 'system',
    isUnauthorizedByOcs: account?.isUnauthorizedByOcs ?? false,
    isFree: call.isFree,
    lack: end.kind === 'refused' ? end.lack : undefined,
    tags: call.tags,
    verification: call.proof?.verification,
    verstat: call.proof?.verstat,
    attestation: call.proof?.attestation,
    carrierCost: carrierCostOf(call.bought, billsec),
  }
}

type OwnedCall = Pick<LiveCall, 'account' | 'origin' | 'destination'>

/**
 * The tenant that may see a call: its payer's, else that of its source, else of where it goes.
 * Null: none.
 */
export const tenantOfCall = ({ account, origin, destination }: OwnedCall): number | null =>
  account?.tenantId ?? tenantOfSource(origin) ?? tenantOfDestination(destination)

/** The tenant sees the call, and the price is the platform's. */
export const isPaidByPlatform = (call: OwnedCall): boolean =>
  call.account?.customerId != null && call.account.tenantId === null && tenantOfCall(call) !== null

const ownerOf = (call: OwnedCall): Pick<CallRecord, 'tenantId' | 'isPaidByPlatform'> => {
  const tenantId = tenantOfCall(call)
  return isPaidByPlatform(call) ? { tenantId, isPaidByPlatform: true } : { tenantId }
}

function tenantOfSource(origin: OwnedCall['origin']): number | null {
  if (origin?.kind === 'proxy')
    return origin.tenantIds.length === 1 ? (origin.tenantIds[0] ?? null) : null
  return origin !== undefined && 'tenantId' in origin ? (origin.tenantId ?? null) : null
}

const tenantOfDestination = (destination: OwnedCall['destination']): number | null =>
  destination !== undefined && 'tenantId' in destination ? destination.tenantId : null

/**
 * The journal entry of a call that is about to be answered, with the attempt that has answered, and
 * what is bought of its carrier.
 */
export function openCall(call: LiveCall, answeredAt: number, bought?: BoughtPrice): OpenCall {
  const { start, account, place, stampOffsetMs, dialing } = call
  const answering = dialing?.attempts.find(({ state }) => state === 'answered')
  const attempts = answering
    ? [...call.attempts, { ...recordOf(answering), endedAt: answeredAt }]
    : call.attempts
  return {
    callUuid: start.callUuid,
    callId: start.callId,
    direction: call.direction,
    callerNumber: start.callerNumber,
    callerName: start.callerName,
    calledNumber: start.calledNumber,
    dialledNumber: start.asDialled,
    startedAt: start.startedAt + stampOffsetMs,
    answeredAt: answeredAt + stampOffsetMs,
    postDialDelayMs: postDialDelayOf(call),
    denialCode: null,
    setId: place.setId,
    node: place.node,
    instance: call.instance,
    carrier: place.carrier,
    attempts: attempts.map((attempt) => stamped(attempt, call)),
    ...ownerOf(call),
    customerId: account?.customerId ?? null,
    ratePrefix: account?.ratePrefix ?? null,
    currency: account?.currency ?? null,
    sourceAddress: start.sourceAddress,
    isUnauthorizedByOcs: account?.isUnauthorizedByOcs ?? false,
    isFree: call.isFree,
    tags: call.tags,
    verification: call.proof?.verification,
    verstat: call.proof?.verstat,
    attestation: call.proof?.attestation,
    ...(bought && { bought }),
  }
}

/**
 * The journal entry of a call that is dialled. It has no answer: `answeredAt` is only a
 * placeholder.
 */
export const dialledCall = (call: LiveCall): DialledCall => openCall(call, call.start.startedAt)

/** An attempt with stamps, for records and traces. */
export const stamped = (attempt: Attempt, { stampOffsetMs }: LiveCall): Attempt =>
  stampOffsetMs === 0
    ? attempt
    : {
        ...attempt,
        startedAt: attempt.startedAt + stampOffsetMs,
        endedAt: attempt.endedAt + stampOffsetMs,
      }

/**
 * Never more than was granted, except for the first second: the cut comes a moment after the grant
 * has run out, and that moment is ours to pay for.
 */
const chargedSeconds = (talkedMs: number, grantedSeconds: number): number =>
  Math.max(1, Math.min(billedSeconds(talkedMs), Math.floor(grantedSeconds)))

const postDialDelayOf = ({ firstProgressAt, start }: LiveCall): number | null =>
  firstProgressAt === null ? null : firstProgressAt - start.startedAt
