/** Host, port and transport of a node ⇄ `sip:<host>:<port>;transport=udp` (SPECIFICATION.md §2.6). */
import { hostPort, plainHost } from '../sip-server/message/index.ts'

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
  const match = /^<?sip:(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?((?:;[^;<>\s]*)*)>?$/.exec(
    text.trim().toLowerCase(),
  )
  if (!match) return undefined
  const [, host = '', portText, params = ''] = match
  const port = portText === undefined ? DEFAULT_PORT : Number(portText)
  const transport = parseTransport(params)
  if (transport === undefined || port < 1 || port > 65_535) return undefined
  return { host: plainHost(host), port, transport }
}

/** Whether two destinations name the same node: any case, with or without the final dot. */
export function isSameDestination(one: Destination, other: Destination): boolean {
  return (
    one.port === other.port &&
    one.transport === other.transport &&
    plainHost(one.host) === plainHost(other.host)
  )
}

function parseTransport(params: string): Transport | undefined {
  const value = /;transport=([^;]*)/.exec(params)?.[1] ?? 'udp'
  return value === 'udp' || value === 'tcp' || value === 'tls' ? value : undefined
}
