import { expect, test } from 'vitest'
import { ROUND_MS, Rounds } from '../../schema/rounds.ts'
import { ManualTime } from '../support/manual-time.ts'

function begun() {
  const time = new ManualTime(0)
  let wakeUps = 0
  const rounds = new Rounds({
    steadyNow: time.now,
    schedule: (work, delayMs) =>
      time.schedule(() => {
        wakeUps += 1
        work()
      }, delayMs),
  })
  return { time, rounds, wakeUps: () => wakeUps }
}

test('however many look for something, the process is woken four times a second', () => {
  const { time, rounds, wakeUps } = begun()
  const counts = new Map<number, number>()
  for (const intervalMs of [250, 250, 1_000, 1_000, 2_000, 5_000]) {
    // They begin at different moments.
    time.advance(37)
    rounds.every(intervalMs, () => counts.set(intervalMs, (counts.get(intervalMs) ?? 0) + 1))
  }
  const begunAt = time.now()
  time.advance(20_000)
  expect(wakeUps()).toBe((20_000 + begunAt - 37 - ((begunAt - 37) % ROUND_MS)) / ROUND_MS)
  expect([...counts]).toEqual([
    [250, 2 * 80],
    [1_000, 2 * 20],
    [2_000, 10],
    [5_000, 4],
  ])
})

test.each([
  [500, 2],
  [1_000, 2],
  [5_000, 0.4],
])(
  'whenever they began, parts that look each %i ms wake the process %d times a second',
  (intervalMs, perSecond) => {
    const { time, rounds, wakeUps } = begun()
    for (let part = 0; part < 10; part += 1) {
      rounds.every(intervalMs, () => undefined)
      time.advance(61)
    }
    time.advance(10_000)
    const before = wakeUps()
    time.advance(60_000)
    expect(wakeUps() - before).toBe(60 * perSecond)
  },
)

test('what is due is at most a round early for the first time, and then in its interval', () => {
  const { time, rounds } = begun()
  rounds.every(250, () => undefined)
  time.advance(240)
  const at: number[] = []
  rounds.every(1_000, () => at.push(time.now() - 240))
  time.advance(5_000)
  expect(at).toEqual([760, 1_760, 2_760, 3_760, 4_760])
})

test('what is looked for seldom begins within its interval, less than half a second early', () => {
  const { time, rounds } = begun()
  rounds.every(60_000, () => undefined)
  for (const afterMs of [1, 249, 250, 499]) {
    time.advance(afterMs)
    const begunAt = time.now()
    let firstMs: number | undefined
    const end = rounds.every(1_000, () => (firstMs ??= time.now() - begunAt))
    time.advance(1_000)
    end()
    expect(firstMs).toBeGreaterThan(500)
    expect(firstMs).toBeLessThanOrEqual(1_000)
  }
})

test('an interval of no whole rounds is kept on average', () => {
  const { time, rounds } = begun()
  let count = 0
  rounds.every(300, () => (count += 1))
  time.advance(30_000)
  expect(count).toBe(100)
})

test('what a standing process has missed is done once', () => {
  const { time, rounds } = begun()
  let count = 0
  rounds.every(250, () => (count += 1))
  time.advance(1_000)
  time.stall(60_000)
  expect(count).toBe(4 + 1)
  time.advance(1_000)
  expect(count).toBe(4 + 1 + 4)
})

test('nothing runs after its end, and without work nothing wakes the process', () => {
  const { time, rounds } = begun()
  let count = 0
  const ends = [250, 1_000].map((intervalMs) => rounds.every(intervalMs, () => (count += 1)))
  time.advance(1_000)
  expect(count).toBe(5)
  for (const end of ends) end()
  time.advance(10_000)
  expect(count).toBe(5)
  expect(time.waiting).toBe(0)
  rounds.every(250, () => (count += 1))
  time.advance(250)
  expect(count).toBe(6)
})
