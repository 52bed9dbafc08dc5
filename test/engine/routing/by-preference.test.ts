import { expect, test } from 'vitest'
import { orderByPreference } from '../../../engine/routing/outbound-routes.ts'
import { seededRandom } from '../../support/seeded-random.ts'

test('a lower priority number always comes first', () => {
  const items = [3, 1, 2].map((priority) => ({ priority, weight: 101 - priority }))
  for (let seed = 0; seed < 50; seed += 1)
    expect(orderByPreference(items, seededRandom(seed)).map((item) => item.priority)).toEqual([
      1, 2, 3,
    ])
})

test('among equals the first is drawn in proportion to the weights', () => {
  const items = [10, 30, 60].map((weight) => ({ priority: 1, weight }))
  const random = seededRandom(2)
  const counts = new Map<number, number>()
  for (let draw = 0; draw < 10_000; draw += 1) {
    const weight = orderByPreference(items, random)[0]?.weight ?? 0
    counts.set(weight, (counts.get(weight) ?? 0) + 1)
  }
  for (const { weight } of items)
    expect(Math.abs((counts.get(weight) ?? 0) - weight * 100)).toBeLessThan(200)
})
