/**
 * An answered call as plain values, with which the next process continues it. Only a stable call
 * can be saved. A call is stable when its callee has answered and its caller is about to get the
 * 200, or when it is answered and no request, offer or transfer is under way.
 */
import type { OpenCall } from '../../../schema/contracts/call-record.ts'
import type { Account } from '../../../schema/contracts/charging.ts'
import type { Call, Doubt, Exchange, Leg, World } from './state.ts'
import { legOf } from './calling.ts'

/** Another version is not read. */
export const SAVED_VERSION = 1

/** The saved SIP state of a leg. */
type SavedSip = object

/**
 * Without the fields that the journal stores itself: the two parties, the payer, the attempts.
 * Defaults are absent.
 */
type SavedFields = Pick<
  Call,
  | 'stampOffsetMs'
  | 'phase'
  | 'display'
  | 'direction'
  | 'callerTag'
  | 'origin'
  | 'destination'
  | 'legs'
  | 'forwardedBy'
  | 'place'
  | 'callIds'
  | 'peers'
  | 'grantedSeconds'
  | 'grantDenial'
  | 'firstProgressAt'
  | 'answeredAt'
  | 'legCount'
  | 'isToBeRecorded'
> & {
  readonly payerTenantId: number | undefined
  readonly supervisedBy: string[] | undefined
  readonly transfersBefore: number | undefined
  readonly failedTransfers: number | undefined
  readonly isOurs: true | undefined
  readonly isRecordedElsewhere: true | undefined
  /** Absent: shown, or saved by an earlier version. */
  readonly isPrivate?: true | undefined
  readonly isEmergency: true | undefined
}

interface SavedLeg extends Pick<
  Leg,
  'id' | 'side' | 'state' | 'callId' | 'localTag' | 'remoteTag' | 'withheld'
> {
  readonly isUac: true | undefined
  readonly isPhone: true | undefined
  readonly hasOwnOrigin: true | undefined
  readonly requestCount: number | undefined
  /** Indices of `texts`: the last SDP received from the peer, and the last one sent to it. */
  readonly media: number
  readonly told: number
  readonly sip: SavedSip
}

export interface SavedCall {
  readonly version: number
  readonly callUuid: string
  readonly call: SavedFields
  /** Before the 200 to the caller: the answer, as an index of `texts`, and its headers. */
  readonly answer?: { readonly sdp: number; readonly headers: Record<string, string> } | undefined
  readonly offer?: number | undefined
  readonly legs: readonly SavedLeg[]
  /** The legs that exchange media: one of them may belong to another call. */
  readonly exchange?: Pick<Exchange, 'id' | 'legs'> | undefined
  /**
   * Session descriptions, each stored once: the same one may be received from one peer and sent to
   * another.
   */
  readonly texts: readonly string[]
}

/**
 * Undefined: it is not stable, or the SIP side cannot save a leg. `now` is the time of the answer
 * that is about to go out. What is returned does not change with the call.
 */
export function saveCall(
  world: World,
  call: Call,
  sipOf: (legId: string) => SavedSip | undefined,
  now: number,
  known: readonly string[],
): SavedCall | undefined {
  const legs = stableLegs(world, call)
  if (legs === undefined) return undefined
  const texts = [...known]
  const saved: SavedLeg[] = []
  let exchange: Exchange | undefined
  for (const leg of legs) {
    const sip = sipOf(leg.id)
    if (sip === undefined) return undefined
    if (leg.exchangeId !== undefined) exchange = world.exchanges.get(leg.exchangeId)
    if (exchange !== undefined && exchange.state !== 'stable') return undefined
    saved.push(savedLeg(leg, sip, texts))
  }
  const { answering, offer } = call
  const isAnswered = call.phase === 'answered'
  return {
    version: SAVED_VERSION,
    callUuid: call.start.callUuid,
    call: savedFields(call, isAnswered ? call.answeredAt : now),
    answer:
      isAnswered || answering === undefined
        ? undefined
        : { sdp: indexOf(texts, answering.sdp), headers: answering.headers },
    offer: isAnswered || offer === undefined ? undefined : indexOf(texts, offer),
    legs: saved,
    exchange: exchange && { id: exchange.id, legs: exchange.legs },
    texts,
  }
}

/** The legs of a stable call; undefined: it is not stable. */
function stableLegs(world: World, call: Call): readonly Leg[] | undefined {
  const { phase, calling, legs, departing, end } = call
  if (end !== undefined || call.acceptFor !== undefined) return undefined
  if (departing.some((legId) => legOf(world, legId) !== undefined)) return undefined
  if (call.transfer?.state === 'transferring') return undefined
  const callee = legOf(world, legs.callee)
  if (phase === 'journalling') {
    const isPlain = calling.kind === 'invite' && calling.replacedBy === undefined
    if (!isPlain || call.replacement !== undefined || callee === undefined) return undefined
    const caller = legOf(world, calling.legId)
    if (caller?.state !== 'incoming' || !isQuiet(callee)) return undefined
    return [caller, callee]
  }
  if (phase !== 'answered') return undefined
  const caller = legOf(world, legs.caller)
  const present = [caller, callee].filter((leg) => leg !== undefined)
  return present.length > 0 && present.every(isQuiet) ? present : undefined
}

/** Nothing is under way in its dialog. */
function isQuiet(leg: Leg): boolean {
  if (leg.state !== 'confirmed' || leg.excusedBy !== undefined) return false
  if (leg.awaitedAck !== undefined || leg.owedAnswer !== undefined) return false
  return leg.subscription === undefined && asksAtMost(leg) && isEmpty(leg.retries)
}

/** The next process asks again by itself. */
function asksAtMost({ pending }: Leg): boolean {
  for (const transactionId in pending) if (pending[transactionId]?.kind !== 'question') return false
  return true
}

function isEmpty(table: object): boolean {
  for (const _ in table) return false
  return true
}

function savedFields(call: Call, answeredAt: number | null): SavedFields {
  return {
    stampOffsetMs: call.stampOffsetMs,
    phase: call.phase,
    display: call.display,
    direction: call.direction,
    callerTag: call.callerTag,
    payerTenantId: call.payerTenantId ?? undefined,
    origin: call.origin,
    destination: identityOf(call.destination),
    legs: { ...call.legs },
    supervisedBy: call.supervisedBy.length === 0 ? undefined : [...call.supervisedBy],
    forwardedBy: call.forwardedBy,
    transfersBefore: call.transfersBefore || undefined,
    failedTransfers: call.failedTransfers || undefined,
    place: call.place,
    callIds: [...call.callIds],
    peers: { ...call.peers },
    isOurs: call.start.isOurs === true || undefined,
    isRecordedElsewhere: call.start.isRecordedElsewhere === true || undefined,
    isPrivate: call.start.isPrivate,
    isEmergency: call.isEmergency || undefined,
    grantedSeconds: call.grantedSeconds,
    grantDenial: call.grantDenial,
    firstProgressAt: call.firstProgressAt,
    answeredAt,
    legCount: call.legCount,
    isToBeRecorded: call.isToBeRecorded,
  }
}

/**
 * The identity of the reached party. The rest of a destination serves dialing, and may contain a
 * password.
 */
function identityOf(destination: Call['destination']): Call['destination'] {
  switch (destination?.kind) {
    case 'extension': {
      const { kind, uri, tenantId } = destination
      return { kind, uri, tenantId }
    }
    case 'gateway':
      return {
        kind: destination.kind,
        carrierId: destination.carrierId,
        ...(destination.measuredBy !== undefined && { measuredBy: destination.measuredBy }),
      }
    case 'agent':
    case 'domain':
    case 'spy':
      return { kind: destination.kind, tenantId: destination.tenantId }
    case 'other-node':
    case 'listener':
      return { kind: destination.kind }
    case 'application':
      return { kind: destination.kind, run: destination.run }
    case 'node':
    case undefined:
    default:
      return destination
  }
}

function savedLeg(leg: Leg, sip: SavedSip, texts: string[]): SavedLeg {
  return {
    id: leg.id,
    isUac: leg.isUac || undefined,
    side: leg.side,
    state: leg.state,
    isPhone: leg.isPhone || undefined,
    withheld: leg.withheld,
    callId: leg.callId,
    localTag: leg.localTag,
    remoteTag: leg.remoteTag,
    hasOwnOrigin: leg.hasOwnOrigin || undefined,
    requestCount: leg.requestCount || undefined,
    media: indexOf(texts, leg.media),
    told: indexOf(texts, leg.lastSdpSent),
    sip,
  }
}

function indexOf(texts: string[], text: string): number {
  const known = texts.indexOf(text)
  return known === -1 ? texts.push(text) - 1 : known
}

/** A leg without a dialog: nobody can be asked. */
const hasNoPeer = (sip: SavedSip): boolean => 'listens' in sip

/**
 * Adds a call to the world as it was saved; `opened` is what the journal has of its answer.
 * `shiftMs` is added to its times, which another process wrote by its steady clock. Its legs are
 * not connected yet (`connectSaved`).
 */
export function restoreCall(
  world: World,
  saved: SavedCall,
  opened: OpenCall,
  shiftMs: number,
  doubt: Doubt,
): Call {
  const { call: fields, callUuid } = saved
  const at = (time: number | null): number | null => (time === null ? null : time + shiftMs)
  const stampOffsetMs = fields.stampOffsetMs - shiftMs
  const [first] = saved.legs
  const {
    isOurs,
    isRecordedElsewhere,
    isPrivate,
    payerTenantId = null,
    supervisedBy = [],
    isEmergency = false,
  } = fields
  const { transfersBefore = 0, failedTransfers = 0 } = fields
  const isFree = opened.isFree === true
  const call: Call = {
    ...fields,
    payerTenantId,
    supervisedBy,
    transfersBefore,
    failedTransfers,
    isEmergency,
    isFree,
    start: {
      callUuid,
      callId: opened.callId,
      calledNumber: opened.calledNumber,
      callerNumber: opened.callerNumber,
      callerName: opened.callerName,
      sourceAddress: opened.sourceAddress,
      startedAt: opened.startedAt - stampOffsetMs,
      ...(opened.dialledNumber !== undefined && { asDialled: opened.dialledNumber }),
      ...(isOurs && { isOurs }),
      ...(isRecordedElsewhere && { isRecordedElsewhere }),
      ...(isPrivate && { isPrivate }),
    },
    instance: world.instance,
    account: accountOf(opened),
    stampOffsetMs,
    calling: { kind: 'invite', legId: first?.id ?? '' },
    offer: saved.offer === undefined ? undefined : textIn(saved, saved.offer),
    answering: saved.answer && {
      sdp: textIn(saved, saved.answer.sdp),
      sdpOwner: fields.legs.callee,
      headers: saved.answer.headers,
    },
    departing: [],
    transferIds: [],
    near: first?.id,
    attempts: opened.attempts.map(({ startedAt, endedAt, ...attempt }) => ({
      ...attempt,
      startedAt: startedAt - stampOffsetMs,
      endedAt: endedAt - stampOffsetMs,
    })),
    notes: [],
    tags: opened.tags,
    proof: proofOf(opened),
    bought: opened.bought,
    firstProgressAt: at(fields.firstProgressAt),
    answeredAt: at(fields.answeredAt),
    byeHeaders: {},
    doubt: saved.legs.every(({ sip }) => hasNoPeer(sip)) ? undefined : doubt,
    end: undefined,
  }
  world.calls.set(callUuid, call)
  restoreLegs(world, saved)
  return call
}

function proofOf({ verification, verstat, attestation }: OpenCall): Call['proof'] {
  const isKnown = verification !== undefined || attestation !== undefined
  return isKnown ? { verification, verstat, attestation } : undefined
}

/** Adds the legs of a saved call; one with a peer has not been heard since. */
function restoreLegs(world: World, saved: SavedCall): void {
  for (const { sip, media, told, ...leg } of saved.legs) {
    const { isUac = false, isPhone = false, hasOwnOrigin = false, requestCount = 0 } = leg
    world.legs.set(leg.id, {
      ...leg,
      callUuid: saved.callUuid,
      isUac,
      isPhone,
      hasOwnOrigin,
      requestCount,
      media: textIn(saved, media),
      lastSdpSent: textIn(saved, told),
      closing: undefined,
      exchangeId: undefined,
      awaitedAck: undefined,
      pending: {},
      retries: {},
      isUnheard: hasNoPeer(sip) ? undefined : true,
    })
  }
}

const textIn = ({ texts }: SavedCall, index: number | undefined): string => texts[index ?? -1] ?? ''

function accountOf(opened: OpenCall): Account | null {
  const { customerId, ratePrefix, currency, isUnauthorizedByOcs } = opened
  const tenantId = opened.isPaidByPlatform === true ? null : opened.tenantId
  const isNone = customerId === null && tenantId === null && ratePrefix === null
  if (isNone && !isUnauthorizedByOcs) return null
  return { customerId, tenantId, ratePrefix, currency, isUnauthorizedByOcs }
}

/**
 * Connects the legs of a restored call. False: the leg of another call that it was connected to was
 * not restored.
 */
export function connectSaved(world: World, { exchange }: SavedCall): boolean {
  if (exchange === undefined) return true
  const legs = exchange.legs.map((legId) => world.legs.get(legId))
  if (legs.includes(undefined)) return false
  for (const leg of legs) if (leg) leg.exchangeId = exchange.id
  world.exchanges.set(exchange.id, { id: exchange.id, legs: exchange.legs, state: 'stable' })
  return true
}

/** Takes a call that could not be restored out of the world again. */
export function forgetSaved(world: World, { callUuid, legs }: SavedCall): void {
  world.calls.delete(callUuid)
  for (const { id } of legs) world.legs.delete(id)
}
