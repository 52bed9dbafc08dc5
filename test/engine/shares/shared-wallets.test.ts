/**
 * Several processes spend from one wallet on one PostgreSQL: each call has one record and one
 * debit, whatever breaks.
 */
import { describe, expect, test } from 'vitest'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { question } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedWallet } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const oneUnit = 1_000_000

describe.runIf(hasPostgres)('a wallet of several processes', () => {
  test('when the answer to a COMMIT is lost, the call is stored and debited once', async () => {
    const { shared, instance, proxy, topUp, authorize, call, move, wallet } = await sharedWallet()
    const between = await proxy()
    const a = await instance('a', { url: between.url })
    await topUp(a, oneUnit)
    await authorize(a, 'one')
    const stored = a.ocs.report(call('one', 20))
    // Answers are held back until the other side has committed.
    between.delayMs = 400
    await eventually(async () => expect(await shared.records()).toHaveLength(1))
    between.cut()
    between.delayMs = 0
    between.mend()
    await stored
    expect(await shared.records()).toHaveLength(1)
    expect(await wallet()).toMatchObject({ balanceMicros: 980_000n, ledgerMicros: 980_000n })
    // The lease in memory is what is stored: all that is left may be spent.
    await move(a, -980_000, 'all')
    expect(await wallet()).toMatchObject({ balanceMicros: 0n })
  })

  test('a name that PostgreSQL cannot store does not keep a call from being charged', async () => {
    const { shared, instance, topUp, authorize, call, wallet } = await sharedWallet()
    const a = await instance('a')
    await topUp(a, oneUnit)
    await authorize(a, 'one')
    await a.ocs.report(call('one', 20, { callerName: 'zero \0 half \uD800 \\u0000' }))
    expect(await wallet()).toMatchObject({ balanceMicros: 980_000n })
    const name = shared.store.db.selectFrom('cdr').select('caller_id_name').compile()
    const row = await shared.store.statements.prepare(name.sql).get([])
    expect(row).toEqual({ caller_id_name: 'zero \uFFFD half \uFFFD \\u0000' })
  })

  test('it is spent to its last second, and told to be empty once', async () => {
    const { instance, topUp, authorize, call, wallet } = await sharedWallet()
    const told: OutgoingEvent[] = []
    const events = {
      wants: () => true,
      writeAll: async (written: readonly OutgoingEvent[]) => void told.push(...written),
    }
    const instances = [await instance('a', { events }), await instance('b', { events })] as const
    await topUp(instances[0], 100_000)
    let [talked, calls] = [0, 0]
    // Money that one holds and does not need comes to the other one a moment later.
    await eventually(async () => {
      for (const each of instances) {
        const uuid = `call-${(calls += 1)}`
        const verdict = await authorize(each, uuid)
        if (verdict.kind !== 'granted') continue
        const billsec = Math.min(verdict.grantedSeconds, 7)
        talked += billsec
        await each.ocs.report(call(uuid, billsec))
      }
      expect(talked).toBe(100)
    })
    expect(await wallet()).toMatchObject({ balanceMicros: 0n })
    expect(told.filter(({ type }) => type === 'wallet.depleted')).toHaveLength(1)
    for (const each of instances)
      expect(await authorize(each, 'more')).toMatchObject({ code: 'insufficient_funds' })
  })

  test('what one process holds for a call can be neither called nor deducted by another', async () => {
    const { instance, topUp, authorize, move } = await sharedWallet()
    const [a, b] = [await instance('a'), await instance('b')]
    await topUp(a, 100_000)
    expect(await authorize(a, 'held')).toMatchObject({ grantedSeconds: 60 })
    expect(await move(b, -40_001, 'too much')).toMatchObject({ kind: 'insufficient_funds' })
    expect(await move(b, -40_000, 'rest')).toMatchObject({ balanceMicros: 60_000n })
    expect(await authorize(b, 'none')).toMatchObject({ kind: 'denied' })
  })

  test('what a dead process held is free again, and its late calls are still charged once', async () => {
    const { shared, instance, topUp, authorize, answer, call, wallet } = await sharedWallet()
    const [dead, other] = [await instance('a'), await instance('b')]
    await topUp(dead, 60_000)
    await authorize(dead, 'late')
    await answer(dead, 'late')
    await new Promise<void>((safe) => void dead.ocs.report(call('late', 10), safe))
    await dead.kill()
    expect(await authorize(other, 'b')).toMatchObject({ kind: 'denied' })
    await shared.lose('a')
    await eventually(async () =>
      expect(await authorize(other, 'c')).toMatchObject({ grantedSeconds: 60 }),
    )
    shared.gone = []
    const back = await instance('a')
    expect(await back.ocs.start()).toMatchObject({ recoveredCalls: 1 })
    const left = { balanceMicros: 50_000n, ledgerMicros: 50_000n, heldMicros: 60_000n }
    expect(await wallet()).toMatchObject(left)
  })

  test('events of calls beyond 20,000 are lost while the server is away, and are counted and logged', async () => {
    const { instance, proxy } = await sharedWallet()
    const between = await proxy()
    const events = { wants: () => true, writeAll: () => Promise.resolve() }
    const { ocs, log } = await instance('a', { url: between.url, events })
    between.cut()
    for (let index = 0; index < 20_010; index += 1)
      await ocs.authorize(question(`unknown-${index}`, '1555', '+1999'))
    // Those of one batch may be under way.
    const { lostEvents } = ocs.stats()
    expect(lostEvents).toBeGreaterThan(0)
    expect(lostEvents).toBeLessThanOrEqual(10)
    await ocs.stop()
    expect(ocs.stats().lostEvents).toBe(20_010)
    expect(log.filter((line) => line.includes('events of calls are lost'))).toHaveLength(2)
  })

  test('a credit limit that is lowered takes back what no call holds', async () => {
    const { shared, instance, authorize, call, wallet } = await sharedWallet()
    const a = await instance('a')
    const set = async (micros: number): Promise<void> => {
      const limit = 'UPDATE customer SET credit_limit_micros = $1'
      await shared.store.statements.prepare(limit).run([micros])
      await a.ocs.reloadCustomers()
    }
    await set(oneUnit)
    await authorize(a, 'idle')
    await authorize(a, 'held')
    await a.ocs.report(call('idle', 1))
    expect(await wallet()).toMatchObject({ heldMicros: 119_000n })
    await set(0)
    await eventually(async () => expect(await wallet()).toMatchObject({ heldMicros: 60_000n }))
    expect(await authorize(a, 'more')).toMatchObject({ code: 'insufficient_funds' })
  })

  test('a call that is refused because the database does not say what there is says so', async () => {
    const { instance, proxy, topUp, authorize } = await sharedWallet()
    const between = await proxy()
    await topUp(await instance('a'), oneUnit)
    const c = await instance('c', { url: between.url })
    between.delayMs = 2_000
    expect(await authorize(c, 'one')).toMatchObject({ kind: 'unreachable', by: 'lease_unheard' })
    expect(c.ocs.stats().verdicts).toEqual({ lease_unheard: 1 })
    c.isAlive = false
    expect(await authorize(c, 'two')).toMatchObject({ by: 'database_away' })
  })

  test('in no second do more calls of a customer start on all processes than its max_cps', async () => {
    const { instance, topUp, authorize } = await sharedWallet({ max_cps: 2 })
    const instances = [await instance('a'), await instance('b')] as const
    await topUp(instances[0], oneUnit)
    const starts: { readonly asked: number; readonly begun: number }[] = []
    for (let tries = 0; starts.length < 3; tries += 1) {
      const asked = performance.now()
      const verdict = await authorize(instances[tries % 2 === 0 ? 0 : 1], `call-${tries}`)
      if (verdict.kind === 'granted') starts.push({ asked, begun: performance.now() })
      else expect(verdict).toMatchObject({ code: 'cps_limit' })
    }
    const [first, , third] = starts
    expect((third?.begun ?? 0) - (first?.asked ?? 0)).toBeGreaterThan(999)
  })

  test('the limits of a customer are those of all processes', async () => {
    const { instance, topUp, authorize, call } = await sharedWallet({ max_concurrent_calls: 3 })
    const [a, b] = [await instance('a'), await instance('b')]
    await topUp(a, oneUnit)
    const { callUuid: _, ...asked } = question('what-if', '1555')
    expect(a.ocs.foresee(asked).verdict.kind).toBe('granted')
    const verdicts = await Promise.all(['1', '2', '3', '4'].map((uuid) => authorize(a, uuid)))
    expect(verdicts.map(({ kind }) => kind)).toEqual(['granted', 'granted', 'granted', 'denied'])
    expect(await authorize(b, '5')).toMatchObject({ code: 'concurrent_limit' })
    await a.ocs.report(call('1', 1))
    await eventually(async () => expect(await authorize(b, '6')).toMatchObject({ kind: 'granted' }))
    expect(await authorize(a, '7')).toMatchObject({ code: 'concurrent_limit' })
  })
})

/** A call of 60 granted seconds that is cut off a moment late lasts 61 s. */
const costMicros = 61_000

describe.runIf(hasPostgres)('a call that is cut off past its grant', () => {
  /** Two processes, and a call on the first of them, whose grant holds less than the wallet has. */
  async function talking(balanceMicros: number) {
    const made = await sharedWallet()
    const between = await made.proxy()
    const a = await made.instance('a', { url: between.url })
    await made.topUp(await made.instance('b'), balanceMicros)
    expect(await made.authorize(a, 'one')).toMatchObject({ grantedSeconds: 60 })
    expect(await made.answer(a, 'one')).toBe(true)
    return { ...made, between, a, ended: made.call('one', 61) }
  }

  test.each([
    ['its whole price', costMicros, costMicros],
    ['all that the wallet has, and no more', costMicros - 500, costMicros - 500],
  ])('pays %s', async (_, balanceMicros, paid) => {
    const { a, ended, costs, wallet } = await talking(balanceMicros)
    await a.ocs.report(ended)
    expect(await costs()).toEqual([paid])
    expect(await wallet()).toMatchObject({ balanceMicros: 0n, heldMicros: 0n })
  })

  test('pays what another process gives back', async () => {
    const { a, ended, instance, authorize, call, costs } = await talking(2 * costMicros)
    const other = await instance('c')
    expect(await authorize(other, 'two')).toMatchObject({ grantedSeconds: 60 })
    await other.ocs.report(call('two', 1))
    await a.ocs.report(ended)
    expect(await costs()).toEqual([costMicros, 1_000])
  })

  test('by the report of a node is answered with its whole price, also when it comes twice', async () => {
    const { a, ended, costs } = await talking(2 * costMicros)
    const report = () => a.ocs.reportFromNode(ended, '{}')
    expect(await Promise.all([report(), report()])).toMatchObject([
      { kind: 'settled', costMicros, isDuplicate: false },
      { kind: 'settled', costMicros, isDuplicate: true },
    ])
    expect(await costs()).toEqual([costMicros])
  })

  test('is charged from the share where the database is away, in a moment', async () => {
    const { a, ended, between, costs } = await talking(costMicros)
    between.cut()
    let stored: Promise<unknown> | undefined
    await new Promise<void>((safe) => void (stored = a.ocs.report(ended, safe)))
    between.mend()
    await stored
    const [cost] = await costs()
    expect(cost).toBeGreaterThanOrEqual(60_000)
    expect(cost).toBeLessThan(costMicros)
  })

  test('goes on, and is charged once, when a crash comes before that is decided', async () => {
    const { a, ended, between, instance, costs, wallet } = await talking(costMicros)
    between.cut()
    let isSafe = false
    void a.ocs.report(ended, () => (isSafe = true)).catch(() => undefined)
    await a.kill()
    expect(isSafe).toBe(false)
    const next = await instance('a')
    expect(await next.ocs.start()).toMatchObject({ saved: [{ callUuid: 'one' }] })
    expect(next.ocs.resume('one')).toBe(true)
    await next.ocs.report(ended)
    expect(await costs()).toEqual([costMicros])
    expect(await wallet()).toMatchObject({ ledgerMicros: 0n, heldMicros: 0n })
  })

  test('is decided before its process stops', async () => {
    const { a, ended, costs } = await talking(costMicros)
    let isSafe = false
    const stored = a.ocs.report(ended, () => (isSafe = true))
    await a.stop()
    await stored
    expect(isSafe).toBe(true)
    expect(await costs()).toEqual([costMicros])
  })
})
