import { expect, test } from 'vitest'
import { type KnownNode, PeerNodes } from '../../../../engine/registrar/hop/peer-nodes.ts'

/** Nodes of which the first list is known, and names that DNS knows. */
function registry(...known: readonly KnownNode[]) {
  const state = {
    ...{ nodes: known, now: 0, version: 0 },
    addresses: {} as Record<string, readonly string[]>,
    watched: [] as (readonly string[])[],
  }
  const hosts = {
    get version() {
      return state.version
    },
    addressesOf: (host: string) =>
      /^[\d.]+$|:/.test(host) ? [host] : (state.addresses[host] ?? []),
    watch: (owner: string, names: readonly string[]) => void state.watched.push([owner, ...names]),
  }
  return { state, peers: new PeerNodes({ nodes: () => state.nodes, now: () => state.now, hosts }) }
}

const node = (name: string, sipUri: string | null, isAlive = true): KnownNode => ({
  ...{ name, sipUri, isAlive },
})

test.each([
  ['sip:192.0.2.1', { host: '192.0.2.1', port: 5_060, protocol: 'udp' }],
  ['sip:192.0.2.1:5070;transport=tcp', { host: '192.0.2.1', port: 5_070, protocol: 'tcp' }],
  ['sip:[2001:db8::1];transport=tls', { host: '2001:db8::1', port: 5_061, protocol: 'tls' }],
  ['sips:192.0.2.1;transport=tcp', { host: '192.0.2.1', port: 5_061, protocol: 'tls' }],
])('%s says where a node takes requests', (sipUri, sip) => {
  const { peers } = registry(node('a', sipUri))
  expect(peers.find('a')?.sip).toEqual(sip)
})

test.each([null, '', 'tel:1', 'sip:192.0.2.1;transport=ws', 'sip:192.0.2.1;transport=sctp'])(
  'a node at %s is reached by none',
  (sipUri) => {
    const { peers } = registry(node('a', sipUri))
    expect(peers.find('a')).toBeUndefined()
  },
)

test('a node is known by its name, a request of one by its address in any spelling', () => {
  const { peers } = registry(node('a', 'sip:[2001:db8::1]'), node('b', 'sip:192.0.2.2', false))
  expect(peers.find('b')).toMatchObject({ isAlive: false, addresses: ['192.0.2.2'] })
  expect(peers.find('c')).toBeUndefined()
  expect(
    ['2001:0DB8:0::1', '::ffff:192.0.2.2', '192.0.2.3'].map((each) => peers.has(each)),
  ).toEqual([true, true, false])
})

test('names are looked up, and followed when DNS says something else', () => {
  const { state, peers } = registry(node('a', 'sip:a.example:5060'))
  expect(peers.find('a')).toMatchObject({ sip: { host: 'a.example' }, addresses: [] })
  expect(state.watched).toEqual([['nodes', 'a.example']])
  state.addresses['a.example'] = ['192.0.2.1']
  state.version += 1
  expect(peers.has('192.0.2.1')).toBe(true)
})

test('nodes that come, go and die are seen within half a second', () => {
  const { state, peers } = registry(node('a', 'sip:192.0.2.1'))
  expect(peers.find('a')?.isAlive).toBe(true)
  state.nodes = [node('a', 'sip:192.0.2.1', false), node('b', 'sip:192.0.2.2')]
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
