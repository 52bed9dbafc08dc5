import { expect, test } from 'vitest'
import { ServerClock } from '../../../schema/instances/server-clock.ts'

const server = 1_767_607_200_000

function clockAt(steady: number) {
  const time = { steady }
  const now = () => time.steady
  const clock = new ServerClock(now, { sentAt: steady, answeredAt: steady + 10, serverAt: server })
  return { time, clock }
}

test('it goes on with the steady clock, whatever the machine says', () => {
  const { time, clock } = clockAt(1_000)
  time.steady += 5_000
  expect(clock.now()).toBe(server + 4_995)
})

test('an answer that took long corrects nothing', () => {
  const { clock } = clockAt(1_000)
  const before = clock.now()
  clock.note({ sentAt: 2_000, answeredAt: 12_000, serverAt: server + 3_000 })
  expect(clock.now()).toBe(before)
})

test('it says for how long the machine was asleep', () => {
  const { time, clock } = clockAt(1_000)
  const stoodStillMs = clock.note({ sentAt: 2_000, answeredAt: 2_010, serverAt: server + 194_000 })
  expect(stoodStillMs).toBeGreaterThan(192_900)
  expect(stoodStillMs).toBeLessThan(193_010)
  time.steady = 2_010
  expect(clock.now()).toBe(server + 194_000)
})
