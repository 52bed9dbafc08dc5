/**
 * A test call: click-to-call through one carrier. Only an outbound route of the caller that leads the number to that
 * carrier opens it: what the caller could not call without the test is not called by it.
 */
import { refused } from '../cdr/end-reason.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import {
  innerRoute,
  outboundRoute,
  tenantOf,
  type Route,
  type RouteDeps,
} from '../inbound/route.ts'

/** Why the number may not be tested; undefined: it is an ordinary number outside. */
export function whyNotTested(invite: IncomingInvite, deps: RouteDeps): string | undefined {
  if (deps.routing.isEmergencyNumber(invite.calledNumber)) return 'emergency_number'
  return innerRoute(invite, deps) ? 'internal_number' : undefined
}

/** The gateways of the carrier, by the caller's own routes, blocks and limits. */
export function testRoute(
  invite: IncomingInvite,
  carrierId: number,
  customerId: number | null,
  deps: RouteDeps,
): Route {
  const tenantId = tenantOf(invite.origin, deps)
  const { calledNumber } = invite
  const asked = [customerId, calledNumber, tenantId, undefined, carrierId] as const
  const decision = deps.routing.outboundCandidates(...asked)
  const isEmergency = decision.kind === 'gateways' && decision.isEmergency
  const route = isEmergency ? undefined : outboundRoute(decision, calledNumber, deps)
  return route ?? { kind: 'refused', direction: 'outbound', end: noRoute }
}

const noRoute = refused(404, 'Not Found', 'no_route')
