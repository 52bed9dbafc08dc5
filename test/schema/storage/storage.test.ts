import { expect, test } from 'vitest'
import { FailureTimer } from '../../../schema/storage/failure-timer.ts'
import { Storage } from '../../../schema/storage/storage.ts'

test('commits that fail for two seconds are a problem, unless a thread of this process has the lock', () => {
  const storage = new Storage()
  const timer = new FailureTimer(storage)
  const poll = (count: number): void => {
    for (let each = 0; each < count; each += 1) timer.poll()
  }
  storage.failing({}, new Error('database is locked'))
  storage.isLockedHere = true
  poll(100)
  expect(storage.problem).toBeUndefined()
  storage.isLockedHere = false
  poll(4)
  expect(storage.problem).toBeUndefined()
  poll(1)
  expect(storage.problem).toMatchObject({ code: 'commits_fail', reason: 'database is locked' })
})
