/** One refresh of a session that is our part (RFC 4028 §7.4, §10). */
import type { CoreParts } from './parts.ts'
import { sessionExpired } from './request-writer.ts'
import type { ClientTransaction } from './transactions.ts'
import {
  type Dialog,
  linesOfRequest,
  minSeOf,
  takesUpdate,
  termsOfResponse,
} from '../dialog/dialog.ts'
import type { SessionTimer } from '../dialog/session-timer.ts'
import type { Flow } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import { InviteClientTransaction } from '../transaction/client.ts'
import type { ClientFailure, ClientUser, SentRequest } from '../transaction/machine.ts'

/** Another request is pending in the dialog, or the peer cannot be reached for now. */
export const SOON_MS = 4_000
/** A peer that refuses for reasons of its own is asked once more. */
const LATER_MS = 16_000

export class SessionRefresh implements ClientUser {
  readonly #parts: CoreParts
  readonly #dialog: Dialog
  readonly #session: SessionTimer
  readonly #flow: Flow
  readonly #sent: SentRequest
  #transaction: ClientTransaction | undefined
  #ack = ''
  #isOver = false

  constructor(parts: CoreParts, dialog: Dialog, session: SessionTimer) {
    this.#parts = parts
    this.#dialog = dialog
    this.#session = session
    this.#flow = parts.writer.flowInDialog(dialog)
    const isUpdate = session.takesUpdate || session.localSdp === ''
    const minSeconds = Math.max(parts.minSessionSeconds, session.minSeconds)
    // The offer is the last one, its version too: a peer sees that nothing changes (§7.4).
    const body = isUpdate ? '' : session.localSdp
    const type = body === '' ? '' : 'Content-Type: application/sdp\r\n'
    const lines =
      `Contact: ${dialog.contact}\r\n` + linesOfRequest(session.terms, minSeconds) + type
    const cseq = dialog.nextLocalCseq()
    const method = isUpdate ? 'UPDATE' : 'INVITE'
    this.#sent = parts.writer.numbered(dialog, method, cseq, this.#flow, { lines, body })
  }

  start(now: number): void {
    const { method } = this.#sent
    this.#session.refreshBegins(() => this.#abandon())
    if (method === 'INVITE') this.#dialog.localRequestBegins(method, true)
    this.#transaction = this.#parts.transactions.startClient(this.#sent, this.#flow, this, now)
  }

  onResponse(response: SipMessage, flow: Flow, now: number): void {
    const { status } = response
    if (status < 200) return
    if (status < 300 && this.#sent.method === 'INVITE') this.#acknowledge()
    if (this.#isOver) return
    this.#finish(now)
    if (status < 300) this.#renew(response, flow, now)
    else this.#refused(response, now)
  }

  onFailure(failure: ClientFailure, now: number): void {
    if (this.#isOver) return
    this.#finish(now)
    if (failure === 'timeout') this.#end(now)
    else this.#session.retry(SOON_MS, now)
  }

  onTerminated(): void {
    this.#parts.transactions.endClient(this.#sent.branch)
  }

  #renew(response: SipMessage, flow: Flow, now: number): void {
    const { minSessionSeconds } = this.#parts
    this.#dialog.refreshTarget(response, flow)
    const terms = termsOfResponse(response, this.#session.terms.seconds, minSessionSeconds)
    this.#session.noteTakesUpdate(takesUpdate(response))
    if (terms) this.#session.renew(terms, now)
  }

  #refused(response: SipMessage, now: number): void {
    const session = this.#session
    switch (response.status) {
      case 408:
      case 481:
        return this.#end(now)
      case 491:
        return session.retry(this.#glareBackOffMs(), now)
      case 422:
        if (!session.lengthen(minSeOf(response), now)) break
        return session.retry(0, now)
      case 405:
      case 501:
        if (this.#sent.method !== 'UPDATE' || session.localSdp === '') break
        session.noteTakesUpdate(false)
        return session.retry(0, now)
    }
    // The refusal shows that the peer is there; more is wanted only if it counts the seconds, too.
    if (session.terms.isAgreed) this.#refusedForNow(response.status, now)
    else session.renew(session.terms, now)
  }

  /**
   * §10: what would be refused again is not repeated. A challenge is one for the application, which
   * has the credentials: a request of its own still renews the session, as does one of the peer.
   * Without either a BYE ends it before the peer counts it as expired, and the application gets an
   * event.
   */
  #refusedForNow(status: number, now: number): void {
    const isNew = this.#session.refused(status)
    const { callId } = this.#dialog
    this.#parts.log('warn', 'a session refresh was refused', { status, callId })
    if (isNew && status !== 401 && status !== 407) this.#session.retry(LATER_MS, now)
  }

  /** §10: the peer does not answer, or does not know the dialog. */
  #end(now: number): void {
    this.#parts.localBye.send(this.#dialog, sessionExpired, 'notify', now)
  }

  /**
   * RFC 3261 §14.1: in steps of 10 ms. The owner of the Call-ID waits longer than the other side
   * can.
   */
  #glareBackOffMs(): number {
    const [least, steps] =
      this.#dialog.role === 'uac' ? ([2_100, 191] as const) : ([0, 201] as const)
    return least + (this.#parts.ids.number() % steps) * 10
  }

  /** Again for every copy of the 2xx (RFC 3261 §13.2.2.4). */
  #acknowledge(): void {
    const { writer, transactions } = this.#parts
    if (this.#ack === '')
      this.#ack = writer.numbered(this.#dialog, 'ACK', this.#sent.cseq, this.#flow, {}).text
    transactions.send(this.#ack, this.#flow, '')
  }

  #finish(now: number): void {
    this.#isOver = true
    this.#session.refreshEnds()
    if (this.#sent.method === 'INVITE') this.#dialog.pending.localEnds('INVITE')
    this.#dialog.pending.releaseHeld(now)
  }

  /** The dialog has ended: an INVITE that is only ringing would wait for ever. */
  #abandon(): void {
    this.#isOver = true
    const transaction = this.#transaction
    if (transaction instanceof InviteClientTransaction) transaction.stopRetransmitting()
    if (transaction?.state === 'proceeding') this.onTerminated()
  }
}
