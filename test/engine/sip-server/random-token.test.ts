import { expect, test } from 'vitest'
import { randomTokens } from '../../../engine/sip-server/machine.ts'

/** Bytes that count upwards, so that every byte drawn can be told from the others near it. */
function counting() {
  let drawn = 0
  const draws: number[] = []
  const randomBytes = (size: number) => {
    draws.push(size)
    return Uint8Array.from({ length: size }, () => drawn++ % 251)
  }
  return { draws, randomBytes }
}

test('no random byte is used twice, across all draws', () => {
  const { draws, randomBytes } = counting()
  const token = randomTokens(randomBytes)
  const tokens = Array.from({ length: 2_000 }, () => token())
  expect(tokens[0]).toBe('00010203040506070809')
  expect(tokens[1]).toBe('0a0b0c0d0e0f10111213')
  expect(draws).toHaveLength(5)
})
