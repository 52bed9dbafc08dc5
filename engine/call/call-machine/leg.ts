/**
 * The legs of calls: each a dialog by `legTable`, with the last descriptions sent and received (RFC
 * 3264).
 */
import { continued, isAlike, isEqual, silentAnswer } from '../sdp.ts'
import { withoutHeaders } from '../sip-headers.ts'
import type { SdpOwner, DialogIds, Headers, LegEventData } from '../signalling.ts'
import { type LegAction, type LegEvent, legTable } from './tables.ts'
import type { StepContext } from './protocol.ts'
import type { Answering, Call, Leg, Purpose, Reinvite, ReinviteResult, Side } from './state.ts'

interface Details {
  readonly headers?: Headers
  readonly sdp?: string
  /** The leg whose peer `sdp` describes. */
  readonly sdpOwner?: SdpOwner
  readonly status?: number
  readonly reason?: string | undefined
  readonly dialog?: DialogIds
}

export function newLeg(
  { world }: Pick<StepContext, 'world'>,
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
    lastSdpSent: '',
    hasOwnOrigin: false,
    shownAnswer: undefined,
    owesMove: undefined,
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

const noDetails: Details = {}

/** Makes one step of the leg. True: the call is notified. */
export function stepLeg(ctx: StepContext, leg: Leg, event: LegEvent, details = noDetails): boolean {
  const step = legTable[leg.state][event]
  if (step === undefined) return false
  leg.state = step.to
  for (const action of step.do) perform(ctx, leg, action, details)
  if (leg.state === 'terminated') forget(ctx, leg)
  return step.do.includes('report')
}

function perform(ctx: StepContext, leg: Leg, action: LegAction, details: Details): void {
  const { headers, sdp = '', sdpOwner, status = 500, reason, dialog } = details
  const legId = leg.id
  switch (action) {
    case 'keepHeaders':
      leg.closing = headers ?? {}
      return
    case 'noteDialog':
      if (dialog) Object.assign(leg, dialog)
      return
    case 'accept':
      leg.lastSdpSent = sdp
      ctx.commands.push({ type: 'accept', legId, sdp, sdpOwner, headers: headers ?? {} })
      return
    case 'acknowledge':
      leg.lastSdpSent = sdp
      ctx.commands.push({ type: 'acknowledge', legId, sdp, sdpOwner })
      return
    case 'respond':
      ctx.commands.push({ type: 'respond', legId, status, reason, headers: headers ?? {} })
      return
    case 'cancel':
    case 'bye':
      ctx.commands.push({ type: action, legId, headers: leg.closing ?? {} })
      return
    case 'abandonOffer':
    case 'release':
      ctx.commands.push({ type: action, legId })
      return
    case 'report':
  }
}

function forget(ctx: StepContext, leg: Leg): void {
  ctx.terminated.push(leg.id)
  ctx.commands.push({ type: 'forgetLeg', legId: leg.id })
}

/**
 * Sends CANCEL or BYE once, as soon as it is allowed. Answers that the peer waits for go out
 * before.
 */
export function closeLeg(ctx: StepContext, leg: Leg | undefined, headers: Headers): void {
  if (leg === undefined || isClosing(leg)) return
  endSubscription(ctx, leg, 487, 'Request Terminated')
  answerOwed(ctx, leg, '')
  stepLeg(ctx, leg, 'close', { headers: withoutHeaders(headers, leg.withheld) })
}

/** Nothing is sent in the dialog any more, but for a BYE or CANCEL that has to wait. */
export const isClosing = ({ state }: Leg): boolean =>
  state === 'terminated' || state === 'closing' || state === 'cancelling'

/** A provisional response of the called side. */
export interface Progress {
  readonly status: number
  readonly reason: string
  readonly body: string | undefined
  readonly sdpOwner: SdpOwner
  /** The dialog of the called side, and the version of its description. */
  readonly by?: string | undefined
}

/** A response to the INVITE of a caller, while there is no final one. */
export function respondProvisionally(
  ctx: StepContext,
  leg: Leg,
  { status, reason, body, sdpOwner, by }: Progress,
  headers: Headers,
  isWithoutOffer: boolean,
): void {
  if (leg.state !== 'incoming') return
  let description = body || undefined
  if (leg.isReliable === true) {
    // RFC 3262 §5: our offer would be answered in the PRACK, and a second answer contradicts the
    // first.
    if (isWithoutOffer) return
    if (leg.hasAnsweredReliably === true) description = undefined
    leg.hasAnsweredReliably = leg.hasAnsweredReliably === true || description !== undefined
  }
  // RFC 3261 §13.2.1: to the caller all forks are one dialog, in which the first answer counts.
  if (description !== undefined && !isWithoutOffer) {
    leg.shownAnswer ??= { by, sdp: description }
    if (leg.shownAnswer.by !== by) description = undefined
  }
  // Only with this header a drachtio-server adds the Contact to a reliable response.
  const required = leg.isReliable === true ? { Require: '100rel' } : {}
  ctx.commands.push({
    type: 'respond',
    legId: leg.id,
    status,
    reason,
    body: description,
    sdpOwner,
    headers: { ...headers, ...required },
  })
}

/**
 * The answer in the 200 to a caller: the one that it was shown first. Where another fork has
 * answered, or the called side has moved by UPDATE, a re-INVITE follows (`moveCaller`).
 */
export function firstAnswer(leg: Leg, { sdp, by }: Pick<Answering, 'sdp' | 'by'>): string {
  const { shownAnswer: shown } = leg
  if (shown === undefined || sdp === '' || shown.by === by || isEqual(shown.sdp, sdp)) return sdp
  leg.owesMove = true
  return shown.sdp
}

/**
 * The relay that the caller was shown leads to whoever has answered, if the codecs are the same.
 */
export function notedRelay(leg: Leg, callee: Leg | undefined): void {
  const { shownAnswer: shown } = leg
  if (shown && callee && isAlike(shown.sdp, callee.media)) leg.owesMove = undefined
}

/** The caller has acknowledged the 200, and gets the description of whoever has answered. */
export function moveCaller(ctx: StepContext, leg: Leg, callee: Leg | undefined): void {
  leg.owesMove = undefined
  if (callee === undefined || leg.state !== 'confirmed') return
  reinvite(ctx, leg, { offer: callee.media, sdpOwner: callee.id, tries: 1, step: 'answered' })
}

/**
 * Returns the SDP as it has to be sent to the peer (RFC 3264 §8), and notes it as the last one
 * sent.
 */
export function describeTo(leg: Leg, description: string | undefined): string | undefined {
  if (!description) return undefined
  leg.lastSdpSent = leg.hasOwnOrigin ? continued(leg.lastSdpSent, description) : description
  return leg.lastSdpSent
}

/** Sends a request in the dialog. Returns its transaction. */
export function sendRequest(
  ctx: StepContext,
  leg: Leg,
  request: {
    readonly method: string
    readonly headers: Headers
    readonly body: string | undefined
    readonly sdpOwner?: SdpOwner
    readonly noAck?: boolean
  },
  purpose: Purpose,
): string {
  const transactionId = `${leg.id}#${leg.requestCount++}`
  leg.pending[transactionId] = purpose
  const { noAck = false, sdpOwner } = request
  ctx.commands.push({
    ...request,
    type: 'request',
    legId: leg.id,
    transactionId,
    sdpOwner,
    noAck,
  })
  return transactionId
}

/**
 * An INVITE or an offer of ours is under way in the dialog, or the answer to one of its peer's is
 * owed.
 */
export const isOffering = ({ pending, owedAnswer, awaitedAck }: Leg): boolean =>
  owedAnswer !== undefined || awaitedAck !== undefined || Object.values(pending).some(isOffer)

function isOffer(purpose: Purpose): boolean {
  switch (purpose.kind) {
    case 'relayed':
      return purpose.method === 'INVITE' || purpose.offer !== undefined
    case 'question':
      return purpose.isOffer === true
    case 'notify':
      return false
    case 'reinvite':
    case 'source':
    default:
      return true
  }
}

const MAX_TRIES = 6

/** RFC 3261 §14.1: the owner of the Call-ID waits longer before it repeats a re-INVITE. */
const retryAfterMs = { uac: 2_100, uas: 1_000 }

const gone: ReinviteResult = {
  kind: 'refused',
  status: 481,
  reason: 'Call/Transaction Does Not Exist',
}
const noOffer: ReinviteResult = { kind: 'refused', status: 488, reason: 'Not Acceptable Here' }

/**
 * Sends a re-INVITE with other media (RFC 3725, RFC 3261 §14); the signal `reinvited` has the
 * result.
 */
export function reinvite(ctx: StepContext, leg: Leg | undefined, wanted: Reinvite): void {
  if (leg === undefined || isClosing(leg)) return report(ctx, wanted, gone)
  const isRelaying = ctx.world.exchanges.get(leg.exchangeId ?? '')?.inviting !== undefined
  const mustWait = leg.state !== 'confirmed' || isOffering(leg) || isRelaying
  if (mustWait)
    return wanted.tries < MAX_TRIES ? tryAgain(ctx, leg, wanted) : report(ctx, wanted, gone)
  leg.hasOwnOrigin = true
  const body = describeTo(leg, wanted.offer)
  const { sdpOwner } = wanted
  const request = { method: 'INVITE', headers: {}, body, sdpOwner, noAck: body === undefined }
  sendRequest(ctx, leg, request, { kind: 'reinvite', reinvite: wanted })
  return undefined
}

function tryAgain(ctx: StepContext, leg: Leg, wanted: Reinvite): void {
  const retryId = String(leg.requestCount++)
  leg.retries[retryId] = { ...wanted, tries: wanted.tries + 1 }
  const timer = { kind: 'retry', legId: leg.id, retryId } as const
  const waitMs = leg.isUac ? retryAfterMs.uac : retryAfterMs.uas
  ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + waitMs })
}

/**
 * Whether the transfer has failed, or the parties have come to another agreement: the media is no
 * longer needed.
 */
function isObsolete(
  { world }: StepContext,
  { transferId, step, sdpOwner = '', offer }: Reinvite,
): boolean {
  if (step === 'answered') return world.legs.get(sdpOwner)?.media !== offer
  if (transferId === undefined || (step !== 'move' && step !== 'offer')) return false
  return world.transfers.get(transferId)?.state === 'failed'
}

/** Repeats a re-INVITE after its wait. */
export function retry(ctx: StepContext, leg: Leg, retryId: string): void {
  const wanted = leg.retries[retryId]
  delete leg.retries[retryId]
  if (wanted && !isObsolete(ctx, wanted)) reinvite(ctx, leg, wanted)
}

/** Handles the response to our re-INVITE; undefined: it was not sent. */
export function reinviteEnded(
  ctx: StepContext,
  leg: Leg,
  wanted: Reinvite,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const { transactionId } = event
  if (event.type === 'requestFailed') {
    // Any other complaint of the server is a re-INVITE that is under way in this dialog.
    const isOver = event.isUnknownDialog || wanted.tries >= MAX_TRIES || isClosing(leg)
    return isOver ? report(ctx, wanted, gone) : tryAgain(ctx, leg, wanted)
  }
  const { status, reason, headers, body } = event.response
  // The peer has an INVITE of its own under way, in one direction or the other (§14.2).
  const isGlare = status === 491 || (status === 500 && headers['retry-after'] !== undefined)
  if (isGlare && wanted.tries < MAX_TRIES && !isClosing(leg)) return tryAgain(ctx, leg, wanted)
  if (status >= 300) return report(ctx, wanted, { kind: 'refused', status, reason })
  if (body) leg.media = body
  if (event.owesAck) leg.owedAnswer = transactionId
  if (event.owesAck && !body) {
    leg.owedAnswer = undefined
    const type = 'acknowledgeReinvite'
    ctx.commands.push({
      type,
      legId: leg.id,
      transactionId,
      body: undefined,
      sdpOwner: undefined,
    })
    return report(ctx, wanted, noOffer)
  }
  return report(ctx, wanted, { kind: 'answered' })
}

function report(
  { signals }: StepContext,
  { transferId, step, sdpOwner }: Reinvite,
  result: ReinviteResult,
): void {
  if (step === 'answered' && sdpOwner !== undefined)
    signals.push({ type: 'callerMoved', legId: sdpOwner, result })
  if (transferId !== undefined) signals.push({ type: 'reinvited', transferId, step, result })
}

/**
 * Answers the offer in the 2xx to a re-INVITE; without an answer of the other side, so that no
 * media flows.
 */
export function answerOwed(ctx: StepContext, leg: Leg, answer: string, sdpOwner?: SdpOwner): void {
  const transactionId = leg.owedAnswer
  if (transactionId === undefined) return
  leg.owedAnswer = undefined
  if (answer === '') leg.hasOwnOrigin = true
  const body = describeTo(leg, answer || silentAnswer(leg.media))
  const type = 'acknowledgeReinvite'
  ctx.commands.push({ type, legId: leg.id, transactionId, body, sdpOwner })
}

/** Longer than any transfer that rings. */
const EXPIRES_SECONDS = 300

export function subscribe(leg: Leg, id: string, isSilent: boolean): void {
  leg.subscription = { id, isSilent, isSending: false, last: 0 }
}

/** A provisional status of the transfer. */
export function notify(
  ctx: StepContext,
  leg: Leg | undefined,
  status: number,
  reason: string,
): void {
  const { subscription } = leg ?? {}
  if (leg === undefined || subscription === undefined || status === subscription.last) return
  subscription.last = status
  subscription.waiting = { status, reason, isLast: false }
  if (!subscription.isSending) sendNotify(ctx, leg)
}

/** The final status. At once: a BYE may follow. */
export function endSubscription(
  ctx: StepContext,
  leg: Leg | undefined,
  status: number,
  reason: string,
): void {
  if (leg?.subscription === undefined) return
  leg.subscription.waiting = { status, reason, isLast: true }
  sendNotify(ctx, leg)
  leg.subscription = undefined
}

/** One NOTIFY at a time, so that none overtakes another; only the last one does not wait. */
function sendNotify(ctx: StepContext, leg: Leg): void {
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
  sendRequest(ctx, leg, { method: 'NOTIFY', headers, body }, { kind: 'notify' })
}

/** A NOTIFY is answered. */
export function notified(ctx: StepContext, leg: Leg): void {
  if (leg.subscription === undefined) return
  leg.subscription.isSending = false
  sendNotify(ctx, leg)
}
