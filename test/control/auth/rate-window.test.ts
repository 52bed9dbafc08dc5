import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RateWindow } from '../../../control/auth/rate-limit.ts'

const MINUTE = 60_000

/** Moments of hits: mostly close together, sometimes far apart, once in a while backwards. */
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.nat(300) },
    { weight: 3, arbitrary: fc.nat(MINUTE + 1) },
    { weight: 1, arbitrary: fc.integer({ min: -5_000, max: 0 }) },
  ),
  { maxLength: 400 },
)

test('never are more hits admitted than the limit in any 60 seconds, nor is one denied without need', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), steps, (limit, waits) => {
      const window = new RateWindow(limit, MINUTE)
      const admitted: number[] = []
      let now = 1_000_000
      // The window has seen no moment yet: a first step backwards is its first moment.
      let latest = -Infinity
      for (const wait of waits) {
        now += wait
        latest = Math.max(latest, now)
        const recent = admitted.filter((at) => at > latest - MINUTE).length
        expect(window.remaining(now)).toBe(limit - recent)
        expect(window.admit(now)).toBe(recent < limit)
        if (recent < limit) admitted.push(latest)
      }
    }),
    { examples: [[1, [-1, 59_988, 12]]] },
  )
})

test('what a window says about the future is true', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), steps, (limit, waits) => {
      const window = new RateWindow(limit, MINUTE)
      let now = 1_000_000
      for (const wait of waits) window.admit((now += Math.max(0, wait)))
      const before = window.remaining(now)
      const leavesAt = window.oldestLeavesAt(now)
      const opensAt = window.opensAt(now)
      if (leavesAt > now) {
        expect(window.remaining(leavesAt - 1)).toBe(before)
        expect(window.remaining(leavesAt)).toBeGreaterThan(before)
      }
      if (opensAt > now) expect(before).toBe(0)
      expect(window.admit(Math.max(opensAt, leavesAt))).toBe(true)
    }),
  )
})

test('a lowered limit counts the hits so far, and opens when enough of them have left', () => {
  const window = new RateWindow(10, MINUTE)
  for (let i = 0; i < 10; i += 1) window.admit(i * 1_000)
  window.setLimit(3)
  expect(window.remaining(10_000)).toBe(0)
  expect(window.opensAt(10_000)).toBe(67_000)
  expect(window.admit(66_999)).toBe(false)
  expect(window.admit(67_000)).toBe(true)
})

test('a raised limit is room at once', () => {
  const window = new RateWindow(1, MINUTE)
  window.admit(0)
  window.setLimit(100)
  for (let i = 0; i < 99; i += 1) expect(window.admit(1)).toBe(true)
  expect(window.admit(1)).toBe(false)
})
