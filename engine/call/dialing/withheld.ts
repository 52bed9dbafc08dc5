/** Holds INVITEs back: to a carrier without a price, for `sips:` without TLS, and too large ones for another node. */
import { type Sender, senderOf } from '../../../schema/rules/gateways.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { refused, type Refusal } from '../cdr/end-reason.ts'
import type { Headers } from '../signalling.ts'
import type { Callee, OutgoingCall, OutgoingInvite, PhoneCandidate } from './outgoing-invite.ts'

export interface WithheldDeps {
  /** The carrier at whose gateway a request with this next hop would arrive; undefined: at none. */
  readonly gatewayBehind: (uri: string, sender: Sender) => string | undefined
}

export interface Withheld {
  /** For the record. */
  readonly why: string
  /** What the caller gets, where there is nothing else to be tried. */
  readonly end: Refusal
}

/** Undefined: the INVITE may be sent. */
export function withheld(
  candidate: Callee,
  outgoing: Pick<OutgoingInvite, 'uri' | 'nextHop' | 'headers'>,
  invite: Pick<OutgoingCall, 'isSecure' | 'body'>,
  deps: WithheldDeps,
): Withheld | undefined {
  const { uri, nextHop } = outgoing
  const route = candidate.kind === 'phone' ? candidate.routes[0] : undefined
  const hop = nextHop ?? route ?? uri
  const isSecure = invite.isSecure === true || /^sips:/i.test(uri)
  if (isSecure && !isByTls(hop)) return { why: 'sips needs TLS', end: insecure }
  if ('holder' in candidate && isTooLarge(outgoing.headers, invite.body))
    return { why: 'too large for another node', end: tooLarge }
  const carrier = unpricedCarrier(candidate, hop, uri, deps)
  if (carrier === undefined) return undefined
  // A tenant reads the record: it does not name another tenant's carrier.
  return { why: "leads to a carrier's gateway", end: unpriced }
}

/** A carrier's gateway is reached by priced routes only (SPECIFICATION.md §10.2). */
function unpricedCarrier(
  candidate: Callee,
  hop: string,
  uri: string,
  deps: WithheldDeps,
): string | undefined {
  switch (candidate.kind) {
    case 'gateway':
    case 'listener':
    case 'other-node':
      return undefined
    case 'phone':
      return gatewayBehindPhone(candidate, candidate.tenantId, deps)
    case 'spy':
      // The node of a call sends on what a supervisor's URI names.
      return firstGateway([hop, uri], candidate.tenantId, deps)
    case 'node':
    case 'agent':
    case 'voicemail':
    case 'domain':
    default:
      return firstGateway([hop], candidate.tenantId, deps)
  }
}

/**
 * The carrier at whose gateway a request for a phone could arrive. The first proxy of a Path sends it on to the
 * next one, the last one to the Contact: the phone has chosen all of them but the first.
 */
export function gatewayBehindPhone(
  { uri, routes, nextHop, lastHop }: Pick<PhoneCandidate, 'uri' | 'routes' | 'nextHop' | 'lastHop'>,
  tenantId: number,
  deps: WithheldDeps,
): string | undefined {
  const onward = nextHop ?? lastHop
  const hops = onward !== undefined ? [onward] : [...routes, uri]
  return firstGateway(hops, tenantId, deps)
}

function firstGateway(
  hops: readonly string[],
  tenantId: number | null,
  { gatewayBehind }: WithheldDeps,
): string | undefined {
  const sender = senderOf(tenantId)
  for (const hop of hops) {
    const carrier = gatewayBehind(hop, sender)
    if (carrier !== undefined) return carrier
  }
  return undefined
}

function isByTls(hop: string): boolean {
  const target = sipTarget(hop)
  return target?.isSecure === true || target?.transport === 'tls' || target?.transport === 'wss'
}

/**
 * What nodes send each other. All of their calls share a few connections, and a message that the other one cannot read
 * ends such a connection (64 kB, to which each adds headers of its own).
 */
const MAX_BYTES = 16_384
/** In UTF-8 a character may have more than a byte. */
const isTooLarge = (headers: Headers, body = ''): boolean => {
  let characters = body.length
  for (const name in headers) characters += name.length + (headers[name]?.length ?? 0)
  if (characters * 3 <= MAX_BYTES) return false
  return Buffer.byteLength(JSON.stringify(headers) + body) > MAX_BYTES
}

/** RFC 3261 §21.5.7. */
const tooLarge = refused(513, 'Message Too Large', 'message_too_large')

/** The caller gets the same in both cases: by its Contact a phone shall not learn where gateways are. */
export const withoutPhone = ({ leadsToGateway }: { readonly leadsToGateway?: true }): Refusal => {
  const code = leadsToGateway === true ? 'unpriced_gateway' : 'extension_unregistered'
  return refused(480, 'Temporarily Unavailable', code)
}

const unpriced = refused(403, 'Forbidden', 'unpriced_gateway')

/** RFC 5630 §6.1. */
const insecure = refused(480, 'Temporarily Unavailable', 'sips_needs_tls', {
  Warning: '380 tollgate "SIPS Not Allowed"',
})
