import { expect, test } from 'vitest'
import { smoothLatency } from '../../../engine/dispatcher/probed-targets.ts'

test('the first sample is the latency, each later one moves it by an eighth', () => {
  expect(smoothLatency(undefined, 12)).toBe(12)
  expect(smoothLatency(12, 20)).toBe(13)
  expect(smoothLatency(12, 4)).toBe(11)
})
