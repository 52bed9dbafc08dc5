import { expect, test } from 'vitest'
import { UNANSWERED_WAIT_MS, waitForAnswer } from '../../../engine/shares/node-share.ts'
import { ManualTime } from '../../support/manual-time.ts'

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

test('time in which the process stands still counts as one part', () => {
  const { time, wait } = waiting(() => 300)
  time.stall(2_500)
  // Of 300 ms this was 100, and ten are left at the end.
  time.advance(199)
  expect(wait.isOver).toBe(false)
  time.advance(1)
  expect(wait.isOver).toBe(true)
})

test('a wait of more than five seconds ends once what has come meanwhile is read', () => {
  const { time, wait } = waiting(() => 300)
  time.stall(6_000)
  expect(wait.isOver).toBe(false)
  time.advance(10)
  expect(wait.isOver).toBe(true)
})
