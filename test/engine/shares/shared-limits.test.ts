/**
 * Several instances, each as a process of its own, share the limits of a carrier on one PostgreSQL.
 */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { CallLimit } from '../../../engine/shares/call-limit.ts'
import { limitShares, InstanceShares } from '../../../engine/shares/instance-shares.ts'
import { CarrierLimits } from '../../../engine/routing/carrier-limits.ts'
import type { InstanceIdentity } from '../../../schema/contracts/instances.ts'
import { openStore, type ServerStore } from '../../../schema/postgres/open.ts'
import { EndingTimers } from '../../support/ending-timers.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { postgresProxy } from '../../support/postgres-proxy.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { Notices } from '../../support/shared-wallets.ts'
import { noSecrets } from '../../support/sharing-nodes.ts'
import { eventually, turnOfEventLoop } from '../../support/waiting.ts'

interface LimitingInstance {
  readonly name: string
  readonly limits: InstanceShares
  /** Live calls of the carrier here. */
  calls: number
  /** Other instances may take it for gone. */
  isHolding: boolean
  readonly log: string[]
  /** A call to the carrier; resolves with whether it has begun. */
  dial(): Promise<boolean>
  /** As a process that is killed. */
  kill(): Promise<void>
}

class Carrier {
  /** The owner of these limits. */
  of: 'carrier' | 'agent' = 'carrier'
  readonly instances = new Map<string, LimitingInstance>()
  maxCalls = 0
  maxCps = 0
  /** The most calls that were there at once on all instances. */
  mostCalls = 0
  /** When calls have started, on any instance, in milliseconds. */
  readonly starts: number[] = []
  gone: readonly InstanceIdentity[] = []
  #processes = 0

  readonly url: string
  readonly store: ServerStore
  readonly notices = new Notices(seededRandom(30))

  constructor(url: string, store: ServerStore) {
    this.url = url
    this.store = store
    this.notices.lossRate = 0
  }

  get calls(): number {
    return [...this.instances.values()].reduce((sum, { calls }) => sum + calls, 0)
  }

  /**
   * An instance with the name of one that was killed: it is started again, with these calls of the
   * last run.
   */
  async instance(name: string, calls = 0, url = this.url): Promise<LimitingInstance> {
    const store = await openStore(url, { ...noSecrets, now: 0, connections: 3 })
    const timers = new EndingTimers()
    const { schedule } = timers
    const now = (): number => performance.now()
    this.#processes += 1
    const log: string[] = []
    const limits = new InstanceShares(limitShares, {
      store,
      now,
      schedule,
      log: (level, message) => void log.push(`${level} ${message}`),
      members: {
        name,
        process: `${this.#processes}`,
        canHold: () => instance.isHolding,
        size: () => Math.max(1, this.instances.size),
        gone: () => this.gone,
        notices: this.notices,
      },
    })
    const carriers = new CarrierLimits(() => instance.calls, now, { shares: limits, schedule })
    const agents = new CallLimit('agent', () => instance.calls, { shares: limits, schedule })
    const limited = () => ({ carrierId: 1, maxCalls: this.maxCalls, maxCps: this.maxCps })
    let onKilled = (): void => undefined
    const killed = new Promise<false>((resolve) => (onKilled = () => resolve(false)))
    const kill = async (): Promise<void> => {
      timers.end()
      onKilled()
      this.instances.delete(name)
      await store.close()
    }
    const dial = async (): Promise<boolean> => {
      // As call control does: a call that is admitted at once is counted at once.
      const admitted =
        this.of === 'agent' ? agents.admit(1, this.maxCalls) : carriers.admit(limited())
      const isAdmitted =
        typeof admitted === 'boolean' ? admitted : await Promise.race([admitted, killed])
      if (timers.isEnded || !isAdmitted) return false
      instance.calls += 1
      this.starts.push(now())
      this.mostCalls = Math.max(this.mostCalls, this.calls)
      return true
    }
    const instance: LimitingInstance = { name, limits, calls, isHolding: true, log, dial, kill }
    // A busy machine may take longer for the first connections than a call waits.
    const connect = () => store.statements.prepare('SELECT pg_sleep(0.02)').all([])
    await Promise.all([connect(), connect()])
    this.instances.set(name, instance)
    carriers.noteCalls(limited())
    await limits.alone()
    return instance
  }

  /** The shares that instances hold, as the database has them. */
  async stored(): Promise<Readonly<Record<string, number>>> {
    const rows = await this.store.statements
      .prepare<{ readonly node: string; readonly slots: number }>(
        `SELECT node, sum(amount)::bigint AS slots FROM share
           WHERE resource = 'carrier 1 calls' GROUP BY node HAVING sum(amount) > 0`,
      )
      .all([])
    return Object.fromEntries(rows.map(({ node, slots }) => [node, slots]))
  }
}

test('on one instance live calls are counted at once, and 0 is no limit', () => {
  let live = 1
  const limit = new CallLimit('agent', () => live, undefined)
  expect([limit.admit(7, 2), limit.admit(7, 1)]).toEqual([true, false])
  live = 1_000
  expect([limit.isReached(7, 0), limit.admit(7, 0)]).toEqual([false, true])
})

describe.runIf(hasPostgres)('limits of several instances', () => {
  const random = seededRandom(30)
  let carrier: Carrier

  beforeEach(async () => {
    const { url, drop } = await freshDatabase()
    const store = await openStore(url, { ...noSecrets, now: 0, connections: 2 })
    carrier = new Carrier(url, store)
    const opened = carrier
    return async () => {
      for (const instance of opened.instances.values()) {
        await instance.limits.stop()
        await instance.kill()
      }
      await store.close()
      await drop()
    }
  })

  const opened = async () => [await carrier.instance('a'), await carrier.instance('b')] as const
  const dialAll = async (instance: LimitingInstance, count: number): Promise<number> => {
    const begun = await Promise.all(Array.from({ length: count }, () => instance.dial()))
    return begun.filter(Boolean).length
  }

  test.each(['carrier', 'agent'] as const)(
    'one instance can use the whole limit of one %s, and no call more; what it does not use goes to another instance',
    async (of) => {
      carrier.of = of
      const [a, b] = await opened()
      carrier.maxCalls = 20
      expect(await dialAll(a, 30)).toBe(20)
      expect([await a.dial(), await b.dial()]).toEqual([false, false])
      a.calls = 0
      let begun = 0
      await eventually(async () => {
        begun += await dialAll(b, 20 - begun)
        expect(begun).toBe(20)
      })
      expect([carrier.mostCalls, await dialAll(a, 2)]).toEqual([20, 0])
    },
  )

  test('in no second do more calls start on all instances than max_cps', async () => {
    const instances = await opened()
    carrier.maxCps = 8
    const load = async (instance: LimitingInstance): Promise<void> => {
      while (carrier.starts.length < 20) {
        await instance.dial()
        await turnOfEventLoop()
      }
    }
    await Promise.all(instances.map(load))
    const inWindow = carrier.starts.map(
      (from) => carrier.starts.filter((at) => at >= from && at < from + 999).length,
    )
    expect(Math.max(...inWindow)).toBeLessThanOrEqual(8)
  })

  test('what an instance held that is gone is free; before that it is not', async () => {
    const [a, b] = await opened()
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    await a.kill()
    expect(await dialAll(b, 4)).toBe(0)
    await carrier.store.statements.execute(
      `INSERT INTO node (name, epoch, install_id, address, sip_uri, version, state, live_calls, started_at, heartbeat_at)
         VALUES ('a', 1, '', '', '', '', 'stopped', 0, 0, 0)`,
    )
    carrier.gone = [{ name: 'a', epoch: 1 }]
    await eventually(async () => expect(await b.dial()).toBe(true))
    expect(await carrier.stored()).not.toHaveProperty('a')
  })

  test('an instance that starts again counts the calls that go on, and frees the others', async () => {
    const [a, b] = await opened()
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    await a.kill()
    await carrier.instance('a', 3)
    await eventually(async () => expect(await b.dial()).toBe(true))
    expect(await dialAll(b, 4)).toBe(0)
  })

  test('an instance that stops gives back what its calls do not use', async () => {
    const [old, b] = await opened()
    carrier.maxCalls = 4
    expect(await dialAll(old, 3)).toBe(3)
    await old.limits.stop()
    expect(await carrier.stored()).toMatchObject({ a: 3 })
    expect(await dialAll(b, 4)).toBe(1)
    b.calls = 0
    await b.limits.stop()
    expect(await carrier.stored()).toEqual({ a: 3 })
  })

  test('calls that live when a limit is set count against it', async () => {
    const [a, b] = await opened()
    expect(await dialAll(a, 5)).toBe(5)
    carrier.maxCalls = 6
    expect([await dialAll(a, 2), await dialAll(b, 3)]).toEqual([1, 0])
  })

  test('a limit that an operator lowers is kept by all instances at once', async () => {
    const instances = await opened()
    carrier.maxCalls = 20
    for (const instance of instances) {
      await dialAll(instance, 8)
      instance.calls = 0
    }
    carrier.maxCalls = 3
    carrier.mostCalls = 0
    await eventually(async () => {
      await Promise.all(instances.map((instance) => dialAll(instance, 10)))
      expect(carrier.mostCalls).toBe(3)
    })
  })

  test('while the database is away an instance keeps to what it holds; one that may be taken for gone begins nothing', async () => {
    const proxy = await postgresProxy(carrier.url)
    onTestFinished(() => proxy.close())
    const a = await carrier.instance('a', 0, proxy.url)
    carrier.maxCalls = 10
    expect(await dialAll(a, 6)).toBe(6)
    a.calls = 0
    proxy.cut()
    const begun = await dialAll(a, 20)
    expect(begun).toBeGreaterThanOrEqual(6)
    expect(begun).toBeLessThanOrEqual(10)
    a.calls = 0
    a.isHolding = false
    expect(await dialAll(a, 5)).toBe(0)
    proxy.mend()
    a.isHolding = true
    await eventually(async () => expect(await a.dial()).toBe(true))
    expect(a.log.filter((line) => line.startsWith('error'))).toHaveLength(1)
  })

  test('never more calls than the limit, whatever instances do and lose', async () => {
    carrier.notices.lossRate = 0.1
    carrier.maxCalls = 1 + Math.floor(random() * 12)
    const names = ['a', 'b', 'c']
    for (const name of names) await carrier.instance(name)
    const pending: Promise<unknown>[] = []
    let begun = 0
    for (let step = 0; step < 1_500; step += 1) {
      const draw = random()
      const instance = carrier.instances.get(names[Math.floor(random() * 3)] ?? '')
      if (instance === undefined) continue
      if (draw < 0.5) pending.push(instance.dial().then((isBegun) => (begun += isBegun ? 1 : 0)))
      else if (draw < 0.93) instance.calls = Math.max(0, instance.calls - Math.floor(random() * 3))
      else if (draw < 0.94) {
        const { name, calls } = instance
        await instance.kill()
        await carrier.instance(name, calls)
      }
      if (random() < 0.3) await carrier.stored()
      expect(carrier.calls).toBeLessThanOrEqual(carrier.maxCalls)
    }
    await Promise.all(pending)
    expect(carrier.mostCalls).toBeLessThanOrEqual(carrier.maxCalls)
    const sum = Object.values(await carrier.stored()).reduce((all, slots) => all + slots, 0)
    expect(sum).toBeLessThanOrEqual(carrier.maxCalls)
    expect(begun).toBeGreaterThan(50)
    expect([...carrier.instances.values()].flatMap(({ log }) => log)).toEqual([])
  })
})
