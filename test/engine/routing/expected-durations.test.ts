import { expect, test } from 'vitest'
import { DEFAULT_SECONDS, ExpectedDurations } from '../../../engine/routing/expected-durations.ts'

function talked(calledNumber: string, ...seconds: readonly number[]): ExpectedDurations {
  const durations = new ExpectedDurations()
  for (const billsec of seconds) durations.add({ calledNumber, billsec })
  return durations
}

const times = (count: number, seconds: number): number[] =>
  Array.from({ length: count }, () => seconds)

test('a number of which few calls are known is expected to be talked to for a minute', () => {
  expect(talked('4930555').of('4930555')).toBe(DEFAULT_SECONDS)
  expect(talked('4930555', ...times(19, 600)).of('4930555')).toBe(DEFAULT_SECONDS)
  expect(talked('4930555', ...times(20, 600)).of('4930555')).toBe(600)
})

test('calls that were not answered say nothing', () => {
  expect(talked('4930555', ...times(50, 0)).of('4930555')).toBe(DEFAULT_SECONDS)
})

test('the longest beginning with enough calls counts, and a plus does not', () => {
  const durations = talked('+4930555', ...times(20, 100))
  for (const billsec of times(20, 300)) durations.add({ calledNumber: '4915555', billsec })
  expect(durations.of('4930999')).toBe(100)
  expect(durations.of('+4915123')).toBe(300)
  // 49 knows both, one after the other, with the same weight.
  expect(durations.of('4989')).toBe(200)
  expect(durations.of('4430')).toBe(DEFAULT_SECONDS)
})

test('the mean follows new calls, and no single one moves it far', () => {
  const durations = talked('4930', ...times(1_000, 60))
  durations.add({ calledNumber: '4930', billsec: 3_660 })
  expect(durations.of('4930')).toBe(96)
  for (const billsec of times(500, 120)) durations.add({ calledNumber: '4930', billsec })
  expect(durations.of('4930')).toBe(120)
})

test('numbers that are shorter than a beginning, and names, are no harm', () => {
  const durations = talked('1', ...times(30, 10))
  durations.add({ calledNumber: '', billsec: 10 })
  expect(durations.of('1')).toBe(DEFAULT_SECONDS)
  expect(durations.of('')).toBe(DEFAULT_SECONDS)
})
