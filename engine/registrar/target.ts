/** How a call reaches a registered phone. Pure. */
import type { Binding, Source } from './bindings.ts'
import { hostPort } from '../sip-server/message/index.ts'
import { isHiddenFrom } from '../../schema/net/ip-address.ts'
import { contactUri } from './contact.ts'

/** One phone of an extension, as a call to it is addressed. */
export interface ContactTarget {
  /** The Request-URI: what the phone registered (RFC 3261 §16.5). */
  readonly uri: string
  /** `Route` values, the first one next (RFC 3327 §5.3); none without Path. */
  readonly routes: readonly string[]
  /**
   * Where to send, as a SIP URI, when that is neither in the routes nor in the Request-URI: the
   * address that the phone's REGISTER came from, or the connection on which it came.
   */
  readonly nextHop: string | undefined
  /** Where another node of ours sends what comes by `routes`; absent: the routes are those of its Path. */
  readonly lastHop?: string
  /** The name of that node. */
  readonly holder?: string
  /** Thousandths; higher is preferred. */
  readonly q: number
  readonly source: Source
  readonly isOnWebSocket?: true
  /** Where its REGISTER came from, when its Contact names another, private address; none behind a proxy. */
  readonly natAddress?: string
}

export function targetOf(binding: Binding): ContactTarget {
  const { contact: uri, path: routes, q, source } = binding
  const isDirect = routes.length === 0 && isReachedByContact(binding)
  const nextHop = routes.length > 0 || isDirect ? undefined : uriOf(source)
  return { uri, routes, nextHop, q, source, ...mediaOf(binding) }
}

/** What tells how its media flows. */
function mediaOf({
  contact,
  path,
  source,
}: Binding): Pick<ContactTarget, 'isOnWebSocket' | 'natAddress'> {
  if (source.protocol.startsWith('ws')) return { isOnWebSocket: true }
  const host = contactUri(contact)?.host
  const isHidden = path.length === 0 && host !== undefined && isHiddenFrom(host, source.address)
  return isHidden ? { natAddress: source.address } : {}
}

/** A phone behind NAT, by UDP: only its own packets keep the way to it open. */
export const needsKeepAlive = (binding: Binding): boolean =>
  binding.path.length === 0 && binding.source.protocol === 'udp' && !isReachedByContact(binding)

/** By UDP from the very address that the Contact names. A stream is always used again. */
export function isReachedByContact({ contact, source }: Binding): boolean {
  if (source.protocol !== 'udp') return false
  const uri = contactUri(contact)
  if (uri === undefined || uri.scheme === 'sips') return false
  // RFC 3261 §19.1.1: it would be sent to another host than the one that has registered.
  if (uri.params.has('maddr')) return false
  const transport = uri.params.get('transport')?.toLowerCase() ?? 'udp'
  const port = uri.port === 0 ? 5_060 : uri.port
  const isSameHost = uri.host.toLowerCase() === source.address.toLowerCase()
  return transport === 'udp' && isSameHost && port === source.port
}

/**
 * A stream is called over the connection that the phone registered on, or not at all: the port that it
 * came from is not listened on. (A real drachtio-server does not know that parameter, and tries.)
 */
export function uriOf({ protocol, address, port }: Source): string {
  const way = protocol === 'udp' ? '' : ';connection=registered'
  return `sip:${hostPort(address, port)};transport=${protocol}${way}`
}
