import { expect, test } from 'vitest'
import type { NodeStatus } from '../../../schema/contracts/nodes.ts'
import { membershipOf } from '../../../control/nodes/membership.ts'

const now = 10_000_000_000
const key = Buffer.alloc(32)
const listed: NodeStatus = {
  epoch: 1,
  version: '1',
  liveCalls: 0,
  startedAt: 0,
  name: 'b',
  address: 'http://10.0.0.2:8080',
  sipUri: null,
  sipAddresses: [],
  isThis: false,
  state: 'serving',
  heartbeatAt: now - 500,
}

function peersOf(...nodes: readonly Partial<NodeStatus>[]) {
  const list = () => nodes.map((node) => ({ ...listed, ...node }))
  return membershipOf({ identity: { name: 'a', epoch: 1 }, list }, key, () => now).peers()
}

test('a node is not its own peer, and one that has stopped is none', () => {
  expect(peersOf({ isThis: true }, { state: 'stopped' }, {})).toEqual([
    { name: 'b', apiUrl: 'http://10.0.0.2:8080', isAlive: true },
  ])
})

test('a node that is lost, or does not serve yet, is named and not asked; after an hour it is forgotten', () => {
  expect(peersOf({ state: 'lost' })).toMatchObject([{ isAlive: false }])
  expect(peersOf({ state: 'starting' })).toMatchObject([{ isAlive: false }])
  expect(peersOf({ state: 'draining' })).toMatchObject([{ isAlive: true }])
  expect(peersOf({ state: 'lost', heartbeatAt: now - 3_600_001 })).toEqual([])
})

test.each(['', 'file:///etc/passwd', '10.0.0.2:8080', 'x'])(
  'a node whose address is no URL of an API is not asked: %j',
  (address) => {
    expect(peersOf({ address })).toEqual([])
  },
)
