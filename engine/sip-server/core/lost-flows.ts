/**
 * Dialogs whose stream has ended with the process before this one. Their peer comes back by itself
 * (a phone registers again), or gets OPTIONS over a new connection. A dialog whose peer cannot be
 * reached within a minute ends, and its application gets an event as for a session that has
 * expired.
 */
import type { CoreParts } from './parts.ts'
import type { Dialog } from '../dialog/dialog.ts'
import { LostFlow } from './lost-flow.ts'

const LIMIT_MS = 60_000
/** A phone that was cut off needs a moment to come back. */
const FIRST_CHECK_MS = 5_000

export function watchLostFlow(parts: CoreParts, dialog: Dialog, now: number): void {
  // There may be thousands: their first checks are spread.
  const firstCheckMs = FIRST_CHECK_MS + (parts.ids.number() % FIRST_CHECK_MS)
  new LostFlow(parts, dialog, now + LIMIT_MS).checkAt(now + firstCheckMs, now)
}
