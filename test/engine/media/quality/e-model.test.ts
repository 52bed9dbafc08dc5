import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mosOf } from '../../../../engine/media/quality/statistics.ts'

const clean = { jitterMs: 0, packetLossPct: 0, roundTripMs: 0, codec: 'PCMA' }

test('a call without impairment is as good as its codec', () => {
  expect(mosOf(clean)).toBe(4.4)
  expect(mosOf({ ...clean, codec: 'g729' })).toBe(4.1)
})

test('loss costs more than jitter, and a delay that people notice more than one that they do not', () => {
  expect(mosOf({ ...clean, packetLossPct: 1 })).toBe(3.8)
  expect(mosOf({ ...clean, packetLossPct: 10 })).toBe(1.5)
  expect(mosOf({ ...clean, jitterMs: 20 })).toBe(4.4)
  expect(mosOf({ ...clean, roundTripMs: 200 })).toBe(4.4)
  expect(mosOf({ ...clean, roundTripMs: 800 })).toBe(3.1)
})

test('is between 1 and 4.4, and never better with more loss, jitter or delay', () => {
  const figures = fc.record({
    jitterMs: fc.double({ min: 0, max: 10_000, noNaN: true }),
    packetLossPct: fc.double({ min: 0, max: 100, noNaN: true }),
    roundTripMs: fc.double({ min: 0, max: 60_000, noNaN: true }),
    codec: fc.constantFrom('PCMU', 'G729', 'opus', undefined, '__proto__'),
  })
  fc.assert(
    fc.property(figures, fc.double({ min: 0, max: 10, noNaN: true }), (quality, more) => {
      const mos = mosOf(quality)
      expect(mos).toBeGreaterThanOrEqual(1)
      expect(mos).toBeLessThanOrEqual(4.4)
      expect(mosOf({ ...quality, jitterMs: quality.jitterMs + more })).toBeLessThanOrEqual(mos)
      expect(mosOf({ ...quality, roundTripMs: quality.roundTripMs + more })).toBeLessThanOrEqual(
        mos,
      )
      const packetLossPct = Math.min(100, quality.packetLossPct + more)
      expect(mosOf({ ...quality, packetLossPct })).toBeLessThanOrEqual(mos)
    }),
  )
})
