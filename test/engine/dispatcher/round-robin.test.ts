import { expect, test } from 'vitest'
import { prepareOrder } from '../../../engine/dispatcher/algorithms.ts'

const nodes = ['a', 'b', 'c'].map((item) => ({
  item,
  identity: item,
  weight: 1,
  priority: 1,
}))
const order = prepareOrder(4, nodes)
const at = (turn: number) => order({ turn, callId: '', random: () => 0 })

test('calls go to the nodes one after the other', () => {
  expect(Array.from({ length: 7 }, (_, turn) => at(turn)[0]).join('')).toBe('abcabca')
})

test('weights and priorities do not count', () => {
  const uneven = prepareOrder(
    4,
    nodes.map((node, index) => ({ ...node, weight: 1 + index * 30, priority: 9 - index })),
  )
  const firsts = Array.from({ length: 6 }, (_, turn) =>
    uneven({ turn, callId: '', random: () => 0 }),
  )
  expect(firsts.map(([first]) => first).join('')).toBe('abcabc')
})

test('the node that takes over for a silent one alternates from round to round', () => {
  expect([0, 3, 6, 9].map((turn) => at(turn)[1]).join('')).toBe('bcbc')
})
