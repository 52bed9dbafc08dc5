/** The session timer of a dialog: begun, renewed and ended with what passes in it (RFC 4028). */
import type { Dialog } from '../../dialog/dialog.ts'
import { SessionTimer, type SessionTerms } from '../../dialog/session-timer.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import { sendLocalBye, sessionExpired } from '../local-bye.ts'
import type { Stack } from '../stack.ts'
import { refreshSession } from './refresh.ts'
import { takesUpdate } from './terms.ts'

/**
 * A request that refreshes has been answered with 2xx. `peer` is the peer's part of it; `localSdp` is
 * what we said of our media, '' for nothing new. No terms: the session lives as long as it likes.
 */
export function keepSession(
  stack: Stack,
  dialog: Dialog,
  terms: SessionTerms | undefined,
  { peer, localSdp }: { readonly peer: SipMessage; readonly localSdp: string },
  now: number,
): void {
  if (terms === undefined || dialog.state === 'terminated') return
  const session = dialog.session
  if (session) session.renew(terms, now)
  const timer = session ?? (dialog.session = begin(stack, dialog, terms, now))
  if (localSdp !== '') timer.localSdp = detachString(localSdp)
  timer.takesUpdate = takesUpdate(peer) ?? timer.takesUpdate
}

function begin(stack: Stack, dialog: Dialog, terms: SessionTerms, now: number): SessionTimer {
  const user = {
    onRefreshDue: (at: number) => refreshSession(stack, dialog, at),
    onExpired: (at: number) => sendLocalBye(stack, dialog, sessionExpired, 'tell', at),
  }
  return new SessionTimer(terms, user, stack.deadlines, now)
}

/** What followed in an ACK, or in whatever else passes outside of those requests. */
export function noteLocalSdp(dialog: Dialog, sdp: string): void {
  if (dialog.session && sdp !== '') dialog.session.localSdp = detachString(sdp)
}
