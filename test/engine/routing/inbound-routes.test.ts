import { expect, test } from 'vitest'
import { type InboundCaller, InboundRoutes } from '../../../engine/routing/inbound-routes.ts'
import type { InboundRouteRecord } from '../../../engine/routing/routing-records.ts'
import { Tenancy } from '../../../engine/routing/tenancy.ts'
import { inboundRoute, tenantRecord } from './samples.ts'

const tenancy = new Tenancy([
  tenantRecord(5, { numbers: ['4930', '1800'], domains: ['five.example'] }),
  tenantRecord(6, { numbers: ['493012'], domains: ['six.example'] }),
])

const node: InboundCaller = { carrierId: null, tenantId: null }

/** The id of the route that is chosen: sample routes lead to the set of their own number. */
function chosen(
  routes: readonly InboundRouteRecord[],
  number = '49301234',
  domain = 'pbx.example.com',
  caller = node,
): number | undefined {
  const target = new InboundRoutes(routes, tenancy).find(caller, number, domain)
  return target?.kind === 'set' ? target.setId : undefined
}

test('the longest prefix wins, whatever the priorities', () => {
  const routes = [
    inboundRoute(1, { prefix: '49', priority: 1 }),
    inboundRoute(2, { prefix: '+4930', priority: 99 }),
    inboundRoute(3, { prefix: '4989' }),
  ]
  expect(chosen(routes)).toBe(2)
  expect(chosen(routes.toReversed())).toBe(2)
})

test('of equal prefixes the lower priority number wins, then the older route', () => {
  expect(
    chosen([inboundRoute(1, { prefix: '49' }), inboundRoute(2, { prefix: '49', priority: 5 })]),
  ).toBe(2)
  expect(chosen([inboundRoute(2, { prefix: '49' }), inboundRoute(1, { prefix: '+49' })])).toBe(1)
})

test('a named domain beats a longer prefix without one, in any case of letters', () => {
  const routes = [
    inboundRoute(1, { prefix: '4930' }),
    inboundRoute(2, { domain: 'PBX.example.com' }),
  ]
  expect(chosen(routes)).toBe(2)
  expect(chosen(routes, '49301234', 'other.example.com')).toBe(1)
})

test("a carrier's own route beats common ones and is for this carrier only", () => {
  const routes = [inboundRoute(1, { prefix: '4930' }), inboundRoute(2, { carrierId: 7 })]
  expect(chosen(routes, '4930', '', { carrierId: 7, tenantId: null })).toBe(2)
  expect(chosen(routes, '4930', '', { carrierId: 8, tenantId: null })).toBe(1)
  expect(chosen(routes)).toBe(1)
})

test("a carrier of the platform reaches a tenant's route by the tenant's numbers and domains only", () => {
  const five = (fields: Partial<InboundRouteRecord>) => [
    inboundRoute(1, { tenantId: 5, ...fields }),
  ]
  for (const route of [five({}), five({ prefix: '' }), five({ prefix: '+49' })]) {
    expect(chosen(route, '+49309')).toBe(1)
    // A part of its block is the other tenant's.
    expect(chosen(route, '4930123')).toBeUndefined()
    expect(chosen(route, '491111')).toBeUndefined()
  }
  expect(chosen(five({ prefix: '1900' }), '19005551234')).toBeUndefined()
  expect(chosen(five({ domain: 'five.example' }), '1', 'FIVE.example')).toBe(1)
  expect(chosen(five({ domain: 'six.example' }), '1', 'six.example')).toBeUndefined()
  expect(chosen(five({ domain: 'pbx.example' }), '1', 'pbx.example')).toBeUndefined()
})

test('a carrier of a tenant reaches the routes of its tenant by any number', () => {
  const own = { carrierId: 7, tenantId: 5 }
  const route = [inboundRoute(1, { tenantId: 5, prefix: '1900' })]
  expect(chosen(route, '1900555', 'six.example', own)).toBe(1)
})

test("a platform's route comes before a tenant's of the same prefix, whatever the priorities", () => {
  const routes = [
    inboundRoute(1, { tenantId: 5, prefix: '4930', priority: 1 }),
    inboundRoute(2, { prefix: '4930', priority: 99 }),
  ]
  expect(chosen(routes, '49309')).toBe(2)
  expect(chosen(routes.toReversed(), '49309')).toBe(2)
  expect(chosen(routes, '49309', '', { carrierId: 7, tenantId: 5 })).toBe(1)
})

test('an inactive route does not exist', () => {
  expect(chosen([inboundRoute(1, { isActive: false })])).toBeUndefined()
})

test('of equal routes the one for the verification of the call wins, whatever the priorities', () => {
  const routes = [
    inboundRoute(1, { prefix: '49', priority: 1 }),
    inboundRoute(2, { prefix: '49', priority: 99, verification: 'failed' }),
    inboundRoute(3, { prefix: '4930', verification: 'none' }),
  ]
  const by = (verification?: 'passed' | 'failed' | 'none') => {
    const target = new InboundRoutes(routes, tenancy).find(node, '4930', '', verification)
    return target?.kind === 'set' ? target.setId : undefined
  }
  expect([by(), by('passed'), by('failed'), by('none')]).toEqual([1, 1, 2, 3])
})
