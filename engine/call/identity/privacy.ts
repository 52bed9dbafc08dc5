/** Callers that do not want to be shown (RFC 3323, RFC 3325 §7). Pure. */
import { isAnonymous, type Party } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'

/** From and the other headers of an INVITE, as its source has sent them. */
export interface SentCaller {
  readonly from: Party
  readonly headers: Headers
}

/** RFC 3325 §7, RFC 3323 §4.2: the called side is not told who calls. */
export const wantsPrivacy = ({ from, headers }: SentCaller): boolean =>
  isAnonymous(from) || /\b(?:id|user|header)\b/i.test(headers['privacy'] ?? '')

/** The part of Privacy that the next network has to keep (RFC 3323 §5). */
export function privacyOf(headers: Headers, isPrivate: boolean): string | undefined {
  const asked = headers['privacy'] ?? ''
  if (isPrivate) return /\bcritical\b/i.test(asked) ? 'id;critical' : 'id'
  return /\bnone\b/i.test(asked) ? 'none' : undefined
}
