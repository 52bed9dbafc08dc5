/** Which transaction a message belongs to: RFC 3261 §17.1.3 and §17.2.3. */
import { detachString } from '../message/detach-string.ts'
import type { SipMessage } from '../message/message.ts'
import type { Via } from '../message/via.ts'

const MAGIC_COOKIE = 'z9hg4bk'

/** A response belongs to the request with the branch of its top Via and the method of its CSeq. */
export const clientKey = (branch: string, method: string): string =>
  method === 'CANCEL' ? `${branch} CANCEL` : branch

/**
 * A request belongs to the server transaction with the same branch, sent-by and method, ACK to
 * the one of its INVITE. Requests of RFC 2543 senders have no unique branch: they are told apart
 * by the fields that §17.2.3 lists, without the To tag, which only their ACK carries.
 */
export function serverKey(request: SipMessage, via: Via, method: string): string {
  const branch = via.branch.toLowerCase()
  const of = method === 'ACK' ? 'INVITE' : method
  if (branch.startsWith(MAGIC_COOKIE) && branch.length > MAGIC_COOKIE.length)
    return detachString(`${branch} ${via.host.toLowerCase()}:${via.port} ${of}`)
  const cseq = request.cseq?.number ?? 0
  return detachString(
    `2543 ${request.callId} ${request.fromTag} ${cseq} ${via.host}:${via.port} ${branch} ${of}`,
  )
}
