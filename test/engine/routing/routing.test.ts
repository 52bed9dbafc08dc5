import { expect, test } from 'vitest'
import type { AgentRecord } from '../../../engine/routing/routing-records.ts'
import {
  inboundRoute,
  outboundRoute,
  routingOver,
  sampleCarrier,
  sampleGateway,
  noLookUp,
} from './samples.ts'

const platformNode = { nodeId: 2, setId: 3, tenantId: null, isNamed: false }

const source = (address: string, port = 5060) => ({ address, port })

test('a source is a carrier, then a node, then trusted, else unknown', () => {
  const carrier = sampleCarrier(1, {
    customerId: 4,
    inboundSetId: 6,
    gateways: [sampleGateway(9, { host: '127.0.0.1', port: 5090 })],
  })
  const { routing } = routingOver(
    { carriers: [carrier] },
    { nodeAt: (_, port) => (port >= 5070 ? platformNode : undefined) },
  )
  expect(routing.recognize(source('127.0.0.1', 5090))).toEqual({
    kind: 'carrier',
    carrierId: 1,
    gatewayId: 9,
    name: 'carrier 1',
    customerId: 4,
    payer: 'customer',
    tenantId: null,
    inboundSetId: 6,
  })
  expect(routing.recognize(source('127.0.0.1', 5070))).toEqual({
    kind: 'node',
    nodeId: 2,
    setId: 3,
  })
  expect(routing.recognize(source('127.0.0.1'))).toEqual({ kind: 'trusted' })
  expect(routing.recognize(source('192.0.2.1'))).toEqual({ kind: 'unknown' })
})

// RFC 3263 §4.2: the carrier's SRV records say which hosts it has, and it calls from those.
test('a gateway by name alone is recognized where its SRV records lead, one with a port is not', () => {
  const addresses: Readonly<Record<string, readonly string[]>> = {
    'sip.example.com': ['198.51.100.1'],
    '_sip._udp.sip.example.com': ['198.51.100.2', '198.51.100.3'],
  }
  const watched: string[] = []
  const hosts = {
    version: 0,
    addressesOf: (host: string) => addresses[host] ?? [],
    watch: (_owner: string, names: readonly string[]) => void watched.push(...names),
    lookUp: noLookUp,
  }
  const found = (port: number) => {
    const gateways = [sampleGateway(1, { host: 'sip.example.com', port })]
    const { routing } = routingOver({ carriers: [sampleCarrier(1, { gateways })] }, { hosts })
    return [1, 2, 3].map((last) => routing.recognize(source(`198.51.100.${last}`)).kind)
  }
  expect(found(0)).toEqual(['carrier', 'carrier', 'carrier'])
  expect(watched.splice(0)).toEqual(['sip.example.com', '_sip._udp.sip.example.com'])
  expect(found(5_060)).toEqual(['carrier', 'unknown', 'unknown'])
  expect(watched).toEqual(['sip.example.com'])
})

test("a carrier's calls go to its own set, before any inbound route", () => {
  const { routing } = routingOver({
    carriers: [sampleCarrier(1, { inboundSetId: 6 }), sampleCarrier(2)],
    inboundRoutes: [inboundRoute(4)],
  })
  const targets = [1, 2].map((carrier) =>
    routing.inboundTarget(routing.recognize(source(`203.0.113.${carrier}`)), '49', ''),
  )
  expect(targets).toEqual([
    { kind: 'set', setId: 6 },
    { kind: 'set', setId: 4 },
  ])
})

test('without a route a call goes to the default set, and nowhere when there is none', () => {
  expect(routingOver({}).routing.inboundTarget({ kind: 'trusted' }, '49', '')).toEqual({
    kind: 'default',
    setId: 1,
  })
  const { routing } = routingOver({}, { defaultSetId: () => undefined })
  expect(routing.inboundTarget({ kind: 'trusted' }, '49', '')).toEqual({ kind: 'none' })
})

test('a number from a carrier is rewritten by its rules, other numbers stay', () => {
  const numberRules = { in: (number: string) => `+49${number}`, out: (number: string) => number }
  const { routing } = routingOver({ carriers: [sampleCarrier(1, { numberRules })] })
  expect(routing.inboundNumber(routing.recognize(source('203.0.113.1')), '30')).toBe('+4930')
  expect(routing.inboundNumber({ kind: 'trusted' }, '30')).toBe('30')
})

test('a call out is offered the gateways of its routes, each with the number it wants', () => {
  const numberRules = { in: (number: string) => number, out: (number: string) => `#${number}` }
  const gateways = [
    sampleGateway(1, { priority: 20, port: 0 }),
    sampleGateway(2, { priority: 10, host: '2001:db8::2', transport: 'tls', port: 0 }),
    sampleGateway(3, { isOutbound: false }),
  ]
  const { routing } = routingOver({
    carriers: [sampleCarrier(1, { gateways, numberRules }), sampleCarrier(2)],
    outboundRoutes: [
      outboundRoute(1, { prefix: '49', strip: 2, prepend: '0' }),
      outboundRoute(2, { carrierId: 2 }),
    ],
  })
  const decision = routing.outboundCandidates(null, '+4930')
  if (decision.kind !== 'gateways') throw new Error(decision.kind)
  expect(decision.isEmergency).toBe(false)
  expect(decision.gateways.map(({ uri, number, routeName }) => [uri, number, routeName])).toEqual([
    ['sip:[2001:db8::2]:5061;transport=tls', '#030', 'route 1'],
    ['sip:203.0.113.1:5060;transport=udp', '#030', 'route 1'],
    ['sip:203.0.113.2:5060;transport=udp', '+4930', 'route 2'],
  ])
})

test('a route that strips the whole number offers no gateway', () => {
  const { routing } = routingOver({
    carriers: [sampleCarrier(1), sampleCarrier(2)],
    outboundRoutes: [
      outboundRoute(1, { prefix: '9', strip: 1 }),
      outboundRoute(2, { carrierId: 2 }),
    ],
  })
  const offered = (number: string) => {
    const decision = routing.outboundCandidates(null, number)
    return decision.kind === 'gateways' ? decision.gateways.map((each) => each.number) : decision
  }
  expect(offered('91')).toEqual(['1', '91'])
  expect(offered('9')).toEqual(['9'])
})

test('a blocked number, a number without a route and routes that cannot be used are told apart', () => {
  const { routing, reachability } = routingOver({
    carriers: [
      sampleCarrier(1),
      sampleCarrier(2, { direction: 'in' }),
      sampleCarrier(3, { isActive: false }),
    ],
    outboundRoutes: [
      outboundRoute(1, { prefix: '1' }),
      outboundRoute(2, { prefix: '2', carrierId: 2 }),
      outboundRoute(3, { prefix: '3', carrierId: 3 }),
      outboundRoute(4, { prefix: '4', mode: 'block' }),
      outboundRoute(5, { prefix: '5', carrierId: null }),
    ],
  })
  const kinds = () =>
    ['1', '2', '3', '4', '5', '6'].map((n) => routing.outboundCandidates(null, n).kind)
  const usual = ['unavailable', 'unavailable', 'blocked', 'unavailable', 'none']
  expect(kinds()).toEqual(['gateways', ...usual])
  reachability.set(1, 'down')
  expect(kinds()).toEqual(['unavailable', ...usual])
})

test('asked for one carrier, routes to others are as if they were not there; blocks and callers count', () => {
  const { routing, calls } = routingOver({
    carriers: [sampleCarrier(1), sampleCarrier(2, { maxCalls: 1 }), sampleCarrier(3)],
    outboundRoutes: [
      outboundRoute(1, { prefix: '49', priority: 1 }),
      outboundRoute(2, { prefix: '49', priority: 2, carrierId: 2, strip: 2, prepend: '0' }),
      outboundRoute(3, { prefix: '49', priority: 3, mode: 'block' }),
      outboundRoute(4, { prefix: '49', priority: 4, carrierId: 3 }),
      outboundRoute(5, { prefix: '49', carrierId: 3, customerId: 7 }),
    ],
  })
  const only = (carrierId: number, customerId: number | null = null) =>
    routing.outboundCandidates(customerId, '4930', null, undefined, [carrierId])
  expect(only(2)).toMatchObject({ kind: 'gateways', gateways: [{ carrierId: 2, number: '030' }] })
  expect([only(3).kind, only(4).kind, only(3, 7).kind]).toEqual(['none', 'none', 'gateways'])
  calls.set(2, 1)
  expect(only(2).kind).toBe('limited')
})

test('a carrier at its limit is passed over; when all are, the call is limited', () => {
  const { routing, calls } = routingOver({
    carriers: [sampleCarrier(1, { maxCalls: 1 }), sampleCarrier(2, { maxCalls: 1 })],
    outboundRoutes: [outboundRoute(1, { priority: 1 }), outboundRoute(2, { carrierId: 2 })],
  })
  calls.set(1, 1)
  const decision = routing.outboundCandidates(null, '49')
  expect(decision).toMatchObject({ kind: 'gateways', gateways: [{ carrierId: 2 }] })
  calls.set(2, 1)
  expect(routing.outboundCandidates(null, '49').kind).toBe('limited')
})

test('a gateway that never answered a probe is tried last, one that does no more not at all', () => {
  const { routing, reachability } = routingOver({
    carriers: [
      sampleCarrier(1, { gateways: [1, 2, 3].map((id) => sampleGateway(id, { priority: id })) }),
      sampleCarrier(4),
    ],
    outboundRoutes: [outboundRoute(1, { priority: 1 }), outboundRoute(2, { carrierId: 4 })],
  })
  reachability.set(1, 'unproven').set(2, 'down')
  const decision = routing.outboundCandidates(null, '49')
  const ids = decision.kind === 'gateways' && decision.gateways.map(({ gatewayId }) => gatewayId)
  expect(ids).toEqual([3, 4, 1])
})

test('an emergency is tried at gateways that answer no probe, too, after all others', () => {
  const { routing, reachability } = routingOver({
    carriers: [
      sampleCarrier(1, { gateways: [1, 2, 3].map((id) => sampleGateway(id, { priority: id })) }),
    ],
    outboundRoutes: [outboundRoute(1, { prefix: '112', isEmergency: true })],
  })
  reachability.set(1, 'down').set(2, 'unproven')
  const decision = routing.outboundCandidates(null, '112')
  const ids = decision.kind === 'gateways' && decision.gateways.map(({ gatewayId }) => gatewayId)
  expect(ids).toEqual([3, 2, 1])
})

test('an emergency call passes the limits of its carrier', () => {
  const { routing, calls } = routingOver({
    carriers: [sampleCarrier(1, { maxCalls: 1, maxCps: 1 })],
    outboundRoutes: [outboundRoute(1, { prefix: '112', isEmergency: true })],
  })
  calls.set(1, 1)
  expect(routing.outboundCandidates(7, '112')).toMatchObject({
    kind: 'gateways',
    isEmergency: true,
  })
  expect(routing.admitCarrierCall(1, true)).toBe(true)
})

test('no call is offered more than sixteen gateways', () => {
  const gateways = Array.from({ length: 40 }, (_, index) => sampleGateway(index + 1))
  const { routing } = routingOver({
    carriers: [sampleCarrier(1, { gateways })],
    outboundRoutes: [outboundRoute(1)],
  })
  const decision = routing.outboundCandidates(null, '49')
  expect(decision.kind === 'gateways' && decision.gateways).toHaveLength(16)
})

test('a reload holds from the next call on and tells what cannot be used', async () => {
  const { routing, stored, problems } = routingOver({})
  expect(routing.recognize(source('203.0.113.1')).kind).toBe('unknown')
  stored.records = {
    tenants: [],
    carriers: [sampleCarrier(1)],
    gateways: [],
    inboundRoutes: [inboundRoute(4)],
    outboundRoutes: [outboundRoute(1)],
    agents: [],
    problems: ['outbound route x is not used'],
  }
  await routing.reload()
  expect(routing.recognize(source('203.0.113.1')).kind).toBe('carrier')
  expect(routing.inboundTarget({ kind: 'trusted' }, '49', '')).toEqual({ kind: 'set', setId: 4 })
  expect(routing.outboundCandidates(null, '49').kind).toBe('gateways')
  expect(problems).toEqual(['outbound route x is not used'])
})

test('a destination is told from a gateway by DNS as it is now, and a name leads to a gateway only for its carrier', () => {
  const addresses = new Map([
    ['carrier.example', ['203.0.113.9']],
    ['agent.example', ['192.0.2.1']],
  ])
  const hosts = {
    version: 1,
    addressesOf: (host: string) => addresses.get(host) ?? [host],
    watched: [] as string[],
    watch: (_owner: string, names: readonly string[]) => void hosts.watched.push(...names),
    lookUp: noLookUp,
  }
  const place = { host: 'carrier.example', port: 5_060, transport: 'udp', netmask: 32 } as const
  const { routing } = routingOver(
    {
      // As far as they are read.
      gateways: [{ ...place, carrierId: 1, carrier: 'north', tenantId: null }],
      agents: [{ agentId: 1, tenantId: 3, uri: 'sip:1900@agent.example:5060' } as AgentRecord],
    },
    { hosts },
  )
  expect(hosts.watched).toContain('agent.example')
  expect(routing.gatewayBehind('sip:1900@agent.example:5060', 3)).toBeUndefined()
  addresses.set('agent.example', ['203.0.113.9'])
  hosts.version = 2
  expect(routing.gatewayBehind('sip:1900@agent.example:5060', 3)).toBe('north')
  expect(routing.mayReach('agent.example', '203.0.113.9', 5_060)).toBe(false)
  expect(routing.mayReach('agent.example', '203.0.113.10', 5_060)).toBe(true)
  expect(routing.mayReach('carrier.example', '203.0.113.9', 5_060)).toBe(true)
})

test('routes and gateways that take no part are named with the reason, and a limit that is asked about is not filled', () => {
  const carriers = [
    sampleCarrier(1, {
      maxCps: 1,
      gateways: [sampleGateway(1), sampleGateway(2, { isOutbound: false })],
    }),
    sampleCarrier(2, { direction: 'in' }),
  ]
  const outboundRoutes = [
    outboundRoute(1, { prefix: '49' }),
    outboundRoute(2, { prefix: '49', carrierId: 2 }),
    outboundRoute(3, { prefix: '4', customerId: 5 }),
    outboundRoute(4, { prefix: '4', strip: 9 }),
    outboundRoute(5, { mode: 'block', carrierId: null }),
  ]
  const { routing } = routingOver({ carriers, outboundRoutes })
  const ask = () => {
    const passed: string[] = []
    const decision = routing.outboundCandidates(null, '4930', null, {
      random: () => 0.5,
      passOver: ({ kind, name, why }) => void passed.push(`${kind} ${name}: ${why}`),
    })
    return { kind: decision.kind, passed }
  }
  expect(ask()).toEqual({
    kind: 'gateways',
    passed: [
      'route route 3: other_caller',
      'route route 5: after_block',
      'gateway carrier 1: inbound_only',
      'route route 2: no_carrier',
      'route route 4: number_stripped',
    ],
  })
  expect([routing.hasRoom(1), routing.hasRoom(1)]).toEqual([true, true])
  expect(routing.admitCarrierCall(1)).toBe(true)
  expect(routing.hasRoom(1)).toBe(false)
  expect(ask()).toMatchObject({ kind: 'limited' })
  expect(ask().passed).toContain('route route 1: carrier_limit')
  expect(routing.carrierOrigin(2)).toMatchObject({ kind: 'carrier', carrierId: 2 })
  expect(routing.carrierOrigin(3)).toBeUndefined()
})
