/** A carrier's gateway is reached by priced routes only (decisions §2): every other way is looked at here. */
import { senderOf, type Sender } from '../../../schema/rules/gateway-reach.ts'
import type { Callee, Outgoing } from './outgoing.ts'

export interface UnpricedDeps {
  /** The carrier at whose gateway a request with this next hop would arrive; undefined: at none. */
  readonly gatewayBehind: (uri: string, sender: Sender) => string | undefined
}

/** The carrier whose gateway the INVITE would reach without a price; undefined: it may be sent. */
export function unpricedCarrier(
  candidate: Callee,
  { uri, nextHop }: Pick<Outgoing, 'uri' | 'nextHop'>,
  deps: UnpricedDeps,
): string | undefined {
  if (candidate.kind === 'gateway') return undefined
  const sender = senderOf(candidate.tenantId)
  const route = candidate.kind === 'phone' ? candidate.routes[0] : undefined
  const carrier = deps.gatewayBehind(nextHop ?? route ?? uri, sender)
  // The node of a call sends on what a supervisor's URI names.
  return candidate.kind === 'spy' ? (carrier ?? deps.gatewayBehind(uri, sender)) : carrier
}
