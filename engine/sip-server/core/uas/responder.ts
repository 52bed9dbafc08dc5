/** Responses of applications, and those of the stack itself. */
import type { AppMessage, SavedDialog, SavedInvite } from '../../application.ts'
import {
  type AppHeaders,
  contentTypeLine,
  sortAppHeaders,
  type Echo,
  echoOf,
  responseText,
} from '../app-headers.ts'
import type { CommandRef } from '../outbox.ts'
import type { CoreParts } from '../parts.ts'
import { hashOf, type Identifiers } from '../identifiers.ts'
import { advertised, isSips, ownUri } from '../hop-finder.ts'
import type { SessionTimers } from '../session-timers.ts'
import { grantedSeconds, grantLines, isLastNotify, type Subscriptions } from '../subscriptions.ts'
import {
  type Arrival,
  type InboundParts,
  InboundRequest,
  type InboundRequests,
} from './inbound-request.ts'
import { Dialog, isSubscribing, linesOfAnswer, termsOfAnswer } from '../../dialog/dialog.ts'
import { Reliable1xx } from '../../dialog/reliable-1xx.ts'
import { Reliable2xx } from '../../dialog/reliable-2xx.ts'
import type { SessionTerms } from '../../dialog/session-timer.ts'
import { type Flow, isReliable as isStream, requestFlow } from '../../flow.ts'
import { parseOptionTags, parseRAck } from '../../../../schema/sip/fields.ts'
import { type SipMessage, reasonPhrase } from '../../../../schema/sip/message.ts'
import type { Refusal } from '../../options.ts'
import type { TransactionContext } from '../../transaction/machine.ts'

export interface ResponderParts extends CoreParts {
  readonly requests: InboundRequests
  readonly sessions: SessionTimers
  readonly subscriptions: Subscriptions
}

/** The answer of an application to `transactionId`. */
export interface ResponseCommand extends CommandRef {
  readonly transactionId: string
}

/** An application's response on its way to the caller. */
interface Answer {
  readonly command: ResponseCommand
  readonly inbound: InboundRequest
  readonly message: AppMessage
  readonly headers: AppHeaders
  readonly contact: string | undefined
}

/** A response of the callee within this time makes 100 needless: a datagram less for most calls. */
const TRYING_MS = 100

const unknownTransaction = 'Response not sent due to unknown transaction'

export class Responder {
  readonly #parts: ResponderParts
  readonly #inboundParts: InboundParts

  constructor(parts: ResponderParts) {
    this.#parts = parts
    this.#inboundParts = {
      ...parts,
      onSilence: (inbound, now) => this.#answerSilence(inbound, now),
      onTrying: (inbound, now) => this.#trying(inbound, now),
    }
  }

  /** Begins the server transaction of a request that `clientId` is to answer; 0: no application. */
  begin(
    arrival: Arrival,
    clientId: number,
    dialog: Dialog | undefined,
    now: number,
  ): InboundRequest {
    const inbound = new InboundRequest(this.#inboundParts, arrival, clientId, dialog, now)
    if (arrival.request.method !== 'INVITE') return inbound
    // An application of this process may answer in the same moment (`handled`).
    if (!inbound.isInitial || !this.#parts.applications.isInProcess(clientId))
      this.#trying(inbound, now)
    return inbound
  }

  /** RFC 3261 §8.2.6.1: Trying, so that the peer stops repeating. */
  #trying(inbound: InboundRequest, now: number): void {
    inbound.isTrying = true
    this.answer(inbound, 100, 'Trying', '', now)
    if (this.#parts.options.alwaysSend180 === true && inbound.isInitial)
      this.answer(inbound, 180, 'Ringing', '', now)
  }

  /**
   * An application of this process has seen the INVITE. The caller hears of it within 200 ms (RFC
   * 3261 §17.2.1).
   */
  handled(clientId: number, transactionId: string, now: number): void {
    const inbound = this.#parts.requests.find(transactionId, clientId)
    if (inbound === undefined || inbound.isTrying || inbound.wasAnswered) return
    if (this.#parts.options.alwaysSend180 === true) this.#trying(inbound, now)
    else inbound.tryWithin(TRYING_MS, now)
  }

  /**
   * The same for a restored INVITE, whose caller has got 100 from the process before this one:
   * nothing is sent.
   */
  resume(
    arrival: Arrival,
    clientId: number,
    early: SavedInvite['early'],
    now: number,
  ): InboundRequest {
    const inbound = new InboundRequest(this.#inboundParts, arrival, clientId, undefined, now)
    if (early === undefined) return inbound
    inbound.respondedTo()
    this.#formDialog(inbound, early.contact, early)
    return inbound
  }

  /** Sends an application's response, and returns the text that was sent in an event. */
  respond(command: ResponseCommand, message: AppMessage, now: number): void {
    const { events, requests } = this.#parts
    const inbound = requests.find(command.transactionId, command.clientId)
    if (inbound === undefined) return events.refuse(command, unknownTransaction)
    const { status } = message
    const headers = sortAppHeaders(message, advertised(inbound.transaction.flow.listener))
    const isReliable = isToBeReliable(inbound, status, headers)
    if (isReliable && !takes100rel(inbound))
      return events.refuse(command, 'Remote endpoint does not support 100rel')
    const isAnswer = status >= 200 && status < 300 && inbound.request.method === 'INVITE'
    const waiting = isAnswer ? inbound.dialog?.reliable1xx : undefined
    if (waiting?.mustHoldAnswer === true) {
      const refuse = (): void => events.refuse(command, unknownTransaction)
      const send = (at: number): void => this.respond(command, message, at)
      if (!waiting.hold({ send, refuse })) refuse()
      return
    }
    if (headers.to !== undefined) inbound.chooseTag(headers.to)
    const contact =
      headers.contact ?? (needsContact(inbound, status) ? ownContact(inbound) : undefined)
    if (status > 100 && status < 300) this.#formDialog(inbound, contact ?? ownContact(inbound))
    const answer = { command, inbound, message, headers, contact }
    if (isReliable) this.#sendReliable(answer, now)
    else this.#send(answer, now)
  }

  /**
   * The final response of an application to a sender that has proved nothing: see
   * `SipCommand.toStranger`.
   */
  answerStranger(command: ResponseCommand, message: AppMessage, now: number): void {
    const { events, requests, outbox } = this.#parts
    const inbound = requests.find(command.transactionId, command.clientId)
    if (inbound === undefined || !inbound.isInitial || inbound.wasAnswered)
      return this.respond(command, message, now)
    const { request, echo, transaction } = inbound
    const { flow } = transaction
    const { status, reason } = message
    const { lines } = sortAppHeaders(message, advertised(flow.listener))
    const answer = { status, reason: reason === '' ? reasonPhrase(status) : reason, lines }
    const text = boundedAnswer(request, echo, answer, flow)
    inbound.dismiss()
    if (text === undefined) return events.refuse(command, 'the request is too short for an answer')
    outbox.send(text, flow, '')
    if (inbound.isCall) events.callAnswered('application', 'uas', status, text, now)
    return this.#reportSent(command, inbound, inbound.dialogId, text, now)
  }

  /** A provisional response that is repeated until its PRACK (RFC 3262 §3). */
  #sendReliable(answer: Answer, now: number): void {
    const { command, inbound, message, headers } = answer
    const { events, transactions, ids } = this.#parts
    const giveUp = (at: number): void => {
      this.answer(inbound, 503, 'Service Unavailable', '', at)
      this.reportGivenUp(inbound, 'SIP ;cause=503 ;text="PRACK timeout"', at)
    }
    const prepared = prepareReliable(inbound, headers, transactions, ids, giveUp)
    if (prepared === undefined)
      return events.refuse(command, 'too many provisional responses wait for their PRACK')
    const text = textOf(answer, prepared.lines)
    const { dialogId } = inbound
    const send = (at: number): void => this.#transmit(inbound, message.status, text, at)
    inbound.respondedTo()
    prepared.reliable.add({ rseq: prepared.rseq, text, sdp: message.body, send }, now)
    this.#reportSent(command, inbound, dialogId, text, now)
  }

  #send(answer: Answer, now: number): void {
    const { command, inbound, message, headers } = answer
    const { request } = inbound
    const { status, body } = message
    const isSuccess = status >= 200 && status < 300
    const terms = isSuccess ? this.#termsFor(inbound, headers) : undefined
    const text = textOf(answer, terms ? linesOfAnswer(terms, headers.requiresTimer) : '')
    if (status > 100) inbound.respondedTo()
    const { dialogId } = inbound
    if (status < 200 && body !== '') inbound.dialog?.answeredEarly()
    this.#transmit(inbound, status, text, now)
    const { sessions, subscriptions, registrationFlows } = this.#parts
    if (isSuccess) {
      const flow = requestFlow(inbound.transaction.flow)
      if (!registrationFlows.accepted(request, message, flow, now))
        this.#parts.outbox.push({ kind: 'registered-flow-closed', flow })
    }
    this.#afterResponse(inbound, status, text, now)
    const { dialog } = inbound
    if (terms && dialog) {
      const localSdp = body === '' ? (dialog.reliable1xx?.lastSdp ?? '') : body
      sessions.refreshed(dialog, terms, { peer: request, localSdp }, now)
    }
    if (isSuccess && dialog && isSubscribing(request.method))
      subscriptions.renew(dialog, grantedSeconds(request, message), now)
    this.#reportSent(command, inbound, dialogId, text, now)
  }

  #transmit(inbound: InboundRequest, status: number, text: string, now: number): void {
    inbound.transaction.respond(status, text, now)
    if (inbound.isCall) this.#parts.callTimes.inbound.responded(inbound, status, now)
  }

  #reportSent(
    command: ResponseCommand,
    inbound: InboundRequest,
    dialogId: string,
    text: string,
    now: number,
  ): void {
    const { transactionId, transaction, localTag } = inbound
    const passed = { transactionId, dialogId: hasDialogId(inbound) ? dialogId : '', text }
    this.#parts.events.responseSent(command, passed, localTag, transaction.flow, now)
  }

  /** RFC 4028 §9: an answer to what may refresh the session says for how long. */
  #termsFor(inbound: InboundRequest, { sessionExpires }: AppHeaders): SessionTerms | undefined {
    const { request, dialog } = inbound
    const isUpdate = request.method === 'UPDATE' && dialog?.state === 'confirmed'
    if (request.method !== 'INVITE' && !isUpdate) return undefined
    const current = dialog?.session?.terms
    return termsOfAnswer(request, sessionExpires, current, this.#parts)
  }

  /** A response of the stack's own (100, 487, 480, 503, …) to a request with a transaction. */
  answer(
    inbound: InboundRequest,
    status: number,
    reason: string,
    lines: string,
    now: number,
  ): void {
    const text = responseText(inbound.echo, status, reason, inbound.localTag, lines)
    inbound.transaction.respond(status, text, now)
    this.#afterResponse(inbound, status, text, now)
  }

  /** The application is silent: the peer must not wait for ever. */
  #answerSilence(inbound: InboundRequest, now: number): void {
    if (inbound.request.method === 'INVITE')
      this.answer(inbound, 480, 'Temporarily Unavailable', '', now)
    else this.answer(inbound, 500, 'Server Internal Error', '', now)
  }

  /**
   * RFC 3261 §8.2.7: a refusal that keeps no state. Returns what was sent: nothing to an ACK, which
   * is never answered, or to a request that is too short.
   */
  refuse(
    { request, vias, flow }: Pick<Arrival, 'request' | 'vias' | 'flow'>,
    rejection: Refusal,
  ): string {
    if (request.method === 'ACK') return ''
    const text = boundedAnswer(request, echoOf(request, vias), rejection, flow)
    if (text !== undefined) this.#parts.outbox.send(text, flow, '')
    return text ?? ''
  }

  /**
   * The INVITE has ended without its application, which gets an event as if its caller had given
   * up.
   */
  reportGivenUp(inbound: InboundRequest, reason: string, now: number): void {
    const { transaction, transactionId, dialogId, clientId } = inbound
    const text = cancelText(inbound.request, reason)
    const passed = { transactionId, dialogId, text }
    this.#parts.events.request(clientId, passed, text, transaction.flow, now)
  }

  /** §12.1.1: a provisional response with a tag begins an early dialog, a 2xx the dialog itself. */
  #formDialog(
    inbound: InboundRequest,
    contact: string,
    { localCseq, remoteCseq }: Pick<SavedDialog, 'localCseq' | 'remoteCseq'> = {
      localCseq: 0,
      remoteCseq: inbound.request.cseq?.number ?? 0,
    },
  ): void {
    const { request, transaction, localTag } = inbound
    const { method } = request
    if (!inbound.isInitial) {
      if (method === 'INVITE') inbound.dialog?.changeContact(contact)
      return
    }
    if (inbound.dialog || (method !== 'INVITE' && !isSubscribing(method))) return
    const routeSet = request.list('Record-Route')
    const dialog = new Dialog({
      role: 'uas',
      usage: method === 'INVITE' ? 'invite' : 'subscription',
      clientId: inbound.clientId,
      callId: request.callId,
      local: `${request.get('To') ?? ''};tag=${localTag}`,
      remote: request.get('From') ?? '',
      localTag,
      remoteTag: request.fromTag,
      localCseq,
      remoteCseq,
      routeSet,
      remoteTarget: request.contact?.uri ?? '',
      contact,
      flow: requestFlow(transaction.flow),
      isFlowBound: this.#isFlowBound(request, transaction.flow, routeSet),
    })
    inbound.formed(dialog)
    this.#parts.dialogs.add(dialog)
  }

  #isFlowBound(request: SipMessage, flow: Flow, routeSet: readonly string[]): boolean {
    // The connection of a restored INVITE is gone.
    if (isStream(flow.listener.protocol)) return flow.connectionId !== 0
    return this.#parts.options.detectsNat !== false && isBehindNat(request, flow, routeSet)
  }

  #afterResponse(inbound: InboundRequest, status: number, text: string, now: number): void {
    if (status < 200) return
    const { events, dialogs } = this.#parts
    inbound.answered(status, now)
    const { dialog, request } = inbound
    if (request.method === 'PRACK') dialog?.reliable1xx?.settled(now)
    if (inbound.isCall && !inbound.wasCancelled)
      events.callAnswered('application', 'uas', status, text, now)
    if (dialog === undefined) return
    if (status >= 300) {
      if (inbound.isInitial) dialogs.remove(dialog)
      return
    }
    if (dialog.usage === 'subscription') {
      dialog.confirm()
      // RFC 6665 §4.1.3.
      if (request.method === 'NOTIFY' && isLastNotify(request)) dialogs.remove(dialog)
    }
    // The peer may have hung up while the application was answering its re-INVITE.
    if (request.method === 'INVITE' && dialog.state !== 'terminated')
      this.#repeatUntilAck(inbound, dialog, text, now)
  }

  #repeatUntilAck(inbound: InboundRequest, dialog: Dialog, text: string, now: number): void {
    const { transactions, localBye } = this.#parts
    const { request, transactionId, transaction } = inbound
    const cseq = request.cseq?.number ?? 0
    const response = { cseq, transactionId, text, flow: transaction.flow }
    // RFC 3261 §13.3.1.4: no ACK for our 2xx within 64·T1.
    const giveUp = (at: number): void => localBye.send(dialog, 'ACK timeout', 'notify', at)
    dialog.answeredWith(new Reliable2xx(response, transactions, giveUp, now))
  }
}

/**
 * By UDP a sender may have written the address of another, which must not get much more bytes than
 * were sent in its name.
 */
const MAX_ANSWER_FACTOR = 2

/**
 * Its tag is the same for every copy of the request (§8.2.7). The last header lines are left out
 * when it would be too long; undefined: the answer is too long even then.
 */
function boundedAnswer(
  request: SipMessage,
  echo: Echo,
  { status, reason, lines: allLines = '' }: Refusal,
  { listener }: Flow,
): string | undefined {
  const tag = `s${hashOf(echo.vias + request.callId).toString(36)}`
  const maxBytes = isStream(listener.protocol) ? Infinity : MAX_ANSWER_FACTOR * request.text.length
  let lines = allLines
  for (;;) {
    const text = responseText(echo, status, reason, tag, lines)
    if (Buffer.byteLength(text) <= maxBytes) return text
    if (lines === '') return undefined
    const lastLine = lines.lastIndexOf('\r\n', lines.length - 3)
    lines = lastLine === -1 ? '' : lines.slice(0, lastLine + 2)
  }
}

function textOf({ inbound, message, headers, contact }: Answer, extraLines: string): string {
  const { status, body } = message
  const reason = message.reason === '' ? reasonPhrase(status) : message.reason
  const contactLine = contact === undefined ? '' : `Contact: ${contact}\r\n`
  const isGrant = inbound.request.method === 'SUBSCRIBE' && status >= 200 && status < 300
  const lines =
    contactLine +
    (isGrant ? grantLines(inbound.request, headers.lines) : headers.lines) +
    extraLines +
    (contentTypeLine(headers, body) ?? '')
  return responseText(inbound.echo, status, reason, inbound.localTag, lines, body)
}

/** RFC 3261 §12.1.1: what begins a dialog, early ones too; also the requests inside refresh it. */
function needsContact({ request: { method } }: InboundRequest, status: number): boolean {
  if (status <= 100 || status >= 300) return false
  return method === 'INVITE' || (status >= 200 && isSubscribing(method))
}

/** Our Contact in the dialog: the listener that took its first request. */
function ownContact(inbound: InboundRequest): string {
  if (inbound.dialog) return inbound.dialog.contact
  const { listener } = inbound.transaction.flow
  const { request } = inbound
  const [nearest] = request.list('Record-Route')
  const isSecure = isSips(request.uri) || isSips(nearest ?? request.contact?.uri)
  return `<${ownUri(listener, request.requestUri?.user ?? '', isSecure)}>`
}

/** R1 (wire/README.md) names the dialog for INVITE, SUBSCRIBE and everything inside dialogs. */
const hasDialogId = ({ isInitial, request: { method } }: InboundRequest): boolean =>
  !isInitial || method === 'INVITE' || isSubscribing(method)

/**
 * By UDP, a peer whose own Via names another address than the one its packets come from sits behind
 * NAT, and its Contact leads nowhere (RFC 3581, RFC 5626).
 */
function isBehindNat(request: SipMessage, flow: Flow, routeSet: readonly string[]): boolean {
  const via = request.via
  if (routeSet.length > 0 || via === undefined || via.host === flow.address) return false
  return request.list('Via').length === 1 && request.contact?.parsedUri?.host !== flow.address
}

/** Provisional responses that must arrive, and the PRACKs that say so: RFC 3262 §3. */
const requires100rel = (request: SipMessage): boolean =>
  request.has('Require') && parseOptionTags(request.all('Require')).includes('100rel')

/** Whether the application or the caller wants this response to be reliable. */
const isToBeReliable = (
  { request }: InboundRequest,
  status: number,
  headers: AppHeaders,
): boolean =>
  status > 100 &&
  status < 200 &&
  request.method === 'INVITE' &&
  (headers.requires100rel || requires100rel(request))

/** A caller that does not know the extension would never send a PRACK. */
const takes100rel = ({ request }: InboundRequest): boolean =>
  requires100rel(request) || parseOptionTags(request.all('Supported')).includes('100rel')

/** The response's own header lines and number; undefined: too many wait for their PRACK. */
function prepareReliable(
  { dialog, request, transaction }: InboundRequest,
  { requires100rel: isRequired }: AppHeaders,
  context: TransactionContext,
  ids: Identifiers,
  onUnacknowledged: (now: number) => void,
): { readonly reliable: Reliable1xx; readonly rseq: number; readonly lines: string } | undefined {
  const cseq = request.cseq?.number ?? 0
  const begin = (): Reliable1xx =>
    // §3: chosen at random from 1 to 2^31-1, with room above it.
    new Reliable1xx(cseq, (ids.number() >>> 1) | 1, transaction.flow, context, onUnacknowledged)
  const reliable = dialog?.reliable1xxOf(cseq, begin)
  const rseq = reliable?.nextRSeq
  if (reliable === undefined || rseq === undefined) return undefined
  return { reliable, rseq, lines: `${isRequired ? '' : 'Require: 100rel\r\n'}RSeq: ${rseq}\r\n` }
}

/** A CANCEL as the caller of `request` would have sent it. */
const cancelText = (request: SipMessage, reason: string): string =>
  `CANCEL ${request.uri} SIP/2.0\r\nVia: ${request.get('Via') ?? ''}\r\n` +
  `Max-Forwards: 70\r\nFrom: ${request.get('From') ?? ''}\r\nTo: ${request.get('To') ?? ''}\r\n` +
  `Call-ID: ${request.callId}\r\nCSeq: ${request.cseq?.number ?? 0} CANCEL\r\n` +
  `Reason: ${reason}\r\nContent-Length: 0\r\n\r\n`

/** A PRACK in a dialog; false: there is nothing that it could acknowledge. */
export function takePrack(
  reliable: Reliable1xx | undefined,
  prack: SipMessage,
  now: number,
): boolean {
  const rack = parseRAck(prack.get('RAck') ?? '')
  return rack !== undefined && reliable?.acknowledged(rack, now) === true
}
