/** Whether a called peer's Contact leads back to it, or only the way by which its answer came. */
import { isIP } from 'node:net'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseUri } from '../../message/uri.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'

/**
 * By UDP and without a route set: the peer of an INVITE that had to leave by another way than its
 * Request-URI names (a phone that registered from behind NAT), and one that gives a private Contact
 * from a public address. ACK and BYE go to where the answer came from (RFC 3581, RFC 5626 §5.3).
 */
export function isBehindNat(sent: SentRequest, response: SipMessage, flow: Flow): boolean {
  const contact = parseUri(response.contact?.uri ?? '')
  if (contact === undefined || leadsTo(contact, flow)) return false
  if (isPrivate(contact.host) && !isPrivate(flow.address)) return true
  if (sent.routes.length > 0) return false
  const target = parseUri(sent.uri)
  if (target === undefined) return false
  // A name may stand for this very address; one that the peer gives again leads nowhere new.
  return isIP(target.host) === 0 ? target.host === contact.host : !leadsTo(target, flow)
}

const leadsTo = (uri: { readonly host: string; readonly port: number }, flow: Flow): boolean =>
  uri.host === flow.address && (uri.port === 0 ? 5_060 : uri.port) === flow.port

/** RFC 1918, RFC 6598. */
const isPrivate = (host: string): boolean =>
  /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(host)
