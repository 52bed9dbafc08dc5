/** A carrier's gateway as routing offers it to one call. */
import type { GatewayCandidate, OutboundDecision } from '../../engine/routing/routing.ts'

export const gateway = (parts: Partial<GatewayCandidate>): GatewayCandidate => ({
  kind: 'gateway',
  gatewayId: 1,
  carrierId: 9,
  carrierName: 'north',
  routeName: 'all',
  uri: 'sip:192.0.2.1:5060;transport=udp',
  host: '192.0.2.1',
  port: 5_060,
  transport: 'udp',
  number: '1555',
  bought: { number: '1555', dialled: '1555', ratePlanId: null, tenantId: null },
  auth: {
    type: 'ip',
    username: null,
    password: null,
    realm: null,
    fromUser: null,
    fromDomain: null,
    expiresSeconds: null,
  },
  callerId: { mode: 'pass', value: null },
  ...parts,
})

/** The decision of routing; asked for some carriers, it knows no other, and keeps their order. */
export function ofCarriers(
  only: readonly number[] | undefined,
  decision: OutboundDecision,
): OutboundDecision {
  if (only === undefined || decision.kind !== 'gateways') return decision
  const gateways = only.flatMap((carrierId) =>
    decision.gateways.filter((each) => each.carrierId === carrierId),
  )
  return gateways.length === 0 ? { kind: 'none' } : { ...decision, gateways }
}
