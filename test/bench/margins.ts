/** A day of calls through the settlement, and the time of the report of margins over it. */
import { goldenDay } from '../support/golden-day.ts'
import { numbersOf } from './load/options.ts'

export const describe =
  'a golden day of 200,000 calls: sums of costs and margins; arguments: calls=200000 seed=1'

export async function run(words: readonly string[] = []): Promise<void> {
  const { calls, seed } = numbersOf(words, { calls: 200_000, seed: 1 })
  const { expected, beforeSums, fromSums, stored } = await goldenDay(calls, seed)
  const day = expected.get('day 2026-01-01')
  const isRight =
    stored?.['sold'] === String(day?.sold) &&
    stored['bought'] === String(day?.bought) &&
    [...expected].every(([key, sum]) => textOf(fromSums.get(key)) === textOf(sum)) &&
    [...expected].every(([key, sum]) => textOf(beforeSums.get(key)) === textOf(sum))
  console.log(
    `  ${calls} calls, seed ${seed}: sold ${day?.sold}, bought ${day?.bought} micro-units`,
  )
  if (!isRight) throw new Error(`records, sums or reports differ (seed ${seed})`)
}

const textOf = (sum: object | undefined): string =>
  JSON.stringify(sum, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
