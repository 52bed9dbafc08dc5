import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { scheduleRollUps } from '../../../control/reports/roll-up.ts'
import { ManualTime } from '../../support/manual-time.ts'

test('blocks that are missing are made without a pause, and new records wait for the next interval', async () => {
  const time = new ManualTime(0)
  const steps: number[] = []
  const cancel = scheduleRollUps({
    schedule: time.schedule,
    now: time.now,
    days: 0,
    log: () => undefined,
    rollUp: () => {
      steps.push(time.now())
      return Promise.resolve({ added: 0, behind: 0, hasMoreBlocks: steps.length < 4 })
    },
  })
  while (time.now() < 25_000) {
    time.advance(100)
    await nextTurn()
  }
  cancel()
  expect(steps).toEqual([10_000, 10_100, 10_200, 10_300, 20_300])
})
