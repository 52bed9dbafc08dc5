import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AlgorithmCode,
  type Entry,
  firstShares,
  isAlgorithmCode,
  prepareOrder,
  smoothCycle,
} from '../../../engine/dispatcher/algorithms.ts'
import { smoothLatency } from '../../../engine/dispatcher/probed-targets.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const codes: readonly AlgorithmCode[] = [0, 4, 6, 8, 9]

const entry = <T>(item: T, weight = 100, priority = 10): Entry<T> => ({
  item,
  identity: `sip:${String(item)}:5060;transport=udp`,
  weight,
  priority,
})

const entriesOf = (most: number, weights: number) =>
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: weights }), fc.integer({ min: 1, max: 4 })), {
      minLength: 1,
      maxLength: most,
    })
    .map((list) => list.map(([weight, priority], index) => entry(index, weight, priority)))

const pickOf = (turn: number) => ({ turn, callId: `call-${turn}`, random: seededRandom(turn) })

/** The orders that so many calls get, one after the other. */
function ordersOf<T>(code: AlgorithmCode, nodes: readonly Entry<T>[], calls: number): T[][] {
  const order = prepareOrder(code, nodes)
  const random = seededRandom(1)
  return Array.from({ length: calls }, (_, turn) => [
    ...order({ turn, callId: `${turn}-7f3a@host`, random }),
  ])
}

const firstsOf = (code: AlgorithmCode, nodes: readonly Entry<string>[], calls: number): string[] =>
  ordersOf(code, nodes, calls).map(([first = '']) => first)

const countOf = <T>(list: readonly T[], wanted: T): number =>
  list.filter((each) => each === wanted).length

describe.each(codes)('algorithm %i', (code) => {
  test('offers every active node exactly once, the same for the same pick', () => {
    fc.assert(
      fc.property(entriesOf(12, 100), fc.nat(50_000), (list, turn) => {
        const order = prepareOrder(code, list)
        const ordered = order(pickOf(turn))
        expect(ordered.toSorted((a, b) => a - b)).toEqual(list.map(({ item }) => item))
        order(pickOf(turn + 1))
        expect(order(pickOf(turn))).toEqual(ordered)
      }),
      { seed: 1, numRuns: 200 },
    )
    expect(prepareOrder(code, [])(pickOf(3))).toEqual([])
  })

  test('equal nodes get equal parts, and so do they of the calls that the first one loses', () => {
    const orders = ordersOf(
      code,
      [0, 1, 2, 3].map((item) => entry(item)),
      12_000,
    )
    for (const node of [0, 1, 2, 3]) {
      const firsts = orders.map(([first]) => first)
      expect(Math.abs(countOf(firsts, node) - 3_000)).toBeLessThan(200)
      const heirs = orders.filter(([first]) => first === 0).map(([, second]) => second)
      if (node > 0) expect(Math.abs(countOf(heirs, node) - 1_000)).toBeLessThan(130)
    }
  })

  test('sends each node the part of first calls that is told of it, full nodes left out', () => {
    fc.assert(
      fc.property(entriesOf(4, 5), fc.nat(), (all, choice) => {
        const full = all.length > 1 ? choice % (all.length + 1) : all.length
        const firsts = ordersOf(code, all, 6_000).map((order) =>
          order.find((item) => item !== full),
        )
        const told = firstShares(
          code,
          all.filter(({ item }) => item !== full),
        )
        for (const { item } of all)
          expect(countOf(firsts, item) / 6_000).toBeCloseTo(told.get(item) ?? 0, 1)
      }),
      { numRuns: 20 },
    )
  })
})

test('only the five codes of the specification are algorithms', () => {
  expect([-1, 0, 1, 2, 3, 4, 4.5, 5, 6, 7, 8, 9, 10].filter(isAlgorithmCode)).toEqual(codes)
})

describe('by Call-ID (0)', () => {
  const names = Array.from({ length: 8 }, (_, index) => `10.1.0.${index + 1}`)
  const chosen = (nodes: readonly string[]) =>
    firstsOf(
      0,
      nodes.map((name) => entry(name)),
      16_000,
    )
  const before = chosen(names)

  test('the same Call-ID reaches the same node, whatever the order of the set', () => {
    expect(chosen(names.toReversed())).toEqual(before)
  })

  test("a dead node's calls spread evenly over the others, and no other call moves", () => {
    const [dead = '', ...others] = names
    const after = chosen(others)
    const heirs = after.filter((_, index) => before[index] === dead)
    expect(before.every((node, index) => node === dead || node === after[index])).toBe(true)
    const share = heirs.length / others.length
    const squares = others.map((name) => (countOf(heirs, name) - share) ** 2 / share)
    // Chi-square with 6 degrees of freedom: 22.5 is passed by one fair spread in a thousand.
    expect(squares.reduce((sum, each) => sum + each, 0)).toBeLessThan(22.5)
    const seconds = ordersOf(
      0,
      names.map((name) => entry(name)),
      200,
    )
    for (const [index, [first, second]] of seconds.entries())
      if (first === dead) expect(after[index]).toBe(second)
  })

  test('a new node takes only its own share of the calls', () => {
    const moved = chosen([...names, '10.1.0.99']).filter((node, index) => node !== before[index])
    expect(new Set(moved)).toEqual(new Set(['10.1.0.99']))
    expect(moved.length / before.length).toBeCloseTo(1 / 9, 2)
  })
})

test('round robin (4): one node after the other, whatever their weights; who takes over alternates', () => {
  const orders = ordersOf(4, [entry('a', 1, 9), entry('b', 30, 8), entry('c', 60, 7)], 10)
  expect(orders.map(([first]) => first).join('')).toBe('abcabcabca')
  expect([0, 3, 6, 9].map((turn) => orders[turn]?.[1]).join('')).toBe('bcbc')
})

test('random (6): every one of the six orders of three nodes is equally likely', () => {
  const orders = ordersOf(6, [entry('a'), entry('b'), entry('c')], 12_000).map((each) =>
    each.join(''),
  )
  const kinds = [...new Set(orders)]
  expect(kinds).toHaveLength(6)
  const squares = kinds.map((kind) => (countOf(orders, kind) - 2_000) ** 2 / 2_000)
  // Chi-square with 5 degrees of freedom: 20.5 is passed by one fair sequence in a thousand.
  expect(squares.reduce((sum, each) => sum + each, 0)).toBeLessThan(20.5)
})

test('failover (8): the lowest priority number takes every call, equal ones share exactly by weight, standbys stay last', () => {
  const ranked = [entry('standby', 100, 20), entry('main', 100, 1), entry('last', 100, 100)]
  for (const order of ordersOf(8, ranked, 10)) expect(order).toEqual(['main', 'standby', 'last'])
  const shared = ordersOf(8, [entry('standby', 1, 20), entry('a', 100), entry('b', 50)], 30)
  expect(shared.filter(([first]) => first === 'a')).toHaveLength(20)
  expect(shared.every((order) => order.at(-1) === 'standby')).toBe(true)
  const standbys = [entry('main', 1, 1), entry('c', 90, 5), entry('d', 10, 5)]
  const seconds = ordersOf(8, standbys, 2_000).map(([, second]) => second)
  expect(countOf(seconds, 'c') / 2_000).toBeCloseTo(0.9, 1)
})

describe('by weight (9)', () => {
  test('100:50 is exactly 2:1 in any three calls in a row, and a heavy node gets no burst', () => {
    const firsts = firstsOf(9, [entry('heavy', 100), entry('light', 50)], 12)
    for (let from = 0; from < 9; from += 1)
      expect(countOf(firsts.slice(from, from + 3), 'heavy')).toBe(2)
    const smooth = firstsOf(9, [entry('a', 50), entry('b', 10), entry('c', 10)], 7)
    expect(smooth.join('')).toBe('aabacaa')
  })

  test('over each period every node gets exactly its weight', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(weights, (given) => {
        const cycle = [...smoothCycle(given)]
        const scale = given.reduce((total, weight) => total + weight, 0) / cycle.length
        expect(given.map((_, place) => countOf(cycle, place) * scale)).toEqual(given)
      }),
      { seed: 3, numRuns: 200 },
    )
  })

  test('the calls of a lost node are taken over in proportion to the weights of the others', () => {
    const orders = ordersOf(9, [entry('lost', 100), entry('b', 75), entry('c', 25)], 8_000)
    const heirs = orders.filter(([first]) => first === 'lost').map(([, second]) => second)
    expect(heirs).toHaveLength(4_000)
    expect(countOf(heirs, 'b') / heirs.length).toBeCloseTo(0.75, 1)
  })
})

test('the first sample is the latency, each later one moves it by an eighth', () => {
  expect([smoothLatency(undefined, 12), smoothLatency(12, 20), smoothLatency(12, 4)]).toEqual([
    12, 13, 11,
  ])
})
