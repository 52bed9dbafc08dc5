import { expect, test } from 'vitest'
import { Admission } from '../../../engine/sip-server/overload.ts'

function adjusted(...delays: readonly number[]): Admission {
  const admission = new Admission()
  for (const delay of delays) admission.adjust(delay, 1)
  return admission
}

test('with short delays every call is let in', () => {
  const admission = adjusted(...Array.from({ length: 100 }, () => 390))
  expect(admission.isEngaged).toBe(false)
  expect(admission.admits(0.999)).toBe(true)
})

test('long turns of the event loop between short ones refuse no call', () => {
  expect(adjusted(0, 0, 380, 0, 900, 10, 800, 20, 600, 0, 0).isEngaged).toBe(false)
})

test('a delay that stays refuses a part, and more of them the longer it is', () => {
  const mild = adjusted(...Array.from({ length: 8 }, () => 420))
  const severe = adjusted(...Array.from({ length: 8 }, () => 900))
  expect(mild.isEngaged).toBe(true)
  expect(mild.share).toBeLessThan(1)
  expect(severe.share).toBeLessThan(mild.share)
  expect(mild.admits(mild.share - 0.01)).toBe(true)
  expect(mild.admits(mild.share + 0.01)).toBe(false)
})

test('a few calls are always let in, so that the end of the overload is noticed', () => {
  const admission = adjusted(...Array.from({ length: 100 }, () => 2_000))
  expect(admission.admits(0.005)).toBe(true)
})

test('a share that has fallen comes back step by step, and ends at all calls', () => {
  const admission = adjusted(...Array.from({ length: 20 }, () => 2_000))
  const shares: number[] = []
  while (admission.isEngaged) {
    admission.adjust(5, 1)
    shares.push(admission.share)
  }
  expect(shares.length).toBeGreaterThan(30)
  expect(shares.every((share, index) => share <= 1.1001 * (shares[index - 1] ?? 1))).toBe(true)
  expect(admission.admits(0.999)).toBe(true)
})

test('a loop with time to spare refuses no call, however late it is', () => {
  const admission = new Admission()
  for (let i = 0; i < 50; i++) admission.adjust(900, 0.6)
  expect(admission.isEngaged).toBe(false)
  for (let i = 0; i < 20; i++) admission.adjust(900, 1)
  const { share } = admission
  for (let i = 0; i < 5; i++) admission.adjust(900, 0.3)
  expect(admission.share).toBeGreaterThan(share)
})
