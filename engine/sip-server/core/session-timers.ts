/**
 * Session timers (RFC 4028): begun and renewed with what passes in a dialog. A refresh that is our
 * part is an UPDATE where the peer takes it, else a re-INVITE that changes nothing (§7.4, §10). The
 * application gets no event of it, unless the peer is gone.
 */
import type { SavedSession } from '../application.ts'
import type { CoreParts } from './parts.ts'
import { sessionExpired } from './request-writer.ts'
import { type Dialog, takesUpdate, termsOfResponse } from '../dialog/dialog.ts'
import { type SessionTerms, SessionTimer } from '../dialog/session-timer.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { SentRequest } from '../transaction/machine.ts'
import { SOON_MS, SessionRefresh } from './session-refresh.ts'

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
    const { seconds, isOurs, isAgreed, takesUpdate: takes, dueAt } = saved
    const { localSdp = '', minSeconds = 0 } = saved
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
    new SessionRefresh(this.#parts, dialog, session).start(now)
  }
}
