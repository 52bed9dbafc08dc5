import { expect, test } from 'vitest'
import { type QualityChange, RouteQuality } from '../../../engine/routing/route-quality.ts'
import { QualityWindow } from '../../../engine/routing/quality-window.ts'
import type { QualityFloors } from '../../../schema/contracts/route-quality.ts'

const MINUTE = 60_000
const unset: QualityFloors = {
  minAsr: null,
  minAcdSeconds: null,
  maxPddMs: null,
  windowSeconds: 900,
  minCalls: 10,
}

function measuring(floors: Partial<QualityFloors>) {
  const changes: QualityChange[] = []
  const route = { routeId: 1, name: 'r', tenantId: null, carrierId: 1 }
  const whole = { ...unset, ...floors }
  const quality = new RouteQuality({ ...route, floors: whole }, 0, (each) => changes.push(each))
  const calls = (at: number, answered: number, of: number, delayMs: number | null = 1_000) => {
    for (let each = 0; each < of; each += 1) quality.addAttempt(at, each < answered, delayMs)
  }
  const talks = (at: number, count: number, seconds: number) => {
    for (let each = 0; each < count; each += 1) quality.addTalk(at, seconds * 1_000)
  }
  return { quality, changes, calls, talks }
}

test('figures of a window forget what is older than it, in steps of a thirtieth', () => {
  const window = new QualityWindow(900, 0)
  window.addAttempt(0, true, 2_000)
  window.addTalk(10 * MINUTE, 90_000)
  window.addAttempt(10 * MINUTE, false, null)
  expect(window.figures(14 * MINUTE)).toMatchObject({
    attempts: 2,
    answered: 1,
    asr: 50,
    acdSeconds: 90,
    pddMs: 2_000,
  })
  expect(window.figures(15 * MINUTE)).toMatchObject({ attempts: 1, asr: 0, pddMs: null })
  expect(window.figures(25 * MINUTE)).toMatchObject({ attempts: 0, asr: null, acdSeconds: null })
  // A gap of any length empties the ring once.
  window.addAttempt(1e9, true, 500)
  expect(window.figures(1e9)).toMatchObject({ attempts: 1, asr: 100, pddMs: 500 })
})

test.each([
  ['too few answers', { minAsr: 50 }, ['asr']],
  ['calls that ring too late', { maxPddMs: 500 }, ['pdd']],
  ['both', { minAsr: 50, maxPddMs: 500 }, ['asr', 'pdd']],
])('a carrier with %s is low from the tenth call on, never before', (_, floors, faults) => {
  const { quality, changes, calls } = measuring(floors)
  calls(0, 4, 9)
  expect(quality.isLow(0)).toBe(false)
  calls(0, 0, 1)
  expect(quality.isLow(0)).toBe(true)
  expect(changes).toEqual([{ kind: 'low' }])
  expect(quality.status(0)).toMatchObject({ state: 'low', until: 900_000, fallen: { faults } })
})

test('exactly the floor is good enough', () => {
  const { quality, calls, talks } = measuring({ minAsr: 50, minAcdSeconds: 60, maxPddMs: 1_000 })
  calls(0, 10, 10)
  calls(0, 0, 10)
  talks(0, 10, 60)
  expect(quality.status(0)).toMatchObject({ state: 'good', figures: { asr: 50, acdSeconds: 60 } })
})

test('short calls are judged by answered calls that have ended', () => {
  const { quality, calls, talks } = measuring({ minAcdSeconds: 60 })
  calls(0, 30, 30)
  talks(0, 9, 5)
  expect(quality.isLow(0)).toBe(false)
  talks(0, 1, 5)
  expect(quality.status(0)).toMatchObject({ state: 'low', fallen: { faults: ['acd'] } })
})

test('calls without ringing have no delay', () => {
  const { quality, calls } = measuring({ maxPddMs: 500 })
  calls(0, 0, 50, null)
  expect(quality.isLow(0)).toBe(false)
})

test('what is older than the window is not judged', () => {
  const { quality, calls } = measuring({ minAsr: 50 })
  calls(0, 0, 9)
  calls(15 * MINUTE, 0, 1)
  expect(quality.isLow(15 * MINUTE)).toBe(false)
})

test('without calls it comes back after a window, for a trial', () => {
  const { quality, changes, calls } = measuring({ minAsr: 50 })
  calls(0, 0, 10)
  expect(quality.isLow(15 * MINUTE - 1)).toBe(true)
  expect(quality.isLow(15 * MINUTE)).toBe(false)
  quality.follow(15 * MINUTE)
  expect(changes.slice(1)).toEqual([{ kind: 'restored', by: 'trial' }])
  expect(quality.status(15 * MINUTE)).toMatchObject({ state: 'trial', until: null })
})

test('each failed trial doubles the rest, up to eight windows; a good one ends that', () => {
  const { quality, calls } = measuring({ minAsr: 50 })
  let now = 0
  const rests: number[] = []
  for (let fall = 0; fall < 6; fall += 1) {
    calls(now, 0, 10)
    const { until } = quality
    rests.push(((until ?? 0) - now) / MINUTE)
    now = until ?? 0
  }
  expect(rests).toEqual([15, 30, 60, 120, 120, 120])
  calls(now, 10, 10)
  expect(quality.status(now)).toMatchObject({ state: 'good', fallen: null })
  calls(now, 0, 20)
  expect(((quality.until ?? 0) - now) / MINUTE).toBe(15)
})

test('a rest is at most a day, or one window', () => {
  const { quality, calls } = measuring({ minAsr: 50, windowSeconds: 43_200 })
  let now = 0
  for (const hours of [12, 24, 24]) {
    calls(now, 0, 10)
    expect(((quality.until ?? 0) - now) / (60 * MINUTE)).toBe(hours)
    now = quality.until ?? 0
  }
})

test('a low carrier whose last calls are well above its floors comes back at once', () => {
  const { quality, changes, calls } = measuring({ minAsr: 50 })
  calls(0, 0, 10)
  calls(MINUTE, 0, 5)
  // 54.5 %: above the floor, and not by a tenth of it.
  calls(MINUTE, 6, 6)
  expect(quality.isLow(MINUTE)).toBe(true)
  calls(2 * MINUTE, 1, 1)
  expect(quality.isLow(2 * MINUTE)).toBe(false)
  expect(changes.slice(1)).toEqual([{ kind: 'restored', by: 'measured' }])
})

test('a trial that stays between the floor and its margin is neither failed nor passed', () => {
  const { quality, changes, calls } = measuring({ minAsr: 50 })
  calls(0, 0, 10)
  calls(15 * MINUTE, 11, 11)
  // The first ten were above the margin.
  expect(quality.status(15 * MINUTE).state).toBe('good')
  const other = measuring({ minAsr: 50 })
  other.calls(0, 0, 10)
  for (let pair = 0; pair < 20; pair += 1) other.calls(15 * MINUTE, 1, 2)
  expect(other.quality.status(15 * MINUTE)).toMatchObject({ state: 'trial', figures: { asr: 50 } })
  expect(other.changes).toHaveLength(2)
  expect(changes).toHaveLength(2)
})
