/**
 * Requests from the network: copies, CANCEL, requests in dialogs, and new ones, which go to an
 * application.
 */
import type { ApplicationRoute } from '../outbox.ts'
import { serverKey } from '../transactions.ts'
import { knownMethods } from '../traffic.ts'
import {
  type Arrival,
  newRequestOf,
  type InboundRequest,
  mergeKeyOf,
  noSuchCall,
  rejectionFor,
  unavailable,
} from './inbound-request.ts'
import { completeVias, echoOf, requestText, responseText } from '../app-headers.ts'
import { defaultPort, type Flow } from '../../flow.ts'
import { checkRequest } from '../../../../schema/sip/parse.ts'
import type { Via } from '../../../../schema/sip/fields.ts'
import { type SipMessage, reasonPhrase } from '../../../../schema/sip/message.ts'
import type { Refusal, RequestRoute } from '../../options.ts'
import { transactionTimeoutMs } from '../../transaction/machine.ts'
import { RefusedInvites } from './refused-invites.ts'
import type { InDialogRequests, InDialogParts } from './in-dialog-requests.ts'

interface ReceiverParts extends InDialogParts {
  readonly inDialog: InDialogRequests
}

export class RequestReceiver {
  readonly #parts: ReceiverParts
  /** Requests that wait for the answer of `routeRequest`, by transaction id. */
  readonly #unrouted = new Map<string, Arrival>()
  /** INVITEs that got 503 without a transaction. Undefined: none lately. */
  #refused: RefusedInvites | undefined

  constructor(parts: ReceiverParts) {
    this.#parts = parts
  }

  receive(request: SipMessage, source: Flow, now: number): void {
    const { transactions, responder, traffic } = this.#parts
    const { via, method } = request
    if (via === undefined) return
    const key = serverKey(request, via, method)
    if (method === 'ACK') return this.#parts.inDialog.ack(request, key, source, now)
    if (transactions.repeated(key, now)) return

    const arrival = arrivalOf(request, via, key, source)
    // RFC 3261 §21.5.4, before anything is looked at that a refusal does not need. A caller that
    // obeyed a longer time would leave us idle as soon as a part of the load is refused.
    if (method === 'INVITE' && this.#refusesCall(arrival, now))
      return void responder.refuse(arrival, unavailable(1))
    const fault = checkRequest(request, source.listener.protocol)
    if (fault) {
      if (fault.status !== 416) traffic.faulty.requests += 1
      return this.#refuse(arrival, fault)
    }
    if (method === 'CANCEL') return receiveCancel(this.#parts, arrival, via, now)
    this.#accept(arrival, now)
  }

  /** A copy of a refused INVITE is refused too, also when there is room again. */
  #refusesCall(arrival: Arrival, now: number): boolean {
    if (this.#refused?.isEmpty(now) === true) this.#refused = undefined
    if (this.#refused?.has(arrival.key, now) === true) return true
    const { request, source } = arrival
    if (this.#parts.options.refusesCall?.(request, source) !== true) return false
    this.#noteRefused(arrival, now)
    return true
  }

  #noteRefused({ key, request }: Arrival, now: number): void {
    if (request.method !== 'INVITE') return
    const { transactions, ids } = this.#parts
    this.#refused ??= new RefusedInvites(transactionTimeoutMs(transactions.timers), [
      ids.number(),
      ids.number(),
    ])
    this.#refused.add(key, now)
  }

  /** A message that cannot be read as a request, but has a Via that names its sender. */
  refuseMalformed(request: SipMessage, source: Flow, refusal: Refusal): void {
    const { via } = request
    if (via) this.#refuse(arrivalOf(request, via, '', source), refusal)
  }

  #refuse(arrival: Arrival, refusal: Refusal): void {
    const { responder, options } = this.#parts
    const { request, vias, source } = arrival
    responder.refuse(arrival, refusal)
    if (request.method !== 'INVITE' || request.toTag !== '' || !isLost.has(refusal.status)) return
    options.onRefusedInvite?.({
      ...newRequestOf(request, source),
      status: refusal.status,
      reason: refusal.reason,
      key: `${vias.top} ${request.callId}`,
      forEach: (visit) => request.forEach(visit),
    })
  }

  #accept(arrival: Arrival, now: number): void {
    const { request } = arrival
    const { inDialog, responder } = this.#parts
    const isInDialog = request.toTag !== ''
    if (this.#forward(arrival, now)) return
    const screening = isInDialog
      ? undefined
      : this.#parts.options.screen?.(newRequestOf(request, arrival.source))
    if (screening === 'drop') return
    if (screening) return void responder.refuse(arrival, screening)
    const rejection = this.#rejectionFor(arrival, isInDialog, now)
    if (rejection) this.#refuse(arrival, rejection)
    else if (isInDialog) inDialog.accept(arrival, now)
    else this.#begin(arrival, now)
  }

  #rejectionFor(arrival: Arrival, isInDialog: boolean, now: number): Refusal | undefined {
    const { request } = arrival
    if (!knownMethods.has(request.method)) return this.#notAllowed()
    const rejection = rejectionFor(request, this.#parts.minSessionSeconds)
    return rejection ?? (isInDialog ? undefined : this.#rejectionForNew(arrival, now))
  }

  /** Outside dialogs. */
  #rejectionForNew(arrival: Arrival, now: number): Refusal | undefined {
    const { request } = arrival
    const { method } = request
    const { requests, dialogs, traffic } = this.#parts
    const { limits } = this.#parts.options
    // §12.2.2 and RFC 3262 §3: these exist only in dialogs.
    if (method === 'BYE' || method === 'UPDATE' || method === 'PRACK') return noSuchCall
    // §8.2.2.2
    if (requests.isMerged(arrival)) return { status: 482, reason: 'Loop Detected' }
    // §8.1.1.8: without a Contact there is no way back into the dialog.
    if (method === 'INVITE' && !request.has('Contact'))
      return { status: 400, reason: 'Missing Contact Header' }
    // §21.5.4; requests in dialogs pass, so that calls can end.
    const isFull = requests.size >= limits.maxUnanswered || dialogs.size >= limits.maxDialogs
    if (!isFull) return undefined
    if (method === 'INVITE') traffic.refusedWhenFull += 1
    this.#noteRefused(arrival, now)
    return unavailable(5)
  }

  /**
   * A request of a call that was forwarded, and in which this server stayed, or one with a flow
   * token.
   */
  #forward(arrival: Arrival, now: number): boolean {
    const { proxy, responder, requests, options } = this.#parts
    const { request, source } = arrival
    const step = proxy.nextStep(request, source)
    if (step === undefined) return false
    const isTooMuch = request.toTag === '' && requests.size >= options.limits.maxUnanswered
    if (step.kind === 'refuse') responder.refuse(arrival, step.rejection)
    else if (isTooMuch) {
      this.#noteRefused(arrival, now)
      responder.refuse(arrival, unavailable(5))
    } else proxy.forward(responder.begin(arrival, 0, undefined, now), step, now)
    return true
  }

  /** A new request goes to an application, or where `routeRequest` says. */
  #begin(arrival: Arrival, now: number): void {
    const { request, source } = arrival
    const { events, responder, options, outbox } = this.#parts
    const route = options.routeRequest?.(newRequestOf(request, source))
    if (request.method === 'INVITE') events.callAttempted('network', request.text, now)
    if (isForApplication(route)) return this.#offer(arrival, route, now)
    const inbound = responder.begin(arrival, 0, undefined, now)
    if (!(route instanceof Promise)) return this.#settle(inbound, route, now)
    const { transactionId } = inbound
    this.#unrouted.set(transactionId, arrival)
    outbox.push({ kind: 'await-route', route, transactionId })
  }

  #offer(arrival: Arrival, route: ApplicationRoute | undefined, now: number): void {
    const { applications, events, responder } = this.#parts
    const chosen = applications.choose(arrival.request.method, route)
    if (typeof chosen !== 'string')
      return this.#handOver(responder.begin(arrival, chosen, undefined, now), arrival, now)
    const text = responder.refuse(arrival, this.#refusalOf(arrival.request.method, chosen))
    // Applications that ask for call details get those of this call, too.
    if (arrival.request.method === 'INVITE')
      events.callStopped('application', 'call-rejected', text, now)
  }

  #handOver(
    { transactionId, clientId }: InboundRequest,
    { request, vias, source }: Arrival,
    now: number,
  ): void {
    const passed = { transactionId, dialogId: '', text: requestText(request, vias) }
    this.#parts.events.request(clientId, passed, request, source, now, true)
  }

  /** `routeRequest` has answered. The caller may have given up meanwhile. */
  routed(transactionId: string, route: RequestRoute | undefined, now: number): void {
    const { requests, applications, responder } = this.#parts
    const arrival = this.#unrouted.get(transactionId)
    this.#unrouted.delete(transactionId)
    const inbound = requests.find(transactionId, 0)
    if (arrival === undefined || inbound === undefined) return
    if (!isForApplication(route)) return this.#settle(inbound, route, now)
    const { method } = arrival.request
    const chosen = applications.choose(method, route)
    if (typeof chosen === 'string') {
      const { status, reason, lines = '' } = this.#refusalOf(method, chosen)
      return responder.answer(inbound, status, reason, lines, now)
    }
    inbound.clientId = chosen
    this.#handOver(inbound, arrival, now)
  }

  /** How many requests wait for the answer of `routeRequest`. */
  get unrouted(): number {
    return this.#unrouted.size
  }

  /** Answers or forwards a request that no application gets. */
  #settle(inbound: InboundRequest, route: DirectRoute, now: number): void {
    const { responder, proxy } = this.#parts
    if ('reject' in route) {
      const { status, reason = reasonPhrase(status) } = route.reject
      return responder.answer(inbound, status, reason, '', now)
    }
    if ('redirect' in route) {
      const lines = route.redirect.map((contact) => `Contact: ${contact}\r\n`).join('')
      return responder.answer(inbound, 302, 'Moved Temporarily', lines, now)
    }
    const { transactionId } = inbound
    const command = { ...route.proxy, transactionId, fullResponse: false, message: undefined }
    proxy.command({ clientId: 0, id: '' }, { kind: 'proxy', ...command }, now)
  }

  /** No application takes a request. */
  #refusalOf(method: string, why: 'unwanted' | 'not-connected'): Refusal {
    const { applications } = this.#parts
    if (why === 'not-connected') return { status: 480, reason: 'Temporarily Unavailable' }
    const methods = applications.methods()
    const isNeverWanted = methods.length > 0 && !methods.includes(method)
    return isNeverWanted ? this.#notAllowed() : unavailable(5)
  }

  /** §8.2.1: the answer to a method that nobody here takes, one that does not exist too. */
  #notAllowed(): Refusal {
    const { applications, options } = this.#parts
    const inDialog = ['ACK', 'BYE', 'CANCEL', 'INFO', 'PRACK', 'UPDATE']
    const allow = options.allow ?? [...new Set([...applications.methods(), ...inDialog])].join(', ')
    return { status: 405, reason: 'Method Not Allowed', lines: `Allow: ${allow}\r\n` }
  }
}

/** The sender of such an INVITE does not come again with a better one: the call is lost. */
const isLost: ReadonlySet<number> = new Set([400, 413, 415, 416, 420, 505])

/** A route that leads to no application. */
type DirectRoute = Exclude<RequestRoute, ApplicationRoute>

const isForApplication = (
  route: RequestRoute | undefined | Promise<unknown>,
): route is ApplicationRoute | undefined => route === undefined || 'tag' in route || 'uri' in route

const arrivalOf = (request: SipMessage, via: Via, key: string, source: Flow): Arrival => ({
  request,
  vias: completeVias(request, via, source),
  key,
  mergeKey: request.toTag === '' ? mergeKeyOf(request, request.method) : '',
  flow: returnFlow(via, source),
  source,
})

/**
 * RFC 3261 §18.2.2 and RFC 3581 §4: the same connection; by UDP the source address, and the source
 * port where `rport` asks for it, else the port of the Via. `maddr` does not count: a sender that
 * names another host, or a group, would have our answers, and their copies, sent there.
 */
function returnFlow(via: Via, source: Flow): Flow {
  const { listener, address, connectionId } = source
  const port = via.port === 0 ? defaultPort(listener.protocol) : via.port
  if (connectionId !== 0) return { ...source, returnPort: port }
  if (via.params.has('rport')) return source
  return { listener, address, port, connectionId }
}

// CANCEL from the network: RFC 3261 §9.2.

/**
 * Hop by hop: answered here, 200 whatever the INVITE's state. An INVITE without a final response
 * ends with 487, and its application learns of it; one that was answered is not touched (§9.2).
 */
function receiveCancel(parts: InDialogParts, arrival: Arrival, via: Via, now: number): void {
  const { transactions, events, requests, responder } = parts
  const { request: cancel, vias, flow } = arrival
  const inviteKey = keyOfInvite(parts, cancel, via)
  const inviteTag = transactions.tagOfInvite(inviteKey)
  // A CANCEL cannot be challenged (§22.1): from another address than that of the INVITE it is not
  // the caller's.
  const from = transactions.server(inviteKey)?.flow.address ?? flow.address
  if (inviteTag === undefined || from !== flow.address)
    return void responder.refuse(arrival, noSuchCall)
  answer(parts, arrival, inviteTag, now)
  const inbound = requests.byTransaction(inviteKey)
  if (inbound === undefined) return
  events.callStopped('network', 'call-canceled', cancel.text, now)
  if (inbound.cancelled(now)) return
  // This goes before the 487: the answer is the application's last word on its side.
  const dialogId = inbound.wasAnswered ? inbound.dialogId : ''
  responder.answer(inbound, 487, 'Request Terminated', '', now)
  const { clientId, transactionId } = inbound
  const passed = { transactionId, dialogId, text: requestText(cancel, vias) }
  events.request(clientId, passed, cancel, flow, now)
}

/** `toTag` is our tag in the responses to the INVITE. */
function answer(
  { transactions }: InDialogParts,
  { request, vias, key, flow }: Arrival,
  toTag: string,
  now: number,
): void {
  const transaction = transactions.startServer(key, false, flow, {
    toTag,
    onAckTimeout: () => undefined,
    onTerminated: () => transactions.endServer(key),
  })
  transaction.respond(200, responseText(echoOf(request, vias), 200, 'OK', toTag, ''), now)
}

/**
 * §9.1 wants the very Via of the INVITE. A phone behind NAT that has learned its public address
 * from `rport` may write that one: branch, Call-ID, From tag and number still identify the INVITE.
 */
function keyOfInvite(
  { transactions, requests }: InDialogParts,
  cancel: SipMessage,
  via: Via,
): string {
  const key = serverKey(cancel, via, 'INVITE')
  if (transactions.tagOfInvite(key) !== undefined) return key
  const likely = requests.invitedBy(cancel)
  return likely?.startsWith(`${via.branch.toLowerCase()} `) === true ? likely : key
}
