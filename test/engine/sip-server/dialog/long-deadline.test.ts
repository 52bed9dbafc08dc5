import { expect, test } from 'vitest'
import { Deadlines, LongDeadline } from '../../../../engine/sip-server/transaction/machine.ts'

/** Lets all time pass; returns when it came, and the delays that were waited for. */
function fired(delayMs: number) {
  const deadlines = new Deadlines()
  let at: number | undefined
  const delays = new Set<number>()
  new LongDeadline(deadlines, (now) => (at = now)).set(delayMs, 0)
  let now = 0
  for (let next = deadlines.next(); next !== undefined; next = deadlines.next()) {
    delays.add(next - now)
    now = next
    deadlines.expire(now)
  }
  return { at, delays }
}

test.each([0, 100, 250, 999, 2_100, 45_000, 900_000, 1_768_000, 86_400_000])(
  'a deadline in %i ms comes then, and at most 250 ms too early',
  (delayMs) => {
    const { at = Infinity } = fired(delayMs)
    expect(delayMs - at).toBeGreaterThanOrEqual(0)
    expect(delayMs - at).toBeLessThan(250)
  },
)

test('whatever delays peers choose, few different ones are waited for', () => {
  const delays = new Set<number>()
  for (let seconds = 0; seconds < 7_200; seconds += 7)
    for (const delay of fired(seconds * 1_000 + seconds).delays) delays.add(delay)
  expect(delays.size).toBeLessThan(10)
})

test('one that is cancelled, or set anew, does not come any more', () => {
  const deadlines = new Deadlines()
  const fires: number[] = []
  const deadline = new LongDeadline(deadlines, (now) => fires.push(now))
  deadline.set(1_000, 0)
  deadline.set(4_000, 0)
  deadlines.expire(1_000)
  expect(fires).toEqual([])
  deadline.cancel()
  deadlines.expire(10_000)
  expect([fires, deadlines.size]).toEqual([[], 0])
})
