/** The legs of calls: each a dialog by `legTable`, with the last descriptions sent and received (RFC 3264). */
import { continued, silentAnswer } from '../sdp.ts'
import { withoutHeaders } from '../sip-headers.ts'
import type { Described, DialogIds, Headers, LegEventData } from '../signalling.ts'
import { type LegAction, type LegEvent, legTable } from './tables.ts'
import type { Turn } from './protocol.ts'
import type { Call, Leg, Purpose, Reinvite, Reinvited, Side } from './state.ts'

interface Details {
  readonly headers?: Headers
  readonly sdp?: string
  /** Whose description `sdp` is. */
  readonly describes?: Described
  readonly status?: number
  readonly reason?: string | undefined
  readonly dialog?: DialogIds
}

export function newLeg(
  { world }: Pick<Turn, 'world'>,
  call: Call,
  side: Side,
  isUac: boolean,
): Leg {
  const id = `${call.start.callUuid}.${call.legCount++}`
  // One shape for all legs, and no spreads: they took 5 µs of every call.
  const leg: Leg = {
    id,
    callUuid: call.start.callUuid,
    isUac,
    side,
    state: isUac ? 'calling' : 'incoming',
    isPhone: false,
    callId: '',
    localTag: '',
    remoteTag: '',
    media: '',
    told: '',
    hasOwnOrigin: false,
    closing: undefined,
    exchangeId: undefined,
    awaitedAck: undefined,
    pending: {},
    retries: {},
    requestCount: 0,
  }
  world.legs.set(id, leg)
  return leg
}

/** The call that a leg belongs to. */
export const callUuidOf = (legId: string): string => legId.slice(0, legId.lastIndexOf('.'))

/** Makes one step of the leg. True: the step is reported to its call. */
export function stepLeg(turn: Turn, leg: Leg, event: LegEvent, details: Details = {}): boolean {
  const step = legTable[leg.state][event]
  if (step === undefined) return false
  leg.state = step.to
  for (const action of step.do) perform(turn, leg, action, details)
  if (leg.state === 'terminated') forget(turn, leg)
  return step.do.includes('report')
}

function perform(turn: Turn, leg: Leg, action: LegAction, details: Details): void {
  const { headers = {}, sdp = '', describes, status = 500, reason, dialog } = details
  const legId = leg.id
  switch (action) {
    case 'keepHeaders':
      leg.closing = headers
      return
    case 'noteDialog':
      if (dialog) Object.assign(leg, dialog)
      return
    case 'accept':
      leg.told = sdp
      turn.commands.push({ type: 'accept', legId, sdp, describes, headers })
      return
    case 'acknowledge':
      leg.told = sdp
      turn.commands.push({ type: 'acknowledge', legId, sdp, describes })
      return
    case 'respond':
      turn.commands.push({ type: 'respond', legId, status, reason, headers })
      return
    case 'cancel':
    case 'bye':
      turn.commands.push({ type: action, legId, headers: leg.closing ?? {} })
      return
    case 'abandonOffer':
    case 'release':
      turn.commands.push({ type: action, legId })
      return
    case 'report':
  }
}

function forget(turn: Turn, leg: Leg): void {
  turn.terminated.push(leg.id)
  turn.commands.push({ type: 'forgetLeg', legId: leg.id })
}

/** CANCEL or BYE, once, as soon as it is allowed. What the peer is still owed goes out before. */
export function closeLeg(turn: Turn, leg: Leg | undefined, headers: Headers): void {
  if (leg === undefined || isClosing(leg)) return
  endSubscription(turn, leg, 487, 'Request Terminated')
  answerOwed(turn, leg, '')
  stepLeg(turn, leg, 'close', { headers: withoutHeaders(headers, leg.withheld) })
}

/** Nothing is sent in the dialog any more, but for a BYE or CANCEL that has to wait. */
export const isClosing = ({ state }: Leg): boolean =>
  state === 'terminated' || state === 'closing' || state === 'cancelling'

/** A provisional response of the called side. */
export interface Progress {
  readonly status: number
  readonly reason: string
  readonly body: string | undefined
  readonly describes: Described
}

/** A response to the INVITE of a caller, while there is no final one. */
export function respondProvisionally(
  turn: Turn,
  leg: Leg,
  { status, reason, body, describes }: Progress,
  headers: Headers,
  isWithoutOffer: boolean,
): void {
  if (leg.state !== 'incoming') return
  let description = body || undefined
  if (leg.isReliable === true) {
    // RFC 3262 §5: our offer would be answered in the PRACK, and a second answer contradicts the first.
    if (isWithoutOffer) return
    if (leg.hasAnsweredReliably === true) description = undefined
    leg.hasAnsweredReliably = leg.hasAnsweredReliably === true || description !== undefined
  }
  // A drachtio-server gives a reliable response its Contact only when it is asked for one like this.
  const required = leg.isReliable === true ? { Require: '100rel' } : {}
  turn.commands.push({
    type: 'respond',
    legId: leg.id,
    status,
    reason,
    body: description,
    describes,
    headers: { ...headers, ...required },
  })
}

/** A description for the peer, as it has to go out (RFC 3264 §8). Undefined: there is none. */
export function describeTo(leg: Leg, description: string | undefined): string | undefined {
  if (!description) return undefined
  leg.told = leg.hasOwnOrigin ? continued(leg.told, description) : description
  return leg.told
}

/** Sends a request in the dialog. Returns its transaction. */
export function sendRequest(
  turn: Turn,
  leg: Leg,
  request: {
    readonly method: string
    readonly headers: Headers
    readonly body: string | undefined
    readonly describes?: Described
    readonly noAck?: boolean
  },
  purpose: Purpose,
): string {
  const transactionId = `${leg.id}#${leg.requestCount++}`
  leg.pending[transactionId] = purpose
  const { noAck = false, describes } = request
  turn.commands.push({
    ...request,
    type: 'request',
    legId: leg.id,
    transactionId,
    describes,
    noAck,
  })
  return transactionId
}

/** An INVITE or an offer of ours is under way in the dialog, or the answer to one of its peer's is owed. */
export const isOffering = ({ pending, owedAnswer, awaitedAck }: Leg): boolean =>
  owedAnswer !== undefined || awaitedAck !== undefined || Object.values(pending).some(isOffer)

const isOffer = (purpose: Purpose): boolean =>
  purpose.kind === 'relayed'
    ? purpose.method === 'INVITE' || purpose.offer !== undefined
    : purpose.kind !== 'notify'

const MAX_TRIES = 6

/** RFC 3261 §14.1: the owner of the Call-ID waits longer before it repeats a re-INVITE. */
const retryAfterMs = { uac: 2_100, uas: 1_000 }

const gone: Reinvited = { kind: 'refused', status: 481, reason: 'Call/Transaction Does Not Exist' }
const noOffer: Reinvited = { kind: 'refused', status: 488, reason: 'Not Acceptable Here' }

/** Sends a re-INVITE with other media (RFC 3725, RFC 3261 §14); the signal `reinvited` has the result. */
export function reinvite(turn: Turn, leg: Leg | undefined, wanted: Reinvite): void {
  if (leg === undefined || isClosing(leg)) return tell(turn, wanted, gone)
  const isRelaying = turn.world.exchanges.get(leg.exchangeId ?? '')?.inviting !== undefined
  const mustWait = leg.state !== 'confirmed' || isOffering(leg) || isRelaying
  if (mustWait)
    return wanted.tries < MAX_TRIES ? tryAgain(turn, leg, wanted) : tell(turn, wanted, gone)
  leg.hasOwnOrigin = true
  const body = describeTo(leg, wanted.offer)
  const { describes } = wanted
  const request = { method: 'INVITE', headers: {}, body, describes, noAck: body === undefined }
  sendRequest(turn, leg, request, { kind: 'reinvite', reinvite: wanted })
  return undefined
}

function tryAgain(turn: Turn, leg: Leg, wanted: Reinvite): void {
  const retryId = String(leg.requestCount++)
  leg.retries[retryId] = { ...wanted, tries: wanted.tries + 1 }
  const timer = { kind: 'retry', legId: leg.id, retryId } as const
  const waitMs = leg.isUac ? retryAfterMs.uac : retryAfterMs.uas
  turn.commands.push({ type: 'startTimer', timer, at: turn.now + waitMs })
}

/** The transfer has failed meanwhile: its new media are not wanted any more. */
function isObsolete({ world }: Turn, { transferId, step }: Reinvite): boolean {
  if (transferId === undefined || (step !== 'move' && step !== 'offer')) return false
  return world.transfers.get(transferId)?.state === 'failed'
}

/** It is time to try a re-INVITE again. */
export function retry(turn: Turn, leg: Leg, retryId: string): void {
  const wanted = leg.retries[retryId]
  delete leg.retries[retryId]
  if (wanted && !isObsolete(turn, wanted)) reinvite(turn, leg, wanted)
}

/** Handles the response to our re-INVITE; undefined: it was not sent. */
export function reinviteEnded(
  turn: Turn,
  leg: Leg,
  wanted: Reinvite,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const { transactionId } = event
  if (event.type === 'requestFailed') {
    // Any other complaint of the server is a re-INVITE that is under way in this dialog.
    const isOver = event.isUnknownDialog || wanted.tries >= MAX_TRIES || isClosing(leg)
    return isOver ? tell(turn, wanted, gone) : tryAgain(turn, leg, wanted)
  }
  const { status, reason, headers, body } = event.response
  // The peer has an INVITE of its own under way, in one direction or the other (§14.2).
  const isGlare = status === 491 || (status === 500 && headers['retry-after'] !== undefined)
  if (isGlare && wanted.tries < MAX_TRIES && !isClosing(leg)) return tryAgain(turn, leg, wanted)
  if (status >= 300) return tell(turn, wanted, { kind: 'refused', status, reason })
  if (body) leg.media = body
  if (event.owesAck) leg.owedAnswer = transactionId
  if (event.owesAck && !body) {
    leg.owedAnswer = undefined
    const type = 'acknowledgeReinvite'
    turn.commands.push({
      type,
      legId: leg.id,
      transactionId,
      body: undefined,
      describes: undefined,
    })
    return tell(turn, wanted, noOffer)
  }
  return tell(turn, wanted, { kind: 'answered' })
}

function tell({ signals }: Turn, { transferId, step }: Reinvite, result: Reinvited): void {
  if (transferId !== undefined) signals.push({ type: 'reinvited', transferId, step, result })
}

/** Answers the offer in the 2xx to a re-INVITE; without an answer of the other side, so that no media flows. */
export function answerOwed(turn: Turn, leg: Leg, answer: string, describes?: Described): void {
  const transactionId = leg.owedAnswer
  if (transactionId === undefined) return
  leg.owedAnswer = undefined
  if (answer === '') leg.hasOwnOrigin = true
  const body = describeTo(leg, answer || silentAnswer(leg.media))
  const type = 'acknowledgeReinvite'
  turn.commands.push({ type, legId: leg.id, transactionId, body, describes })
}

/** Longer than any transfer that rings. */
const EXPIRES_SECONDS = 300

export function subscribe(leg: Leg, id: string, isSilent: boolean): void {
  leg.subscription = { id, isSilent, isSending: false, last: 0 }
}

/** A provisional status of the transfer. */
export function notify(turn: Turn, leg: Leg | undefined, status: number, reason: string): void {
  const { subscription } = leg ?? {}
  if (leg === undefined || subscription === undefined || status === subscription.last) return
  subscription.last = status
  subscription.waiting = { status, reason, isLast: false }
  if (!subscription.isSending) sendNotify(turn, leg)
}

/** The final status. At once: a BYE may follow. */
export function endSubscription(
  turn: Turn,
  leg: Leg | undefined,
  status: number,
  reason: string,
): void {
  if (leg?.subscription === undefined) return
  leg.subscription.waiting = { status, reason, isLast: true }
  sendNotify(turn, leg)
  leg.subscription = undefined
}

/** One NOTIFY at a time, so that none overtakes another; only the last one does not wait. */
function sendNotify(turn: Turn, leg: Leg): void {
  const { subscription } = leg
  const news = subscription?.waiting
  if (subscription === undefined || news === undefined) return
  subscription.waiting = undefined
  if (subscription.isSilent || isClosing(leg)) return
  subscription.isSending = true
  const state = news.isLast ? 'terminated;reason=noresource' : `active;expires=${EXPIRES_SECONDS}`
  const headers = {
    event: `refer;id=${subscription.id}`,
    'subscription-state': state,
    'content-type': 'message/sipfrag;version=2.0',
  }
  const body = `SIP/2.0 ${news.status} ${news.reason}\r\n`
  sendRequest(turn, leg, { method: 'NOTIFY', headers, body }, { kind: 'notify' })
}

/** A NOTIFY is answered. */
export function notified(turn: Turn, leg: Leg): void {
  if (leg.subscription === undefined) return
  leg.subscription.isSending = false
  sendNotify(turn, leg)
}
