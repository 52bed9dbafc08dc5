/**
 * What is kept of an answered call, so that the next process goes on with it: plain values, and only while the call
 * is stable. A call is stable when its callee has answered and its caller is about to get the 200, or when it
 * is answered and no request, offer or transfer is under way.
 */
import type { Call, Exchange, Leg, World } from './state.ts'
import { legOf } from './parties.ts'

/** Another version is not read. */
export const SAVED_VERSION = 1

/** What the SIP side has saved of a leg. */
type SavedSip = object

type SavedFields = Pick<
  Call,
  | 'start'
  | 'stampOffsetMs'
  | 'phase'
  | 'display'
  | 'direction'
  | 'callerTag'
  | 'account'
  | 'payerTenantId'
  | 'origin'
  | 'destination'
  | 'answering'
  | 'legs'
  | 'supervisedBy'
  | 'forwardedBy'
  | 'transfersBefore'
  | 'failedTransfers'
  | 'place'
  | 'attempts'
  | 'callIds'
  | 'peers'
  | 'isFree'
  | 'isEmergency'
  | 'grantedSeconds'
  | 'grantDenial'
  | 'firstProgressAt'
  | 'answeredAt'
  | 'byeHeaders'
  | 'legCount'
>

type SavedLegFields = Pick<
  Leg,
  | 'id'
  | 'isUac'
  | 'side'
  | 'state'
  | 'isPhone'
  | 'callId'
  | 'localTag'
  | 'remoteTag'
  | 'hasOwnOrigin'
  | 'requestCount'
>

interface SavedLeg extends SavedLegFields {
  /** Indices of texts. */
  readonly media: number
  readonly told: number
  readonly sip: SavedSip
}

export interface SavedCall {
  readonly version: number
  readonly call: Omit<SavedFields, 'answering'>
  /** Of a call whose caller has no 200 yet: our answer, as an index of texts, and its headers. */
  readonly answer?: { readonly sdp: number; readonly headers: Record<string, string> }
  readonly offer?: number
  readonly legs: readonly SavedLeg[]
  /** The legs that exchange media: one of them may belong to another call. */
  readonly exchange?: Pick<Exchange, 'id' | 'legs'>
  /** Session descriptions: the same one is told and heard in several places. */
  readonly texts: readonly string[]
}

/** Undefined: it is not stable, or the SIP side cannot save a leg. `now` is the time of the answer that is about to go out. */
export function saveCall(
  world: World,
  call: Call,
  sipOf: (legId: string) => SavedSip | undefined,
  now: number,
): SavedCall | undefined {
  const legs = stableLegs(world, call)
  if (legs === undefined) return undefined
  const texts: string[] = []
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
    call: savedFields(call, isAnswered ? call.answeredAt : now),
    ...(isAnswered || answering === undefined
      ? {}
      : { answer: { sdp: indexOf(texts, answering.sdp), headers: answering.headers } }),
    ...(isAnswered || offer === undefined ? {} : { offer: indexOf(texts, offer) }),
    legs: saved,
    ...(exchange === undefined ? {} : { exchange: { id: exchange.id, legs: exchange.legs } }),
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
  return leg.subscription === undefined && isEmpty(leg.pending) && isEmpty(leg.retries)
}

function isEmpty(table: object): boolean {
  for (const _ in table) return false
  return true
}

function savedFields(call: Call, answeredAt: number | null): SavedCall['call'] {
  return {
    start: call.start,
    stampOffsetMs: call.stampOffsetMs,
    phase: call.phase,
    display: call.display,
    direction: call.direction,
    callerTag: call.callerTag,
    account: call.account,
    payerTenantId: call.payerTenantId,
    origin: call.origin,
    destination: identityOf(call.destination),
    legs: call.legs,
    supervisedBy: call.supervisedBy,
    forwardedBy: call.forwardedBy,
    transfersBefore: call.transfersBefore,
    failedTransfers: call.failedTransfers,
    place: call.place,
    attempts: attemptsOf(call, answeredAt),
    callIds: call.callIds,
    peers: call.peers,
    isFree: call.isFree,
    isEmergency: call.isEmergency,
    grantedSeconds: call.grantedSeconds,
    grantDenial: call.grantDenial,
    firstProgressAt: call.firstProgressAt,
    answeredAt,
    byeHeaders: call.byeHeaders,
    legCount: call.legCount,
  }
}

/** Whose party was reached: the rest of a destination serves dialing, and may hold a password. */
function identityOf(destination: Call['destination']): Call['destination'] {
  if (destination?.kind === 'node') return destination
  if (destination?.kind !== 'extension') return undefined
  return { ...destination, phones: [], voicemail: undefined }
}

/** With the attempt that is answering. */
function attemptsOf({ attempts, dialing }: Call, answeredAt: number | null): Call['attempts'] {
  if (dialing?.purpose !== 'destination' || answeredAt === null) return attempts
  const tried = dialing.attempts.map(({ destination, status, reason, startedAt, ...attempt }) => {
    const endedAt = attempt.state === 'answered' ? answeredAt : attempt.endedAt
    return { destination, status, reason, startedAt, endedAt }
  })
  return [...attempts, ...tried]
}

function savedLeg(leg: Leg, sip: SavedSip, texts: string[]): SavedLeg {
  return {
    id: leg.id,
    isUac: leg.isUac,
    side: leg.side,
    state: leg.state,
    isPhone: leg.isPhone,
    callId: leg.callId,
    localTag: leg.localTag,
    remoteTag: leg.remoteTag,
    hasOwnOrigin: leg.hasOwnOrigin,
    requestCount: leg.requestCount,
    media: indexOf(texts, leg.media),
    told: indexOf(texts, leg.told),
    sip,
  }
}

function indexOf(texts: string[], text: string): number {
  const known = texts.indexOf(text)
  return known === -1 ? texts.push(text) - 1 : known
}

/**
 * Adds a call to the world as it was saved. `shiftMs` is added to its times, which another process wrote by its
 * steady clock. Its legs are not connected yet (`connectSaved`).
 */
export function restoreCall(world: World, saved: SavedCall, shiftMs: number): Call {
  const { call: fields, texts } = saved
  const textOf = (index: number | undefined): string => texts[index ?? -1] ?? ''
  const at = (time: number | null): number | null => (time === null ? null : time + shiftMs)
  const { start, answeredAt, firstProgressAt } = fields
  const [first] = saved.legs
  const call: Call = {
    ...fields,
    start: { ...start, startedAt: start.startedAt + shiftMs },
    stampOffsetMs: fields.stampOffsetMs - shiftMs,
    calling: { kind: 'invite', legId: first?.id ?? '' },
    offer: saved.offer === undefined ? undefined : textOf(saved.offer),
    answering: saved.answer && { sdp: textOf(saved.answer.sdp), headers: saved.answer.headers },
    departing: [],
    transferIds: [],
    near: first?.id,
    attempts: fields.attempts.map((attempt) => ({
      ...attempt,
      startedAt: attempt.startedAt + shiftMs,
      endedAt: attempt.endedAt + shiftMs,
    })),
    notes: [],
    firstProgressAt: at(firstProgressAt),
    answeredAt: at(answeredAt),
    end: undefined,
  }
  world.calls.set(start.callUuid, call)
  for (const { sip: _sip, media, told, ...leg } of saved.legs)
    world.legs.set(leg.id, {
      ...leg,
      callUuid: start.callUuid,
      media: textOf(media),
      told: textOf(told),
      closing: undefined,
      exchangeId: undefined,
      awaitedAck: undefined,
      pending: {},
      retries: {},
    })
  return call
}

/** Connects the legs of a restored call. False: the leg of another call that it was connected to was not restored. */
export function connectSaved(world: World, { exchange }: SavedCall): boolean {
  if (exchange === undefined) return true
  const legs = exchange.legs.map((legId) => world.legs.get(legId))
  if (legs.includes(undefined)) return false
  for (const leg of legs) if (leg) leg.exchangeId = exchange.id
  world.exchanges.set(exchange.id, { id: exchange.id, legs: exchange.legs, state: 'stable' })
  return true
}

/** Takes a call that could not be restored out of the world again. */
export function forgetSaved(world: World, { call, legs }: SavedCall): void {
  world.calls.delete(call.start.callUuid)
  for (const { id } of legs) world.legs.delete(id)
}
