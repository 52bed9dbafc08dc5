import { expect, test } from 'vitest'
import { CarrierLimits } from '../../../engine/routing/carrier-limits.ts'
import { shareDatabase } from '../../support/share-database.ts'
import { sampleCarrier } from './samples.ts'

function start() {
  const clock = { now: 5_000 }
  const calls = { live: 0 }
  const limits = new CarrierLimits(
    () => calls.live,
    () => clock.now,
  )
  return { clock, calls, limits }
}

test('max_calls compares with the calls that live now', () => {
  const { calls, limits } = start()
  const carrier = sampleCarrier(1, { maxCalls: 2 })
  calls.live = 1
  expect(limits.isReached(carrier)).toBe(false)
  calls.live = 2
  expect(limits.isReached(carrier)).toBe(true)
})

test('max_cps holds in every window of one second', () => {
  const { clock, limits } = start()
  const carrier = sampleCarrier(1, { maxCps: 3 })
  const startedAt: number[] = []
  for (; clock.now < 10_000; clock.now += 70)
    if (!limits.isReached(carrier)) {
      limits.noteStart(carrier)
      startedAt.push(clock.now)
    }
  const windows = startedAt.map((from) => {
    return startedAt.filter((at) => at >= from && at < from + 1_000).length
  })
  expect(Math.max(...windows)).toBe(3)
  expect(startedAt.length).toBeGreaterThanOrEqual(13)
})

test('max_cps of all instances holds for a carrier that was gone for a moment', async () => {
  const { shares, time, pass } = shareDatabase(7)
  const limits = new CarrierLimits(() => 0, time.now, { shares, schedule: time.schedule })
  const carrier = sampleCarrier(1, { maxCps: 10 })
  const admitted = async () => {
    const answers = Array.from({ length: 12 }, async () => limits.admit(carrier))
    await pass(500)
    return (await Promise.all(answers)).filter(Boolean).length
  }
  expect(await admitted()).toBe(3)
  limits.keepOnly(new Set())
  await pass(2_000)
  expect(await admitted()).toBe(3)
})
