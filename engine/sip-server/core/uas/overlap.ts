/**
 * Requests that must wait for others in their dialog: one INVITE at a time (RFC 3261 §14.2), one UPDATE
 * at a time, and one offer at a time whatever carries it (RFC 3311 §5.2).
 */
import type { Dialog } from '../../dialog/dialog.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Objection } from './objection.ts'

/** Undefined: nothing stands in its way. */
export function overlapOf(dialog: Dialog, request: SipMessage, now: number): Objection | undefined {
  const hasOffer = request.bodyStart < request.text.length
  if (request.method === 'INVITE') {
    if (dialog.state === 'early' || dialog.hasRemoteInvite) return tryLater(now)
    if (dialog.hasRemoteUpdate && hasOffer) return tryLater(now)
    return dialog.hasLocalInvite || (dialog.hasLocalOffer && hasOffer) ? glare : undefined
  }
  if (request.method !== 'UPDATE') return undefined
  if (dialog.hasRemoteUpdate) return tryLater(now)
  if (!hasOffer) return undefined
  if (dialog.hasRemoteInvite || isInviteUnanswered(dialog, 'uas')) return tryLater(now)
  const isOurs = dialog.hasLocalInvite || dialog.hasLocalOffer
  return isOurs || isInviteUnanswered(dialog, 'uac') ? glare : undefined
}

/**
 * Offer and answer of the first INVITE are exchanged by a provisional response, or not yet. RFC 3262 §5
 * wants a reliable one; who has shown its answer in another means the same, and is taken so by
 * drachtio-server and by those who send an UPDATE then.
 */
const isInviteUnanswered = (dialog: Dialog, role: 'uac' | 'uas'): boolean =>
  dialog.role === role &&
  dialog.state === 'early' &&
  dialog.usage === 'invite' &&
  !dialog.hasEarlyAnswer &&
  !(role === 'uas' && dialog.reliable1xx?.hasAgreed)

const glare: Objection = { status: 491, reason: 'Request Pending', lines: '' }

/** §14.2: a time between 0 and 10 seconds, chosen at random. */
const tryLater = (now: number): Objection => ({
  status: 500,
  reason: 'Server Internal Error',
  lines: `Retry-After: ${Math.floor(now % 10)}\r\n`,
})
