import { expect, test } from 'vitest'
import {
  monthOf,
  monthsBetween,
  monthText,
  periodOf,
} from '../../../../../control/console/web/screens/months.ts'

/** In the zone of the machine, as the viewer's. */
const at = (year: number, month: number, day: number): number =>
  new Date(year, month - 1, day).getTime()

test('a month is that of the zone of the viewer, and ends where the next one begins', () => {
  const november = periodOf('2026-11')
  expect(november?.from).toBe(new Date(at(2026, 11, 1)).toISOString())
  expect(november?.to).toBe(periodOf('2026-12')?.from)
  expect(monthOf(Date.parse(november?.from ?? ''))).toBe('2026-11')
  expect(monthOf(Date.parse(november?.to ?? '') - 1)).toBe('2026-11')
  expect(monthText('2026-11')).toContain('2026')
})

test.each(['', '2026-13', '2026-1', '26-01', '2026-11-01'])('%j is no month', (text) => {
  expect(periodOf(text)).toBeUndefined()
})

test('months are offered from the newest to the first, at most ten years of them', () => {
  expect(monthsBetween(at(2025, 11, 30), at(2026, 2, 1))).toEqual([
    '2026-02',
    '2026-01',
    '2025-12',
    '2025-11',
  ])
  expect(monthsBetween(at(2026, 3, 31), at(2026, 2, 28))).toEqual(['2026-02'])
  expect(monthsBetween(0, at(2026, 2, 1))).toHaveLength(120)
})
