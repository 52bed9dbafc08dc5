/** Requests that several nodes admit together. */
import { describe, expect, test } from 'vitest'
import { RequestWindows } from '../../../control/auth/rate-limit.ts'
import { requestShares } from '../../../engine/shares/node-shares.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { shareDatabase } from '../../support/share-database.ts'
import { requestNodes } from '../../support/request-nodes.ts'
import { eventually } from '../../support/waiting.ts'

const minute = 60_000

describe.runIf(hasPostgres)('a window of several nodes', () => {
  async function open(limit: number, nodes: number) {
    const time = new ManualTime(0)
    const opened = await requestNodes(nodes, time.now)
    const windows = opened.map((node) => node.windows.open('key', '17', limit, minute))
    const admitted = async (requests: number, at = windows) => {
      const verdicts: Promise<boolean>[] = []
      for (let request = 0; request < requests; request += 1)
        for (const window of at) verdicts.push(Promise.resolve(window.admit(time.now())))
      return (await Promise.all(verdicts)).filter(Boolean).length
    }
    const statements = () => opened.reduce((sum, node) => sum + node.statements(), 0)
    return { windows, admitted, statements, time }
  }

  test('all nodes together admit the limit and no more, however many ask at once', async () => {
    const { admitted, time } = await open(100, 3)
    expect(await admitted(200)).toBe(100)
    time.advance(30_000)
    expect(await admitted(10)).toBe(0)
  })

  test('one node alone admits the whole limit, and another one what has left the window', async () => {
    const { windows, admitted, time } = await open(100, 2)
    expect(await admitted(150, windows.slice(0, 1))).toBe(100)
    expect(await admitted(10, windows.slice(1))).toBe(0)
    time.advance(minute)
    await eventually(async () => {
      const [, there] = windows
      expect(await there?.admit(time.now())).toBe(true)
    })
  })

  test('a busy client costs few statements', async () => {
    const { admitted, statements, time } = await open(1_200, 1)
    for (let request = 0; request < 1_200; request += 1) {
      expect(await admitted(1)).toBe(1)
      time.advance(4)
    }
    expect(statements()).toBeLessThan(60)
  })

  test('a lower limit counts what was admitted before', async () => {
    const { windows, admitted, time } = await open(100, 2)
    expect(await admitted(20)).toBe(40)
    for (const window of windows) window.setLimit(30)
    time.advance(10)
    expect(await admitted(20)).toBe(0)
  })

  test('the headers tell what is left of the limit, and when a client may come back', async () => {
    const { windows, admitted } = await open(10, 2)
    const [here, there] = windows
    await admitted(2)
    expect(here?.limit).toBe(10)
    await eventually(() => {
      expect(here?.remaining(0)).toBeGreaterThanOrEqual(4)
      expect(here?.remaining(0)).toBeLessThanOrEqual(8)
    })
    await admitted(10)
    expect([here?.remaining(0), there?.remaining(0)]).toEqual([0, 0])
    expect([here?.opensAt(0), there?.opensAt(0)]).toEqual([minute, minute])
  })
})

test('while the database does not answer, a node admits a sixteenth by itself, and no request waits for it twice', async () => {
  const { shares, node, pass } = shareDatabase(0, requestShares)
  node.isHolding = false
  const windows = new RequestWindows({ requestShares: shares, steadyNow: () => 0 })
  const window = windows.open('key', '17', 160, minute)
  const verdicts = Array.from({ length: 20 }, () => window.admit(0))
  expect(verdicts.filter((verdict) => verdict === true)).toHaveLength(10)
  expect(verdicts.every((verdict) => typeof verdict === 'boolean')).toBe(true)
  expect(window.remaining(0)).toBe(0)
  node.isHolding = true
  const later = Promise.resolve(window.admit(0))
  await pass(100)
  expect(await later).toBe(true)
})
