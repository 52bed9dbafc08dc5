import { expect, test } from 'vitest'
import type { OutboundRouteRecord } from '../../../engine/routing/routing-records.ts'
import type { Routing } from '../../../engine/routing/routing.ts'
import { outboundRoute, perSecond, routingOver, sampleCarrier, sampleGateway } from './samples.ts'

const carriers = [1, 2, 3].map((id) => sampleCarrier(id))

const route = (id: number, fields: Partial<OutboundRouteRecord> = {}): OutboundRouteRecord =>
  outboundRoute(id, { carrierId: id, prefix: '49', ...fields })

type Caller = readonly [customerId: number | null, tenantId: number | null]

/** The first carrier of each of these calls. */
function firstOf(routing: Routing, calls: number, [customerId, tenantId]: Caller = [null, null]) {
  return Array.from({ length: calls }, () => {
    const decision = routing.outboundCandidates(customerId, '49301234', tenantId)
    return decision.kind === 'gateways' ? (decision.gateways[0]?.gatewayId ?? 0) : 0
  })
}

function counted(ids: readonly number[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const id of ids) counts[id] = (counts[id] ?? 0) + 1
  return counts
}

test.each([
  [[70, 30], { 1: 70, 2: 30 }],
  [[50, 30, 20], { 1: 50, 2: 30, 3: 20 }],
  // Weights that do not sum up to 100 are proportions.
  [[3, 1], { 1: 75, 2: 25 }],
  [[1, 1], { 1: 50, 2: 50 }],
])('100 calls over routes of %j per cent are exactly so many each', (weights, expected) => {
  const routes = weights.map((weight, at) => route(at + 1, { weight, distribution: 'percent' }))
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  expect(counted(firstOf(routing, 100))).toEqual(expected)
  expect(counted(firstOf(routing, 100))).toEqual(expected)
})

test('shares are mixed: no ten calls of 70 and 30 differ from seven and three', () => {
  const [one, two] = [70, 30].map((weight, at) =>
    route(at + 1, { weight, distribution: 'percent' }),
  )
  const { routing } = routingOver({
    carriers,
    outboundRoutes: [one, two].flatMap((each) => each ?? []),
  })
  for (let ten = 0; ten < 5; ten += 1) expect(counted(firstOf(routing, 10))).toEqual({ 1: 7, 2: 3 })
})

test('round robin ignores weights, and failover goes on with the one whose turn is next', () => {
  const routes = [10, 20, 90].map((weight, at) =>
    route(at + 1, { weight, distribution: 'round_robin' }),
  )
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  expect(firstOf(routing, 7)).toEqual([1, 2, 3, 1, 2, 3, 1])
  const decision = routing.outboundCandidates(null, '49301234')
  expect(decision.kind === 'gateways' && decision.gateways.map((each) => each.gatewayId)).toEqual([
    2, 3, 1,
  ])
})

test('one that says percent says it for its equals, whatever they say', () => {
  const routes = [
    route(1, { weight: 75 }),
    route(2, { weight: 25, distribution: 'percent' }),
    route(3, { weight: 100, priority: 20, distribution: 'round_robin' }),
  ]
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  expect(counted(firstOf(routing, 100))).toEqual({ 1: 75, 2: 25 })
})

test('routes of another owner, prefix or priority have shares of their own', () => {
  const percent = { distribution: 'percent' } as const
  const routes = [
    route(1, { ...percent, weight: 60, tenantId: 8 }),
    route(2, { ...percent, weight: 40, tenantId: 8 }),
    outboundRoute(3, { ...percent, weight: 80, carrierId: 1, prefix: '49' }),
    outboundRoute(4, { ...percent, weight: 20, carrierId: 3, prefix: '49' }),
  ]
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  const both = Array.from({ length: 100 }, () => [
    ...firstOf(routing, 1, [null, 8]),
    ...firstOf(routing, 1),
  ])
  expect(counted(both.map(([own = 0]) => own))).toEqual({ 1: 60, 2: 40 })
  expect(counted(both.map(([, common = 0]) => common))).toEqual({ 1: 80, 3: 20 })
})

test('one that cannot take calls neither gets nor saves up any', () => {
  const down = new Set<number>()
  const routes = [70, 30].map((weight, at) => route(at + 1, { weight, distribution: 'percent' }))
  const { routing } = routingOver(
    { carriers, outboundRoutes: routes },
    { gatewayReachability: (id) => (down.has(id) ? 'down' : 'up') },
  )
  firstOf(routing, 10)
  down.add(1)
  expect(counted(firstOf(routing, 50))).toEqual({ 2: 50 })
  down.clear()
  expect(counted(firstOf(routing, 100))).toEqual({ 1: 70, 2: 30 })
})

test('equal prices of least-cost routes are shared, dearer ones wait', () => {
  const lcr = { mode: 'lcr', distribution: 'percent' } as const
  const priced = carriers.map((carrier) => ({ ...carrier, ratePlanId: carrier.carrierId }))
  const routes = [
    route(1, { ...lcr, weight: 25 }),
    route(2, { ...lcr, weight: 75 }),
    route(3, { ...lcr, weight: 100 }),
  ]
  const { routing } = routingOver(
    { carriers: priced, outboundRoutes: routes },
    {
      carrierPrice: (plan) => ({
        tariff: perSecond(plan === 3 ? 20_000 : 10_000),
        isBlocked: false,
      }),
    },
  )
  expect(counted(firstOf(routing, 100))).toEqual({ 1: 25, 2: 75 })
})

test.each([
  ['percent', { 1: 80, 2: 20 }],
  ['round_robin', { 1: 50, 2: 50 }],
] as const)('gateways of a carrier share its calls: %s', (distribution, expected) => {
  const gateways = [
    sampleGateway(1, { weight: 80 }),
    sampleGateway(2, { weight: 20 }),
    sampleGateway(3, { priority: 20 }),
  ]
  const carrier = sampleCarrier(1, { gateways, distribution })
  const { routing } = routingOver({ carriers: [carrier], outboundRoutes: [route(1)] })
  expect(counted(firstOf(routing, 100))).toEqual(expected)
})

test('asking which way calls would go takes no turn', () => {
  const routes = [1, 2].map((id) => route(id, { distribution: 'round_robin' }))
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  const looking = { random: () => 0.5, passOver: () => undefined }
  for (let call = 0; call < 3; call += 1) {
    const decision = routing.outboundCandidates(null, '49301234', null, looking)
    expect(decision).toMatchObject({ gateways: [{ gatewayId: 1 }, {}], isInTurn: true })
    expect(routing.sentNumbers('49301234', { customerId: null, tenantId: null })).toEqual([])
  }
  expect(firstOf(routing, 2)).toEqual([1, 2])
})

test('a changed weight holds from the next call on', async () => {
  const before = [70, 30].map((weight, at) => route(at + 1, { weight, distribution: 'percent' }))
  const { routing, stored } = routingOver({ carriers, outboundRoutes: before })
  firstOf(routing, 10)
  const outboundRoutes = [route(1, { weight: 20, distribution: 'percent' })]
  stored.records = { ...stored.records, outboundRoutes }
  await routing.reload({ of: 'outbound_route', ids: [1] })
  expect(counted(firstOf(routing, 50))).toEqual({ 1: 20, 2: 30 })
})

test('emergency calls are drawn, and take nobody’s turn', () => {
  const urgent = [1, 2].map((id) =>
    route(id, { prefix: '112', isEmergency: true, distribution: 'round_robin' }),
  )
  const { routing } = routingOver({ carriers, outboundRoutes: urgent })
  const decision = routing.outboundCandidates(null, '112')
  expect(decision).toMatchObject({ isEmergency: true })
  expect(decision).not.toHaveProperty('isInTurn')
})

const floors = {
  minAsr: 50,
  minAcdSeconds: null,
  maxPddMs: null,
  windowSeconds: 900,
  minCalls: 10,
}

function measuredRouting(fields: Partial<OutboundRouteRecord> = {}) {
  const told: unknown[] = []
  const routes = [
    route(1, { floors, tenantId: 8, ...fields }),
    route(2, { prefix: '4' }),
    route(3, { prefix: '' }),
  ]
  const rig = routingOver(
    { carriers, outboundRoutes: routes },
    {
      onQuality: ({ kind }, { route: name, carrier, tenantId }) =>
        told.push([kind, name, carrier, tenantId]),
    },
  )
  const order = (only?: readonly number[]) => {
    const decision = rig.routing.outboundCandidates(null, '49301234', 8, undefined, only)
    return decision.kind === 'gateways' ? decision.gateways.map((each) => each.gatewayId) : []
  }
  const fail = (carrierId = 1, calls = 10) => {
    for (let call = 0; call < calls; call += 1)
      rig.routing.noteAttempt({ measuredBy: 1, carrierId }, false, null)
  }
  return { ...rig, told, order, fail }
}

test('a carrier below its floors is tried last, of whatever prefix and owner the others are', () => {
  const { order, fail, told, clock } = measuredRouting()
  fail(1, 9)
  expect(order()).toEqual([1, 2, 3])
  fail(1, 1)
  expect(order()).toEqual([2, 3, 1])
  expect(told).toEqual([['low', 'route 1', 'carrier 1', 8]])
  // What a hook has said stands.
  expect(order([1, 2])).toEqual([1, 2])
  clock.now += 900_000
  expect(order()).toEqual([1, 2, 3])
})

test('a low carrier is no reason to refuse a call: alone it is still tried', () => {
  const { fail, order, reachability } = measuredRouting()
  fail()
  for (const id of [2, 3]) reachability.set(id, 'down')
  expect(order()).toEqual([1])
})

test('a low route gets no share, and its equals share what is left', () => {
  const percent = { distribution: 'percent', floors } as const
  const routes = [50, 25, 25].map((weight, at) => route(at + 1, { ...percent, weight }))
  const { routing } = routingOver({ carriers, outboundRoutes: routes })
  for (let call = 0; call < 10; call += 1)
    routing.noteAttempt({ measuredBy: 1, carrierId: 1 }, false, null)
  expect(counted(firstOf(routing, 100))).toEqual({ 2: 50, 3: 50 })
})

test('calls of a carrier that the route had before say nothing about the present one', async () => {
  const { routing, fail, stored, told, order } = measuredRouting()
  fail(1)
  const changed = route(1, { floors, tenantId: 8, carrierId: 3 })
  stored.records = { ...stored.records, outboundRoutes: [changed] }
  await routing.reload({ of: 'outbound_route', ids: [1] })
  const about = ['route 1', 'carrier 1', 8]
  expect(told).toEqual([
    ['low', ...about],
    ['restored', ...about],
  ])
  fail(1)
  expect(routing.qualityOf(1)).toMatchObject({ state: 'good', figures: { attempts: 0 } })
  expect(order()).toEqual([3, 2, 3])
})

test('another name changes nothing; without floors a route is measured no longer', async () => {
  const { routing, fail, stored, order } = measuredRouting()
  fail()
  const named = route(1, { floors, tenantId: 8, name: 'other' })
  stored.records = { ...stored.records, outboundRoutes: [named] }
  await routing.reload({ of: 'outbound_route', ids: [1] })
  expect(routing.qualityOf(1)).toMatchObject({ state: 'low', route: 'other' })
  await routing.reload()
  expect(order()).toEqual([1])
  stored.records = { ...stored.records, outboundRoutes: [] }
  await routing.reload({ of: 'outbound_route', ids: [1] })
  expect(routing.qualityOf(1)).toBeUndefined()
  expect(routing.qualities()).toEqual([])
})

test.each([{ isEmergency: true, prefix: '112' }, { mode: 'block' }, { isActive: false }] as const)(
  'a route with %j is not measured',
  (fields) => {
    const { routing, fail } = measuredRouting(fields)
    fail()
    expect(routing.qualityOf(1)).toBeUndefined()
  },
)
