import { expect, test } from 'vitest'
import { Admission } from '../../../../engine/sip-server/overload/admission.ts'

function adjusted(...delays: readonly number[]): Admission {
  const admission = new Admission()
  for (const delay of delays) admission.adjust(delay)
  return admission
}

test('with short delays everybody is let in', () => {
  const admission = adjusted(...Array.from({ length: 100 }, () => 190))
  expect(admission.isEngaged).toBe(false)
  expect(admission.admits(0.999)).toBe(true)
})

test('one long turn of the event loop refuses nobody', () => {
  expect(adjusted(0, 0, 380, 0, 0).isEngaged).toBe(false)
})

test('a delay that stays refuses a part, and more of them the longer it is', () => {
  const mild = adjusted(300, 300, 300)
  const severe = adjusted(1_500, 1_500, 1_500)
  expect(mild.isEngaged).toBe(true)
  expect(mild.share).toBeLessThan(1)
  expect(severe.share).toBeLessThan(mild.share)
  expect(mild.admits(mild.share - 0.01)).toBe(true)
  expect(mild.admits(mild.share + 0.01)).toBe(false)
})

test('somebody is always let in, so that the end of the overload is noticed', () => {
  const admission = adjusted(...Array.from({ length: 100 }, () => 2_000))
  expect(admission.admits(0.005)).toBe(true)
})

test('a share that has fallen comes back step by step, and ends at everybody', () => {
  const admission = adjusted(...Array.from({ length: 20 }, () => 2_000))
  const shares: number[] = []
  while (admission.isEngaged) {
    admission.adjust(5)
    shares.push(admission.share)
  }
  expect(shares.length).toBeGreaterThan(30)
  expect(shares.every((share, index) => share <= 1.1001 * (shares[index - 1] ?? 1))).toBe(true)
  expect(admission.admits(0.999)).toBe(true)
})
