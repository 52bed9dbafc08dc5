/** When records are added to the kept sums. */
import { expect, test } from 'vitest'
import {
  scheduleRollUps,
  type RollUpResult,
  type RollUpRequest,
} from '../../../control/reports/roll-up.ts'

test('few records wait for more, ten minutes at most; after a failure and with many left it goes on sooner', async () => {
  let now = 0
  let next: { readonly work: () => void; readonly delayMs: number } | undefined
  let answer: () => Promise<RollUpResult> = () => Promise.resolve({ added: 5, behind: 0 })
  const asked: RollUpRequest[] = []
  const logged: string[] = []
  const stop = scheduleRollUps({
    now: () => now,
    days: 30,
    log: (_, message) => void logged.push(message),
    schedule: (work, delayMs) => {
      next = { work, delayMs }
      return () => (next = undefined)
    },
    rollUp: (request) => {
      asked.push(request)
      return answer()
    },
  })
  /** Resolves with the wait before this step, and what it asks for. */
  const step = async () => {
    const { work, delayMs = 0 } = next ?? {}
    now += delayMs
    next = undefined
    work?.()
    await expect.poll(() => next).toBeDefined()
    return [delayMs, asked.at(-1)?.least]
  }
  expect(await step()).toEqual([10_000, undefined])
  answer = () => Promise.resolve({ added: 0, behind: 30_000 })
  for (let waited = 10_000; waited < 600_000; waited += 10_000)
    expect(await step()).toEqual([10_000, 40_000])
  answer = () => Promise.resolve({ added: 480_000, behind: 300_000 })
  expect(await step()).toEqual([10_000, undefined])
  answer = () => Promise.resolve({ added: 300_000, behind: 0 })
  expect(await step()).toEqual([100, undefined])
  answer = () => Promise.reject(new Error('away'))
  expect(await step()).toEqual([10_000, 40_000])
  answer = () => Promise.resolve({ added: 0, behind: 0 })
  expect(await step()).toEqual([60_000, 40_000])
  expect(logged).toEqual([
    'call records are being added to the daily totals',
    'all call records are in the daily totals',
    'call records could not be added to the daily totals',
  ])
  stop()
  expect(next).toBeUndefined()
})
