import { expect, test } from 'vitest'
import { UsedNonces } from '../../../control/nodes/admit-node.ts'

test('a nonce counts once for as long as it has to be remembered', () => {
  for (const at of [0, 1, 999, 1_000, 1_500, 1_999]) {
    const used = new UsedNonces(1_000, 0)
    expect(used.take('a', at)).toBe(true)
    for (const later of [0, 1, 500, 999, 1_000]) expect(used.take('a', at + later)).toBe(false)
    expect(used.take('b', at + 1_000)).toBe(true)
  }
})

test('what is long past is forgotten', () => {
  const used = new UsedNonces(1_000, 0)
  used.take('a', 0)
  expect(used.take('a', 5_000)).toBe(true)
})
