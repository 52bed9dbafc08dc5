import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AlgorithmCode,
  type Entry,
  isAlgorithmCode,
  prepareOrder,
} from '../../../engine/dispatcher/algorithms.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const codes: readonly AlgorithmCode[] = [0, 4, 6, 8, 9]

const entries = fc
  .array(
    fc.record({
      weight: fc.integer({ min: 1, max: 100 }),
      priority: fc.integer({ min: 1, max: 4 }),
    }),
    {
      maxLength: 12,
    },
  )
  .map((list) =>
    list.map((each, index): Entry<number> => ({ ...each, item: index, identity: `sip:n${index}` })),
  )

const pickOf = (turn: number) => ({ turn, callId: `call-${turn}`, random: seededRandom(turn) })

describe.each(codes)('algorithm %i', (code) => {
  test('offers every active node exactly once, and nothing else', () => {
    fc.assert(
      fc.property(entries, fc.nat(50_000), (list, turn) => {
        const ordered = prepareOrder(code, list)(pickOf(turn))
        expect(ordered.toSorted((a, b) => a - b)).toEqual(list.map((entry) => entry.item))
      }),
      { seed: 1, numRuns: 200 },
    )
  })

  test('is a function of its arguments: the same pick gives the same order', () => {
    fc.assert(
      fc.property(entries, fc.nat(50_000), (list, turn) => {
        const order = prepareOrder(code, list)
        const first = order(pickOf(turn))
        order(pickOf(turn + 1))
        expect(order(pickOf(turn))).toEqual(first)
      }),
      { seed: 2, numRuns: 100 },
    )
  })

  test('has no candidate for an empty set and the only one for a set of one', () => {
    expect(prepareOrder(code, [])(pickOf(3))).toEqual([])
    const only = { item: 7, identity: 'sip:only', weight: 1, priority: 1 }
    expect(prepareOrder(code, [only])(pickOf(3))).toEqual([7])
  })

  test('equal nodes get equal parts, and so do they of the calls that the first one loses', () => {
    const nodes = [0, 1, 2, 3].map((item) => ({
      item,
      identity: `sip:10.0.0.${item}:5060;transport=udp`,
      weight: 100,
      priority: 10,
    }))
    const order = prepareOrder(code, nodes)
    const random = seededRandom(9)
    const first = [0, 0, 0, 0]
    const second = [0, 0, 0, 0]
    for (let turn = 0; turn < 12_000; turn += 1) {
      const [one = 0, two = 0] = order({ turn, callId: `${turn}@host`, random })
      first[one] = (first[one] ?? 0) + 1
      if (one === 0) second[two] = (second[two] ?? 0) + 1
    }
    for (const count of first) expect(Math.abs(count - 3_000)).toBeLessThan(200)
    for (const count of second.slice(1)) expect(Math.abs(count - 1_000)).toBeLessThan(130)
  })
})

test('only the five codes of the specification are algorithms', () => {
  expect([0, 4, 6, 8, 9].every(isAlgorithmCode)).toBe(true)
  expect([1, 2, 3, 5, 7, 10, -1, 4.5].some(isAlgorithmCode)).toBe(false)
})
