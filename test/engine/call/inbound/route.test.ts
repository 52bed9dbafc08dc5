import { expect, test } from 'vitest'
import {
  type RouteDeps,
  type RouteQuestion,
  deadEnd,
  emergencyRoute,
  innerRoute,
  routeCall,
} from '../../../../engine/call/inbound/route.ts'
import type { AgentDecision } from '../../../../engine/routing/agents.ts'
import type {
  ExtensionOrigin,
  Origin,
  OutboundDecision,
} from '../../../../engine/routing/routing.ts'
import { candidate } from '../../../support/call-rig.ts'
import { gateway } from '../../../support/gateway.ts'
import { sampleSet } from '../../dispatcher/samples.ts'

type Target = ReturnType<RouteDeps['routing']['inboundTarget']>

const deps = (
  outbound: OutboundDecision,
  target: Target = { kind: 'set', setId: 4 },
  agents: { readonly routed?: AgentDecision; readonly dialled?: AgentDecision } = {},
): RouteDeps => ({
  retryAfterSeconds: 5,
  routing: {
    inboundNumber: (_origin, number) => number,
    dialledNumber: (number) => number,
    sentNumbers: () => [],
    registeredUser: () => undefined,
    headerRulesOf: () => undefined,
    isNumberBlocked: () => false,
    inboundTarget: () => target,
    outboundCandidates: () => outbound,
    isEmergencyNumber: () => outbound.kind === 'gateways' && outbound.isEmergency,
    agent: () => agents.routed,
    knowsNumber: () => outbound.kind !== 'none',
    // Only to a caller of a known tenant.
    dialledAgent: (_number, tenantId) => (tenantId === 3 ? agents.dialled : undefined),
  },
  registrar: {
    extensionAt: () => undefined,
    tenantOf: () => undefined,
    contactsOf: () => [],
    homeDomain: () => undefined,
  },
  voicemailOf: () => undefined,
  gatewayBehind: () => undefined,
  domains: {
    isOwn: (host) => !host.startsWith('elsewhere.'),
    isAllowed: (host) => host === 'elsewhere.friends.example',
  },
  dispatcher: {
    candidates: (setId) => (setId === 4 ? [candidate(1, 5_060)] : []),
    isAtCapacity: (setId) => setId === 5,
    reportOutcome: () => undefined,
    setRecord: () => undefined,
  },
})

const question = (origin: Origin): RouteQuestion => ({
  origin,
  calledNumber: '1555',
  domain: 'example.com',
  callId: 'c',
})
const node: Origin = { kind: 'node', nodeId: 1, setId: 1 }
const trusted: Origin = { kind: 'trusted' }
const gateways = (isEmergency: boolean): OutboundDecision => ({
  kind: 'gateways',
  gateways: [gateway({})],
  isEmergency,
})

test('a call from outside goes to the nodes of its set', () => {
  const route = routeCall(question(trusted), null, deps(gateways(false)))
  expect(route).toEqual({
    kind: 'candidates',
    direction: 'inbound',
    candidates: [candidate(1, 5_060)],
  })
})

test('a call of a node goes out where a route knows the number, else to the default set', () => {
  const out = routeCall(question(node), null, deps(gateways(false)))
  expect(out).toMatchObject({ direction: 'outbound', candidates: [{ kind: 'gateway' }] })
  const within = routeCall(question(node), null, deps({ kind: 'none' }))
  expect(within).toMatchObject({ direction: 'internal', candidates: [{ kind: 'node' }] })
})

const retryAfter = { 'Retry-After': '5' }

test.each<[OutboundDecision, object]>([
  [
    { kind: 'blocked', routeName: 'r' },
    { status: 403, code: 'destination_blocked' },
  ],
  [{ kind: 'limited' }, { status: 503, code: 'carrier_limit', headers: retryAfter }],
  [{ kind: 'unavailable' }, { status: 503, code: 'no_gateway' }],
  [{ kind: 'unprofitable' }, { status: 503, code: 'no_profit' }],
  [{ kind: 'unpriced' }, { status: 503, code: 'no_carrier_price' }],
])('%j refuses a call to the outside', (decision, end) => {
  const route = routeCall(question(node), null, deps(decision))
  expect(route).toMatchObject({ kind: 'refused', direction: 'outbound', end })
})

test.each<[Target, object]>([
  [{ kind: 'none' }, { status: 503, reason: 'No Backend PBX Nodes Available' }],
  [
    { kind: 'set', setId: 9 },
    { status: 503, code: 'no_candidate' },
  ],
  [
    { kind: 'set', setId: 5 },
    { status: 503, code: 'node_limit', headers: retryAfter, setId: 5 },
  ],
  [
    { kind: 'extension', extension: '100', tenantId: null, domain: null },
    { status: 404, code: 'unknown_extension' },
  ],
  [
    { kind: 'agent', agentId: 1 },
    { status: 404, code: 'unknown_agent' },
  ],
])('%j refuses a call from outside', (target, end) => {
  const route = routeCall(question(trusted), null, deps({ kind: 'none' }, target))
  expect(route).toMatchObject({ kind: 'refused', direction: 'inbound', end })
})

test('an emergency number is one only when our own side dials it', () => {
  expect(emergencyRoute(question(node), deps(gateways(true)))).toMatchObject({
    kind: 'candidates',
    direction: 'outbound',
  })
  expect(emergencyRoute(question(node), deps(gateways(false)))).toBeUndefined()
  expect(emergencyRoute(question(trusted), deps(gateways(true)))).toBeUndefined()
})

const bot = {
  kind: 'agent',
  agentId: 7,
  name: 'bot',
  tenantId: 3,
  uri: 'sip:bot@192.0.2.9',
} as const
const ready: AgentDecision = { kind: 'agent', agent: bot }
const busy: AgentDecision = { kind: 'limited' }
const phone: ExtensionOrigin = {
  kind: 'extension',
  extensionId: 1,
  tenantId: 3,
  customerId: null,
  domain: 'example.com',
  extension: '100',
  displayName: 'Ann',
}
const account = {
  customerId: 7,
  tenantId: 3,
  ratePrefix: '1',
  currency: 'USD',
  isUnauthorizedByOcs: false,
}

test('an inbound route leads to its agent; one that has all its calls refuses with Retry-After', () => {
  const target = { kind: 'agent', agentId: 7 } as const
  const route = (routed: AgentDecision) =>
    routeCall(question(trusted), null, deps({ kind: 'none' }, target, { routed }))
  expect(route(ready)).toEqual({ kind: 'candidates', direction: 'inbound', candidates: [bot] })
  expect(route(busy)).toMatchObject({
    kind: 'refused',
    end: { status: 503, code: 'agent_limit', headers: retryAfter },
  })
})

test('a phone reaches the agent of its own tenant, before any route, and free of charge', () => {
  const inner = innerRoute(question(phone), deps(gateways(false), undefined, { dialled: ready }))
  expect(inner).toEqual({
    route: { kind: 'candidates', direction: 'internal', candidates: [bot] },
    tenantId: 3,
  })
  const stranger = { ...phone, tenantId: 4 }
  const other = innerRoute(question(stranger), deps(gateways(false), undefined, { dialled: ready }))
  expect(other).toBeUndefined()
})

test("a caller's tenant has its agents where no route says otherwise, and before the default set", () => {
  const dialled = ready
  const to = (target: Target) =>
    routeCall(question(trusted), account, deps({ kind: 'none' }, target, { dialled }))
  expect(to({ kind: 'default', setId: 4 })).toMatchObject({ candidates: [bot] })
  expect(to({ kind: 'none' })).toMatchObject({ candidates: [bot] })
  expect(to({ kind: 'set', setId: 4 })).toMatchObject({ candidates: [{ kind: 'node' }] })
  const unpaid = routeCall(
    question(trusted),
    null,
    deps({ kind: 'none' }, { kind: 'default', setId: 4 }, { dialled }),
  )
  expect(unpaid).toMatchObject({ candidates: [{ kind: 'node' }] })
})

/** The answers to a caller of tenant 3 about sets and extensions of `owner`. */
function ownedBy(owner: number | null, target: Target = { kind: 'set', setId: 4 }): RouteDeps {
  const base = deps({ kind: 'none' }, target)
  const ownerOf = (setId: number) => (setId === 1 ? 3 : owner)
  return {
    ...base,
    // Set 1 is that of the calling node.
    dispatcher: {
      ...base.dispatcher,
      setRecord: (setId) => sampleSet([], { tenantId: ownerOf(setId) }),
    },
  }
}

test.each<[string, Origin]>([
  ['a phone', phone],
  ['a node', node],
])("%s reaches sets of its tenant and common ones, and none of another's", (_, origin) => {
  const to = (owner: number | null) => routeCall(question(origin), null, ownedBy(owner))
  expect([to(3).kind, to(null).kind]).toEqual(['candidates', 'candidates'])
  expect(to(4)).toMatchObject({ kind: 'refused', end: { status: 404, code: 'unknown_extension' } })
})

test("a node's call takes the routes of its set's tenant, emergencies included", () => {
  const asked: (number | null | undefined)[] = []
  const base = ownedBy(null)
  const outboundCandidates = (
    _customer: number | null,
    _number: string,
    tenantId?: number | null,
  ) => {
    asked.push(tenantId)
    return gateways(false)
  }
  const isEmergencyNumber = () => true
  const routing = { ...base.routing, outboundCandidates, isEmergencyNumber }
  const watched = { ...base, routing }
  routeCall(question(node), { ...account, tenantId: 9 }, watched)
  emergencyRoute(question(node), watched)
  expect(asked).toEqual([3, 3])
})

test("an extension of another tenant is not inside a node's tenant: such a call is paid", () => {
  const dialled = (tenantId: number) => {
    const base = ownedBy(null)
    const record = {
      ...phone,
      tenantId,
      isVoicemailEnabled: false,
      secrets: { MD5: '', 'SHA-256': '' },
    }
    return innerRoute(question(node), {
      ...base,
      registrar: { ...base.registrar, extensionAt: () => record },
    })
  }
  expect(dialled(3)).toMatchObject({ tenantId: 3, route: { direction: 'internal' } })
  expect(dialled(4)).toBeUndefined()
})

const none: OutboundDecision = { kind: 'none' }
const extension = { kind: 'extension', extension: '102', tenantId: 3, domain: null } as const
const existing = (isRegistered: boolean): RouteDeps => {
  const base = deps(none, extension)
  const record = { ...phone, extension: '102', isVoicemailEnabled: false }
  const source = { protocol: 'udp', address: '192.0.2.1', port: 5_060 }
  const contact = { uri: 'sip:102@192.0.2.1', routes: [], nextHop: undefined, q: 1_000, source }
  const registrar = {
    ...base.registrar,
    extensionAt: () => ({ ...record, secrets: { MD5: '', 'SHA-256': '' } }),
    contactsOf: () => (isRegistered ? [contact] : []),
  }
  return { ...base, registrar }
}
const refusedWith = (status: number, code: string) => ({
  route: { kind: 'refused', end: { status, code } },
})

const unknownExtension = refusedWith(404, 'unknown_extension')
const goneAgent = { kind: 'agent', agentId: 1 } as const

test.each<[string, Origin, RouteDeps, object | undefined]>([
  ['a phone, no target', phone, deps(none, { kind: 'none' }), unknownExtension],
  ['a trunk, no extension', trusted, deps(none, extension), unknownExtension],
  ['a trunk, no phone', trusted, existing(false), refusedWith(480, 'extension_unregistered')],
  [
    'a trunk, an agent that is gone',
    trusted,
    deps(none, goneAgent),
    refusedWith(404, 'unknown_agent'),
  ],
  // These may go somewhere, so that a wallet is asked.
  ['a trunk, a phone', trusted, existing(true), undefined],
  ['a phone, a route to the outside', phone, deps(gateways(false), { kind: 'none' }), undefined],
  ['a phone, the default set', phone, deps(none, { kind: 'default', setId: 4 }), undefined],
  ['a trunk, no set', trusted, deps(none, { kind: 'none' }), undefined],
  // It has no tenant: it may mean an agent of the tenant that pays.
  ['a node of the platform', node, deps(none, { kind: 'none' }), undefined],
])(
  'where nothing could take a call, no wallet is asked: %s',
  (_name, origin, surroundings, end) => {
    const found = deadEnd(question(origin), surroundings)
    if (end === undefined) expect(found).toBeUndefined()
    else expect(found).toMatchObject(end)
  },
)

test('a phone that dials a foreign domain does not ring its own extension of that number', () => {
  const dial = (domain: string, origin: Origin = phone) => ({
    inner: innerRoute({ ...question(origin), domain }, existing(true)),
    routed: routeCall({ ...question(origin), domain }, account, existing(true)),
  })
  const refused = { kind: 'refused', end: { status: 404, code: 'foreign_domain' } }
  for (const domain of ['elsewhere.example', 'ELSEWHERE.Example.', 'elsewhere.friends.example.x'])
    expect(dial(domain)).toMatchObject({ inner: { route: refused }, routed: refused })
  // Where the operator allows it, it goes there, and is paid for.
  expect(dial('Elsewhere.Friends.Example')).toEqual({
    inner: undefined,
    routed: {
      kind: 'candidates',
      direction: 'outbound',
      candidates: [{ kind: 'domain', uri: 'sip:elsewhere.friends.example', tenantId: 3 }],
    },
  })
  // A trunk or a node may put whatever name leads here.
  for (const origin of [trusted, node])
    expect(dial('elsewhere.example', origin).routed).toMatchObject({ kind: 'candidates' })
  // Without a domain (tel:) or by a name of ours it stays inside.
  for (const domain of ['', '192.0.2.1', 'sbc.example'])
    expect(dial(domain).inner).toMatchObject({ route: { direction: 'internal' } })
})

test.each([
  ['its Contact', 'sip:1900@192.0.2.1', ['<sip:127.0.0.1:5070;lr>']],
  ['a later proxy', 'sip:102@198.51.100.1', ['<sip:127.0.0.1:5070;lr>', '<sip:192.0.2.1;lr>']],
])(
  'a phone behind a proxy is none when %s is a gateway: the proxy would send on',
  (_, uri, routes) => {
    const gatewayBehind = (hop: string) => (hop.includes('192.0.2.1') ? 'north' : undefined)
    const source = { protocol: 'udp', address: '127.0.0.1', port: 5_070 }
    const contact = { uri, routes, nextHop: undefined, q: 1_000, source }
    const registrar = { ...existing(true).registrar, contactsOf: () => [contact] }
    const found = deadEnd(question(trusted), { ...existing(true), registrar, gatewayBehind })
    expect(found).toMatchObject(refusedWith(480, 'unpriced_gateway'))
  },
)
