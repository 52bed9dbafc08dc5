/** Who a peer is by its certificate: RFC 5922 for servers, RFC 5923 for connections used again. */
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls'
import { splitList } from '../../message/headers.ts'
import { parseVia } from '../../message/via.ts'

/** Why a certificate does not belong to a host; undefined: it does. */
export function identityProblem(host: string, certificate: PeerCertificate): Error | undefined {
  // RFC 5922 §7.1: a SIP URI without user stands for the domain, as a DNS name does.
  const isNamed = (certificate.subjectaltname ?? '')
    .split(', ')
    .some((name) => name.toLowerCase() === `uri:sip:${host.toLowerCase()}`)
  return isNamed && isIP(host) === 0 ? undefined : checkServerIdentity(host, certificate)
}

/** Whether the peer of an accepted connection has shown a valid certificate of `host`. */
export const hasProved = (socket: TLSSocket, host: string): boolean =>
  socket.authorized && identityProblem(host, socket.getPeerCertificate()) === undefined

/**
 * RFC 5923 §5: `alias` in the Via of a request says that its sender takes requests on this
 * connection too, as if at the port that the Via names; undefined: it does not.
 */
export function aliasPort(text: string): number | undefined {
  const [, line] = /\r\n(?:via|v)[ \t]*:[ \t]*([^\r\n]*)/i.exec(text) ?? []
  const via = line === undefined ? undefined : parseVia(splitList(line)[0] ?? '')
  if (via?.params.has('alias') !== true) return undefined
  return via.port === 0 ? 5_061 : via.port
}
