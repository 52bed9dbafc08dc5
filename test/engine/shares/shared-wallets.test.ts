/** Several processes spend from the same wallets on one PostgreSQL. */
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { UNANSWERED_WAIT_MS } from '../../../schema/answer-wait.ts'
import { endedCall, openCall, plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { postgresProxy } from '../../support/postgres-proxy.ts'
import { SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const oneUnit = 1_000_000

describe.runIf(hasPostgres)('wallets of several processes', () => {
  let shared: SharedWallets
  afterEach(() => shared.close())

  async function opened(names: readonly string[], balanceMicros: number) {
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    const customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id: planId })
    const nodes = []
    for (const name of names) nodes.push(await shared.node(name))
    const [first] = nodes
    if (first !== undefined && balanceMicros > 0) await topUp(first.ocs, customerId, balanceMicros)
    return { nodes, customerId }
  }

  test('a call that ends on one is in its record, its ledger and its wallet, and in no share', async () => {
    const { nodes } = await opened(['a'], oneUnit)
    const [a] = nodes
    expect(await a?.ocs.authorize(question('one', '1555'))).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
    })
    await a?.ocs.report(endedCall('one', 30, { calledNumber: '1555' }))
    expect(await shared.records()).toEqual([{ call_uuid: 'one', billsec: 30, cost_micros: 30_000 }])
    expect(await shared.wallets()).toMatchObject([
      {
        balanceMicros: 970_000n,
        ledgerMicros: 970_000n,
        heldMicros: 30_000n,
      },
    ])
    await a?.stop()
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 0n }])
  })

  const of = (customerId: number) => ({ customerId, calledNumber: '1555' })
  /** A process that holds more than it needs, and the one that takes over from it in a planned upgrade. */
  async function upgrading(balanceMicros: number) {
    const { nodes, customerId } = await opened(['a'], balanceMicros)
    const [old] = nodes
    if (old === undefined) throw new Error('no process')
    for (let round = 0; round < 5; round += 1) {
      await old.ocs.authorize(question(`first-${round}`, '1555'))
      await old.ocs.report(endedCall(`first-${round}`, 1, of(customerId)))
    }
    const proxy = await postgresProxy(shared.url)
    onTestFinished(() => proxy.close())
    const next = await shared.node('a', { beside: old, url: proxy.url })
    await old.ocs.money?.beside()
    /** The journal has its end, the database not yet. */
    const killAfterAnEnd = async () => {
      void old.ocs.report(endedCall('ended', 30, of(customerId)))
      await later(30)
      await old.kill()
    }
    return { old, next, customerId, proxy, killAfterAnEnd }
  }

  test('both processes of a planned upgrade together spend no more than the wallet has', async () => {
    const { old, next, customerId } = await upgrading(155_000)
    let granted = 0
    for (let round = 0; round < 6; round += 1)
      await Promise.all(
        [old, next].map(async ({ ocs }, index) => {
          const uuid = `${index}-${round}`
          const verdict = await ocs.authorize(question(uuid, '1555'))
          if (verdict.kind === 'granted') granted += verdict.grantedSeconds
        }),
      )
    expect(granted).toBe(150)
    for (const [index, { ocs }] of [old, next].entries())
      for (let round = 0; round < 6; round += 1)
        await ocs.report(endedCall(`${index}-${round}`, 60, of(customerId)))
    await old.stop()
  })

  test('an upgrade begins when what an earlier process has left is taken over whole', async () => {
    const { old, next } = await upgrading(200_000)
    await next.ocs.authorize(question('new', '1555'))
    await next.kill()
    const { money } = old.ocs
    if (money === undefined) throw new Error('it shares money')
    const { statements } = shared.store
    let unlock = (): void => undefined
    let isOver = Promise.resolve()
    await new Promise<void>((locked) => {
      isOver = statements.transaction(async () => {
        await statements.prepare('LOCK TABLE share IN EXCLUSIVE MODE').all([])
        await new Promise<void>((unlocked) => {
          unlock = unlocked
          locked()
        })
      })
    })
    const done: string[] = []
    const taking = money.alone().then(() => done.push('taken over'))
    await later(5)
    const quiet = money.beside().then(() => done.push('begun'))
    await later(20)
    expect(done).toEqual([])
    unlock()
    await Promise.all([isOver, taking, quiet])
    expect(done).toEqual(['taken over', 'begun'])
    expect(Object.keys(await shared.shares())).toEqual([old.process])
    await old.stop()
  })

  test('what the old process of an upgrade holds is held by the new one when it has ended', async () => {
    const { old, next, customerId } = await upgrading(200_000)
    expect(await old.ocs.authorize(question('passed on', '1555'))).toMatchObject({
      grantedSeconds: 60,
    })
    expect(await next.ocs.authorize(question('new', '1555'))).toMatchObject({ grantedSeconds: 60 })
    await old.stop()
    expect(Object.keys(await shared.shares())).toHaveLength(2)
    expect(await shared.shares()).toMatchObject({ [old.process]: 60_000 })
    await next.ocs.leftBeside()
    expect(Object.keys(await shared.shares())).toEqual([next.process])
    await next.ocs.report(endedCall('new', 60, of(customerId)))
    await next.stop()
    expect(await shared.wallets()).toMatchObject([{ balanceMicros: 135_000n, heldMicros: 0n }])
  })

  test('calls of the old process go on while the database is away, and one that has ended is charged once', async () => {
    const { old, next, customerId, proxy, killAfterAnEnd } = await upgrading(oneUnit)
    await old.ocs.authorize(question('passed on', '1555'))
    const call = openCall('passed on', Date.now(), of(customerId))
    expect(await old.ocs.answered(call, 'its state')).toBe(true)
    await killAfterAnEnd()
    proxy.cut()
    expect(await next.ocs.leftBeside()).toMatchObject({
      recoveredCalls: 1,
      saved: [{ callUuid: 'passed on' }],
    })
    expect(next.ocs.resume('passed on')).toBe(true)
    proxy.mend()
    await next.ocs.report(endedCall('passed on', 60, of(customerId)))
    await eventually(async () =>
      expect((await shared.records()).map(({ call_uuid: uuid }) => uuid)).toContain('ended'),
    )
    expect(await shared.wallets()).toMatchObject([
      { balanceMicros: 905_000n, ledgerMicros: 905_000n },
    ])
  })

  test('what the old process has left is closed while other calls end all the time', async () => {
    const { next, customerId, proxy, killAfterAnEnd } = await upgrading(oneUnit)
    await killAfterAnEnd()
    const load = { isOver: false }
    const endCalls = async () => {
      for (let count = 0; !load.isOver; count += 1) {
        void next.ocs.report(endedCall(`busy-${count}`, 0, of(customerId)))
        await later(1)
      }
    }
    // A commit takes longer than the next end.
    proxy.delayMs = 20
    const ending = endCalls()
    const left = await Promise.race([next.ocs.leftBeside(), later(5_000)])
    load.isOver = true
    await ending
    proxy.delayMs = 0
    expect(left).toMatchObject({ recoveredCalls: 1 })
    expect(await shared.records()).toContainEqual({
      call_uuid: 'ended',
      billsec: 30,
      cost_micros: 30_000,
    })
  })

  test('what was taken over by a commit without an answer is there for other nodes', async () => {
    const { old, next, proxy } = await upgrading(125_000)
    await old.ocs.authorize(question('one', '1555'))
    await old.ocs.authorize(question('two', '1555'))
    await old.kill()
    proxy.delayMs = 500
    const taken = next.ocs.money?.alone()
    await eventually(async () => expect(await shared.shares()).not.toHaveProperty(old.process))
    proxy.cut()
    await taken
    proxy.delayMs = 0
    proxy.mend()
    const b = await shared.node('b')
    await eventually(async () =>
      expect(await b.ocs.authorize(question('three', '1555'))).toMatchObject({
        kind: 'granted',
        grantedSeconds: 60,
      }),
    )
  })

  test('a start takes what both processes of an upgrade have left', async () => {
    const { old, next } = await upgrading(200_000)
    await old.ocs.authorize(question('one', '1555'))
    await next.ocs.authorize(question('two', '1555'))
    await old.kill()
    await next.kill()
    const again = await shared.node('a')
    expect(await shared.shares()).toEqual({})
    expect(await again.ocs.authorize(question('three', '1555'))).toMatchObject({
      grantedSeconds: 60,
    })
  })

  test('a process that goes on alone after an upgrade has failed takes what the other one held', async () => {
    const { old, next } = await upgrading(200_000)
    await next.ocs.authorize(question('lost', '1555'))
    await next.kill()
    expect(Object.keys(await shared.shares())).toHaveLength(2)
    await old.ocs.money?.alone()
    await eventually(async () => expect(await shared.shares()).not.toHaveProperty(next.process))
  })

  test('a credit limit that is lowered takes back what no call holds', async () => {
    const { nodes, customerId } = await opened(['a'], 0)
    const set = (micros: number) =>
      shared.store.statements.prepare('UPDATE customer SET credit_limit_micros = $1').run([micros])
    await set(oneUnit)
    const { ocs } = nodes[0] ?? {}
    await ocs?.reloadCustomers()
    await ocs?.authorize(question('idle', '1555'))
    await ocs?.authorize(question('held', '1555'))
    await ocs?.report(endedCall('idle', 1, of(customerId)))
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 119_000n }])
    await set(0)
    await ocs?.reloadCustomers()
    await eventually(async () =>
      expect(await shared.wallets()).toMatchObject([{ heldMicros: 60_000n }]),
    )
    expect(await ocs?.authorize(question('more', '1555'))).toMatchObject({
      code: 'insufficient_funds',
    })
  })

  test('a call that is charged beyond what was held takes back what other processes do not need', async () => {
    const { nodes, customerId } = await opened(['a', 'b'], 100_000)
    const [a, b] = nodes
    await b?.ocs.authorize(question('idle', '1555'))
    await b?.ocs.report(endedCall('idle', 1, of(customerId)))
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 59_000n }])
    await a?.ocs.report(endedCall('late', 90, of(customerId)))
    await eventually(async () =>
      expect(await shared.wallets()).toMatchObject([{ balanceMicros: 9_000n, heldMicros: 0n }]),
    )
  })

  test('calls of a wallet that another process has used up cost few statements, and go on soon after there is money again', async () => {
    const { nodes, customerId } = await opened(['a', 'b'], 60_000)
    const [a, b] = nodes
    await a?.ocs.authorize(question('live', '1555'))
    const asked = async () =>
      (await shared.store.statements
        .prepare<{ request: number }>(
          "SELECT request FROM share WHERE kind = 'wallet' AND node = 'b'",
        )
        .get([])) ?? { request: 0 }
    const refused = { kind: 'denied', code: 'insufficient_funds' }
    expect(await b?.ocs.authorize(question('first', '1555'))).toMatchObject(refused)
    const before = await asked()
    const beganAt = Date.now()
    const answers = []
    for (let call = 0; call < 60; call += 1) {
      answers.push(b?.ocs.authorize(question(`refused ${call}`, '1555')))
      await later(16)
    }
    for (const answer of answers) expect(await answer).toMatchObject(refused)
    const seconds = (Date.now() - beganAt) / 1_000
    expect(((await asked()).request - before.request) / seconds).toBeLessThan(25)
    await a?.ocs.report(endedCall('live', 10, of(customerId)))
    await eventually(async () =>
      expect(await b?.ocs.authorize(question('later', '1555'))).toMatchObject({ kind: 'granted' }),
    )
  })

  test('a call waits for a wallet that another transaction has locked while the server answers, and is not refused', async () => {
    const { nodes, customerId } = await opened(['a'], oneUnit)
    const { statements } = shared.store
    const connect = () => nodes[0]?.store.statements.prepare('SELECT pg_sleep(0.02)').all([])
    await Promise.all([connect(), connect(), connect()])
    let locked = (): void => undefined
    const isLocked = new Promise<void>((resolve) => (locked = resolve))
    const over = statements.transaction(async () => {
      await statements.prepare('SELECT id FROM wallet FOR UPDATE').all([])
      locked()
      await later(2 * UNANSWERED_WAIT_MS)
    })
    await isLocked
    expect(await nodes[0]?.ocs.authorize(question('patient', '1555'))).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
      account: { customerId },
    })
    await over
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 60_000n }])
  })

  test('a call that is refused because the database does not say what there is says so, in its verdict and in the figures', async () => {
    const { nodes, customerId } = await opened(['a'], oneUnit)
    const proxy = await postgresProxy(shared.url)
    onTestFinished(() => proxy.close())
    const c = await shared.node('c', { url: proxy.url })
    expect(customerId).toBeGreaterThan(0)
    proxy.delayMs = 2_000
    expect(await c.ocs.authorize(question('unheard', '1555'))).toMatchObject({
      kind: 'unreachable',
      by: 'lease_unheard',
    })
    expect(c.ocs.stats().verdicts).toEqual({ lease_unheard: 1 })
    c.isAlive = false
    expect(await c.ocs.authorize(question('away', '1555'))).toMatchObject({ by: 'database_away' })
    c.isAlive = true
    proxy.delayMs = 0
    expect(nodes).toHaveLength(1)
  })
})
