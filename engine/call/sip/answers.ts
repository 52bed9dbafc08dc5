/** Responses that we send: their statuses, and the methods that they list in Allow. */
import { isKnownStatus } from '../../sip-server/message/index.ts'
import type { Answer, Headers } from '../signalling.ts'

/** What we take, in and out of dialogs. */
export const ALLOW =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, UPDATE, INFO, MESSAGE, NOTIFY, REFER, PUBLISH'

/** `Allow` of a 405: what is taken outside of calls (RFC 3261 §21.4.6). */
export const ALLOW_OUTSIDE_CALLS =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, UPDATE, MESSAGE, PUBLISH'

/** The status, or what RFC 3261 §8.1.3.2 reads for one that is not registered: x00 of its class. */
export function listedStatus(status: number): number {
  if (isKnownStatus(status)) return status
  return status < 200 ? 183 : Math.min(600, status - (status % 100))
}

/** Sends an answer, at most one final one. */
export function respond(
  answer: Answer,
  status: number,
  reason?: string,
  options: { readonly headers?: Headers; readonly body?: string | undefined } = {},
): void {
  if (answer.finalResponseSent) return
  answer.send(listedStatus(status), reason, options)
}
