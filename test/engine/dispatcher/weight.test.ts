import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { prepareOrder, smoothCycle } from '../../../engine/dispatcher/algorithms.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const entry = (item: string, weight: number) => ({ item, identity: item, weight, priority: 1 })

function firstsOf(
  weights: Readonly<Record<string, number>>,
  from: number,
  calls: number,
): string[] {
  const nodes = Object.entries(weights).map(([item, weight]) => entry(item, weight))
  const order = prepareOrder(9, nodes)
  const random = seededRandom(1)
  return Array.from({ length: calls }, (_, index) => {
    return order({ turn: from + index, callId: '', random })[0] ?? ''
  })
}

test('100:50 is exactly 2:1 in any three calls in a row', () => {
  for (let from = 0; from < 9; from += 1) {
    const firsts = firstsOf({ heavy: 100, light: 50 }, from, 3)
    expect(firsts.filter((node) => node === 'heavy')).toHaveLength(2)
  }
})

test('a heavy node does not get its calls in one burst', () => {
  expect(firstsOf({ a: 50, b: 10, c: 10 }, 0, 7).join('')).toBe('aabacaa')
})

test('over each period every node gets exactly its weight', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 20 }),
      (weights) => {
        const cycle = smoothCycle(weights)
        const sum = weights.reduce((total, weight) => total + weight, 0)
        const scale = sum / cycle.length
        const counts = weights.map((_, place) => cycle.filter((each) => each === place).length)
        expect(counts.map((count) => count * scale)).toEqual(weights)
      },
    ),
    { seed: 3, numRuns: 200 },
  )
})

test('the calls of a lost node are taken over in proportion to the weights of the others', () => {
  const order = prepareOrder(9, [entry('lost', 100), entry('b', 75), entry('c', 25)])
  const random = seededRandom(8)
  const heirs: string[] = []
  for (let turn = 0; turn < 8_000; turn += 1) {
    const [first, second = ''] = order({ turn, callId: '', random })
    if (first === 'lost') heirs.push(second)
  }
  expect(heirs).toHaveLength(4_000)
  expect(heirs.filter((heir) => heir === 'b').length / heirs.length).toBeCloseTo(0.75, 1)
})
