/**
 * A transfer between instances, through a media relay: the instance that asks speaks for the
 * transferee, not for the transferor.
 */
import { expect, test } from 'vitest'
import { TransferInstances } from '../../../../engine/call/transfer/other-instances.ts'
import type { SipRequest } from '../../../../engine/call/signalling.ts'

const replaces = { callId: 'c1', toTag: 'to', fromTag: 'from', isEarlyOnly: false }
const party = 'extension 7'
const asked = { party, transfersBefore: 3, callUuid: 'u' }
const addresses = { a: '192.0.2.1', b: '192.0.2.2', c: '192.0.2.3' }

/** Instances a, b and c; a asks. */
function cluster() {
  const world = { now: 1_700_000_000_000, alive: ['a', 'b', 'c'], refused: 0, recorded: '' }
  const [logged, instanceAddresses]: string[][] = [[], []]
  const instanceOf = (self: keyof typeof addresses, key = Buffer.alloc(32, 1)): TransferInstances =>
    new TransferInstances({
      self,
      key,
      wallNow: () => world.now,
      peers: {
        find: (name) => {
          const host = new Map(Object.entries(addresses)).get(name)
          const sip = { host: host ?? '', port: 5_060, protocol: 'udp' } as const
          return host === undefined ? undefined : { sip, addresses: [host], isAlive: true }
        },
        get alive() {
          return world.alive
        },
      },
      isRecording: (callUuid) => callUuid === world.recorded,
      onRefused: () => void (world.refused += 1),
      onInstanceAt: (address) => void instanceAddresses?.push(address),
      log: (level, message) => void logged?.push(`${level} ${message}`),
    })
  return {
    world,
    logged,
    instanceAddresses,
    nodeOf: instanceOf,
    a: instanceOf('a'),
    b: instanceOf('b'),
    c: instanceOf('c'),
  }
}

/** The INVITE of instance a for instance b, as instance b has it. */
function inviteOf(
  asking: TransferInstances,
  more: Partial<SipRequest> = {},
  headers = {},
): SipRequest {
  const toB = asking.candidates(replaces, asked).find(({ holder }) => holder === 'b')
  return {
    method: 'INVITE',
    uri: 'sip:1@192.0.2.2',
    body: '',
    protocol: 'udp',
    sourcePort: 5_060,
    sourceAddress: addresses.a,
    headers: { replaces: toB?.replaces ?? '', 'X-Tollgate-Transfer': toB?.token ?? '', ...headers },
    ...more,
  }
}

test('each of the others that is there is asked, with what only it can read', () => {
  const { world, instanceAddresses, a, b, c } = cluster()
  const candidates = a.candidates(replaces, asked)
  expect(candidates.map(({ holder, uri }) => [holder, uri])).toEqual([
    ['b', 'sip:192.0.2.2:5060'],
    ['c', 'sip:192.0.2.3:5060'],
  ])
  expect(candidates[0]?.replaces).toBe('c1;to-tag=to;from-tag=from')
  const facts = { replaces, party, transfersBefore: 3 }
  expect(b.read(inviteOf(a))).toEqual({ ...facts, isRecorded: false })
  world.recorded = 'u'
  expect(b.read(inviteOf(a))).toEqual({ ...facts, isRecorded: true })
  expect(instanceAddresses).toEqual([addresses.a, addresses.a])
  expect(c.read(inviteOf(a))).toBe('refused')
  world.alive = ['a', 'c']
  expect(a.candidates(replaces, asked).map(({ holder }) => holder)).toEqual(['c'])
})

test('an INVITE without a token is none of an instance', () => {
  const { world, a, b } = cluster()
  expect(b.read({ ...inviteOf(a), headers: { replaces: 'c1;to-tag=to;from-tag=from' } })).toBe(
    undefined,
  )
  expect(world.refused).toBe(0)
})

test.each([
  ['from an address of another node', { sourceAddress: addresses.c }, {}],
  ['for another dialog', {}, { replaces: 'c2;to-tag=to;from-tag=from' }],
  ['for a dialog that must be early', {}, { replaces: 'c1;to-tag=to;from-tag=from;early-only' }],
  ['without a dialog', {}, { replaces: '' }],
  ['that is made up', {}, { 'X-Tollgate-Transfer': 'AAAA' }],
  ['that is too long', {}, { 'X-Tollgate-Transfer': 'A'.repeat(5_000) }],
])('a token %s is refused, and counted', (_, more, headers) => {
  const { world, instanceAddresses, a, b } = cluster()
  expect(b.read(inviteOf(a, more, headers))).toBe('refused')
  expect(world.refused).toBe(1)
  expect(instanceAddresses).toEqual([])
})

test('a token of another installation is refused', () => {
  const { nodeOf: instanceOf, b } = cluster()
  expect(b.read(inviteOf(instanceOf('a', Buffer.alloc(32, 2))))).toBe('refused')
})

test('a token lives for a minute, and 30 s more for clocks that differ', () => {
  const { world, logged, a, b } = cluster()
  const invite = inviteOf(a)
  world.now += 90_000
  expect(b.read(invite)).toMatchObject({ party })
  world.now += 1
  expect(b.read(invite)).toBe('refused')
  expect(logged).toEqual([expect.stringContaining('compare the clocks')])
  world.now -= 120_002
  expect(b.read(invite)).toBe('refused')
})
