/** What the responses to an application's requests do: to dialogs, to sessions, and for the application. */
import type { DialogTable } from '../../dialog/dialog-table.ts'
import { isSubscribing } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ApplicationEvents } from '../applications/events.ts'
import type { Applications } from '../applications/applications.ts'
import type { CallTimes } from '../call-times.ts'
import { otherBranch, type LocalBye } from '../local-bye.ts'
import type { SessionTimers } from '../session/session-timers.ts'
import { grantedSeconds, type Subscriptions } from '../session/subscriptions.ts'
import { messageText } from '../uas/message-text.ts'
import { dialogFrom, formDialog, formEarlyDialog } from './form-dialog.ts'
import type { OutboundRequest, OutboundUser } from './outbound-request.ts'

interface ResponsePorts {
  readonly applications: Applications
  readonly events: ApplicationEvents
  readonly dialogs: DialogTable
  readonly sessions: SessionTimers
  readonly subscriptions: Subscriptions
  readonly localBye: LocalBye
  readonly callTimes: CallTimes
}

/** A 481 to these speaks of a subscription or of a provisional response, not of the call. */
const hasOwnUsage = new Set(['PRACK', 'REFER', 'SUBSCRIBE', 'NOTIFY', 'BYE'])

export class ResponseReceiver implements OutboundUser {
  readonly #ports: ResponsePorts

  constructor(ports: ResponsePorts) {
    this.#ports = ports
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
    this.#tellFailure(outbound, status, response.text, now)
    this.#settleDialog(outbound, response, now)
    this.#deliver(outbound, response, dialogId, flow, now)
    outbound.finished()
    this.#endIfGone(outbound, status, now)
  }

  /** A response that no peer sent: the application must get exactly one final answer (RFC 3261 §8.1.3.1). */
  onLocalFailure(outbound: OutboundRequest, status: number, reason: string, now: number): void {
    const { sent, flow, transactionId, dialogId, dialog } = outbound
    const text =
      `SIP/2.0 ${status} ${reason}\r\nVia: ${sent.via}\r\nFrom: ${sent.from}\r\nTo: ${sent.to}\r\n` +
      `Call-ID: ${sent.callId}\r\nCSeq: ${sent.cseq} ${sent.method}\r\nContent-Length: 0\r\n\r\n`
    this.#tellFailure(outbound, status, text, now)
    if (dialog && (outbound.isInitial || sent.method === 'BYE')) this.#ports.dialogs.remove(dialog)
    const passed = { transactionId, dialogId, text }
    this.#ports.events.response(outbound.clientId, passed, text, flow, now)
    outbound.finished()
    this.#endIfGone(outbound, status, now)
  }

  /** Timer M: the application has not acknowledged the answer; the peer still waits, so ACK and BYE go out. */
  onTerminated(outbound: OutboundRequest, now: number): void {
    const { dialog } = outbound
    if (outbound.sent.method !== 'INVITE' || dialog === undefined) return
    dialog.forgetBranches()
    if (dialog.answeredInvite !== outbound) return
    outbound.acknowledge(dialog, '', '', now)
    this.#ports.localBye.send(dialog, 'ACK timeout', 'tell', now)
  }

  /**
   * §8.1.3.4: Trying is between the hops and forms no dialog; as from drachtio-server, no application by
   * TCP hears of it. One in this process does, for a new INVITE: to move on from a silent destination
   * it must know which one is not silent.
   */
  #trying(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    if (!outbound.isCall || outbound.hasFinal) return
    if (this.#ports.applications.isInProcess(outbound.clientId))
      this.#deliver(outbound, response, outbound.dialogId, flow, now)
  }

  #provisional(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    if (outbound.hasFinal || outbound.isRepeatedReliable(response)) return
    if (outbound.isCall && response.toTag !== '')
      formEarlyDialog(this.#ports.dialogs, outbound, response, flow)
    if (outbound.isCall) this.#ports.callTimes.responded(outbound, response.status, now)
    outbound.dialog?.provisionalReceived(response)
    this.#deliver(outbound, response, outbound.dialogId, flow, now)
  }

  /** A 2xx to an INVITE: the first one counts, its copies are acknowledged again, other branches ended. */
  #answer(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const which = outbound.noteAnswer(response.toTag)
    if (which === 'copy') return outbound.repeatAck()
    // §13.2.2.4; or the application was told of a failure before.
    if (which === 'other-branch' || outbound.hasFinal)
      return this.onLateAnswer(outbound, response, flow, now)
    const { events, callTimes, dialogs, sessions } = this.#ports
    if (outbound.isInitial) {
      events.callAnswered('network', 'uac', response.status, response.text, now)
      callTimes.responded(outbound, response.status, now)
      formDialog(dialogs, outbound, response, flow)
    } else outbound.dialog?.refreshTarget(response)
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
    this.#ports.localBye.send(dialog, otherBranch, 'silent', now)
  }

  /** A dialog that a subscription holds open; a NOTIFY may have begun, or even ended it before. */
  #subscribed(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void {
    const { sent, dialog } = outbound
    if (!isSubscribing(sent.method) || dialog?.state === 'terminated') return
    if (/^\s*false/i.test(response.get('Refer-Sub') ?? '')) return
    const formed = formDialog(this.#ports.dialogs, outbound, response, flow)
    this.#ports.subscriptions.renew(formed, grantedSeconds(undefined, response), now)
  }

  /** What a final response other than a 2xx to INVITE does to the dialog of its request. */
  #settleDialog(outbound: OutboundRequest, response: SipMessage, now: number): void {
    const { dialog, isInitial, sent, sessionSeconds } = outbound
    if (dialog === undefined) return
    const { dialogs, sessions, subscriptions } = this.#ports
    const { status } = response
    if (sent.method === 'INVITE' && isInitial) return dialogs.remove(dialog)
    if (sent.method === 'UPDATE' && status < 300) {
      dialog.refreshTarget(response)
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
      dialog.refreshTarget(response)
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
        this.#ports.dialogs.remove(dialog)
      return
    }
    const isGone = status === 481 && !hasOwnUsage.has(method)
    const isSilent = status === 408 && (method === 'INVITE' || method === 'UPDATE')
    if (isGone || isSilent) this.#ports.localBye.send(dialog, 'Dialog is gone', 'tell', now)
  }

  #tellFailure(outbound: OutboundRequest, status: number, text: string, now: number): void {
    if (outbound.isCall && !outbound.wasCancelled)
      this.#ports.events.callAnswered('network', 'uac', status, text, now)
  }

  #deliver(
    { clientId, transactionId }: OutboundRequest,
    response: SipMessage,
    dialogId: string,
    flow: Flow,
    now: number,
  ): void {
    const passed = { transactionId, dialogId, text: messageText(response) }
    this.#ports.events.response(clientId, passed, response, flow, now)
  }
}
