import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CallDeadlines } from '../../../engine/call/deadlines.ts'
import { ManualTime } from '../../support/manual-time.ts'

const TICK_MS = 50

function start() {
  const time = new ManualTime(1_000_000)
  return { time, deadlines: new CallDeadlines({ now: time.now, schedule: time.schedule }) }
}

test('a deadline is never early and at most one tick late', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 30 }), (delays) => {
      const { time, deadlines } = start()
      const from = time.now()
      const late: number[] = []
      for (const delay of delays)
        deadlines.at(from + delay, () => late.push(time.now() - from - delay))
      for (let step = 0; step < 510; step++) time.advance(10)
      expect(late).toHaveLength(delays.length)
      expect(Math.min(0, ...late)).toBe(0)
      expect(Math.max(0, ...late)).toBeLessThanOrEqual(TICK_MS)
    }),
  )
})

test('a cancelled deadline never comes, and leaves nothing behind', () => {
  const { time, deadlines } = start()
  let count = 0
  const deadline = deadlines.at(time.now() + 100, () => count++)
  deadlines.cancel(deadline)
  deadlines.cancel(deadline)
  deadlines.cancel(undefined)
  expect(deadlines.size).toBe(0)
  time.advance(1_000)
  expect(count).toBe(0)
  expect(time.waiting).toBe(0)
})

test('deadlines that were missed in a pause come all at once, in order', () => {
  const { time, deadlines } = start()
  const order: number[] = []
  for (const delay of [300, 100, 200]) deadlines.at(time.now() + delay, () => order.push(delay))
  deadlines.at(time.now() + 7_200_000, () => order.push(7_200_000))
  time.advance(3_600_000)
  expect(order).toEqual([100, 200, 300])
  time.advance(3_700_000)
  expect(order).toEqual([100, 200, 300, 7_200_000])
})

test('a deadline may ask for another, or cancel one of its own tick', () => {
  const { time, deadlines } = start()
  const came: string[] = []
  const due = time.now() + 100
  deadlines.at(due, () => {
    came.push('first')
    deadlines.cancel(second)
    deadlines.at(time.now(), () => came.push('next'))
  })
  const second = deadlines.at(due, () => came.push('second'))
  time.advance(1_000)
  expect(came).toEqual(['first', 'next'])
})

test('after stop nothing comes any more', () => {
  const { time, deadlines } = start()
  let count = 0
  deadlines.at(time.now() + 100, () => count++)
  deadlines.stop()
  time.advance(1_000)
  expect(count).toBe(0)
  expect(time.waiting).toBe(0)
})
