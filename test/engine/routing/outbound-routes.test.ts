import { expect, test } from 'vitest'
import {
  type OutboundCaller,
  OutboundRoutes,
  rewriteByRoute,
  orderByPreference,
  type CarrierPrice,
  leastCostFirst,
} from '../../../engine/routing/outbound-routes.ts'
import type { OutboundRouteRecord } from '../../../engine/routing/routing-records.ts'
import { outboundRoute, routingOver, sampleCarrier } from './samples.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const acme: OutboundCaller = { customerId: 3, tenantId: 8 }
const free = () => undefined

function matched(
  routes: readonly OutboundRouteRecord[],
  number = '49301234',
  caller = acme,
): readonly number[] | string {
  const match = new OutboundRoutes(routes).match(caller, number, seededRandom(1), free)
  if (match.kind === 'blocked') return 'blocked'
  return match.routes.map((route) => route.routeId)
}

test("the customer's routes come first, then its tenant's, then global ones", () => {
  const routes = [
    outboundRoute(1, { prefix: '4930' }),
    outboundRoute(2, { prefix: '493', tenantId: 8 }),
    outboundRoute(3, { prefix: '4', customerId: 3 }),
  ]
  expect(matched(routes)).toEqual([3, 2, 1])
})

test('routes of other customers and tenants do not exist for a caller', () => {
  const routes = [
    outboundRoute(1, { customerId: 4 }),
    outboundRoute(2, { tenantId: 9 }),
    outboundRoute(3, { isActive: false }),
  ]
  expect(matched(routes)).toEqual([])
  expect(matched(routes, '49', { customerId: null, tenantId: null })).toEqual([])
})

test('among those the longest prefix comes first, then the lower priority number', () => {
  const routes = [
    outboundRoute(1, { prefix: '' }),
    outboundRoute(2, { prefix: '49', priority: 20 }),
    outboundRoute(3, { prefix: '49', priority: 5 }),
    outboundRoute(4, { prefix: '+4930', priority: 90 }),
    outboundRoute(5, { prefix: '44' }),
  ]
  expect(matched(routes)).toEqual([4, 3, 2, 1])
})

test('a block before every other route refuses the call', () => {
  const block = outboundRoute(2, { prefix: '4990', mode: 'block' })
  const routes = [outboundRoute(1), block]
  expect(matched(routes, '4990123')).toBe('blocked')
  expect(matched(routes, '4930')).toEqual([1])
})

test('a block is not drawn: of routes with one prefix and priority it stands first', () => {
  const routes = [
    outboundRoute(1, { prefix: '49', weight: 100 }),
    outboundRoute(2, { prefix: '49', weight: 1, mode: 'block' }),
  ]
  const random = seededRandom(5)
  const kinds = new Set(
    [routes, routes.toReversed()].flatMap((each) =>
      Array.from(
        { length: 50 },
        () => new OutboundRoutes(each).match(acme, '49301234', random, free).kind,
      ),
    ),
  )
  expect([...kinds]).toEqual(['blocked'])
})

test('a block behind other routes ends the list: failover does not pass it', () => {
  const routes = [
    outboundRoute(1, { prefix: '4930' }),
    outboundRoute(2, { prefix: '49', mode: 'block' }),
    outboundRoute(3, { prefix: '' }),
  ]
  expect(matched(routes)).toEqual([1])
})

test('an emergency number passes every block and comes before every other route', () => {
  const routes = [
    outboundRoute(1, { prefix: '1', mode: 'block', customerId: 3 }),
    outboundRoute(2, { prefix: '112', isEmergency: true }),
    outboundRoute(3, { prefix: '112' }),
  ]
  const match = new OutboundRoutes(routes).match(acme, '112', seededRandom(1), free)
  expect(match).toMatchObject({ kind: 'emergency', routes: [{ routeId: 2 }] })
})

test('an emergency number cannot be blocked by a route of its own either', () => {
  const block = outboundRoute(1, { prefix: '112', isEmergency: true, mode: 'block' })
  const match = new OutboundRoutes([block, outboundRoute(2)]).match(
    acme,
    '112',
    seededRandom(1),
    free,
  )
  expect(match).toMatchObject({ kind: 'routes', routes: [{ routeId: 2 }] })
})

test('whether a number is an emergency number is known before its caller is', () => {
  const routes = new OutboundRoutes([
    outboundRoute(1, { prefix: '112', isEmergency: true, customerId: 3 }),
    outboundRoute(2, { prefix: '+911', isEmergency: true }),
    outboundRoute(3, { prefix: '999', isEmergency: true, isActive: false }),
    outboundRoute(4, { prefix: '49' }),
  ])
  const numbers = ['112', '911', '+911', '1123', '999', '49', '']
  expect(numbers.filter((number) => routes.isEmergencyNumber(number))).toEqual([
    '112',
    '911',
    '+911',
  ])
})

test.each([
  ['+493012', 0, '', '+493012'],
  ['+493012', 2, '0', '03012'],
  ['493012', 2, '', '3012'],
  ['3012', 0, '+49', '+493012'],
  ['+493012', 0, '00', '00493012'],
  ['12', 5, '9', '9'],
])('%s with strip %i and prepend "%s" is sent as %s', (number, strip, prepend, sent) => {
  expect(rewriteByRoute(outboundRoute(1, { strip, prepend }), number)).toBe(sent)
})

test.each([
  ['+441632960000', 0, '00441632960000'],
  ['+441632960000', 2, '441632960000'],
  // It still begins with the code.
  ['000441632960000', 0, '000441632960000'],
  ['000441632960000', 2, '0441632960000'],
])('by a route for 00, an exit code, %s with strip %i is sent as %s', (number, strip, sent) => {
  const route = outboundRoute(1, { prefix: '00', strip, prepend: '' })
  expect(rewriteByRoute(route, number, ['00'])).toBe(sent)
})

test('among equals the first is drawn in proportion to the weights', () => {
  const items = [10, 30, 60].map((weight) => ({ priority: 1, weight }))
  const random = seededRandom(2)
  const counts = new Map<number, number>()
  for (let draw = 0; draw < 10_000; draw += 1) {
    const weight = orderByPreference(items, random)[0]?.weight ?? 0
    counts.set(weight, (counts.get(weight) ?? 0) + 1)
  }
  for (const { weight } of items)
    expect(Math.abs((counts.get(weight) ?? 0) - weight * 100)).toBeLessThan(200)
})

const costs = (minuteMicros: number, isBlocked = false): CarrierPrice => ({
  isBlocked,
  tariff: {
    prefix: '4',
    currency: 'EUR',
    connectFeeMicros: 0,
    firstIncrementSeconds: 1,
    firstRatePerMinuteMicros: minuteMicros,
    incrementSeconds: 1,
    ratePerMinuteMicros: minuteMicros,
    decimals: 6,
  },
})

/** Route ids in their order, with the price of each. */
const ordered = (
  modes: readonly ('static' | 'lcr')[],
  prices: readonly (number | undefined)[],
): readonly number[] =>
  leastCostFirst(
    modes.map((mode, index) => outboundRoute(index, { mode })),
    ({ routeId }) => {
      const price = prices[routeId]
      return price === undefined ? undefined : { ...costs(price), expectedMicros: price }
    },
  ).map(({ routeId }) => routeId)

test.each([
  ['the cheapest first', ['lcr', 'lcr', 'lcr'], [30, 10, 20], [1, 2, 0]],
  ['equal prices in order of preference', ['lcr', 'lcr', 'lcr'], [10, 5, 10], [1, 0, 2]],
  ['no price last', ['lcr', 'lcr', 'lcr'], [undefined, 7, undefined], [1, 0, 2]],
  [
    'static routes keep their place',
    ['static', 'lcr', 'static', 'lcr'],
    [9, 2, 9, 1],
    [0, 3, 1, 2],
  ],
  ['without lcr nothing changes', ['static', 'static'], [2, 1], [0, 1]],
] as const)('%s', (_, modes, prices, expected) => {
  expect(ordered(modes, prices)).toEqual(expected)
})

const lcrRoutes = [1, 2, 3].map((id) => outboundRoute(id, { carrierId: id, mode: 'lcr' as const }))
const carriers = [1, 2, 3].map((id) => sampleCarrier(id, { ratePlanId: 10 * id }))

/** Carriers in the order in which a call tries them. */
function tried(
  prices: Readonly<Record<number, CarrierPrice>>,
  number = '4930',
  routes = lcrRoutes,
) {
  const { routing } = routingOver(
    { carriers, outboundRoutes: routes },
    { carrierPrice: (planId) => prices[planId] },
  )
  const decision = routing.outboundCandidates(3, number)
  return decision.kind === 'gateways'
    ? decision.gateways.map(({ carrierId }) => carrierId)
    : decision.kind
}

test('a call goes to the cheapest carrier, and on to the next', () => {
  expect(tried({ 10: costs(30), 20: costs(10), 30: costs(20) })).toEqual([2, 3, 1])
})

test('the price of a carrier is looked up once for a call, however many routes compare it', () => {
  const asked: number[] = []
  const { routing } = routingOver(
    { carriers, outboundRoutes: lcrRoutes },
    {
      carrierPrice: (planId) => {
        asked.push(planId)
        return costs(planId)
      },
    },
  )
  routing.outboundCandidates(3, '4930')
  expect(asked.toSorted((one, other) => one - other)).toEqual([10, 20, 30])
})

test('what is bought is the number that is sent, by the list of the carrier, at the time of answer', () => {
  const asked: unknown[] = []
  const carrier = sampleCarrier(1, { ratePlanId: 10, tenantId: 5 })
  const route = outboundRoute(1, { carrierId: 1, strip: 2, prepend: '0049' })
  const { routing } = routingOver(
    { carriers: [carrier], outboundRoutes: [route] },
    {
      carrierPrice: (...each) => {
        asked.push(each)
        return costs(7)
      },
    },
  )
  const decision = routing.outboundCandidates(3, '4930')
  expect(asked).toEqual([])
  const [gateway] = decision.kind === 'gateways' ? decision.gateways : []
  expect(gateway?.bought).toEqual({
    number: '004930',
    dialled: '4930',
    ratePlanId: 10,
    tenantId: 5,
  })
  expect(gateway && routing.boughtPrice(gateway.bought, 1_000)).toEqual({
    tariff: costs(7).tariff,
    tenantId: 5,
    number: '004930',
  })
  expect(asked).toEqual([
    [10, '004930', 1_000],
    [10, '4930', 1_000],
  ])
})

test('a list that blocks the number has no price for a call that its carrier has answered', () => {
  const { routing } = routingOver(
    { carriers, outboundRoutes: lcrRoutes },
    {
      carrierPrice: () => costs(0, true),
    },
  )
  const bought = { number: '4930', dialled: '4930', tenantId: null }
  expect(routing.boughtPrice({ ...bought, ratePlanId: 10 }, 0)).toBeUndefined()
  expect(routing.boughtPrice({ ...bought, ratePlanId: null }, 0)).toBeUndefined()
})

test('a carrier whose list blocks the number is not asked; with no other the call is refused', () => {
  const blocked = costs(0, true)
  expect(tried({ 10: costs(5), 20: blocked, 30: costs(9) })).toEqual([1, 3])
  expect(tried({ 10: blocked, 20: blocked, 30: blocked })).toBe('unavailable')
})

test('an emergency number is not shopped for', () => {
  const routes = lcrRoutes.map((route, index) => ({
    ...route,
    prefix: '112',
    isEmergency: true,
    priority: index + 1,
  }))
  expect(tried({ 10: costs(30), 20: costs(10), 30: costs(20) }, '112', routes)).toEqual([1, 2, 3])
})
