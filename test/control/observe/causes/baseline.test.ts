import { expect, test } from 'vitest'
import { compared } from '../../../../control/reports/findings.ts'

const limits = { floor: 10, newFloor: 30, factor: 3 }
const days = (...values: number[]) => Array.from({ length: 14 }, (_, index) => values[index] ?? 0)
const isUnusual = (value: number, past: readonly number[], hasPast = true) =>
  compared(value, past, hasPast, limits).isUnusual

test('what is below the floor is never unusual', () => {
  expect(isUnusual(9, days())).toBe(false)
  expect(isUnusual(10, days())).toBe(true)
})

test('what has no past needs a greater floor', () => {
  expect(isUnusual(29, days(), false)).toBe(false)
  expect(isUnusual(30, days(), false)).toBe(true)
})

test('several times the mean is unusual, unless a day of the past was nearly as great', () => {
  const steady = days(...Array.from({ length: 14 }, () => 10))
  expect(isUnusual(29, steady)).toBe(false)
  expect(isUnusual(30, steady)).toBe(true)
  // A busy Monday, after two others.
  expect(isUnusual(100, days(90, 0, 0, 0, 0, 0, 0, 80))).toBe(false)
  expect(isUnusual(136, days(90, 0, 0, 0, 0, 0, 0, 80))).toBe(true)
})
