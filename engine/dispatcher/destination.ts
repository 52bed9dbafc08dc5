/** Host, port and transport of a node ⇄ `sip:<host>:<port>;transport=udp` (SPECIFICATION.md §2.6). */
import { hostPort, parseUri, plainHost } from '../sip-server/message/index.ts'

export type Transport = 'udp' | 'tcp' | 'tls'

export interface Destination {
  /** Lower case, IPv6 without brackets. */
  readonly host: string
  readonly port: number
  readonly transport: Transport
}

const DEFAULT_PORT = 5_060
/** A host name has at most 253 characters; the rest is scheme, port and parameters. */
const MAX_LENGTH = 320

export function formatDestination({ host, port, transport }: Destination): string {
  return `sip:${hostPort(host, port)};transport=${transport}`
}

/**
 * Reads what an operator wrote. Any case, the port defaults to 5060, the transport to UDP
 * (SPECIFICATION.md §2.6). Undefined when it is not the SIP URI of a host: other scheme, a user part,
 * an unknown transport.
 */
export function parseDestination(text: string): Destination | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const uri = parseUri(text.trim().replace(/^<(.*)>$/, '$1'))
  if (uri?.scheme !== 'sip' || uri.user !== '' || uri.headers.length > 0) return undefined
  const transport = parseTransport(uri.params.get('transport'))
  if (transport === undefined) return undefined
  return { host: plainHost(uri.host), port: uri.port || DEFAULT_PORT, transport }
}

/** Whether two destinations name the same node: any case, with or without the final dot. */
export function isSameDestination(one: Destination, other: Destination): boolean {
  return (
    one.port === other.port &&
    one.transport === other.transport &&
    plainHost(one.host) === plainHost(other.host)
  )
}

function parseTransport(value = 'udp'): Transport | undefined {
  const name = value.toLowerCase()
  return name === 'udp' || name === 'tcp' || name === 'tls' ? name : undefined
}
