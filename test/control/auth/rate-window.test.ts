import fc from 'fast-check'
import { expect, test, describe } from 'vitest'
import { RateWindow, RequestWindows } from '../../../control/auth/rate-window.ts'
import { requestShares } from '../../../engine/shares/instance-shares.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { shareDatabase } from '../../support/share-database.ts'
import { requestInstances } from '../../support/request-nodes.ts'
import { eventually } from '../../support/waiting.ts'
import { LoginGuard } from '../../../control/auth/login-guard.ts'

const MINUTE = 60_000

/** Moments of hits: mostly close together, sometimes far apart, once in a while backwards. */
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.nat(300) },
    { weight: 3, arbitrary: fc.nat(MINUTE + 1) },
    { weight: 1, arbitrary: fc.integer({ min: -5_000, max: 0 }) },
  ),
  { maxLength: 400 },
)

test('never are more hits admitted than the limit in any 60 seconds, nor is one denied without need', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), steps, (limit, waits) => {
      const window = new RateWindow(limit, MINUTE)
      const admitted: number[] = []
      let now = 1_000_000
      // The window has seen no moment yet: a first step backwards is its first moment.
      let latest = -Infinity
      for (const wait of waits) {
        now += wait
        latest = Math.max(latest, now)
        const recent = admitted.filter((at) => at > latest - MINUTE).length
        expect(window.remaining(now)).toBe(limit - recent)
        expect(window.admit(now)).toBe(recent < limit)
        if (recent < limit) admitted.push(latest)
      }
    }),
    { examples: [[1, [-1, 59_988, 12]]] },
  )
})

test('what a window says about the future is true', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), steps, (limit, waits) => {
      const window = new RateWindow(limit, MINUTE)
      let now = 1_000_000
      for (const wait of waits) window.admit((now += Math.max(0, wait)))
      const before = window.remaining(now)
      const leavesAt = window.oldestLeavesAt(now)
      const opensAt = window.opensAt(now)
      if (leavesAt > now) {
        expect(window.remaining(leavesAt - 1)).toBe(before)
        expect(window.remaining(leavesAt)).toBeGreaterThan(before)
      }
      if (opensAt > now) expect(before).toBe(0)
      expect(window.admit(Math.max(opensAt, leavesAt))).toBe(true)
    }),
  )
})

test('a lowered limit counts the hits so far, and opens when enough of them have left', () => {
  const window = new RateWindow(10, MINUTE)
  for (let i = 0; i < 10; i += 1) window.admit(i * 1_000)
  window.setLimit(3)
  expect(window.remaining(10_000)).toBe(0)
  expect(window.opensAt(10_000)).toBe(67_000)
  expect(window.admit(66_999)).toBe(false)
  expect(window.admit(67_000)).toBe(true)
})

test('a raised limit is room at once', () => {
  const window = new RateWindow(1, MINUTE)
  window.admit(0)
  window.setLimit(100)
  for (let i = 0; i < 99; i += 1) expect(window.admit(1)).toBe(true)
  expect(window.admit(1)).toBe(false)
})

const minute = 60_000

describe.runIf(hasPostgres)('a window of several instances', () => {
  async function open(limit: number, instances: number) {
    const time = new ManualTime(0)
    const opened = await requestInstances(instances, time.now)
    const windows = opened.map((instance) => instance.windows.open('key', '17', limit, minute))
    const admitted = async (requests: number, at = windows) => {
      const verdicts: Promise<boolean>[] = []
      for (let request = 0; request < requests; request += 1)
        for (const window of at) verdicts.push(Promise.resolve(window.admit(time.now())))
      return (await Promise.all(verdicts)).filter(Boolean).length
    }
    const statements = () => opened.reduce((sum, instance) => sum + instance.statements(), 0)
    return { windows, admitted, statements, time }
  }

  test('all instances together admit the limit and no more, however many ask at once', async () => {
    const { admitted, time } = await open(100, 3)
    expect(await admitted(200)).toBe(100)
    time.advance(30_000)
    expect(await admitted(10)).toBe(0)
  })

  test('one instance alone admits the whole limit, and another one what has left the window', async () => {
    const { windows, admitted, time } = await open(100, 2)
    expect(await admitted(150, windows.slice(0, 1))).toBe(100)
    expect(await admitted(10, windows.slice(1))).toBe(0)
    time.advance(minute)
    await eventually(async () => {
      const [, there] = windows
      expect(await there?.admit(time.now())).toBe(true)
    })
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

test('while the database does not answer, an instance admits a sixteenth by itself, and no request waits for it twice', async () => {
  const { shares, instance, pass } = shareDatabase(0, requestShares)
  instance.isHolding = false
  const windows = new RequestWindows({ requestShares: shares, steadyNow: () => 0 })
  const window = windows.open('key', '17', 160, minute)
  const verdicts = Array.from({ length: 20 }, () => window.admit(0))
  expect(verdicts.filter((verdict) => verdict === true)).toHaveLength(10)
  expect(verdicts.every((verdict) => typeof verdict === 'boolean')).toBe(true)
  expect(window.remaining(0)).toBe(0)
  instance.isHolding = true
  const later = Promise.resolve(window.admit(0))
  await pass(100)
  expect(await later).toBe(true)
})

const locked = { status: 429, code: 'login_locked' }

const attempt = (guard: LoginGuard, name = 'ada', address = '192.0.2.1') =>
  guard.failed(name, address, 0).then(
    () => 'failed',
    (error: { code: string }) => error.code,
  )

test('of many attempts at once, five learn that they failed', async () => {
  const guard = new LoginGuard(new RequestWindows({ steadyNow: () => 0 }))
  const told = await Promise.all(Array.from({ length: 9 }, () => attempt(guard)))
  expect(told.filter((each) => each === 'failed')).toHaveLength(5)
  await expect(guard.refuseLocked('Ada', '192.0.2.1', 899_999)).rejects.toMatchObject(locked)
  await guard.refuseLocked('ada', '192.0.2.1', 900_000)
})

describe.runIf(hasPostgres)('on several instances', () => {
  const open = async () => {
    const [here, there] = (await requestInstances(2, () => 0)).map(
      ({ windows }) => new LoginGuard(windows),
    )
    if (here === undefined || there === undefined) throw new Error('two nodes')
    return [here, there] as const
  }

  test('failures at all instances together lock a pair of name and address at each of them', async () => {
    const [here, there] = await open()
    const told = await Promise.all(
      Array.from({ length: 20 }, (_, n) => attempt(n % 2 === 0 ? here : there)),
    )
    expect(told.filter((each) => each === 'failed')).toHaveLength(5)
    for (const guard of [here, there]) {
      await expect(guard.refuseLocked('ada', '192.0.2.1', 0)).rejects.toMatchObject(locked)
      expect(await guard.isLocked('ada', '192.0.2.2', 0)).toBe(false)
      expect(await guard.isLocked('bob', '192.0.2.1', 0)).toBe(false)
    }
  })

  test('a login that succeeds at one instance begins the count anew at all', async () => {
    const [here, there] = await open()
    for (let n = 0; n < 4; n += 1) await attempt(here)
    there.succeeded('ada', '192.0.2.1')
    await eventually(async () => expect(await attempt(here)).toBe('failed'))
    for (let n = 0; n < 4; n += 1) expect(await attempt(here)).toBe('failed')
    expect(await there.isLocked('ada', '192.0.2.1', 0)).toBe(true)
  })
})
