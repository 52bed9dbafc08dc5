/**
 * Requests of the peer in a dialog: RFC 3261 §12.2.2, §14.2, §15; the ACK of our 2xx (§13.3.1.4).
 */
import type { Proxy } from '../proxy/proxy.ts'
import {
  type Arrival,
  newRequestOf,
  noSuchCall,
  unavailable,
  rejectionOf,
} from './inbound-request.ts'
import { completeVias, requestText, messageText } from '../app-headers.ts'
import { type Responder, type ResponderParts, takePrack } from './responder.ts'
import type { Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import type { Refusal } from '../../options.ts'
import { InviteServerTransaction } from '../../transaction/server.ts'

export interface InDialogParts extends ResponderParts {
  readonly responder: Responder
  readonly proxy: Proxy
}

export class InDialogRequests {
  readonly #parts: InDialogParts

  constructor(parts: InDialogParts) {
    this.#parts = parts
  }

  /**
   * The ACK of a failure belongs to the transaction, that of a 2xx to the dialog (§17, §13). It is
   * never answered, whatever is wrong with it.
   */
  ack(ack: SipMessage, key: string, flow: Flow, now: number): void {
    const { transactions, dialogs, proxy, events } = this.#parts
    const transaction = transactions.server(key)
    if (transaction instanceof InviteServerTransaction) return transaction.acknowledged(now)
    const dialog = dialogs.ofRequest(ack)
    const { via } = ack
    if (dialog === undefined && via)
      return proxy.forwardAck(ack, () => completeVias(ack, via, flow), flow, now)
    // An ACK cannot be challenged. Without a body it only confirms the 2xx.
    if (dialog && ack.hasBody && this.#refusalOf(dialog, ack, flow)) return
    // No 2xx waits for it: a copy, whose original the application has got.
    const answer = dialog?.takeAck(ack.cseq?.number)
    if (dialog === undefined || answer === undefined) return
    const { transactionId } = answer
    const passed = { transactionId, dialogId: dialog.id, text: messageText(ack) }
    events.request(dialog.clientId, passed, ack, flow, now)
  }

  accept(arrival: Arrival, now: number): void {
    const { request, source } = arrival
    const { dialogs, subscriptions, applications, responder } = this.#parts
    const dialog = dialogs.ofRequest(request) ?? subscriptions.dialogOfEarlyNotify(request, source)
    if (dialog === undefined) return void responder.refuse(arrival, noSuchCall)
    const refusal = this.#refusalOf(dialog, request, source)
    if (refusal) return void responder.refuse(arrival, refusal)
    if (!applications.isAuthenticated(dialog.clientId) && !this.#takeOver(dialog, request))
      return this.#answerOrphan(dialog, arrival)
    const rejection = this.#rejectionIn(dialog, request, now)
    if (rejection) return void responder.refuse(arrival, rejection)
    dialog.remoteRequestBegins(request, source)
    if (request.method === 'NOTIFY') subscriptions.notified(dialog, request, now)
    dialog.noteRequestFlow(source)
    this.#deliver(dialog, arrival, now)
  }

  /** Asked before the dialog changes: another than the peer may have sent the request. */
  #refusalOf(dialog: Dialog, request: SipMessage, source: Flow): Refusal | undefined {
    const { admitInDialog } = this.#parts.options
    if (admitInDialog === undefined || dialog.isPeerAt(source.address)) return undefined
    const { callId, localTag, remoteTag, flow } = dialog
    const { address, port } = flow
    return admitInDialog(newRequestOf(request, source), {
      callId,
      localTag,
      remoteTag,
      address,
      port,
    })
  }

  #rejectionIn(dialog: Dialog, request: SipMessage, now: number): Refusal | undefined {
    const { method } = request
    // §15: the called side must not end what it has not answered; the application knows of no
    // dialog.
    if (method === 'BYE' && dialog.state === 'early' && dialog.role === 'uac') return noSuchCall
    // §12.2.2: an older number is out of order.
    if (!dialog.acceptsCseq(request.cseq?.number ?? 0))
      return { status: 500, reason: 'Server Internal Error' }
    const conflict = dialog.conflictOf(request)
    if (conflict) return rejectionOf(conflict, now)
    const isPrackLost = method === 'PRACK' && !takePrack(dialog.reliable1xx, request, now)
    return isPrackLost ? noSuchCall : undefined
  }

  #deliver(dialog: Dialog, arrival: Arrival, now: number): void {
    const { events, dialogs, responder } = this.#parts
    const { request, vias, source } = arrival
    const { clientId, id: dialogId } = dialog
    const { method } = request
    const inbound = responder.begin(arrival, clientId, dialog, now)
    if (method === 'BYE' && dialog.state === 'early' && dialog.role === 'uas') {
      responder.answer(inbound, 200, 'OK', '', now)
      return this.#endEarly(dialog, request, now)
    }
    // The dialog ends when the BYE arrives (§15.1.2), whatever the application answers.
    if (method === 'BYE') {
      events.callStopped('network', 'normal-release', request.text, now)
      const hasInvite = dialog.pending.hasRemoteInvite
      dialogs.remove(dialog)
      if (hasInvite) this.#endReinvite(dialog, now)
    }
    const { transactionId } = inbound
    const passed = { transactionId, dialogId, text: requestText(request, vias) }
    events.request(clientId, passed, request, source, now)
  }

  /**
   * §15.1.2: a BYE in an early dialog ends its INVITE, too. For the application, which has no
   * dialog yet, its caller has given up.
   */
  #endEarly(dialog: Dialog, bye: SipMessage, now: number): void {
    const { requests, dialogs, events, responder } = this.#parts
    const invite = requests.inviteIn(dialog)
    if (invite === undefined) return dialogs.remove(dialog)
    events.callStopped('network', 'call-canceled', bye.text, now)
    invite.cancelled(now)
    responder.answer(invite, 487, 'Request Terminated', '', now)
    responder.reportGivenUp(invite, 'SIP ;cause=487 ;text="BYE before the answer"', now)
  }

  /** The same for a re-INVITE that the application has not answered. It hears of the BYE. */
  #endReinvite(dialog: Dialog, now: number): void {
    const { requests, responder } = this.#parts
    const invite = requests.inviteIn(dialog)
    if (invite) responder.answer(invite, 487, 'Request Terminated', '', now)
  }

  /** A subscription whose application has gone is renewed by any that asked for SUBSCRIBE. */
  #takeOver(dialog: Dialog, request: SipMessage): boolean {
    if (dialog.usage !== 'subscription' || dialog.role !== 'uas') return false
    const next = this.#parts.applications.next(request.method)
    if (next === undefined) return false
    dialog.takeOver(next)
    return true
  }

  /**
   * The application of the dialog has gone: the peer may end it, and hears that it cannot be
   * changed.
   */
  #answerOrphan(dialog: Dialog, arrival: Arrival): void {
    const { responder, dialogs } = this.#parts
    const isBye = arrival.request.method === 'BYE'
    if (isBye) dialogs.remove(dialog)
    responder.refuse(arrival, isBye ? { status: 200, reason: 'OK' } : unavailable(5))
  }
}
