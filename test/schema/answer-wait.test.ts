import { expect, test } from 'vitest'
import { UNANSWERED_WAIT_MS, waitForAnswer } from '../../schema/answer-wait.ts'
import { ManualTime } from '../support/manual-time.ts'

/** Timers that are late: each runs when the test says so, at the time that it is then. */
function waiting(atMostMs: () => number) {
  const time = new ManualTime(0)
  const wait = { isOver: false }
  const cancel = waitForAnswer(time, atMostMs, () => {
    wait.isOver = true
  })
  return { time, wait, cancel }
}

test('a wait ends after its time', () => {
  const { time, wait } = waiting(() => 100)
  time.advance(99)
  expect(wait.isOver).toBe(false)
  time.advance(1)
  expect(wait.isOver).toBe(true)
})

test('a wait whose question is answered meanwhile ends sooner', () => {
  let atMostMs = UNANSWERED_WAIT_MS
  const { time, wait } = waiting(() => atMostMs)
  time.advance(300)
  atMostMs = 100
  time.advance(40)
  expect(wait.isOver).toBe(true)
})

test('one that is cancelled never ends, and leaves no timer', () => {
  const { time, wait, cancel } = waiting(() => 100)
  time.advance(50)
  cancel()
  time.advance(1_000)
  expect(wait.isOver).toBe(false)
  expect(time.waiting).toBe(0)
})

test('time in which the process stands still counts as one part, up to a second in all', () => {
  const due: (() => void)[] = []
  const clock = { at: 0 }
  let isOver = false
  const schedule = (work: () => void): (() => void) => {
    due.push(work)
    return () => undefined
  }
  const now = (): number => clock.at
  const run = (lateMs: number): void => {
    clock.at += lateMs
    due.shift()?.()
  }
  waitForAnswer(
    { now, schedule },
    () => 100,
    () => {
      isOver = true
    },
  )
  // It stands still for as long as the whole wait: three parts and the last one are to come.
  run(100)
  run(30)
  run(30)
  expect(isOver).toBe(false)
  run(10)
  expect(isOver).toBe(true)

  isOver = false
  waitForAnswer(
    { now, schedule },
    () => 100,
    () => {
      isOver = true
    },
  )
  run(5_000)
  expect(isOver).toBe(false)
  // What has come meanwhile is read before that.
  run(10)
  expect(isOver).toBe(true)
})
