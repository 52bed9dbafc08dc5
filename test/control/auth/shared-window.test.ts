/** Requests that several nodes admit together. */
import { describe, expect, test } from 'vitest'
import { Permits, SharedWindow } from '../../../control/auth/rate-limit.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

const minute = 60_000
const bucket = { kind: 'key', name: '17' } as const

describe.runIf(hasPostgres)('a window of several nodes', () => {
  async function open(limit: number, nodes: number) {
    const { open: opened } = await sharedDatabase()
    const store = await opened()
    const permits = Array.from({ length: nodes }, () => new Permits(store))
    const takes: number[] = []
    for (const one of permits) {
      const take = one.take.bind(one)
      one.take = (...asked) => {
        takes.push(asked[2])
        return take(...asked)
      }
    }
    const windows = permits.map((one) => new SharedWindow(one, bucket, limit, minute))
    const age = (ms: number) =>
      store.statements.prepare('UPDATE rate_grant SET ends_at = ends_at - $1').run([ms])
    return { windows, takes, age }
  }

  const admitted = async (windows: readonly SharedWindow[], requests: number, now = 0) => {
    const verdicts: Promise<boolean>[] = []
    for (let request = 0; request < requests; request += 1)
      for (const window of windows) verdicts.push(Promise.resolve(window.admit(now)))
    return (await Promise.all(verdicts)).filter(Boolean).length
  }

  test('all nodes together admit the limit and no more, however many ask at once', async () => {
    const { windows } = await open(100, 3)
    expect(await admitted(windows, 200)).toBe(100)
    expect(await admitted(windows, 10, 30_000)).toBe(0)
  })

  test('one node alone admits the whole limit', async () => {
    const { windows } = await open(100, 2)
    expect(await admitted(windows.slice(0, 1), 150)).toBe(100)
  })

  test('a busy client costs few statements, and one that asks now and then takes nothing that it does not use', async () => {
    const { windows, takes } = await open(1_200, 1)
    for (let request = 0; request < 1_200; request += 1) await admitted(windows, 1, request * 4)
    expect(takes.length).toBeLessThan(40)
    const { windows: others, takes: few } = await open(1_200, 1)
    for (let request = 0; request < 10; request += 1) await admitted(others, 1, request * 6_000)
    expect(few).toEqual(Array.from({ length: 10 }, () => 1))
  })

  test('a window that is full asks again when the oldest permits leave it, not before', async () => {
    const { windows, takes, age } = await open(5, 1)
    expect(await admitted(windows, 9)).toBe(5)
    const asked = takes.length
    expect(await admitted(windows, 50, 60_000)).toBe(0)
    expect(takes.length).toBe(asked)
    await age(65_000)
    expect(await admitted(windows, 9, 65_001)).toBe(5)
  })

  test('a lower limit counts what was admitted before', async () => {
    const { windows } = await open(100, 2)
    expect(await admitted(windows, 20)).toBe(40)
    for (const window of windows) window.setLimit(30)
    expect(await admitted(windows, 20, 10)).toBe(0)
  })

  test('the headers tell what is left of the limit', async () => {
    const { windows } = await open(10, 1)
    const [window] = windows
    await admitted(windows, 4)
    expect([window?.limit, window?.remaining(0)]).toEqual([10, 6])
    await admitted(windows, 10)
    expect(window?.remaining(0)).toBe(0)
    expect(window?.opensAt(0)).toBeGreaterThan(60_000)
  })
})

test('while the database is away, a node admits a sixteenth by itself, and no request waits for it twice', async () => {
  let asked = 0
  const isAway = { now: true }
  const take = async () => {
    asked += 1
    if (isAway.now) throw new DatabaseUnavailable('away')
    return { granted: 1, used: 1, opensInMs: 65_000 }
  }
  const window = new SharedWindow(
    Object.assign(Object.create(Permits.prototype), { take }) as Permits,
    bucket,
    160,
    minute,
  )
  expect(await window.admit(0)).toBe(true)
  const verdicts = Array.from({ length: 20 }, (_, n) => window.admit(n))
  expect(verdicts.filter((verdict) => verdict === true)).toHaveLength(9)
  expect([verdicts.every((verdict) => typeof verdict === 'boolean'), asked]).toEqual([true, 1])
  isAway.now = false
  expect(window.admit(1_000)).toBe(false)
  await Promise.resolve()
  await new Promise((resolve) => void setImmediate(resolve))
  expect([window.admit(1_001), asked]).toEqual([true, 2])
})
