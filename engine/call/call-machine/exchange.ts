/** Requests inside an answered call: some pass to the other leg, others are answered here. */
import { ACCEPTED_TYPES, requiredType, UNSUPPORTED } from '../multipart.ts'
import { ALLOW, withoutAlerts, withoutClaims, withoutHeaders } from '../sip-headers.ts'
import { isHold, silentAnswer } from '../sdp.ts'
import type { Headers, LegEventData, SipResponse } from '../signalling.ts'
import { type ExchangeEvent, exchangeTable } from './tables.ts'
import { answerOwed, describeTo, isClosing, isOffering, sendRequest } from './leg.ts'
import type { StepContext } from './protocol.ts'
import type { Exchange, Leg, Purpose } from './state.ts'

type Relayed = Extract<Purpose, { readonly kind: 'relayed' }>
type Request = Extract<LegEventData, { readonly type: 'request' }>

/**
 * A drachtio-server reports only the first response to a request in a dialog: after a provisional
 * one the final one is lost. Longer than the embedded server waits for it (RFC 3261 §16.6, timer
 * C).
 */
const MAX_RINGING_MS = 200_000

/** The two talk to each other from now on. */
export function connectLegs({ world }: StepContext, a: Leg, b: Leg): Exchange {
  const exchange: Exchange = { id: a.id, legs: [a.id, b.id], state: 'stable' }
  world.exchanges.set(exchange.id, exchange)
  a.exchangeId = exchange.id
  b.exchangeId = exchange.id
  return exchange
}

/** Requests of both are refused: at least one of them has no party to talk to any more. */
export function disconnectLegs(ctx: StepContext, leg: Leg): void {
  const exchange = exchangeOf(ctx, leg)
  if (exchange === undefined) return
  stopTimer(ctx, exchange)
  ctx.world.exchanges.delete(exchange.id)
  for (const legId of exchange.legs) {
    const each = ctx.world.legs.get(legId)
    if (each?.exchangeId === exchange.id) each.exchangeId = undefined
  }
  leg.exchangeId = undefined
}

const exchangeOf = (
  { world }: Pick<StepContext, 'world'>,
  { exchangeId }: Leg,
): Exchange | undefined => (exchangeId === undefined ? undefined : world.exchanges.get(exchangeId))

/** The leg that this one exchanges media with. */
export function peerOf(ctx: Pick<StepContext, 'world'>, leg: Leg): Leg | undefined {
  const exchange = exchangeOf(ctx, leg)
  if (exchange === undefined) return undefined
  const [a, b] = exchange.legs
  return ctx.world.legs.get(a === leg.id ? b : a)
}

/** Stops the peers' re-INVITEs; the signal `paused` follows when none is in progress. */
export function pause(
  ctx: StepContext,
  leg: Leg | undefined,
  transferId: string,
  step: string,
): void {
  const exchange = leg && exchangeOf(ctx, leg)
  if (exchange === undefined) {
    ctx.signals.push({ type: 'paused', transferId, step })
    return
  }
  exchange.waiting = { transferId, step }
  stepExchange(ctx, exchange, 'pause')
}

export function resume(ctx: StepContext, leg: Leg | undefined): void {
  const exchange = leg && exchangeOf(ctx, leg)
  if (exchange === undefined) return
  exchange.waiting = undefined
  stepExchange(ctx, exchange, 'resume')
}

/** Makes one step of an exchange. True: the offer may pass. */
function stepExchange(ctx: StepContext, exchange: Exchange, event: ExchangeEvent): boolean {
  const step = exchangeTable[exchange.state][event]
  if (step === undefined) return false
  exchange.state = step.to
  if (step.do.includes('signalPaused') && exchange.waiting) {
    ctx.signals.push({ type: 'paused', ...exchange.waiting })
    exchange.waiting = undefined
  }
  return step.do.includes('relay')
}

/** A request of a leg's peer, except BYE and ACK. */
export function relayRequest(ctx: StepContext, leg: Leg, request: Request): void {
  const other = peerOf(ctx, leg)
  if (other === undefined) return refuseForNow(ctx, leg, request)
  const { requestId, method, headers } = request
  if (requiredType(headers) !== undefined) return refuseBody(ctx, leg, request)
  switch (method) {
    case 'INVITE':
      return relayOffer(ctx, leg, other, request)
    case 'UPDATE':
      if (isBareRefresh(request)) return answer(ctx, leg, requestId, 200)
      if (request.body) return relayOffer(ctx, leg, other, request)
      return relay(ctx, leg, other, request)
    case 'INFO':
    case 'MESSAGE':
    case 'NOTIFY':
      return relay(ctx, leg, other, request)
    case 'REFER':
      return void ctx.signals.push({ type: 'refer', legId: leg.id, requestId, headers })
    case 'OPTIONS':
      return answer(ctx, leg, requestId, 200, { Allow: ALLOW })
    case 'PRACK':
      return answer(ctx, leg, requestId, answerToPrack(request))
    default:
      return answer(ctx, leg, requestId, 405, { Allow: ALLOW })
  }
}

/** The other leg is not there yet; RFC 3261 §14.2 for INVITE. */
function refuseForNow(ctx: StepContext, leg: Leg, { requestId, method, body }: Request): void {
  if (method === 'INVITE') answer(ctx, leg, requestId, 491)
  else if (method === 'PRACK') answer(ctx, leg, requestId, answerToPrack({ body }))
  else answer(ctx, leg, requestId, 500, { 'Retry-After': '1' })
}

/** Its offer (RFC 3262 §5) has no way to the other side: 200 would accept it. */
export const answerToPrack = ({ body }: { readonly body?: string | undefined }): 200 | 488 =>
  body ? 488 : 200

/** RFC 5621 §3, RFC 3261 §8.2.3. */
function refuseBody({ commands }: StepContext, { id: legId }: Leg, { requestId }: Request): void {
  const refusal = { status: 415, reason: UNSUPPORTED, headers: { Accept: ACCEPTED_TYPES } }
  commands.push({ type: 'answerRequest', legId, requestId, ...refusal })
}

function answer(
  { commands }: StepContext,
  { id: legId }: Leg,
  requestId: string,
  status: number,
  headers: Headers = {},
): void {
  commands.push({ type: 'answerRequest', legId, requestId, status, headers })
}

function passed({ filter }: StepContext, from: Leg, to: Leg, headers: Headers): Headers {
  const passing = withoutHeaders(filter.inDialog(headers), to.withheld)
  if (to.isPhone) withoutAlerts(passing)
  return from.isPhone ? withoutClaims(passing) : passing
}

function relay(
  ctx: StepContext,
  from: Leg,
  to: Leg,
  { requestId, method, headers, body }: Request,
): void {
  const request = { method, headers: passed(ctx, from, to, headers), body: body || undefined }
  sendRequest(ctx, to, request, { kind: 'relayed', requestId, from: from.id, method })
}

/**
 * Never two at once, whether re-INVITE (RFC 3261 §14) or UPDATE (RFC 3311 §5.2); a re-INVITE
 * without offer is acknowledged end to end.
 */
function relayOffer(ctx: StepContext, from: Leg, to: Leg, request: Request): void {
  const { requestId, method, headers, body } = request
  const exchange = exchangeOf(ctx, from)
  if (exchange === undefined) return undefined
  if (exchange.inviting?.from === from.id)
    return answer(ctx, from, requestId, 500, { 'Retry-After': '1' })
  const isInvite = method === 'INVITE'
  const isBusy = (isInvite && to.state !== 'confirmed') || isOffering(from) || isOffering(to)
  if ((isBusy && exchange.state === 'stable') || !stepExchange(ctx, exchange, 'offer'))
    return answer(ctx, from, requestId, 491)
  const offer = body || undefined
  const transactionId = sendRequest(
    ctx,
    to,
    {
      method,
      headers: passed(ctx, from, to, headers),
      body: describeTo(to, offer),
      sdpOwner: offer && from.id,
      noAck: isInvite && offer === undefined,
    },
    { kind: 'relayed', requestId, from: from.id, method, ...(offer && { offer }) },
  )
  exchange.inviting = { from: from.id, transactionId }
  return undefined
}

/** A provisional response to a re-INVITE that was passed on. */
export function reinviteRings(ctx: StepContext, to: Leg, transactionId: string): void {
  const exchange = exchangeOf(ctx, to)
  const purpose = to.pending[transactionId]
  if (purpose?.kind === 'relayed') to.pending[transactionId] = { ...purpose, isRinging: true }
  if (exchange?.inviting?.transactionId !== transactionId) return
  const timer = { kind: 'exchange', exchangeId: exchange.id } as const
  ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + MAX_RINGING_MS })
}

/** A re-INVITE has rung for too long. */
export function giveUpReinvite(ctx: StepContext, exchange: Exchange): void {
  const { transactionId, from } = exchange.inviting ?? {}
  const to = ctx.world.legs.get(exchange.legs.find((legId) => legId !== from) ?? '')
  const purpose = transactionId === undefined ? undefined : to?.pending[transactionId]
  if (to === undefined || transactionId === undefined || purpose?.kind !== 'relayed') return
  delete to.pending[transactionId]
  answerRelayed(ctx, to, purpose, undefined)
  concluded(ctx, exchange, 'concluded')
}

/** A leg is over, and has a request that rings: its final response may never come. */
export function giveUpRinging(ctx: StepContext, to: Leg): void {
  for (const [transactionId, purpose] of Object.entries(to.pending)) {
    if (purpose.kind !== 'relayed' || purpose.isRinging !== true) continue
    delete to.pending[transactionId]
    answerRelayed(ctx, to, purpose, undefined)
  }
}

/** The final response to a request that was passed on; undefined: it could not be sent. */
export function relayedEnded(
  ctx: StepContext,
  to: Leg,
  purpose: Relayed,
  transactionId: string,
  response: SipResponse | undefined,
  owesAck: boolean,
): void {
  const { method, offer } = purpose
  const from = answerRelayed(ctx, to, purpose, response)
  const exchange = exchangeOf(ctx, to)
  if (response && (method === 'INVITE' || method === 'UPDATE'))
    noteMedia(ctx, from, to, offer, response)
  const status = response?.status
  if (status === 481 || (status === 408 && (method === 'INVITE' || method === 'UPDATE')))
    ctx.signals.push({ type: 'dead', legId: to.id })
  if (owesAck) {
    to.owedAnswer = transactionId
    if (from) from.awaitedAck = { kind: 'relayed', id: to.id }
    else answerOwed(ctx, to, '')
  }
  if (exchange?.inviting?.transactionId === transactionId)
    concluded(ctx, exchange, owesAck ? 'lateOffer' : 'concluded')
}

/** The answer to an offer that a re-INVITE without one has brought. */
export function relayAck(
  ctx: StepContext,
  from: Leg,
  toId: string,
  body: string | undefined,
): void {
  const to = ctx.world.legs.get(toId)
  if (to?.owedAnswer === undefined) return
  const transactionId = to.owedAnswer
  to.owedAnswer = undefined
  const description = describeTo(to, body)
  const type = 'acknowledgeReinvite'
  const sdpOwner = description && from.id
  ctx.commands.push({ type, legId: to.id, transactionId, body: description, sdpOwner })
  noteMedia(ctx, from, to, body, undefined)
  const exchange = exchangeOf(ctx, from)
  if (exchange) concluded(ctx, exchange, 'ack')
}

function concluded(ctx: StepContext, exchange: Exchange, event: ExchangeEvent): void {
  if (event !== 'lateOffer') {
    stopTimer(ctx, exchange)
    exchange.inviting = undefined
  }
  stepExchange(ctx, exchange, event)
}

function stopTimer({ commands }: StepContext, { id: exchangeId, inviting }: Exchange): void {
  if (inviting) commands.push({ type: 'stopTimer', timer: { kind: 'exchange', exchangeId } })
}

/** Passes the response to the peer of `from`. Undefined: the request was not sent. */
function answerRelayed(
  ctx: StepContext,
  to: Leg,
  { requestId, from: fromId, method }: Relayed,
  response: SipResponse | undefined,
): Leg | undefined {
  const from = ctx.world.legs.get(fromId)
  const status = response?.status ?? (isClosing(to) ? 481 : 500)
  const isDescribed = status < 300 && (method === 'INVITE' || method === 'UPDATE')
  if (isDescribed && from === undefined) {
    // The dialog of `from` is over: RFC 3261 §15.1.2.
    ctx.commands.push({ type: 'answerRequest', legId: fromId, requestId, status: 487 })
    return undefined
  }
  const filtered = response ? ctx.filter.inDialogAnswer(response.headers) : {}
  if (from?.isPhone === true) withoutAlerts(filtered)
  const headers = withoutHeaders(to.isPhone ? withoutClaims(filtered) : filtered, from?.withheld)
  const body = isDescribed && from ? describeTo(from, response?.body) : response?.body || undefined
  const sdpOwner = isDescribed && body ? to.id : undefined
  const { reason } = response ?? {}
  ctx.commands.push({
    type: 'answerRequest',
    legId: fromId,
    requestId,
    status,
    reason,
    headers,
    body,
    sdpOwner,
  })
  return from
}

/** `described` is the SDP of `from`: its offer, or its answer to the offer in `response`. */
function noteMedia(
  { signals }: StepContext,
  from: Leg | undefined,
  to: Leg,
  described: string | undefined,
  response: SipResponse | undefined,
): void {
  if (response && response.status >= 300) return
  if (response?.body) to.media = response.body
  if (!described || from === undefined) return
  from.media = described
  if (from.exchangeId === undefined) return
  const isHeld = isHold(from.media) || isHold(to.media)
  signals.push({ type: 'media', exchangeId: from.exchangeId, isHeld })
}

/**
 * RFC 4028 §7.4: a session refresh between that peer and us. The other peer may not support UPDATE.
 */
const isBareRefresh = ({ headers, body }: Request): boolean =>
  !body &&
  headers['session-expires'] !== undefined &&
  headers['p-asserted-identity'] === undefined &&
  headers['remote-party-id'] === undefined

/** Sends the response or ACK that the peer of an ended leg still waits for. */
export function onLateEvent({ commands }: StepContext, event: LegEventData): void {
  const { legId, type } = event
  if (type === 'request')
    commands.push({ type: 'answerRequest', legId, requestId: event.requestId, status: 481 })
  else if (type === 'response' && event.owesAck) {
    const body = event.response.body && silentAnswer(event.response.body)
    const { transactionId } = event
    commands.push({
      type: 'acknowledgeReinvite',
      legId,
      transactionId,
      body: body || undefined,
      sdpOwner: undefined,
    })
  }
}

/** A response that no request waits for. */
export function declineLate(
  ctx: StepContext,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  if (event.type !== 'response' || !event.owesAck) return undefined
  if (!event.response.body) return onLateEvent(ctx, event)
  leg.owedAnswer = event.transactionId
  leg.media = event.response.body
  return answerOwed(ctx, leg, '')
}
