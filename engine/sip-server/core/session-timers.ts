/**
 * Session timers (RFC 4028): begun and renewed with what passes in a dialog. A refresh that is our
 * part is an UPDATE where the peer takes it, else a re-INVITE that changes nothing (§7.4, §10). The
 * application gets no event of it, unless the peer is gone.
 */
import type { SavedSession } from '../application.ts'
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
import { type SessionTerms, SessionTimer } from '../dialog/session-timer.ts'
import type { Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import { InviteClientTransaction } from '../transaction/client.ts'
import type { ClientFailure, ClientUser, SentRequest } from '../transaction/machine.ts'

/** Another request is pending in the dialog, or the peer cannot be reached for now. */
const SOON_MS = 4_000
/** A peer that refuses for reasons of its own is asked once more. */
const LATER_MS = 16_000

export class SessionTimers {
  readonly #parts: CoreParts

  constructor(parts: CoreParts) {
    this.#parts = parts
  }

  /**
   * A request that refreshes was answered with 2xx. `peer` is the peer's part of it; `localSdp` is
   * what we said of our media, '' for nothing new. Without terms the session has no timer.
   */
  refreshed(
    dialog: Dialog,
    terms: SessionTerms | undefined,
    { peer, localSdp }: { readonly peer: SipMessage; readonly localSdp: string },
    now: number,
  ): void {
    if (terms === undefined || dialog.state === 'terminated') return
    dialog.session?.renew(terms, now)
    const timer = dialog.session ?? this.#begin(dialog, terms, now)
    timer.noteLocalSdp(localSdp)
    timer.noteTakesUpdate(takesUpdate(peer))
  }

  /**
   * A session of the process before this one, for its whole interval. Our refresh comes when it was
   * due. One that is overdue, or was perhaps made after the dialog was saved, comes within an
   * eighth, and not all of them at once.
   */
  resumed(dialog: Dialog, saved: SavedSession, now: number): void {
    const { seconds, isOurs, isAgreed, localSdp, takesUpdate: takes, minSeconds, dueAt } = saved
    const timer = this.#begin(dialog, { seconds, isOurs, isAgreed }, now)
    timer.noteLocalSdp(localSdp)
    timer.noteTakesUpdate(takes)
    const leftMs = dueAt - now
    const isAhead = leftMs > 0 && leftMs <= seconds * 500
    const soonMs = (this.#parts.ids.number() % (seconds * 1_000)) / 8
    timer.resume(minSeconds, isAhead ? leftMs : soonMs, now)
  }

  /** A 2xx to a request of ours that may refresh a session (§7.2). */
  responded(
    dialog: Dialog,
    sent: SentRequest,
    asked: number | undefined,
    response: SipMessage,
    now: number,
  ): void {
    if (asked === undefined && !response.has('Session-Expires')) return
    const terms = termsOfResponse(response, asked, this.#parts.minSessionSeconds)
    const localSdp = sent.text.slice(sent.text.indexOf('\r\n\r\n') + 4)
    this.refreshed(dialog, terms, { peer: response, localSdp }, now)
  }

  #begin(dialog: Dialog, terms: SessionTerms, now: number): SessionTimer {
    const user = {
      onRefreshDue: (at: number) => this.#refresh(dialog, at),
      onExpired: (at: number) => this.#parts.localBye.send(dialog, sessionExpired, 'notify', at),
    }
    const timer = new SessionTimer(terms, user, this.#parts.transactions.deadlines, now)
    dialog.startSession(timer)
    return timer
  }

  #refresh(dialog: Dialog, now: number): void {
    const { session } = dialog
    if (session === undefined || dialog.state !== 'confirmed') return
    if (dialog.isInvitePending) return session.retry(SOON_MS, now)
    new Refresh(this.#parts, dialog, session).start(now)
  }
}

class Refresh implements ClientUser {
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
