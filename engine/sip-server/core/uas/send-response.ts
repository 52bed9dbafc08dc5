/** Responses: an application's, and those that the stack gives by itself. */
import { Dialog } from '../../dialog/dialog.ts'
import type { SessionTerms } from '../../dialog/session-timer.ts'
import { Reliable2xx } from '../../dialog/reliable-2xx.ts'
import { isReliable as isStream, requestFlow, type Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseUri } from '../../message/uri.ts'
import { reasonPhrase } from '../../message/reason-phrases.ts'
import { encodeNok, encodeResponseSent } from '../../wire/event.ts'
import { contentTypeLine, sortAppHeaders, tagOf, type AppHeaders } from '../app-headers.ts'
import { tellOutcome } from '../applications/call-details.ts'
import type { InboundRequest } from './inbound-request.ts'
import { endUnacknowledged } from '../local-bye.ts'
import { advertised, isSips, ownUri } from '../next-hop.ts'
import type { Stack } from '../stack.ts'
import { hashOf } from '../hash.ts'
import { keepSession } from '../session/session.ts'
import {
  grantedSeconds,
  grantLines,
  isLastNotify,
  isSubscribing,
  keepSubscription,
} from '../session/subscription.ts'
import { linesOfAnswer, termsOfAnswer } from '../session/terms.ts'
import {
  isToBeReliable,
  prepareReliable,
  takes100rel,
  tellGivenUp,
} from './reliable-provisional.ts'
import type { Vias } from './request-text.ts'
import { echoOf, responseText } from './response-text.ts'

const unknownTransaction = 'Response not sent due to unknown transaction'

/** Carries out an application's answer to `transactionId`, and tells it what was sent. */
export function respond(
  stack: Stack,
  command: { readonly clientId: number; readonly id: string; readonly transactionId: string },
  message: SipMessage,
  now: number,
): void {
  const inbound = stack.inbound.get(command.transactionId)
  if (inbound === undefined || inbound.clientId !== command.clientId)
    return stack.deliver(
      command.clientId,
      encodeNok(stack.nextId(), command.id, unknownTransaction),
    )
  const { transaction, request } = inbound
  const { status } = message
  const headers = sortAppHeaders(message, advertised(transaction.flow.listener))
  const refuse = (reason: string): void =>
    stack.deliver(command.clientId, encodeNok(stack.nextId(), command.id, reason))
  const isReliable = isToBeReliable(inbound, status, headers)
  if (isReliable && !takes100rel(inbound)) return refuse('Remote endpoint does not support 100rel')
  const waiting = inbound.dialog?.reliable1xx
  if (status >= 200 && status < 300 && request.method === 'INVITE' && waiting?.mustHoldAnswer) {
    const answerUnknown = (): void => refuse(unknownTransaction)
    const send = (at: number): void => respond(stack, command, message, at)
    if (!waiting.hold({ send, refuse: answerUnknown })) answerUnknown()
    return
  }
  // RFC 3262 §3: the caller hears nothing of us.
  const giveUp = (at: number): void => {
    answer(stack, inbound, 503, 'Service Unavailable', '', at)
    tellGivenUp(stack, inbound, 'SIP ;cause=503 ;text="PRACK timeout"', at)
  }
  chooseTag(inbound, headers.to)
  const contact =
    headers.contact ?? (needsContact(inbound, status) ? ownContact(inbound) : undefined)
  if (status > 100 && status < 300) formDialog(stack, inbound, contact ?? ownContact(inbound))

  const reason = message.reason === '' ? reasonPhrase(status) : message.reason
  const contactLine = contact === undefined ? '' : `Contact: ${contact}\r\n`
  const tag = status > 100 ? inbound.localTag : ''
  const { body } = message
  const prepared = isReliable ? prepareReliable(stack, inbound, headers, giveUp) : undefined
  if (isReliable && !prepared) return refuse('too many provisional responses wait for their PRACK')
  const terms = status >= 200 && status < 300 ? termsFor(stack, inbound, headers) : undefined
  const isGrant = request.method === 'SUBSCRIBE' && status >= 200 && status < 300
  const lines =
    contactLine +
    (isGrant ? grantLines(request, headers.lines) : headers.lines) +
    (prepared?.lines ?? '') +
    (terms ? linesOfAnswer(terms, headers.requiresTimer) : '') +
    (contentTypeLine(headers, body) ?? '')
  const text = responseText(inbound.echo, status, reason, tag, lines, body)
  inbound.wasAnswered ||= status > 100
  const { dialogId } = inbound
  const send = (at: number): void => {
    transaction.respond(status, text, at)
    if (inbound.isInitial && request.method === 'INVITE')
      stack.callTimes.inbound.responded(inbound, status, at)
  }
  if (prepared) {
    const { reliable, rseq } = prepared
    reliable.add({ rseq, text, sdp: body, send }, now)
  } else {
    if (status < 200 && body !== '' && inbound.dialog) inbound.dialog.hasEarlyAnswer = true
    send(now)
  }
  if (status >= 200 && status < 300)
    stack.registrationFlows.accepted(request, message, requestFlow(transaction.flow), now)
  afterResponse(stack, inbound, status, text, now)
  if (terms && inbound.dialog) {
    const localSdp = body === '' ? (inbound.dialog.reliable1xx?.lastSdp ?? '') : body
    keepSession(stack, inbound.dialog, terms, { peer: request, localSdp }, now)
  }
  if (status >= 200 && status < 300 && inbound.dialog && isSubscribing(request.method))
    keepSubscription(stack, inbound.dialog, grantedSeconds(request, message), now)
  stack.deliver(
    command.clientId,
    encodeResponseSent({
      id: stack.nextId(),
      commandId: command.id,
      meta: stack.applicationMeta(text, transaction.flow, now),
      transactionId: inbound.transactionId,
      dialogId: hasDialogId(inbound) ? dialogId : '',
      text,
    }),
  )
}

/** RFC 4028 §9: an answer to what may refresh the session says for how long. */
function termsFor(
  stack: Stack,
  { request, dialog }: InboundRequest,
  { sessionExpires }: AppHeaders,
): SessionTerms | undefined {
  const isAnswer = request.method === 'INVITE'
  const isUpdate = request.method === 'UPDATE' && dialog?.state === 'confirmed'
  if (!isAnswer && !isUpdate) return undefined
  const current = dialog?.session?.terms
  return termsOfAnswer(request, sessionExpires, current, stack.options.minSessionSeconds)
}

/** A final response of the stack's own (100, 487, 480, 503, …) to a request with a transaction. */
export function answer(
  stack: Stack,
  inbound: InboundRequest,
  status: number,
  reason: string,
  lines: string,
  now: number,
): void {
  const tag = status > 100 ? inbound.localTag : ''
  const text = responseText(inbound.echo, status, reason, tag, lines)
  inbound.transaction.respond(status, text, now)
  afterResponse(stack, inbound, status, text, now)
}

interface Refusal {
  readonly status: number
  readonly reason: string
  readonly lines?: string
}

export function answerStateless(
  stack: Stack,
  request: SipMessage,
  vias: Vias,
  flow: Flow,
  refusal: Refusal,
): void {
  if (request.method !== 'ACK') refuseStateless(stack, request, vias, flow, refusal)
}

/**
 * RFC 3261 §8.2.7: a refusal that keeps no state; its tag is the same for every copy of the request.
 * @returns what was sent
 */
export function refuseStateless(
  stack: Stack,
  request: SipMessage,
  vias: Vias,
  flow: Flow,
  { status, reason, lines = '' }: Refusal,
): string {
  const tag = `s${hashOf(vias.completed + request.callId).toString(36)}`
  const text = responseText(echoOf(request, vias), status, reason, tag, lines)
  stack.send(text, flow, '')
  return text
}

/** The application may choose our tag, but only before anybody has seen one. */
function chooseTag(inbound: InboundRequest, to: string | undefined): void {
  if (!inbound.isInitial || inbound.wasAnswered || to === undefined) return
  const tag = tagOf(to)
  if (tag !== '') inbound.localTag = tag
}

/** RFC 3261 §12.1.1: what begins a dialog, early ones too; also the requests inside refresh it. */
function needsContact({ request: { method } }: InboundRequest, status: number): boolean {
  if (status <= 100 || status >= 300) return false
  return method === 'INVITE' || (status >= 200 && isSubscribing(method))
}

/** Where requests of this dialog reach us: the listener that took its first one. */
function ownContact(inbound: InboundRequest): string {
  if (inbound.dialog) return inbound.dialog.contact
  const { listener } = inbound.transaction.flow
  const { request } = inbound
  const [nearest] = request.list('Record-Route')
  const isSecure = isSips(request.uri) || isSips(nearest ?? request.contact?.uri)
  return `<${ownUri(listener, parseUri(request.uri)?.user ?? '', isSecure)}>`
}

/** R1 names the dialog for INVITE, SUBSCRIBE and everything inside dialogs. */
const hasDialogId = (inbound: InboundRequest): boolean =>
  !inbound.isInitial || inbound.request.method === 'INVITE' || isSubscribing(inbound.request.method)

/** §12.1.1: a provisional response with a tag begins an early dialog, a 2xx the dialog itself. */
function formDialog(stack: Stack, inbound: InboundRequest, contact: string): void {
  const { request, transaction } = inbound
  if (!inbound.isInitial) {
    if (inbound.dialog && request.method === 'INVITE') inbound.dialog.contact = contact
    return
  }
  if (inbound.dialog || (request.method !== 'INVITE' && !isSubscribing(request.method))) return
  const routeSet = request.list('Record-Route')
  inbound.dialog = new Dialog({
    role: 'uas',
    usage: request.method === 'INVITE' ? 'invite' : 'subscription',
    clientId: inbound.clientId,
    callId: request.callId,
    local: `${request.get('To') ?? ''};tag=${inbound.localTag}`,
    remote: request.get('From') ?? '',
    localTag: inbound.localTag,
    remoteTag: request.fromTag,
    localCseq: 0,
    remoteCseq: request.cseq?.number ?? 0,
    routeSet,
    remoteTarget: request.contact?.uri ?? '',
    contact,
    flow: requestFlow(transaction.flow),
    isFlowBound: isBehindNat(request, transaction.flow, routeSet),
  })
  stack.dialogs.add(inbound.dialog)
}

/**
 * A stream is answered on its connection. By UDP, a peer whose own Via names another address than
 * the one its packets come from sits behind NAT, and its Contact leads nowhere (RFC 3581, RFC 5626).
 */
function isBehindNat(request: SipMessage, flow: Flow, routeSet: readonly string[]): boolean {
  if (isStream(flow.listener.protocol)) return true
  const via = request.via
  if (routeSet.length > 0 || via === undefined || request.list('Via').length > 1) return false
  const contact = parseUri(request.contact?.uri ?? '')
  const isContactReached = contact?.host === flow.address
  return !isContactReached && via.host !== flow.address
}

function afterResponse(
  stack: Stack,
  inbound: InboundRequest,
  status: number,
  text: string,
  now: number,
): void {
  if (status < 200) return
  inbound.finished()
  if (status >= 300) inbound.refused()
  if (inbound.request.method === 'PRACK') inbound.dialog?.reliable1xx?.settled(now)
  const { dialog, request, transaction } = inbound
  if (request.method === 'INVITE' && inbound.isInitial && !inbound.wasCancelled)
    tellOutcome(stack, 'application', 'uas', status, text, now)
  if (dialog === undefined) return
  if (status >= 300) {
    if (inbound.isInitial) stack.forget(dialog)
    return
  }
  if (dialog.usage === 'subscription') {
    dialog.state = dialog.state === 'early' ? 'confirmed' : dialog.state
    // RFC 6665 §4.1.3.
    if (request.method === 'NOTIFY' && isLastNotify(request)) stack.forget(dialog)
  }
  // The peer may have hung up while the application was answering its re-INVITE.
  if (request.method !== 'INVITE' || dialog.state === 'terminated') return
  dialog.state = 'confirmed'
  dialog.reliable2xx = new Reliable2xx(
    {
      cseq: request.cseq?.number ?? 0,
      transactionId: inbound.transactionId,
      text,
      flow: transaction.flow,
    },
    stack,
    (at) => endUnacknowledged(stack, dialog, at),
    now,
  )
}
