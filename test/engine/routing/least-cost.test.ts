import { expect, test } from 'vitest'
import { type CarrierPrice, leastCostFirst } from '../../../engine/routing/outbound-routes.ts'
import { outboundRoute, routingOver, sampleCarrier } from './samples.ts'

const costs = (minuteMicros: number): CarrierPrice => ({ minuteMicros, isBlocked: false })

/** Route ids in their order, with the price of each. */
const ordered = (
  modes: readonly ('static' | 'lcr')[],
  prices: readonly (number | undefined)[],
): readonly number[] =>
  leastCostFirst(
    modes.map((mode, index) => outboundRoute(index, { mode })),
    ({ routeId }) => {
      const price = prices[routeId]
      return price === undefined ? undefined : costs(price)
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

test('a carrier whose list blocks the number is not asked; with no other the call is refused', () => {
  const blocked = { minuteMicros: 0, isBlocked: true }
  expect(tried({ 10: costs(5), 20: blocked })).toEqual([1, 3])
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
