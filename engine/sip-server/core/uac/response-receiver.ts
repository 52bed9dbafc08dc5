/** Responses to an application's requests: they change dialogs and sessions, and become events. */
import { isIP } from 'node:net'
import { messageText } from '../app-headers.ts'
import type { CoreParts } from '../parts.ts'
import type { SessionTimers } from '../session-timers.ts'
import { grantedSeconds, type Subscriptions } from '../subscriptions.ts'
import type { OutboundRequest, OutboundUser } from './outbound-request.ts'
import type { DialogTable } from '../../dialog/dialog-table.ts'
import { Dialog, isSubscribing } from '../../dialog/dialog.ts'
import { type Flow, isReliable } from '../../flow.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import { parseUri, tagOf } from '../../../../schema/sip/fields.ts'
import type { SentRequest } from '../../transaction/machine.ts'
import { otherBranch } from '../request-writer.ts'

interface ResponseParts extends CoreParts {
  readonly sessions: SessionTimers
  readonly subscriptions: Subscriptions
}

/** A 481 to these speaks of a subscription or of a provisional response, not of the call. */
const hasOwnUsage = new Set(['PRACK', 'REFER', 'SUBSCRIBE', 'NOTIFY', 'BYE'])

export class ResponseReceiver implements OutboundUser {
  readonly #parts: ResponseParts

  constructor(parts: ResponseParts) {
    this.#parts = parts
  }

  onResponse(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const { status } = response
    if (status === 100) return this.#trying(outbound, response, flow, now)
    if (status < 200) return this.#provisional(outbound, response, flow, now)
    if (outbound.sent.method === 'INVITE' && status < 300)
      return this.#answer(outbound, response, flow, now)
    if (outbound.hasFinal) return
    const { dialogId } = outbound
    if (outbound.isInitial && status < 300) this.#subscribed(outbound, response, flow, now)
    this.#reportFailure(outbound, status, response.text, now)
    this.#settleDialog(outbound, response, flow, now)
    this.#deliver(outbound, response, dialogId, flow, now)
    outbound.finished()
    this.#endIfGone(outbound, status, now)
  }

  /**
   * A response that no peer sent: the application must get exactly one final answer (RFC 3261
   * §8.1.3.1).
   */
  onLocalFailure(outbound: OutboundRequest, status: number, reason: string, now: number): void {
    const { sent, flow, transactionId, dialogId, dialog } = outbound
    const text =
      `SIP/2.0 ${status} ${reason}\r\nVia: ${sent.via}\r\nFrom: ${sent.from}\r\nTo: ` +
      `${sent.to}\r\n` +
      `Call-ID: ${sent.callId}\r\nCSeq: ${sent.cseq} ${sent.method}\r\nContent-Length: 0\r\n\r\n`
    this.#reportFailure(outbound, status, text, now)
    if (dialog && (outbound.isInitial || sent.method === 'BYE')) this.#parts.dialogs.remove(dialog)
    const passed = { transactionId, dialogId, text }
    this.#parts.events.response(outbound.clientId, passed, text, flow, now)
    outbound.finished()
    this.#endIfGone(outbound, status, now)
  }

  /**
   * Timer M: the application has not acknowledged the answer; the peer still waits, so ACK and BYE
   * go out.
   */
  onTerminated(outbound: OutboundRequest, now: number): void {
    const { dialog } = outbound
    if (outbound.sent.method !== 'INVITE' || dialog === undefined) return
    dialog.forgetBranches()
    if (dialog.answeredInvite !== outbound) return
    outbound.acknowledge(dialog, '', '', now)
    this.#parts.localBye.send(dialog, 'ACK timeout', 'notify', now)
  }

  /**
   * §8.1.3.4: Trying is between the hops and forms no dialog. As from drachtio-server, an
   * application by TCP does not get it. One in this process gets it for a new INVITE: it moves on
   * from destinations that are silent.
   */
  #trying(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    if (!outbound.isCall || outbound.hasFinal) return
    if (this.#parts.applications.isInProcess(outbound.clientId))
      this.#deliver(outbound, response, outbound.dialogId, flow, now)
  }

  #provisional(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    if (outbound.hasFinal || outbound.isRepeatedReliable(response)) return
    if (outbound.isCall && response.toTag !== '')
      formEarlyDialog(this.#parts.dialogs, outbound, response, flow)
    if (outbound.isCall) this.#parts.callTimes.outbound.responded(outbound, response.status, now)
    outbound.dialog?.provisionalReceived(response)
    this.#deliver(outbound, response, outbound.dialogId, flow, now)
  }

  /**
   * A 2xx to an INVITE: the first one counts, its copies are acknowledged again, other branches
   * ended.
   */
  #answer(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const which = outbound.noteAnswer(response.toTag)
    if (which === 'copy') return outbound.repeatAck()
    // §13.2.2.4; or the application has got a failure before.
    if (which === 'other-branch' || outbound.hasFinal)
      return this.onLateAnswer(outbound, response, flow, now)
    const { events, callTimes, dialogs, sessions } = this.#parts
    if (outbound.isInitial) {
      events.callAnswered('network', 'uac', response.status, response.text, now)
      callTimes.outbound.responded(outbound, response.status, now)
      formDialog(dialogs, outbound, response, flow)
    } else outbound.dialog?.refreshTarget(response, flow)
    const { dialog, sent, sessionSeconds } = outbound
    if (dialog) {
      dialog.awaitAck(outbound)
      sessions.responded(dialog, sent, sessionSeconds, response, now)
    }
    this.#deliver(outbound, response, outbound.dialogId, flow, now)
    return outbound.finished()
  }

  /** Acknowledges an answer that comes too late, or on another branch, and ends its dialog. */
  onLateAnswer(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const dialog = dialogFrom(outbound, response, flow, 'confirmed')
    outbound.acknowledge(dialog, '', '', now)
    this.#parts.localBye.send(dialog, otherBranch, 'silent', now)
  }

  /** A dialog that a subscription holds open; a NOTIFY may have begun, or even ended it before. */
  #subscribed(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const { sent, dialog } = outbound
    if (!isSubscribing(sent.method) || dialog?.state === 'terminated') return
    if (/^\s*false/i.test(response.get('Refer-Sub') ?? '')) return
    const formed = formDialog(this.#parts.dialogs, outbound, response, flow)
    this.#parts.subscriptions.renew(formed, grantedSeconds(undefined, response), now)
  }

  /** Changes the dialog after a final response other than a 2xx to INVITE. */
  #settleDialog(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const { dialog, isInitial, sent, sessionSeconds } = outbound
    if (dialog === undefined) return
    const { dialogs, sessions, subscriptions } = this.#parts
    const { status } = response
    if (sent.method === 'INVITE' && isInitial) return dialogs.remove(dialog)
    if (sent.method === 'UPDATE' && status < 300) {
      dialog.refreshTarget(response, flow)
      if (dialog.state === 'confirmed')
        sessions.responded(dialog, sent, sessionSeconds, response, now)
      return
    }
    // A challenged BYE is sent again by the application; any other answer ends the dialog.
    if (sent.method === 'BYE' && status !== 401 && status !== 407) return dialogs.remove(dialog)
    if (dialog.usage === 'invite') return
    // RFC 6665 §4.1.2: refused, so whatever a NOTIFY has begun is over.
    if (isInitial && status >= 300) return dialogs.remove(dialog)
    if (sent.method === 'SUBSCRIBE' && status < 300) {
      dialog.refreshTarget(response, flow)
      subscriptions.renew(dialog, grantedSeconds(undefined, response), now)
    }
    if (sent.method === 'NOTIFY' && /\r\nSubscription-State:\s*terminated/i.test(sent.text))
      dialogs.remove(dialog)
  }

  /** RFC 3261 §12.2.1.2, RFC 5057 §5.1: the peer does not know the dialog, or does not answer. */
  #endIfGone(outbound: OutboundRequest, status: number, now: number): void {
    const { dialog, isInitial, sent } = outbound
    const { method } = sent
    if (isInitial || dialog === undefined || dialog.state !== 'confirmed') return
    if (dialog.usage === 'subscription') {
      if (status === 481 || (status === 408 && method === 'NOTIFY'))
        this.#parts.dialogs.remove(dialog)
      return
    }
    const isGone = status === 481 && !hasOwnUsage.has(method)
    const isSilent = status === 408 && (method === 'INVITE' || method === 'UPDATE')
    if (isGone || isSilent) this.#parts.localBye.send(dialog, 'Dialog is gone', 'notify', now)
  }

  #reportFailure(outbound: OutboundRequest, status: number, text: string, now: number): void {
    if (outbound.isCall && !outbound.wasCancelled)
      this.#parts.events.callAnswered('network', 'uac', status, text, now)
  }

  #deliver(
    { clientId, transactionId }: OutboundRequest,
    response: SipMessage,
    dialogId: string,
    flow: Flow,
    now: number,
  ): void {
    const passed = { transactionId, dialogId, text: messageText(response) }
    this.#parts.events.response(clientId, passed, response, flow, now)
  }
}

/**
 * A provisional response with a tag. Other branches get an early dialog each, under the same id.
 */
function formEarlyDialog(
  dialogs: DialogTable,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): void {
  const first = outbound.dialog
  if (first?.branchOf(response.toTag)) return
  const dialog = dialogFrom(outbound, response, flow, 'early')
  if (first) return first.addBranch(dialog)
  outbound.formed(dialog)
  dialogs.add(dialog)
}

/** A 2xx; the route set is taken again from it (§13.2.2.4). */
function formDialog(
  dialogs: DialogTable,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): Dialog {
  const early = outbound.dialog
  const isSame = early?.state === 'early' && early.remote === response.get('To')
  if (isSame && early.usage === 'invite') {
    early.confirmedBy(routeToPeer(outbound.sent, response, flow))
    return early
  }
  const dialog = dialogFrom(outbound, response, flow, 'confirmed')
  if (early) {
    dialogs.remove(early)
    dialog.succeeds(early)
  }
  outbound.formed(dialog)
  dialogs.add(dialog)
  return dialog
}

/** The part of a request from which a branch becomes a dialog. */
export interface BranchOrigin extends Pick<OutboundRequest, 'clientId' | 'contact' | 'dialog'> {
  readonly sent: Pick<
    SentRequest,
    'method' | 'uri' | 'routes' | 'from' | 'to' | 'callId' | 'cseq' | 'branch'
  >
}

/** The dialog is in no table yet. */
export function dialogFrom(
  outbound: BranchOrigin,
  response: SipMessage,
  flow: Flow,
  state: 'early' | 'confirmed',
): Dialog {
  const { sent } = outbound
  // Requests in the early dialog (PRACK, UPDATE) have used up numbers.
  const early = outbound.dialog?.branchOf(response.toTag)
  return new Dialog({
    ...routeToPeer(sent, response, flow),
    role: 'uac',
    usage: sent.method === 'INVITE' ? 'invite' : 'subscription',
    state,
    clientId: outbound.clientId,
    callId: sent.callId,
    local: sent.from,
    remote: response.get('To') ?? sent.to,
    localTag: tagOf(sent.from),
    remoteTag: response.toTag,
    localCseq: early?.localCseq ?? sent.cseq,
    remoteCseq: early?.remoteCseq ?? -1,
    contact: outbound.contact,
  })
}

function routeToPeer(sent: BranchOrigin['sent'], response: SipMessage, flow: Flow) {
  const routeSet = response.list('Record-Route').toReversed()
  return {
    routeSet,
    // A 2xx without Contact is against §12.1.1: the INVITE's own target is the best guess.
    remoteTarget: response.contact?.uri ?? sent.uri,
    flow,
    isFlowBound:
      isReliable(flow.listener.protocol) ||
      (routeSet.length === 0 && isBehindNat(sent, response, flow)),
  }
}

/**
 * By UDP and without a route set: the peer of an INVITE that had to leave by another way than its
 * Request-URI names (a phone that registered from behind NAT), and one that gives a private Contact
 * from a public address. ACK and BYE go to where the answer came from (RFC 3581, RFC 5626 §5.3).
 */
function isBehindNat(sent: BranchOrigin['sent'], response: SipMessage, flow: Flow): boolean {
  const contact = response.contact?.parsedUri
  if (contact === undefined || leadsTo(contact, flow)) return false
  if (isPrivate(contact.host) && !isPrivate(flow.address)) return true
  if (sent.routes.length > 0) return false
  const target = parseUri(sent.uri)
  if (target === undefined) return false
  // A name may stand for this very address; one that the peer gives again leads nowhere new.
  return isIP(target.host) === 0 ? target.host === contact.host : !leadsTo(target, flow)
}

const leadsTo = (uri: { readonly host: string; readonly port: number }, flow: Flow): boolean =>
  uri.host === flow.address && (uri.port === 0 ? 5_060 : uri.port) === flow.port

/** RFC 1918, RFC 6598. */
const isPrivate = (host: string): boolean =>
  /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(host)
