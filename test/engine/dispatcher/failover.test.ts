import { expect, test } from 'vitest'
import { prepareOrder } from '../../../engine/dispatcher/algorithms.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const entry = (item: string, priority: number, weight = 100) => ({
  item,
  identity: `sip:${item}`,
  weight,
  priority,
})

test('the lowest priority number takes every call, the next ones follow in order', () => {
  const order = prepareOrder(8, [entry('standby', 20), entry('main', 1), entry('last', 100)])
  for (let turn = 0; turn < 10; turn += 1)
    expect(order({ turn, callId: 'c', random: seededRandom(turn) })).toEqual([
      'main',
      'standby',
      'last',
    ])
})

test('nodes of equal priority share exactly by weight; the standby stays last', () => {
  const order = prepareOrder(8, [entry('standby', 20), entry('a', 10, 100), entry('b', 10, 50)])
  const random = seededRandom(1)
  const ordered = Array.from({ length: 30 }, (_, turn) => order({ turn, callId: 'c', random }))
  expect(ordered.filter(([first]) => first === 'a')).toHaveLength(20)
  expect(ordered.filter(([first]) => first === 'b')).toHaveLength(10)
  expect(ordered.every((list) => list.at(-1) === 'standby')).toBe(true)
})

test('standby nodes of equal priority are tried in proportion to their weights', () => {
  const order = prepareOrder(8, [entry('main', 1), entry('c', 5, 90), entry('d', 5, 10)])
  const random = seededRandom(5)
  let heavyFirst = 0
  for (let turn = 0; turn < 2_000; turn += 1)
    if (order({ turn, callId: 'c', random })[1] === 'c') heavyFirst += 1
  expect(heavyFirst / 2_000).toBeCloseTo(0.9, 1)
})
