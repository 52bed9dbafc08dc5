import { expect, test } from 'vitest'
import {
  type KnownInstance,
  PeerInstances,
} from '../../../../engine/registrar/hop/peer-instances.ts'

/** Instances of which the first list is known, and names that DNS knows. */
function registry(...known: readonly KnownInstance[]) {
  const state = {
    nodes: known,
    now: 0,
    version: 0,
    addresses: {} as Record<string, readonly string[]>,
    watched: [] as (readonly string[])[],
    told: [] as string[],
  }
  const hosts = {
    get version() {
      return state.version
    },
    addressesOf: (host: string) =>
      /^[\d.]+$|:/.test(host) ? [host] : (state.addresses[host] ?? []),
    watch: (owner: string, names: readonly string[]) => void state.watched.push([owner, ...names]),
  }
  return {
    state,
    peers: new PeerInstances({
      self: 'self',
      instances: () => state.nodes,
      now: () => state.now,
      hosts,
      log: (level, message) => void state.told.push(`${level} ${message}`),
    }),
  }
}

const instance = (
  name: string,
  sipUri: string | null,
  isAlive = true,
  heartbeatAt = 0,
): KnownInstance => ({
  name,
  sipUri,
  isAlive,
  heartbeatAt,
  addresses: [],
})

test.each([
  ['sip:192.0.2.1', { host: '192.0.2.1', port: 5_060, protocol: 'udp' }],
  ['sip:192.0.2.1:5070;transport=tcp', { host: '192.0.2.1', port: 5_070, protocol: 'tcp' }],
  ['sip:[2001:db8::1];transport=tls', { host: '2001:db8::1', port: 5_061, protocol: 'tls' }],
  ['sips:192.0.2.1;transport=tcp', { host: '192.0.2.1', port: 5_061, protocol: 'tls' }],
])('%s says where an instance takes requests', (sipUri, sip) => {
  const { peers } = registry(instance('a', sipUri))
  expect(peers.find('a')?.sip).toEqual(sip)
})

test.each([null, '', 'tel:1', 'sip:192.0.2.1;transport=ws', 'sip:192.0.2.1;transport=sctp'])(
  'an instance at %s is reached by none',
  (sipUri) => {
    const { peers } = registry(instance('a', sipUri))
    expect(peers.find('a')).toBeUndefined()
  },
)

test('instances that come, go and die are seen within half a second', () => {
  const { state, peers } = registry(instance('a', 'sip:192.0.2.1'))
  expect(peers.find('a')?.isAlive).toBe(true)
  state.nodes = [instance('a', 'sip:192.0.2.1', false), instance('b', 'sip:192.0.2.2')]
  state.now += 499
  expect(peers.find('a')?.isAlive).toBe(true)
  state.now += 1
  expect(peers.find('a')?.isAlive).toBe(false)
  expect(peers.has('192.0.2.2')).toBe(true)
  state.nodes = []
  state.now += 500
  expect(peers.find('b')).toBeUndefined()
  expect(peers.has('192.0.2.2')).toBe(false)
})

test('an instance that does not answer counts as gone at once, until heartbeats after that prove that it lives', () => {
  const { state, peers } = registry(instance('a', 'sip:192.0.2.1'), instance('b', 'sip:192.0.2.2'))
  expect(peers.alive).toEqual(['a', 'b'])
  peers.suspect('b')
  expect([peers.alive, peers.find('b')?.isAlive]).toEqual([['a'], false])
  // It may have told them before it died.
  state.nodes = [instance('b', 'sip:192.0.2.2', true, 2_000)]
  state.now += 2_000
  expect(peers.alive).toEqual([])
  state.nodes = [instance('b', 'sip:192.0.2.2', true, 3_000)]
  state.now += 1_000
  expect(peers.alive).toEqual(['b'])
  expect(state.told).toEqual([expect.stringContaining('warn an instance does not answer')])
})

test('a request that comes from another address of the instance, as the instance has told it, is one of that instance', () => {
  const { peers } = registry({
    ...instance('b', 'sip:192.0.2.2'),
    addresses: ['10.0.0.2', '2001:DB8::2'],
  })
  expect(peers.find('b')?.addresses).toEqual(['192.0.2.2', '10.0.0.2', '2001:db8::2'])
  expect(['10.0.0.2', '2001:db8::2', '10.0.0.3'].map((each) => peers.isAnnounced(each))).toEqual([
    true,
    true,
    false,
  ])
})

test('what an instance tells exempts no source, until a token has come from there, and for ten minutes then', () => {
  const { state, peers } = registry({ ...instance('b', 'sip:192.0.2.2'), addresses: ['10.0.0.2'] })
  expect([peers.has('192.0.2.2'), peers.has('10.0.0.2')]).toEqual([true, false])
  peers.noteToken('::ffff:10.0.0.2')
  peers.noteToken('10.0.0.3')
  expect([peers.has('10.0.0.2'), peers.has('10.0.0.3')]).toEqual([true, false])
  state.now += 600_000
  expect([peers.has('192.0.2.2'), peers.has('10.0.0.2')]).toEqual([true, false])
  peers.noteToken('10.0.0.2')
  state.nodes = [instance('b', 'sip:192.0.2.2')]
  state.now += 500
  expect(peers.has('10.0.0.2')).toBe(false)
})

test('what comes from the address of this instance itself is a stranger, unless another instance says that it has it, too', () => {
  const own = '192.0.2.9'
  const self = { ...instance('self', `sip:${own}`), addresses: [own, '10.0.0.9'] }
  const { state, peers } = registry(self, instance('b', 'sip:192.0.2.2'))
  expect([peers.has(own), peers.isAnnounced(own)]).toEqual([false, false])
  expect([peers.find('self')?.addresses, peers.has('192.0.2.2')]).toEqual([[own, '10.0.0.9'], true])
  // Bans are for all instances: the requests of this one may come to them from there.
  expect(peers.isAnnounced('10.0.0.9')).toBe(true)
  // Another instance behind the address of this machine.
  peers.noteToken(own)
  expect(peers.has(own)).toBe(true)
  state.now += 600_000
  for (const other of [
    instance('c', `sip:${own}:5070`),
    { ...instance('c', 'sip:192.0.2.3'), addresses: [own] },
  ]) {
    state.nodes = [self, other]
    state.now += 500
    expect(peers.isAnnounced(own)).toBe(true)
  }
})

test('an address that several instances tell, as that of a bridge for containers, exempts no source at all', () => {
  const bridge = '172.17.0.1'
  const { peers } = registry(
    { ...instance('a', 'sip:192.0.2.1'), addresses: [bridge] },
    { ...instance('b', 'sip:192.0.2.2'), addresses: [bridge] },
  )
  peers.noteToken(bridge)
  expect([peers.has(bridge), peers.isAnnounced(bridge)]).toEqual([false, true])
})
