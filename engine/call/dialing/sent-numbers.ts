/** Both numbers of an INVITE as they are sent, for the record of the call. */
import type { SentNumbers } from '../../../schema/contracts/call-record.ts'
import { ANONYMOUS_HOST } from '../../../schema/sip/index.ts'

/** A longer one is cut. */
const MAX_LENGTH = 128

/** @param from the value of its From header. */
export const sentNumbers = (uri: string, from: string): SentNumbers => ({
  called: userOf(uri),
  caller: from.includes(`@${ANONYMOUS_HOST}`) ? '' : userOf(from.slice(from.lastIndexOf('<') + 1)),
})

/** The user part of a `sip:` or `sips:` URI, the number of a `tel:` URI; empty: there is none. */
function userOf(uri: string): string {
  const start = uri.indexOf(':') + 1
  const end = uri.indexOf('@', start)
  if (end !== -1) return uri.slice(start, Math.min(end, start + MAX_LENGTH))
  return /^tel:/i.test(uri) ? uri.slice(start, start + MAX_LENGTH).replace(/[;>].*$/, '') : ''
}
