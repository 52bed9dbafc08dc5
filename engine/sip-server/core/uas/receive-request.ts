/** Requests from the network: repeated? a CANCEL? in a dialog? else new, and for an application. */
import type { DialogTable } from '../../dialog/dialog-table.ts'
import { defaultPort, type Flow } from '../../flow.ts'
import { checkRequest } from '../../message/check.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import type { CallLimits } from '../../options.ts'
import type { Applications } from '../applications/applications.ts'
import type { Proxy } from '../proxy/proxy.ts'
import { knownMethods, type Traffic } from '../traffic.ts'
import { serverKey } from '../transactions.ts'
import { mergeKeyOf, type Arrival } from './inbound-request.ts'
import type { InDialogRequests } from './in-dialog-requests.ts'
import { completeVias, requestText } from './message-text.ts'
import { receiveCancel, type CancelPorts } from './receive-cancel.ts'
import { noSuchCall, rejectionFor, tooManyHops, unavailable, type Rejection } from './rejection.ts'

interface ReceiverPorts extends CancelPorts {
  readonly applications: Applications
  readonly inDialog: InDialogRequests
  readonly proxy: Proxy
  readonly traffic: Traffic
  readonly minSessionSeconds: number
  readonly dialogs: DialogTable
  readonly limits: CallLimits
  readonly refusesCall: ((invite: SipMessage, source: Flow) => boolean) | undefined
}

export class RequestReceiver {
  readonly #ports: ReceiverPorts

  constructor(ports: ReceiverPorts) {
    this.#ports = ports
  }

  receive(request: SipMessage, source: Flow, now: number): void {
    const { transactions, responder, refusesCall, traffic } = this.#ports
    const { via, method } = request
    if (via === undefined) return
    const key = serverKey(request, via, method)
    if (method === 'ACK') return this.#ports.inDialog.ack(request, key, source, now)
    if (transactions.repeated(key, now)) return

    const arrival = arrivalOf(request, via, key, source)
    // RFC 3261 §21.5.4, before anything is looked at that a refusal does not need. A caller that obeyed a longer
    // time would leave us idle as soon as a part of the load is refused.
    if (method === 'INVITE' && refusesCall?.(request, source) === true)
      return void responder.refuse(arrival, unavailable(1))
    const fault = checkRequest(request, source.listener.protocol)
    if (fault) {
      if (fault.status !== 416) traffic.faulty.requests += 1
      return void responder.refuse(arrival, fault)
    }
    if (method === 'CANCEL') return receiveCancel(this.#ports, arrival, via, now)
    this.#accept(arrival, now)
  }

  /** A message that cannot be read as a request, but has a Via by which its sender can be told. */
  refuseMalformed(request: SipMessage, source: Flow, refusal: Rejection): void {
    const { via } = request
    if (via) this.#ports.responder.refuse(arrivalOf(request, via, '', source), refusal)
  }

  #accept(arrival: Arrival, now: number): void {
    const { request } = arrival
    const { inDialog, responder } = this.#ports
    const isInDialog = request.toTag !== ''
    if (isInDialog && this.#forward(arrival, now)) return
    const rejection = this.#rejectionFor(arrival, isInDialog)
    if (rejection) responder.refuse(arrival, rejection)
    else if (isInDialog) inDialog.accept(arrival, now)
    else this.#begin(arrival, now)
  }

  #rejectionFor(arrival: Arrival, isInDialog: boolean): Rejection | undefined {
    const { request } = arrival
    // §8.2.1 and §21.5.2
    if (!knownMethods.has(request.method))
      return { status: 501, reason: 'Not Implemented', lines: this.#allowLine() }
    const rejection = rejectionFor(request, this.#ports.minSessionSeconds)
    return rejection ?? (isInDialog ? undefined : this.#rejectionForNew(arrival))
  }

  /** Outside dialogs. */
  #rejectionForNew(arrival: Arrival): Rejection | undefined {
    const { request } = arrival
    const { method } = request
    const { requests, dialogs, limits, traffic } = this.#ports
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
    return unavailable(5)
  }

  /** A request of a call that was forwarded, and in which this server stayed. */
  #forward(arrival: Arrival, now: number): boolean {
    const { proxy, responder } = this.#ports
    const step = proxy.nextStep(arrival.request, arrival.source)
    if (step === undefined) return false
    if (step.kind === 'forward')
      proxy.forward(responder.begin(arrival, 0, undefined, now), step, now)
    else responder.refuse(arrival, tooManyHops)
    return true
  }

  /** A new request goes to an application. */
  #begin(arrival: Arrival, now: number): void {
    const { request, vias, source } = arrival
    const { applications, events, responder } = this.#ports
    const chosen = applications.choose(request, source)
    if (request.method === 'INVITE') events.callAttempted('network', request.text, now)
    if (typeof chosen === 'string') return this.#refuseUntaken(arrival, chosen, now)
    const { transactionId } = responder.begin(arrival, chosen, undefined, now)
    const text = requestText(request, vias)
    events.newRequest(chosen, { transactionId, dialogId: '', text }, request, source, now)
  }

  /** No application takes it; those that ask for call details hear of the call all the same. */
  #refuseUntaken(arrival: Arrival, why: 'unwanted' | 'away', now: number): void {
    const { responder, events, applications } = this.#ports
    const { method } = arrival.request
    const methods = applications.methods()
    const isNeverWanted = methods.length > 0 && !methods.includes(method)
    const refusal =
      why === 'away'
        ? { status: 480, reason: 'Temporarily Unavailable' }
        : isNeverWanted
          ? { status: 405, reason: 'Method Not Allowed', lines: this.#allowLine() }
          : unavailable(5)
    const text = responder.refuse(arrival, refusal)
    if (method === 'INVITE') events.callStopped('application', 'call-rejected', text, now)
  }

  #allowLine(): string {
    const inDialog = ['ACK', 'BYE', 'CANCEL', 'INFO', 'PRACK', 'UPDATE']
    const allowed = new Set([...this.#ports.applications.methods(), ...inDialog])
    return `Allow: ${[...allowed].join(', ')}\r\n`
  }
}

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
 * port where `rport` asks for it, else the port of the Via. Of `maddr` only a group counts: a
 * sender that names the address of another host would have our answers, and their copies, sent there.
 */
function returnFlow(via: Via, source: Flow): Flow {
  const { listener, address, connectionId } = source
  const port = via.port === 0 ? defaultPort(listener.protocol) : via.port
  if (connectionId !== 0) return { ...source, returnPort: port }
  if (via.params.has('rport')) return source
  const maddr = via.params.get('maddr')
  const isGroup = maddr !== undefined && isMulticast(maddr)
  return { listener, address: isGroup ? maddr : address, port, connectionId }
}

/** 224.0.0.0/4, ff00::/8. */
const isMulticast = (address: string): boolean =>
  /^2(?:2[4-9]|3\d)(?:\.\d{1,3}){3}$/.test(address) || /^ff[\da-f]{2}:[\da-f:]*$/i.test(address)
