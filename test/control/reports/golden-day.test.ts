import { expect, test } from 'vitest'
import { goldenDay } from '../../support/golden-day.ts'

test('records, daily sums, reports and wallets come to what arithmetic of its own says', async () => {
  const seed = Number(process.env['GOLDEN_SEED'] ?? 20_261_129)
  const calls = Number(process.env['GOLDEN_CALLS'] ?? 2_000)
  const { expected, beforeSums, fromSums, stored, left } = await goldenDay(calls, seed)
  const day = expected.get('day 2026-01-01')
  expect(day?.calls, `seed ${seed}`).toBe(calls)
  expect(stored, `seed ${seed}`).toEqual({ sold: String(day?.sold), bought: String(day?.bought) })
  expect(left).toBe(2_000_000_000_000n - (day?.sold ?? 0n))
  const inOrder = (sums: ReadonlyMap<string, object>) =>
    [...sums].toSorted(([one], [other]) => (one < other ? -1 : 1))
  expect(inOrder(beforeSums)).toEqual(inOrder(expected))
  expect(inOrder(fromSums)).toEqual(inOrder(expected))
}, 600_000)
