/** Records that the tests of this folder build on, and a `Routing` over them. */
import type {
  CarrierRecord,
  GatewayRecord,
  InboundRouteRecord,
  OutboundRouteRecord,
  RoutingRecords,
  TenantRecord,
} from '../../../engine/routing/routing-records.ts'
import { type RoutingDeps, Routing } from '../../../engine/routing/routing.ts'
import type { Tariff } from '../../../schema/contracts/tariff.ts'
import { costMicros } from '../../../engine/charging/pricing/price.ts'
import { seededRandom } from '../../support/seeded-random.ts'

/** A price by the second. */
export const perSecond = (ratePerMinuteMicros: number): Tariff => ({
  prefix: '',
  currency: 'USD',
  connectFeeMicros: 0,
  firstIncrementSeconds: 0,
  firstRatePerMinuteMicros: 0,
  incrementSeconds: 1,
  ratePerMinuteMicros,
  decimals: 6,
})

export const sampleGateway = (
  gatewayId: number,
  fields: Partial<GatewayRecord> = {},
): GatewayRecord => ({
  gatewayId,
  host: `203.0.113.${gatewayId}`,
  port: 5_060,
  transport: 'udp',
  netmask: 32,
  isInbound: true,
  isOutbound: true,
  priority: 10,
  weight: 100,
  ...fields,
})

export const sampleCarrier = (
  carrierId: number,
  fields: Partial<CarrierRecord> = {},
): CarrierRecord => ({
  carrierId,
  name: `carrier ${carrierId}`,
  tenantId: null,
  customerId: null,
  payer: 'customer',
  isActive: true,
  direction: 'both',
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
  numberRules: { in: (number) => number, out: (number) => number },
  maxCalls: 0,
  maxCps: 0,
  ratePlanId: null,
  inboundSetId: null,
  gateways: [sampleGateway(carrierId)],
  ...fields,
})

export const tenantRecord = (
  tenantId: number,
  fields: Partial<TenantRecord> = {},
): TenantRecord => ({
  tenantId,
  slug: `tenant-${tenantId}`,
  isActive: true,
  domains: [],
  numbers: [],
  ...fields,
})

export const outboundRoute = (
  routeId: number,
  fields: Partial<OutboundRouteRecord> = {},
): OutboundRouteRecord => ({
  routeId,
  name: `route ${routeId}`,
  tenantId: null,
  customerId: null,
  carrierId: 1,
  distribution: 'weight',
  prefix: '',
  priority: 10,
  weight: 100,
  mode: 'static',
  strip: 0,
  prepend: '',
  isActive: true,
  isEmergency: false,
  ...fields,
})

export const inboundRoute = (
  routeId: number,
  fields: Partial<InboundRouteRecord> = {},
): InboundRouteRecord => ({
  routeId,
  name: `route ${routeId}`,
  tenantId: null,
  carrierId: null,
  prefix: null,
  domain: null,
  target: { kind: 'set', setId: routeId },
  priority: 10,
  isActive: true,
  ...fields,
})

/** A `Routing` over records that a test may replace, with what surrounds it. */
export function routingOver(
  records: Partial<RoutingRecords>,
  overrides: Partial<RoutingDeps> = {},
) {
  const clock = { now: 1_000_000 }
  const calls = new Map<number, number>()
  const agentCalls = new Map<number, number>()
  const reachability = new Map<number, 'up' | 'unproven' | 'down'>()
  const problems: string[] = []
  const none: RoutingRecords = {
    tenants: [],
    carriers: [],
    gateways: [],
    inboundRoutes: [],
    outboundRoutes: [],
    agents: [],
    problems: [],
  }
  const stored: { records: RoutingRecords } = { records: { ...none, ...records } }
  const routing = new Routing({
    load: () => Promise.resolve(stored.records),
    trustedSources: ['127.0.0.0/8', '::1/128'],
    edgeProxies: [],
    nodeAt: () => undefined,
    defaultSetId: () => 1,
    hosts: { version: 0, addressesOf: (host) => [host], watch: () => undefined, lookUp: noLookUp },
    activeCarrierCalls: (carrierId) => calls.get(carrierId) ?? 0,
    activeAgentCalls: (agentId) => agentCalls.get(agentId) ?? 0,
    gatewayReachability: (gatewayId) => reachability.get(gatewayId) ?? 'up',
    carrierPrice: () => undefined,
    costOf: costMicros,
    expectedSeconds: () => 60,
    onLoaded: () => undefined,
    onProblem: (problem) => void problems.push(problem),
    now: () => clock.now,
    random: seededRandom(1),
    ...overrides,
  })
  routing.replace(stored.records)
  return { routing, stored, clock, calls, agentCalls, reachability, problems }
}

export const noLookUp = () => Promise.resolve((host: string): readonly string[] => [host])
