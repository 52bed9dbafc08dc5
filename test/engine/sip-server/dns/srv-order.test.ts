import { expect, test } from 'vitest'
import { srvOrder, type SrvRecord } from '../../../../engine/sip-server/dns/next-hop.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const record = (name: string, priority: number, weight: number): SrvRecord => ({
  name,
  priority,
  weight,
  port: 5060,
})

const names = (records: readonly SrvRecord[]): string => records.map(({ name }) => name).join('')

test('a lower priority is tried first, whatever the weights', () => {
  const records = [record('c', 20, 100), record('a', 1, 0), record('b', 10, 50)]
  expect(names(srvOrder(records, () => 0.99))).toBe('abc')
})

test('within a priority the first one is drawn in proportion to the weights', () => {
  const random = seededRandom(1)
  const records = [record('a', 1, 60), record('b', 1, 30), record('c', 1, 10)]
  const firsts = { a: 0, b: 0, c: 0 } as Record<string, number>
  const draws = 20_000
  for (let draw = 0; draw < draws; draw++) {
    const name = srvOrder(records, random)[0]?.name ?? ''
    firsts[name] = (firsts[name] ?? 0) + 1
  }
  expect(firsts['a']).toBeCloseTo(draws * 0.6, -3)
  expect(firsts['b']).toBeCloseTo(draws * 0.3, -3)
  expect(firsts['c']).toBeCloseTo(draws * 0.1, -3)
})

test('records without weights keep the order that the server gave them', () => {
  const records = [record('a', 1, 0), record('b', 1, 0), record('c', 1, 0)]
  expect(names(srvOrder(records, () => 0.7))).toBe('abc')
})
