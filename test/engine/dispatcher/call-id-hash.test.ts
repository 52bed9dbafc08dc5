import { expect, test } from 'vitest'
import { prepareOrder } from '../../../engine/dispatcher/algorithms.ts'

const entry = (item: string) => ({
  item,
  identity: `sip:${item}:5060;transport=udp`,
  weight: 100,
  priority: 10,
})
const names = Array.from({ length: 8 }, (_, index) => `10.1.0.${index + 1}`)
const callIds = Array.from({ length: 16_000 }, (_, index) => `${index}-7f3a@198.51.100.7`)

function chosen(nodes: readonly string[]): string[] {
  const order = prepareOrder(0, nodes.map(entry))
  return callIds.map((callId, turn) => order({ turn, callId, random: () => 0 })[0] ?? '')
}

function countsOf(list: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const each of list) counts.set(each, (counts.get(each) ?? 0) + 1)
  return counts
}

test('the same Call-ID reaches the same node, whatever the order of the set and the turn', () => {
  expect(chosen(names.toReversed())).toEqual(chosen(names))
})

test("a dead node's calls spread evenly over the others, and no other call moves", () => {
  const [dead = '', ...others] = names
  const before = chosen(names)
  const after = chosen(others)
  const heirs = after.filter((_, index) => before[index] === dead)
  expect(before.every((node, index) => node === dead || node === after[index])).toBe(true)
  const share = heirs.length / others.length
  const counts = [...countsOf(heirs).values()]
  expect(counts).toHaveLength(7)
  // Chi-square with 6 degrees of freedom: 22.5 is passed by one fair spread in a thousand.
  expect(counts.reduce((sum, n) => sum + (n - share) ** 2 / share, 0)).toBeLessThan(22.5)
})

test('a call moves on to the very node that it would have without the first', () => {
  const order = prepareOrder(0, names.map(entry))
  for (const callId of callIds.slice(0, 200)) {
    const [first, second] = order({ turn: 0, callId, random: () => 0 })
    const rest = prepareOrder(0, names.filter((name) => name !== first).map(entry))
    expect(rest({ turn: 0, callId, random: () => 0 })[0]).toBe(second)
  }
})

test('a new node takes only its own share of the calls', () => {
  const before = chosen(names)
  const after = chosen([...names, '10.1.0.99'])
  const moved = after.filter((node, index) => node !== before[index])
  expect(moved.every((node) => node === '10.1.0.99')).toBe(true)
  expect(moved.length / callIds.length).toBeCloseTo(1 / 9, 2)
})
