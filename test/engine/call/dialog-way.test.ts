/** Which Contact and Record-Route of a party are followed. */
import { expect, test } from 'vitest'
import { type DialogWay, type DialogWayDeps, mayFollow } from '../../../engine/call/dialog-way.ts'
import { beginCall } from '../../../engine/call/call-machine/call.ts'
import { emptyWorld, type Side } from '../../../engine/call/call-machine/state.ts'
import type { CallDestination } from '../../../engine/call/inbound/route.ts'
import type { ExtensionOrigin, Origin } from '../../../engine/routing/recognition.ts'
import { sampleStart } from '../../support/call-machine.ts'
import { gateway } from '../../support/gateway.ts'
import { carrierOrigin } from './steps.ts'

const phone: ExtensionOrigin = {
  kind: 'extension',
  extensionId: 1,
  tenantId: 5,
  customerId: null,
  domain: 'acme.example',
  extension: '101',
  displayName: '',
}
const north = carrierOrigin({ carrierId: 1, tenantId: null })
const ofTenant = carrierOrigin({ carrierId: 2, tenantId: 5 })
const proxy: Origin = { kind: 'proxy', tenantIds: [5] }
const node: Origin = { kind: 'node', nodeId: 1, setId: 1 }
const nodeOfTenant: Origin = { kind: 'node', nodeId: 2, setId: 2, tenantId: 5 }
const trusted: Origin = { kind: 'trusted' }
const unknown: Origin = { kind: 'unknown' }

interface Party {
  readonly at?: Origin
  readonly origin?: Origin
  readonly destination?: CallDestination
  readonly address?: string
}

/** Gateways of the carriers 1 and 2 are 203.0.113.1 and 203.0.113.2; 10.0.0.0/8 is inside. */
function follows(
  { at = unknown, origin, destination, address = '198.51.100.7' }: Party,
  target: string,
  ...routes: readonly string[]
): boolean {
  const call = beginCall(emptyWorld('sbc-1'), { start: sampleStart('1'), stampOffsetMs: 0 })
  call.origin = origin
  call.destination = destination
  const side: Side = destination ? 'callee' : 'caller'
  const deps: DialogWayDeps = {
    calls: { partyIn: () => (origin || destination ? { call, side } : undefined) },
    routing: {
      recognize: () => at,
      gatewayBehind: (uri) => (uri.includes('203.0.113.') ? 'a carrier' : undefined),
      isGatewayOf: (carrierId, uri) => uri.includes(`203.0.113.${carrierId}`),
      tenantOfCarrier: (carrierId) => (carrierId === 2 ? 5 : null),
    },
    isInstance: (other) => other === '198.51.100.99',
    isInner: (inner) => inner.startsWith('10.') || inner.startsWith('127.'),
    isOwnMachine: (own) => own === '127.0.0.1',
    tenantOfSet: (setId) => (setId === 2 ? 5 : null),
    onRefused: () => undefined,
  }
  const way: DialogWay = {
    callId: 'c',
    localTag: 'l',
    remoteTag: 'r',
    address,
    port: 5_060,
    protocol: 'udp',
    routes: routes.map((route) => `<sip:${route};lr>`),
    target: `sip:${target}`,
  }
  return mayFollow(way, deps)
}

const carrierCalled = gateway({ carrierId: 1 })
const called: CallDestination = { kind: 'domain', uri: 'sip:friends.example', tenantId: 5 }

test.each<[string, Party, readonly [string, ...string[]]]>([
  ['a phone another port of its own', { origin: phone }, ['x@198.51.100.7:40000']],
  [
    'a phone behind an edge proxy its private address',
    { at: proxy, origin: phone },
    ['x@192.168.1.5', '10.1.0.1', '10.1.0.2'],
  ],
  [
    'a phone behind a trusted proxy the same',
    { at: trusted, origin: phone },
    ['x@192.168.1.5', '10.1.0.1'],
  ],
  [
    'a proxy at the address of a phone itself',
    { origin: phone },
    ['x@192.168.1.5', '198.51.100.7'],
  ],
  [
    'a carrier another host for signalling',
    { at: north, origin: north },
    ['x@198.51.100.8', '192.0.2.44'],
  ],
  ['a carrier its own gateway', { at: north, origin: north }, ['x@203.0.113.1']],
  [
    'a called carrier at an unknown address its own gateway',
    { destination: carrierCalled },
    ['x@203.0.113.1'],
  ],
  [
    'a carrier that shares a gateway with another one',
    { at: ofTenant, destination: carrierCalled },
    ['x@203.0.113.1'],
  ],
  [
    'a carrier in the own network an address there',
    { at: north, origin: north, address: '10.2.0.1' },
    ['x@10.2.0.9'],
  ],
  ['a node any place that is no gateway', { at: node, origin: node }, ['x@10.3.0.1']],
  ['a trusted source any place', { at: trusted, origin: trusted }, ['x@203.0.113.1', '10.0.0.9']],
  [
    'another node of ours',
    { address: '198.51.100.99', origin: phone },
    ['x@192.168.1.5', 'token@198.51.100.99'],
  ],
  ['a foreign domain its proxies', { destination: called }, ['x@192.0.2.99', '192.0.2.98']],
])('%s may be named', (_what, party, [target, ...routes]) => {
  expect(follows(party, target, ...routes)).toBe(true)
})

test.each<[string, Party, readonly [string, ...string[]]]>([
  ['a phone a gateway', { origin: phone }, ['1900@203.0.113.1']],
  ['a phone another host', { origin: phone }, ['x@192.0.2.9']],
  ['a phone a name', { origin: phone }, ['x@phone.example']],
  [
    'a phone on this machine another program',
    { origin: phone, address: '127.0.0.1' },
    ['x@127.0.0.1:6379'],
  ],
  [
    'a phone on this machine its port by TCP',
    { origin: phone, address: '127.0.0.1' },
    ['x@127.0.0.1:5060;transport=tcp'],
  ],
  ['a phone a route elsewhere', { origin: phone }, ['x@198.51.100.7', '10.0.0.9']],
  [
    'a phone, behind a proxy of its own, a gateway',
    { origin: phone },
    ['1900@203.0.113.1', '198.51.100.7'],
  ],
  [
    'a phone behind an edge proxy a gateway',
    { at: proxy, origin: phone },
    ['1900@203.0.113.1', '10.1.0.1'],
  ],
  ['a phone at a trusted address a gateway', { at: trusted, origin: phone }, ['1900@203.0.113.1']],
  [
    'a phone in the network of a carrier its gateway',
    { at: north, origin: phone },
    ['1900@203.0.113.1'],
  ],
  ['a carrier the gateway of another one', { at: north, origin: north }, ['1900@203.0.113.2']],
  ["a tenant's carrier a place inside", { at: ofTenant, origin: ofTenant }, ['x@10.0.0.9']],
  ["a tenant's node a place inside", { at: nodeOfTenant, origin: nodeOfTenant }, ['x@127.0.0.1']],
  ['a node a gateway', { at: node, origin: node }, ['1900@203.0.113.1']],
  ['a foreign domain a place inside', { destination: called }, ['x@10.0.0.9']],
  ['who is unknown any other place', {}, ['x@192.0.2.9']],
  ['a trusted source a group', { at: trusted, origin: trusted }, ['x@224.0.1.75']],
])('%s may not be named', (_what, party, [target, ...routes]) => {
  expect(follows(party, target, ...routes)).toBe(false)
})
