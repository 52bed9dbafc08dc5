import { expect, test } from 'vitest'
import { RefusedInvites } from '../../../../../engine/sip-server/core/uas/receive-request.ts'

const keyOf = (number: number): string => `z9hg4bk-${number} 203.0.113.7:5060 INVITE`

const keys = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => keyOf(from + index))

test('twenty thousand are known for 64·T1, and no other INVITE is taken for one of them', () => {
  const refused = new RefusedInvites(32_000, [1, 2])
  for (const key of keys(0, 20_000)) refused.add(key, 5_500)
  expect(keys(0, 20_000).every((key) => refused.has(key, 37_499))).toBe(true)
  expect(keys(20_000, 200_000).some((key) => refused.has(key, 6_000))).toBe(false)
  expect(refused.isEmpty(37_499)).toBe(false)
  expect(refused.has(keyOf(1), 39_000)).toBe(false)
  expect(refused.isEmpty(39_000)).toBe(true)
})

