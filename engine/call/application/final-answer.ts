/**
 * A final answer of the operator's application, as the caller gets it: with headers of its own, and
 * without those by which our dialog with the caller is run. Pure.
 */
import { passesFinal } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import { readAddress, splitList } from '../../../schema/sip/index.ts'
import { isPrivateHeader } from './private-headers.ts'

interface FinalAnswer {
  readonly status: number
  readonly reason: string
  /** All headers. */
  readonly headers: Headers
}

/**
 * @param passed the headers that a destination may send to the caller, as it may see them.
 * @param leadsToGateway whether a request with this URI would arrive at a carrier's gateway.
 */
export function applicationAnswer(
  { status, reason, headers }: FinalAnswer,
  passed: Headers,
  leadsToGateway: (uri: string) => boolean,
): FinalAnswer {
  // The caller itself would follow it: to a gateway only our priced calls go.
  const isUnpriced = status < 400 && contactsOf(headers).some(leadsToGateway)
  if (isUnpriced) return { status: 480, reason: 'Temporarily Unavailable', headers: {} }
  const own = Object.entries(headers).filter(
    ([name]) => passesFinal(name) && !isPrivateHeader(name),
  )
  return { status, reason, headers: { ...Object.fromEntries(own), ...passed } }
}

/** More in one answer are not read, and none of them passes. */
const MAX_CONTACTS = 16

function contactsOf(headers: Headers): readonly string[] {
  const contacts = splitList(headers['contact'] ?? '')
  return contacts.slice(0, MAX_CONTACTS).map((each) => readAddress(each).uri.trim())
}
