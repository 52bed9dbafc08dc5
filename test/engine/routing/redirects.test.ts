/** Where a carrier's 3xx may send a call: nowhere that the caller's routes do not lead. */
import { expect, test } from 'vitest'
import type { CarrierPrice } from '../../../engine/routing/outbound-routes.ts'
import type { Sales } from '../../../engine/routing/loss-guard.ts'
import type { RedirectedCall, RedirectTarget } from '../../../engine/routing/redirects.ts'
import type { Routing, RoutingDeps } from '../../../engine/routing/routing.ts'
import type { LossTerms } from '../../../schema/rules/loss-protection.ts'
import { outboundRoute, perSecond, routingOver, sampleCarrier, sampleGateway } from './samples.ts'

const carriers = [
  sampleCarrier(1),
  sampleCarrier(2, { ratePlanId: 7 }),
  sampleCarrier(3, { tenantId: 3 }),
  sampleCarrier(4, { tenantId: 4 }),
  sampleCarrier(5, { isActive: false }),
  sampleCarrier(6, { direction: 'in' }),
  sampleCarrier(7, { gateways: [sampleGateway(7, { isOutbound: false })] }),
  sampleCarrier(8, {
    numberRules: { in: (number) => number, out: (number) => `9${number}` },
    gateways: [
      sampleGateway(8, { host: 'Gw.Example', port: 0, transport: 'tls' }),
      sampleGateway(9, { host: '2001:db8::9', port: 5_080, transport: 'tcp' }),
    ],
  }),
  sampleCarrier(10),
]

const outboundRoutes = [
  ...[1, 2, 5, 6, 7, 8].map((carrierId) => outboundRoute(carrierId, { carrierId })),
  outboundRoute(3, { carrierId: 3, tenantId: 3 }),
  outboundRoute(4, { carrierId: 4, tenantId: 4 }),
  outboundRoute(10, { carrierId: 10, customerId: 8, tenantId: null }),
  outboundRoute(11, { carrierId: null, mode: 'block', prefix: '4990' }),
  outboundRoute(12, { carrierId: 1, prefix: '112', isEmergency: true }),
]

const prices: Readonly<Record<string, number>> = { '4930': 20, '4940': 20, '4950': 21 }
const carrierPrice = (_: number, number: string): CarrierPrice | undefined => {
  const minuteMicros = prices[number]
  return minuteMicros === undefined
    ? undefined
    : { tariff: perSecond(minuteMicros), isBlocked: false }
}

const { routing, reachability } = routingOver({ carriers, outboundRoutes }, { carrierPrice })

const redirected = (target: Partial<RedirectTarget>, call: Partial<RedirectedCall> = {}) => {
  const found = routing.redirected(
    {
      caller: { customerId: 7, tenantId: 3 },
      dialled: '4930',
      byTenantId: null,
      sent: '004930',
      sentFor: call.dialled ?? '4930',
      isEmergency: false,
      ...call,
    },
    {
      host: '203.0.113.2',
      port: 0,
      transport: undefined,
      isSecure: false,
      number: '4930',
      ...target,
    },
  )
  return typeof found === 'string' ? found : `${found.carrierName}: ${found.number}`
}

const host = (id: number) => ({ host: `203.0.113.${id}` })

test('a known gateway gets the number that the redirect server names', () => {
  expect(redirected({})).toBe('carrier 2: 4930')
  expect(redirected({ port: 5_060, transport: 'udp' })).toBe('carrier 2: 4930')
  expect(redirected({ number: '+4930' })).toBe('carrier 2: +4930')
  expect(redirected({ number: '004930' })).toBe('carrier 2: 004930')
  expect(redirected({ port: 5_061 })).toBe('unknown_gateway')
  expect(redirected({ transport: 'tcp' })).toBe('unknown_gateway')
  // Rules of the carrier have no say in it.
  const named = { host: 'gw.example', isSecure: true }
  expect(redirected(named)).toBe('carrier 8: 4930')
  expect(redirected({ ...named, port: 5_061 })).toBe('carrier 8: 4930')
  expect(redirected({ ...named, port: 5_060 })).toBe('unknown_gateway')
  expect(redirected({ host: '2001:db8::9', port: 5_080 })).toBe('carrier 8: 4930')
})

test('carriers that are off, only call or belong to somebody else are unknown', () => {
  expect([4, 5, 6, 7, 10, 99].map((id) => redirected(host(id)))).toEqual(
    Array.from({ length: 6 }, () => 'unknown_gateway'),
  )
  expect(redirected(host(3))).toBe('carrier 3: 4930')
  expect(redirected(host(3), { caller: { customerId: 7, tenantId: null } })).toBe('unknown_gateway')
  expect(redirected(host(10), { caller: { customerId: 8, tenantId: 3 } })).toBe('carrier 10: 4930')
  reachability.set(2, 'down')
  expect(redirected(host(2))).toBe('unknown_gateway')
  reachability.delete(2)
})

test("a tenant's redirect server chooses none of the platform's carriers", () => {
  expect(redirected(host(2), { byTenantId: 3 })).toBe('unknown_gateway')
  expect(redirected(host(3), { byTenantId: 3 })).toBe('carrier 3: 4930')
})

test('of the carriers that a hook has chosen, no other is reached', () => {
  expect(redirected(host(2), { only: [1] })).toBe('unknown_gateway')
  expect(redirected(host(2), { only: [1, 2] })).toBe('carrier 2: 4930')
})

test('another number is never dearer than the one that was dialled, and not blocked', () => {
  expect(redirected({ number: '4940' })).toBe('carrier 2: 4940')
  expect(redirected({ number: '4950' })).toBe('dearer')
  expect(redirected({ number: '4960' })).toBe('dearer')
  const untenanted = { caller: { customerId: 7, tenantId: null } }
  expect(redirected({ number: '4990' }, untenanted)).toBe('number_blocked')
  expect(redirected({ rn: '4990' }, untenanted)).toBe('number_blocked')
  // Carrier 1 has no price list: what another number costs is not known.
  expect(redirected({ ...host(1), number: '4940' })).toBe('dearer')
})

test('an emergency number is reached by dialling it alone', () => {
  expect(redirected({ ...host(1), number: '112' })).toBe('other_number')
  expect(redirected({ ...host(1), rn: '112' })).toBe('number_blocked')
  const urgent = { dialled: '112', sent: '112', isEmergency: true }
  expect(redirected({ ...host(1), number: '112' }, urgent)).toBe('carrier 1: 112')
  expect(redirected({ ...host(1), number: '4930' }, urgent)).toBe('other_number')
})

/** Two redirect targets, of which the second takes more for the dialled number. */
function protectedWorld(terms: readonly LossTerms[], more: Partial<RoutingDeps> = {}) {
  const taken: Readonly<Record<number, number>> = { 1: 20_000, 2: 90_000 }
  return routingOver(
    {
      carriers: [
        sampleCarrier(1, { ratePlanId: 1 }),
        sampleCarrier(2, { ratePlanId: 2 }),
        sampleCarrier(3, { ratePlanId: 3 }),
        sampleCarrier(4),
      ],
      outboundRoutes: [1, 2, 3, 4].map((carrierId) => outboundRoute(carrierId, { carrierId })),
    },
    {
      carrierPrice: (planId, number) => {
        const minuteMicros = taken[planId]
        if (minuteMicros === undefined) return undefined
        const micros = number === '4940' ? 10_000 : minuteMicros
        return { tariff: perSecond(micros), isBlocked: false }
      },
      sales: {
        termsOf: () => terms,
        tariffOf: () => perSecond(50_000),
        isBlocked: (customerId, number) => customerId === 7 && number.endsWith('4940'),
      },
      ...more,
    },
  ).routing
}

const refuse: LossTerms = {
  protection: 'refuse',
  leastMargin: { kind: 'amount', microsPerMinute: 0 },
  tenantId: null,
}

const call: RedirectedCall = {
  caller: { customerId: 7, tenantId: null },
  dialled: '4930',
  byTenantId: null,
  sent: '4930',
  sentFor: '4930',
  isEmergency: false,
}

const targetAt = (id: number, number = '4930'): RedirectTarget => ({
  ...{ host: `203.0.113.${id}`, port: 0, transport: undefined, isSecure: false, number },
})

const outcome = (found: ReturnType<Routing['redirected']>) =>
  typeof found === 'string' ? found : (found.profit?.verdict ?? found.carrierName)

test.each<[string, LossTerms[], string[]]>([
  ['nothing', [], ['carrier 1', 'carrier 2', 'carrier 3', 'carrier 4']],
  ['never', [{ ...refuse, protection: 'never' }], ['carrier 1', 'carrier 2', 'carrier 3']],
  ['warn', [{ ...refuse, protection: 'warn' }], ['carrier 1', 'warned', 'carrier 3', 'carrier 4']],
  ['refuse', [refuse], ['carrier 1', 'below_margin', 'carrier 3', 'carrier 4']],
  [
    'strict',
    [{ ...refuse, protection: 'strict' }],
    ['carrier 1', 'below_margin', 'below_margin', 'below_margin'],
  ],
])('loss protection that says %s holds for a redirection, too', (_, terms, expected) => {
  const routing = protectedWorld(terms)
  const found = expected.map((__, index) => outcome(routing.redirected(call, targetAt(index + 1))))
  expect(found).toEqual(expected)
})

test('another number is judged by what it costs, and by the price of the dialled one', () => {
  const routing = protectedWorld([refuse])
  const another = { ...call, caller: { customerId: 8, tenantId: null } }
  expect(outcome(routing.redirected(another, targetAt(2, '4940')))).toBe('carrier 2')
  const free = { ...call, caller: { customerId: null, tenantId: null } }
  expect(outcome(routing.redirected(free, targetAt(2)))).toBe('carrier 2')
})

test('what the plan of the payer blocks is no target, nor is it a routing number', () => {
  const routing = protectedWorld([])
  expect(outcome(routing.redirected(call, targetAt(1, '4940')))).toBe('number_blocked')
  const ported = { ...targetAt(1), rn: '+4940' }
  expect(outcome(routing.redirected(call, ported))).toBe('number_blocked')
  const another = { ...call, caller: { customerId: 8, tenantId: null } }
  expect(outcome(routing.redirected(another, ported))).toBe('carrier 1')
})

test('an emergency is redirected to a carrier whose price for it is blocked', () => {
  const { routing } = routingOver(
    {
      carriers: [sampleCarrier(1, { ratePlanId: 1 })],
      outboundRoutes: [outboundRoute(1, { carrierId: 1, prefix: '112', isEmergency: true })],
    },
    { carrierPrice: () => ({ tariff: perSecond(1), isBlocked: true }) },
  )
  const urgent = { ...call, dialled: '112', sent: '112', sentFor: '112', isEmergency: true }
  expect(outcome(routing.redirected(urgent, targetAt(1, '112')))).toBe('carrier 1')
})

test('the sale is asked for by what was dialled, with its routing number', () => {
  const asked: unknown[] = []
  const tariffOf: Sales['tariffOf'] = (...each) => {
    asked.push(each)
    return perSecond(50_000)
  }
  const sales: Sales = { termsOf: () => [refuse], tariffOf, isBlocked: () => false }
  const routing = protectedWorld([refuse], { sales })
  routing.redirected({ ...call, routingNumber: '4999' }, targetAt(1, '4940'))
  expect(asked).toEqual([[7, { calledNumber: '4930', sent: [], routingNumber: '4999' }]])
})

test('a least-cost route takes no redirected call at an unknown price', () => {
  const { routing: lcr } = routingOver({
    carriers: [sampleCarrier(1, { ratePlanId: 1 }), sampleCarrier(2)],
    outboundRoutes: [1, 2].map((carrierId) => outboundRoute(carrierId, { carrierId, mode: 'lcr' })),
  })
  expect(outcome(lcr.redirected(call, targetAt(1)))).toBe('no_carrier_price')
  expect(outcome(lcr.redirected(call, targetAt(2)))).toBe('carrier 2')
})

test('a second redirection does not make another number the dialled one', () => {
  const { routing: chained } = routingOver(
    {
      carriers: [1, 2].map((id) => sampleCarrier(id, { ratePlanId: id })),
      outboundRoutes: [1, 2].map((carrierId) => outboundRoute(carrierId, { carrierId })),
    },
    {
      carrierPrice: (planId, number) => ({
        tariff: perSecond(planId === 2 && number === '4940' ? 900_000 : 20_000),
        isBlocked: false,
      }),
    },
  )
  const first = chained.redirected(call, targetAt(1, '4940'))
  if (typeof first === 'string') throw new Error(first)
  const then = { ...call, sent: first.number, sentFor: first.bought.dialled }
  expect(outcome(chained.redirected(then, targetAt(2, '4940')))).toBe('dearer')
  expect(outcome(chained.redirected(then, targetAt(2)))).toBe('carrier 2')
})

test('a redirected call is measured for the route of its target', () => {
  const floors = {
    minAsr: 50,
    minAcdSeconds: null,
    maxPddMs: null,
    windowSeconds: 900,
    minCalls: 20,
  }
  const { routing: measured } = routingOver({
    carriers: [sampleCarrier(1), sampleCarrier(2)],
    outboundRoutes: [
      outboundRoute(11, { carrierId: 1 }),
      outboundRoute(12, { carrierId: 2, floors }),
      outboundRoute(13, { carrierId: 2, prefix: '112', isEmergency: true, floors }),
    ],
  })
  expect(measured.redirected(call, targetAt(2))).toMatchObject({ measuredBy: 12 })
  expect(measured.redirected(call, targetAt(1))).not.toHaveProperty('measuredBy')
  const urgent = { ...call, dialled: '112', sent: '112', sentFor: '112', isEmergency: true }
  const found = measured.redirected(urgent, targetAt(2, '112'))
  expect(found).toMatchObject({ number: '112' })
  expect(found).not.toHaveProperty('measuredBy')
})
