import { expect, test } from 'vitest'
import type { Binding } from '../../../../engine/registrar/bindings.ts'
import {
  PhoneHop,
  type HopRequest,
  type PeerInstance,
} from '../../../../engine/registrar/hop/phone-hop.ts'

const home = { domain: 'acme.example', extension: '101' }
const contact = 'sip:101@10.0.0.5:5060;transport=tcp'
const source = { protocol: 'tcp', address: '203.0.113.7', port: 41_000 }
const byConnection = 'sip:203.0.113.7:41000;transport=tcp;connection=registered'
const bound = (more: Partial<Binding> = {}): Binding => ({
  contact,
  instance: null,
  regId: null,
  q: 1_000,
  callId: 'c',
  cseq: 1,
  path: [],
  userAgent: '',
  registeredAt: 0,
  expiresAt: 1,
  source,
  holder: 'b',
  ...more,
})
const peerAt = (address: string, more: Partial<PeerInstance> = {}): PeerInstance => ({
  sip: { host: address, port: 5_060, protocol: 'udp' },
  addresses: [address],
  isAlive: true,
  ...more,
})

/** Instances a, b and c: a calls, b holds the flow. All see the same bindings. */
function cluster() {
  const world = {
    now: 1_700_000_000_000,
    bindings: [bound()],
    peers: new Map([
      ['a', peerAt('192.0.2.1')],
      ['b', peerAt('192.0.2.2')],
      ['c', peerAt('192.0.2.3')],
    ]),
    refused: [] as string[],
    heard: [] as string[],
    told: [] as string[],
  }
  const key = Buffer.alloc(32, 1)
  const hopOf = (self: string): PhoneHop =>
    new PhoneHop({
      self,
      key,
      peer: (name) => world.peers.get(name),
      wallNow: () => world.now,
      bindingsOf: ({ domain, extension }) =>
        domain === home.domain && extension === home.extension ? world.bindings : [],
      onRefused: ({ protocol, address, port }) =>
        void world.refused.push(`${protocol} ${address}:${port}`),
      onToken: (address) => void world.heard.push(address),
      log: (level, message) => void world.told.push(`${level} ${message}`),
    })
  return { world, a: hopOf('a'), b: hopOf('b'), c: hopOf('c') }
}

const tokenOf = (route = ''): string => /^<sip:([^@]+)@/.exec(route)?.[1] ?? ''

/** The INVITE that instance a sends for the phone, as instance b is asked about it. */
const callOf = (a: PhoneHop, more: Partial<HopRequest> = {}): HopRequest => ({
  token: tokenOf(a.targetOf(bound(), home)?.routes[0]),
  method: 'INVITE',
  uri: contact,
  callId: 'c1',
  isInDialog: false,
  protocol: 'udp',
  sourceAddress: '192.0.2.1',
  sourcePort: 5_060,
  ...more,
})

const forbidden = { kind: 'refused', status: 403, reason: 'Forbidden' }

/** A dialog that has begun through instance b: requests of both sides in it. */
function dialog() {
  const made = cluster()
  const begun = made.b.read(callOf(made.a))
  if (begun?.kind !== 'forwarded' || !begun.recordRoute) throw new Error('not forwarded')
  const { toCallee, toCaller } = begun.recordRoute
  const inDialog = { method: 'BYE', isInDialog: true }
  const fromInstance = callOf(made.a, { ...inDialog, token: toCallee })
  const fromPhone = callOf(made.a, {
    ...inDialog,
    token: toCaller,
    uri: 'sip:192.0.2.1:5060',
    protocol: 'tcp',
    sourceAddress: source.address,
    sourcePort: source.port,
  })
  return { ...made, fromNode: fromInstance, fromPhone }
}

test('a phone of another instance is called by a Route to that instance, and by its Contact', () => {
  const { a } = cluster()
  expect(a.targetOf(bound(), home)).toMatchObject({
    uri: contact,
    nextHop: undefined,
    lastHop: byConnection,
    routes: [expect.stringMatching(/^<sip:tgc1\.[\w-]+@192\.0\.2\.2:5060;lr>$/)],
  })
})

test.each([
  ['is gone', peerAt('192.0.2.2', { isAlive: false })],
  ['is unknown', undefined],
])('a phone behind NAT, or on a stream, is not called when its node %s', (_what, peer) => {
  const { world, a } = cluster()
  if (peer) world.peers.set('b', peer)
  else world.peers.delete('b')
  expect(a.targetOf(bound(), home)).toBeUndefined()
  const natted = bound({ source: { ...source, protocol: 'udp' } })
  expect(a.targetOf(natted, home)).toBeUndefined()
  expect([bound(), natted].map((binding) => a.isReachable(binding))).toEqual([false, false])
})

test('a phone by UDP at its own address is called directly when its instance is gone', () => {
  const { world, a } = cluster()
  world.peers.set('b', peerAt('192.0.2.2', { isAlive: false }))
  const open = bound({
    contact: 'sip:101@203.0.113.7:41000',
    source: { ...source, protocol: 'udp' },
  })
  expect(a.targetOf(open, home)).toMatchObject({ routes: [], nextHop: undefined })
  expect(a.isReachable(open)).toBe(true)
})

test('the instance that holds the flow forwards to the connection of the phone, and stays in the dialog', () => {
  const { a, b } = cluster()
  expect(b.read(callOf(a))).toEqual({
    kind: 'forwarded',
    nextHop: byConnection,
    recordRoute: {
      toCallee: expect.stringMatching(/^tgd1\./) as string,
      toCaller: expect.stringMatching(/^tgd1\./) as string,
    },
    patienceMs: 4_000,
  })
})

test('a phone that has registered again is reached by its new flow, within the token', () => {
  const { world, a, b } = cluster()
  const request = callOf(a)
  world.bindings = [bound({ source: { ...source, port: 42_000 } })]
  expect(b.read(request)).toMatchObject({
    nextHop: 'sip:203.0.113.7:42000;transport=tcp;connection=registered',
  })
})

test.each([
  ['it has left', []],
  ['it has gone to another node', [bound({ holder: 'c' })]],
  ['it is behind a proxy now', [bound({ path: ['<sip:203.0.113.7;lr>'] })]],
  ['another phone of the extension is there alone', [bound({ contact: 'sip:101@10.0.0.6' })]],
])('a phone that is not there any more gets nothing: 430, because %s', (_why, bindings) => {
  const { world, a, b } = cluster()
  const request = callOf(a)
  world.bindings = bindings
  expect(b.read(request)).toEqual({ kind: 'refused', status: 430, reason: 'Flow Failed' })
  expect(world.refused).toEqual([])
})

test.each([
  ['from a stranger', { sourceAddress: '198.51.100.66' }],
  ['from the phone itself', { sourceAddress: source.address }],
  ['from another node', { sourceAddress: '192.0.2.3' }],
  ['for another Contact', { uri: 'sip:00900123@gateway.example' }],
  ['in a dialog', { isInDialog: true }],
  ['for a REFER', { method: 'REFER' }],
  ['for a REGISTER', { method: 'REGISTER' }],
  ['for a BYE', { method: 'BYE' }],
])('the token of a call is refused %s, and counted', (_what, changes) => {
  const { world, a, b } = cluster()
  const request = callOf(a, changes)
  expect(b.read(request)).toEqual(forbidden)
  expect(world.refused).toEqual([`udp ${request.sourceAddress}:5060`])
  expect(b.telemetry()).toMatchObject({
    flow_tokens_refused_total: 1,
    phone_requests_forwarded_total: 0,
  })
})

test('the token of a call lives for a minute, and 30 s more for clocks that differ', () => {
  const { world, a, b } = cluster()
  const request = callOf(a)
  world.now += 90_000
  expect(b.read(request)?.kind).toBe('forwarded')
  world.now += 1
  expect(b.read(request)).toEqual(forbidden)
  world.now -= 90_001 + 30_000
  expect(b.read(request)?.kind).toBe('forwarded')
  world.now -= 1
  expect(b.read(request)).toEqual(forbidden)
  expect(world.told).toHaveLength(2)
})

test('a Route that shows no token means nothing here', () => {
  const { world, a, b } = cluster()
  expect(b.read(callOf(a, { token: '1001' }))).toBeUndefined()
  expect(world.refused).toEqual([])
})

test('in the dialog the instance reaches the phone, and the phone the instance', () => {
  const { b, fromNode: fromInstance, fromPhone } = dialog()
  expect(b.read(fromInstance)).toEqual({ kind: 'forwarded', nextHop: byConnection })
  expect(b.read(fromPhone)).toEqual({ kind: 'forwarded', nextHop: 'sip:192.0.2.1:5060' })
})

test('the dialog outlives the token of its call, the binding, and the heartbeat of its instance', () => {
  const { world, b, fromNode: fromInstance, fromPhone } = dialog()
  world.now += 86_400_000
  world.bindings = []
  world.peers.set('a', peerAt('192.0.2.1', { isAlive: false }))
  expect(b.read(fromInstance)).toEqual({ kind: 'forwarded', nextHop: byConnection })
  expect(b.read(fromPhone)).toEqual({ kind: 'forwarded', nextHop: 'sip:192.0.2.1:5060' })
})

test.each([
  ['the phone uses the token of its node', { sourceAddress: source.address }],
  ['a stranger uses it', { sourceAddress: '198.51.100.66' }],
  ['another node uses it', { sourceAddress: '192.0.2.3' }],
  ['it is used in another call', { callId: 'c2' }],
  ['it is used to begin a call', { isInDialog: false, method: 'INVITE' }],
])('a token that leads to the phone is refused when %s', (_what, changes) => {
  const { world, b, fromNode: fromInstance } = dialog()
  expect(b.read({ ...fromInstance, ...changes })).toEqual(forbidden)
  expect(world.refused).toHaveLength(1)
})

test.each([
  ['a stranger uses it', { sourceAddress: '198.51.100.66' }],
  ['it is used in another call', { callId: 'c2' }],
  ['it is used to begin a call', { isInDialog: false, method: 'INVITE' }],
])('a token that leads to the instance is refused when %s', (_what, changes) => {
  const { world, b, fromPhone } = dialog()
  expect(b.read({ ...fromPhone, ...changes })).toEqual(forbidden)
  expect(world.refused).toHaveLength(1)
})

test('whatever a phone writes as Request-URI, its token leads to the SIP address of its instance', () => {
  const { b, fromPhone } = dialog()
  expect(b.read({ ...fromPhone, uri: 'sip:00900123@gateway.example' })).toEqual({
    kind: 'forwarded',
    nextHop: 'sip:192.0.2.1:5060',
  })
})

test('only the token of a call, which no phone sees, shows that an address is one of an instance', () => {
  const { world, a, b } = cluster()
  const call = callOf(a)
  b.read({ ...call, sourceAddress: '198.51.100.66' })
  b.read({ ...call, token: 'made-up' })
  expect(world.heard).toEqual([])
  b.read(call)
  expect(world.heard).toEqual(['192.0.2.1'])
})
