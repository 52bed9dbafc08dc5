import { expect, test } from 'vitest'
import { prepareOrder } from '../../../engine/dispatcher/algorithms.ts'
import { seededRandom } from '../../support/seeded-random.ts'

test('every one of the six orders of three nodes is equally likely', () => {
  const nodes = ['a', 'b', 'c'].map((item) => ({ item, identity: item, weight: 1, priority: 1 }))
  const order = prepareOrder(6, nodes)
  const random = seededRandom(4)
  const counts = new Map<string, number>()
  for (let turn = 0; turn < 12_000; turn += 1) {
    const list = order({ turn, callId: '', random }).join('')
    counts.set(list, (counts.get(list) ?? 0) + 1)
  }
  expect(counts.size).toBe(6)
  // Chi-square with 5 degrees of freedom: 20.5 is passed by one fair sequence in a thousand.
  const chiSquare = [...counts.values()].reduce((sum, n) => sum + (n - 2_000) ** 2 / 2_000, 0)
  expect(chiSquare).toBeLessThan(20.5)
})
