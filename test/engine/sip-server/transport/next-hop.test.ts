import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { NextHopResolver } from '../../../../engine/sip-server/transport/next-hop.ts'

function setUp() {
  const clock = { now: 0 }
  const asked: string[] = []
  const found = new Map<string, (addresses: readonly string[]) => void>()
  const resolved: string[] = []
  const resolver = new NextHopResolver(
    (host, done) => {
      asked.push(host)
      found.set(host, done)
    },
    () => clock.now,
    (host, addresses) => resolved.push(`${host} = ${addresses.join(' ')}`),
  )
  const answer = (host: string, ...addresses: string[]) => found.get(host)?.(addresses)
  return { clock, asked, resolved, resolver, answer }
}

test('a host is looked up once for all who ask meanwhile', () => {
  const { resolver, asked, resolved, answer } = setUp()
  resolver.resolve('pbx.example.net')
  resolver.resolve('pbx.example.net')
  expect(asked).toEqual(['pbx.example.net'])
  expect(resolver.pending).toBe(1)
  answer('pbx.example.net', '192.0.2.1', '2001:db8::1')
  expect(resolved).toEqual(['pbx.example.net = 192.0.2.1 2001:db8::1'])
  expect(resolver.pending).toBe(0)
})

test('an answer is kept for 30 s, a missing host for 2 s, and told later, not at once', async () => {
  const { resolver, asked, resolved, answer, clock } = setUp()
  resolver.resolve('there')
  answer('there', '192.0.2.1')
  resolver.resolve('missing')
  answer('missing')
  resolved.length = 0

  clock.now = 1_999
  resolver.resolve('missing')
  expect(resolved).toEqual([])
  await turn()
  clock.now = 29_999
  resolver.resolve('there')
  await turn()
  expect(resolved).toEqual(['missing = ', 'there = 192.0.2.1'])
  expect(asked).toEqual(['there', 'missing'])

  clock.now = 30_000
  resolver.resolve('missing')
  resolver.resolve('there')
  expect(asked).toEqual(['there', 'missing', 'missing', 'there'])
})

test('a literal needs no lookup', async () => {
  const { resolver, asked, resolved } = setUp()
  resolver.resolve('192.0.2.7')
  resolver.resolve('[2001:db8::7]')
  await turn()
  expect(resolved).toEqual(['192.0.2.7 = 192.0.2.7', '[2001:db8::7] = 2001:db8::7'])
  expect(asked).toEqual([])
})

test('the cache and the lookups under way are bounded', async () => {
  const { resolver, asked, resolved, answer } = setUp()
  for (let host = 0; host < 1_001; host++) {
    resolver.resolve(`h${host}`)
    if (host < 1_000) answer(`h${host}`, '192.0.2.1')
  }
  answer('h1000', '192.0.2.1')
  resolver.resolve('h0')
  expect(asked.at(-1)).toBe('h0')
  for (let host = 0; host < 1_000; host++) resolver.resolve(`pending${host}`)
  expect(resolver.pending).toBe(1_000)
  resolver.resolve('one-too-many')
  await turn()
  expect(resolved.at(-1)).toBe('one-too-many = ')
})
