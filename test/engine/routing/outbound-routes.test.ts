import { expect, test } from 'vitest'
import {
  type OutboundCaller,
  OutboundRoutes,
  rewriteByRoute,
} from '../../../engine/routing/outbound-routes.ts'
import type { OutboundRouteRecord } from '../../../engine/routing/routing-records.ts'
import { outboundRoute } from './samples.ts'
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
