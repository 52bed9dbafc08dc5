/**
 * The refresh of a session that is our part: UPDATE where the peer takes it, else a re-INVITE that
 * changes nothing (RFC 4028 §7.4, §10). The application sees nothing of it, unless the peer is gone.
 */
import type { Dialog } from '../../dialog/dialog.ts'
import type { SessionTimer } from '../../dialog/session-timer.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ClientFailure, ClientUser } from '../../transaction/context.ts'
import { InviteClientTransaction } from '../../transaction/invite-client.ts'
import { NonInviteClientTransaction } from '../../transaction/non-invite-client.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { composeFor, flowInDialog } from '../compose.ts'
import { sendLocalBye, sessionExpired } from '../local-bye.ts'
import type { Stack } from '../stack.ts'
import { glareBackOffMs } from './back-off.ts'
import { linesOfRequest, minSeOf, takesUpdate, termsOfResponse } from './terms.ts'

/** Something else is under way in the dialog, or the way to the peer is gone for now. */
const SOON_MS = 4_000
/** A peer that refuses for reasons of its own is asked once more. */
const LATER_MS = 16_000

export function refreshSession(stack: Stack, dialog: Dialog, now: number): void {
  const { session } = dialog
  if (session === undefined || dialog.state !== 'confirmed') return
  const isBusy = dialog.hasLocalInvite || dialog.hasRemoteInvite || dialog.reliable2xx !== undefined
  if (isBusy || stack.answered.has(dialog.id)) return session.retry(SOON_MS, now)
  const refresh = new Refresh(stack, dialog, session, flowInDialog(stack, dialog))
  refresh.start(now)
}

class Refresh implements ClientUser {
  readonly #stack: Stack
  readonly #dialog: Dialog
  readonly #session: SessionTimer
  readonly #flow: Flow
  readonly #sent: SentRequest
  #transaction: InviteClientTransaction | NonInviteClientTransaction | undefined
  #ack = ''
  #isOver = false

  constructor(stack: Stack, dialog: Dialog, session: SessionTimer, flow: Flow) {
    this.#stack = stack
    this.#dialog = dialog
    this.#session = session
    this.#flow = flow
    const isUpdate = session.takesUpdate || session.localSdp === ''
    const minSeconds = Math.max(stack.options.minSessionSeconds, session.minSeconds)
    // The offer is the last one, its version too: a peer sees that nothing changes (§7.4).
    const body = isUpdate ? '' : session.localSdp
    const type = body === '' ? '' : 'Content-Type: application/sdp\r\n'
    const lines =
      `Contact: ${dialog.contact}\r\n` + linesOfRequest(session.terms, minSeconds) + type
    dialog.localCseq += 1
    const method = isUpdate ? 'UPDATE' : 'INVITE'
    this.#sent = composeFor(stack, dialog, method, dialog.localCseq, flow, { lines, body })
  }

  start(now: number): void {
    const stack = this.#stack
    const sent = this.#sent
    const isInvite = sent.method === 'INVITE'
    this.#session.abandonRefresh = () => this.#abandon()
    if (isInvite) this.#dialog.hasLocalInvite = true
    this.#transaction = isInvite
      ? new InviteClientTransaction(sent, this.#flow, this, stack, now)
      : new NonInviteClientTransaction(sent, sent.branch, this.#flow, this, stack, now)
    stack.clientTransactions.add(sent.branch, this.#transaction)
  }

  onResponse(response: SipMessage, _flow: Flow, now: number): void {
    const { status } = response
    if (status < 200) return
    if (status < 300 && this.#sent.method === 'INVITE') this.#acknowledge()
    if (this.#isOver) return
    this.#finish(now)
    if (status < 300) this.#renew(response, now)
    else this.#refused(response, now)
  }

  onFailure(failure: ClientFailure, now: number): void {
    if (this.#isOver) return
    this.#finish(now)
    if (failure === 'timeout') this.#end(now)
    else this.#session.retry(SOON_MS, now)
  }

  onTerminated(): void {
    this.#stack.clientTransactions.remove(this.#sent.branch)
  }

  #renew(response: SipMessage, now: number): void {
    const { minSessionSeconds } = this.#stack.options
    const dialog = this.#dialog
    dialog.refreshTarget(response)
    const terms = termsOfResponse(response, this.#session.terms.seconds, minSessionSeconds)
    this.#session.takesUpdate = takesUpdate(response) ?? this.#session.takesUpdate
    if (terms) this.#session.renew(terms, now)
  }

  #refused(response: SipMessage, now: number): void {
    const session = this.#session
    const { terms } = session
    switch (response.status) {
      case 408:
      case 481:
        return this.#end(now)
      case 491:
        return session.retry(glareBackOffMs(this.#stack, this.#dialog), now)
      case 422: {
        const least = minSeOf(response)
        if (least <= session.minSeconds) break
        session.minSeconds = least
        session.renew({ ...terms, seconds: Math.max(terms.seconds, least) }, now)
        return session.retry(0, now)
      }
      case 405:
      case 501:
        if (this.#sent.method !== 'UPDATE' || session.localSdp === '') break
        session.takesUpdate = false
        return session.retry(0, now)
    }
    // It is there, which is all that we wanted to know unless it counts the seconds, too.
    if (terms.isAgreed) this.#refusedForNow(response.status, now)
    else session.renew(terms, now)
  }

  /**
   * §10: what would be refused again is not repeated. A challenge is one for the application, which has
   * the credentials: a request of its own still renews the session, as does one of the peer. Without
   * either a BYE ends it before the peer counts it as expired, and the application is told.
   */
  #refusedForNow(status: number, now: number): void {
    const session = this.#session
    const isFinal = status === 401 || status === 407 || session.refusedWith === status
    const { callId } = this.#dialog
    this.#stack.options.log('warn', 'a session refresh was refused', { status, callId })
    session.refusedWith = status
    if (!isFinal) session.retry(LATER_MS, now)
  }

  /** §10: nobody is there. */
  #end(now: number): void {
    sendLocalBye(this.#stack, this.#dialog, sessionExpired, 'tell', now)
  }

  /** Again for every copy of the 2xx (RFC 3261 §13.2.2.4). */
  #acknowledge(): void {
    if (this.#ack === '')
      this.#ack = composeFor(this.#stack, this.#dialog, 'ACK', this.#sent.cseq, this.#flow, {
        lines: '',
        body: '',
      }).text
    this.#stack.send(this.#ack, this.#flow, '')
  }

  #finish(now: number): void {
    this.#isOver = true
    this.#session.abandonRefresh = undefined
    if (this.#sent.method === 'INVITE') this.#dialog.hasLocalInvite = false
    this.#dialog.releaseHeld(now)
  }

  /** The dialog has ended: an INVITE that is only ringing would wait for ever. */
  #abandon(): void {
    this.#isOver = true
    const transaction = this.#transaction
    if (transaction instanceof InviteClientTransaction) transaction.stopRetransmitting()
    if (transaction?.state === 'proceeding') this.onTerminated()
  }
}
