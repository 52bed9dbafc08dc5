import type { PendingOffer, SipResponse, SrfDialog } from './drachtio.ts'
import { messageOf } from './srf-link.ts'

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: SrfDialog }
  /** Answered with an offer, because the INVITE had none; not yet acknowledged. */
  | { readonly kind: 'offered'; readonly offer: PendingOffer }
  | { readonly kind: 'rejected'; readonly response: SipResponse }
  /** Answered, but no dialog can be formed from it (no usable Contact, or a 2xx other than 200). */
  | { readonly kind: 'unusable'; readonly response: SipResponse }
  /** `isConnectionLost`: the server is away, which says nothing about the destination. */
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }

export const NOT_CONNECTED = 'no connection to the SIP server'

export const lostEnd: UacEnd = { kind: 'not-sent', reason: NOT_CONNECTED, isConnectionLost: true }

/** What the library's answer to `createUAC` means; `final` is the last response that it has seen. */
export function uacEnd(
  error: unknown,
  result: SrfDialog | PendingOffer | undefined,
  final: SipResponse | undefined,
): UacEnd {
  if (result && 'sdp' in result) return { kind: 'offered', offer: result }
  if (result) return { kind: 'answered', dialog: result }
  if (final && final.status < 300) return { kind: 'unusable', response: final }
  if (final) return { kind: 'rejected', response: final }
  return { kind: 'not-sent', reason: messageOf(error) }
}
