/** Requests inside an answered call: what passes to the other leg, and what is answered here. */
import { ALLOW, withoutClaims, withoutHeaders } from '../sip-headers.ts'
import { isHold, silentAnswer } from '../sdp.ts'
import type { Headers, LegEventData, SipResponse } from '../signalling.ts'
import { type ExchangeEvent, exchangeTable } from './tables.ts'
import { answerOwed, describeTo, isClosing, isOffering, sendRequest } from './leg.ts'
import type { Turn } from './protocol.ts'
import type { Exchange, Leg, Purpose } from './state.ts'

type Relayed = Extract<Purpose, { readonly kind: 'relayed' }>
type Request = Extract<LegEventData, { readonly type: 'request' }>

/**
 * A drachtio-server reports only the first response to a request in a dialog: after a provisional one the
 * final one is lost. Longer than the embedded server waits for it (RFC 3261 §16.6, timer C).
 */
const MAX_RINGING_MS = 200_000

/** The two talk to each other from now on. */
export function connectLegs({ world }: Turn, a: Leg, b: Leg): Exchange {
  const exchange: Exchange = { id: a.id, legs: [a.id, b.id], state: 'stable' }
  world.exchanges.set(exchange.id, exchange)
  a.exchangeId = exchange.id
  b.exchangeId = exchange.id
  return exchange
}

/** Requests of both are refused: at least one of them has no party to talk to any more. */
export function disconnectLegs(turn: Turn, leg: Leg): void {
  const exchange = exchangeOf(turn, leg)
  if (exchange === undefined) return
  stopTimer(turn, exchange)
  turn.world.exchanges.delete(exchange.id)
  for (const legId of exchange.legs) {
    const each = turn.world.legs.get(legId)
    if (each?.exchangeId === exchange.id) each.exchangeId = undefined
  }
  leg.exchangeId = undefined
}

const exchangeOf = ({ world }: Pick<Turn, 'world'>, { exchangeId }: Leg): Exchange | undefined =>
  exchangeId === undefined ? undefined : world.exchanges.get(exchangeId)

/** The leg that this one exchanges media with. */
export function peerOf(turn: Pick<Turn, 'world'>, leg: Leg): Leg | undefined {
  const exchange = exchangeOf(turn, leg)
  if (exchange === undefined) return undefined
  const [a, b] = exchange.legs
  return turn.world.legs.get(a === leg.id ? b : a)
}

/** Stops the peers' re-INVITEs; the signal `paused` follows when none is in progress. */
export function pause(turn: Turn, leg: Leg | undefined, transferId: string, step: string): void {
  const exchange = leg && exchangeOf(turn, leg)
  if (exchange === undefined) {
    turn.signals.push({ type: 'paused', transferId, step })
    return
  }
  exchange.waiting = { transferId, step }
  stepExchange(turn, exchange, 'pause')
}

export function resume(turn: Turn, leg: Leg | undefined): void {
  const exchange = leg && exchangeOf(turn, leg)
  if (exchange === undefined) return
  exchange.waiting = undefined
  stepExchange(turn, exchange, 'resume')
}

/** Makes one step of an exchange. True: the offer may pass. */
function stepExchange(turn: Turn, exchange: Exchange, event: ExchangeEvent): boolean {
  const step = exchangeTable[exchange.state][event]
  if (step === undefined) return false
  exchange.state = step.to
  if (step.do.includes('tellWaiting') && exchange.waiting) {
    turn.signals.push({ type: 'paused', ...exchange.waiting })
    exchange.waiting = undefined
  }
  return step.do.includes('relay')
}

/** A request of a leg's peer, except BYE and ACK. */
export function relayRequest(turn: Turn, leg: Leg, request: Request): void {
  const other = peerOf(turn, leg)
  if (other === undefined) return refuseForNow(turn, leg, request)
  const { requestId, method, headers } = request
  switch (method) {
    case 'INVITE':
      return relayOffer(turn, leg, other, request)
    case 'UPDATE':
      if (isBareRefresh(request)) return answer(turn, leg, requestId, 200)
      if (request.body) return relayOffer(turn, leg, other, request)
      return relay(turn, leg, other, request)
    case 'INFO':
    case 'MESSAGE':
    case 'NOTIFY':
      return relay(turn, leg, other, request)
    case 'REFER':
      return void turn.signals.push({ type: 'refer', legId: leg.id, requestId, headers })
    case 'OPTIONS':
      return answer(turn, leg, requestId, 200, { Allow: ALLOW })
    case 'PRACK':
      return answer(turn, leg, requestId, 200)
    default:
      return answer(turn, leg, requestId, 405, { Allow: ALLOW })
  }
}

/** The other leg is not there yet; RFC 3261 §14.2 for INVITE. */
function refuseForNow(turn: Turn, leg: Leg, { requestId, method }: Request): void {
  if (method === 'INVITE') answer(turn, leg, requestId, 491)
  else if (method === 'PRACK') answer(turn, leg, requestId, 200)
  else answer(turn, leg, requestId, 500, { 'Retry-After': '1' })
}

function answer(
  { commands }: Turn,
  { id: legId }: Leg,
  requestId: string,
  status: number,
  headers: Headers = {},
): void {
  commands.push({ type: 'answerRequest', legId, requestId, status, headers })
}

function passed({ filter }: Turn, from: Leg, to: Leg, headers: Headers): Headers {
  const passing = withoutHeaders(filter.inDialog(headers), to.withheld)
  return from.isPhone ? withoutClaims(passing) : passing
}

function relay(
  turn: Turn,
  from: Leg,
  to: Leg,
  { requestId, method, headers, body }: Request,
): void {
  const request = { method, headers: passed(turn, from, to, headers), body: body || undefined }
  sendRequest(turn, to, request, { kind: 'relayed', requestId, from: from.id, method })
}

/**
 * Never two at once, whether re-INVITE (RFC 3261 §14) or UPDATE (RFC 3311 §5.2); a re-INVITE without offer is
 * acknowledged end to end.
 */
function relayOffer(turn: Turn, from: Leg, to: Leg, request: Request): void {
  const { requestId, method, headers, body } = request
  const exchange = exchangeOf(turn, from)
  if (exchange === undefined) return undefined
  if (exchange.inviting?.from === from.id)
    return answer(turn, from, requestId, 500, { 'Retry-After': '1' })
  const isInvite = method === 'INVITE'
  const isBusy = (isInvite && to.state !== 'confirmed') || isOffering(from) || isOffering(to)
  if ((isBusy && exchange.state === 'stable') || !stepExchange(turn, exchange, 'offer'))
    return answer(turn, from, requestId, 491)
  const offer = body || undefined
  const transactionId = sendRequest(
    turn,
    to,
    {
      method,
      headers: passed(turn, from, to, headers),
      body: describeTo(to, offer),
      describes: offer && from.id,
      noAck: isInvite && offer === undefined,
    },
    { kind: 'relayed', requestId, from: from.id, method, ...(offer && { offer }) },
  )
  exchange.inviting = { from: from.id, transactionId }
  return undefined
}

/** A provisional response to a re-INVITE that was passed on. */
export function reinviteRings(turn: Turn, to: Leg, transactionId: string): void {
  const exchange = exchangeOf(turn, to)
  const purpose = to.pending[transactionId]
  if (purpose?.kind === 'relayed') to.pending[transactionId] = { ...purpose, isRinging: true }
  if (exchange?.inviting?.transactionId !== transactionId) return
  const timer = { kind: 'exchange', exchangeId: exchange.id } as const
  turn.commands.push({ type: 'startTimer', timer, at: turn.now + MAX_RINGING_MS })
}

/** A re-INVITE has rung for too long. */
export function giveUpReinvite(turn: Turn, exchange: Exchange): void {
  const { transactionId, from } = exchange.inviting ?? {}
  const to = turn.world.legs.get(exchange.legs.find((legId) => legId !== from) ?? '')
  const purpose = transactionId === undefined ? undefined : to?.pending[transactionId]
  if (to === undefined || transactionId === undefined || purpose?.kind !== 'relayed') return
  delete to.pending[transactionId]
  answerRelayed(turn, to, purpose, undefined)
  concluded(turn, exchange, 'concluded')
}

/** A leg is over, and has a request that rings: its final response may never come. */
export function giveUpRinging(turn: Turn, to: Leg): void {
  for (const [transactionId, purpose] of Object.entries(to.pending)) {
    if (purpose.kind !== 'relayed' || purpose.isRinging !== true) continue
    delete to.pending[transactionId]
    answerRelayed(turn, to, purpose, undefined)
  }
}

/** The final response to a request that was passed on; undefined: it could not be sent. */
export function relayedEnded(
  turn: Turn,
  to: Leg,
  purpose: Relayed,
  transactionId: string,
  response: SipResponse | undefined,
  owesAck: boolean,
): void {
  const { method, offer } = purpose
  const from = answerRelayed(turn, to, purpose, response)
  const exchange = exchangeOf(turn, to)
  // Of an offer that was not sent, nothing has come.
  if (response && (method === 'INVITE' || method === 'UPDATE'))
    noteMedia(turn, from, to, offer, response)
  const status = response?.status
  if (status === 481 || (status === 408 && (method === 'INVITE' || method === 'UPDATE')))
    turn.signals.push({ type: 'dead', legId: to.id })
  if (owesAck) {
    to.owedAnswer = transactionId
    if (from) from.awaitedAck = { kind: 'relayed', id: to.id }
    else answerOwed(turn, to, '')
  }
  if (exchange?.inviting?.transactionId === transactionId)
    concluded(turn, exchange, owesAck ? 'lateOffer' : 'concluded')
}

/** The answer to an offer that a re-INVITE without one has brought. */
export function relayAck(turn: Turn, from: Leg, toId: string, body: string | undefined): void {
  const to = turn.world.legs.get(toId)
  if (to?.owedAnswer === undefined) return
  const transactionId = to.owedAnswer
  to.owedAnswer = undefined
  const description = describeTo(to, body)
  const type = 'acknowledgeReinvite'
  const describes = description && from.id
  turn.commands.push({ type, legId: to.id, transactionId, body: description, describes })
  noteMedia(turn, from, to, body, undefined)
  const exchange = exchangeOf(turn, from)
  if (exchange) concluded(turn, exchange, 'ack')
}

function concluded(turn: Turn, exchange: Exchange, event: ExchangeEvent): void {
  if (event !== 'lateOffer') {
    stopTimer(turn, exchange)
    exchange.inviting = undefined
  }
  stepExchange(turn, exchange, event)
}

function stopTimer({ commands }: Turn, { id: exchangeId, inviting }: Exchange): void {
  if (inviting) commands.push({ type: 'stopTimer', timer: { kind: 'exchange', exchangeId } })
}

/** Gives the peer of `from` the response; undefined: there is none. */
function answerRelayed(
  turn: Turn,
  to: Leg,
  { requestId, from: fromId, method }: Relayed,
  response: SipResponse | undefined,
): Leg | undefined {
  const from = turn.world.legs.get(fromId)
  const status = response?.status ?? (isClosing(to) ? 481 : 500)
  const isDescribed = status < 300 && (method === 'INVITE' || method === 'UPDATE')
  if (isDescribed && from === undefined) {
    // Its dialog is over: RFC 3261 §15.1.2.
    turn.commands.push({ type: 'answerRequest', legId: fromId, requestId, status: 487 })
    return undefined
  }
  const filtered = response ? turn.filter.inDialogAnswer(response.headers) : {}
  const headers = withoutHeaders(to.isPhone ? withoutClaims(filtered) : filtered, from?.withheld)
  const body = isDescribed && from ? describeTo(from, response?.body) : response?.body || undefined
  const describes = isDescribed && body ? to.id : undefined
  const { reason } = response ?? {}
  turn.commands.push({
    type: 'answerRequest',
    legId: fromId,
    requestId,
    status,
    reason,
    headers,
    body,
    describes,
  })
  return from
}

/** `from` describes itself in `described`: its offer, or its answer to the one in `response`. */
function noteMedia(
  { signals }: Turn,
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

/** RFC 4028 §7.4: a sign of life between that peer and us; the other one may not even take UPDATE. */
const isBareRefresh = ({ headers, body }: Request): boolean =>
  !body &&
  headers['session-expires'] !== undefined &&
  headers['p-asserted-identity'] === undefined &&
  headers['remote-party-id'] === undefined

/** Of a leg that is over: its peer gets the response or the ACK that it is owed. */
export function onLateEvent({ commands }: Turn, event: LegEventData): void {
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
      describes: undefined,
    })
  }
}

/** A response that is not waited for any more. */
export function declineLate(
  turn: Turn,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  if (event.type !== 'response' || !event.owesAck) return undefined
  if (!event.response.body) return onLateEvent(turn, event)
  leg.owedAnswer = event.transactionId
  leg.media = event.response.body
  return answerOwed(turn, leg, '')
}
