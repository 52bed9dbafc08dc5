/** Ended calls on PostgreSQL: each has one record and one debit, whatever is repeated, breaks or crashes. */
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AccountingEvents } from '../../../../engine/charging/accounting-events.ts'
import { CallStore } from '../../../../engine/charging/call-store.ts'
import { noCharge } from '../../../../engine/charging/settlement/charge.ts'
import type { CallRecord } from '../../../../schema/call-record.ts'
import type { OutgoingEvent } from '../../../../schema/contracts/engine.ts'
import type { Store } from '../../../../schema/open.ts'
import type { Row, RowsText } from '../../../../schema/sql/statements.ts'
import { endedCall, openCall, plainRate, question, topUp } from '../../../support/books.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../../support/postgres-proxy.ts'
import { type Node, SharedWallets } from '../../../support/shared-wallets.ts'
import { eventually } from '../../../support/waiting.ts'

const oneUnit = 1_000_000

test('calls that end while others are stored wait as these did: ten batches a second, each of few statements', async () => {
  const time = new ManualTime(0)
  const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
  const sent: string[] = []
  const answer = (sql: string): Promise<unknown[]> => {
    sent.push(sql)
    return new Promise((resolve) => void time.schedule(() => resolve([]), 4))
  }
  const statements = {
    prepareRows:
      ({ sql }: RowsText) =>
      async (rows: readonly Row[]) =>
        rows.length === 0 ? [] : answer(sql),
    async lockedTransaction<T>(work: () => Promise<T>): Promise<T> {
      await answer('BEGIN')
      const done = await work()
      await answer('COMMIT')
      return done
    },
  }
  const calls = new CallStore({
    // What a batch asks of it.
    store: { statements } as unknown as Store,
    schedule: time.schedule,
    now: time.now,
    wallNow: time.now,
    owner: { name: 'a', process: '1' },
    events: new AccountingEvents(undefined),
    onFailure: () => undefined,
  })
  let stored = 0
  for (let ms = 0; ms < 2_000; ms += 1) {
    const how = { mayWait: true, done: () => void (stored += 1), refused: () => undefined }
    if (ms % 3 === 0) calls.add({ record: endedCall(`call-${ms}`, 1), charge: noCharge }, how)
    time.advance(1)
    await turn()
  }
  expect(stored).toBeGreaterThan(600)
  expect(calls.stats().commits).toBeLessThanOrEqual(20)
  // Without a payer nothing is debited, in a fourth one.
  expect(sent.length).toBeLessThanOrEqual(3 * 21)
})

describe.runIf(hasPostgres)('ended calls on PostgreSQL', () => {
  let shared: SharedWallets
  let customerId: number
  const told: OutgoingEvent[] = []
  const events = {
    wants: () => true,
    writeAll: async (written: readonly OutgoingEvent[]) => void told.push(...written),
  }
  const proxies: PostgresProxy[] = []

  beforeEach(async () => {
    told.length = 0
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id: planId })
  })
  afterEach(async () => {
    await shared.close()
    for (const proxy of proxies.splice(0)) proxy.close()
  })

  async function node(balanceMicros: number, name = 'a', url?: string): Promise<Node> {
    const made = await shared.node(name, { events, ...(url !== undefined && { url }) })
    if (balanceMicros > 0) await topUp(made.ocs, customerId, balanceMicros)
    return made
  }
  const call = (uuid: string, billsec: number, more: Partial<CallRecord> = {}) =>
    endedCall(uuid, billsec, { calledNumber: '1555', ...more })
  const balance = async () => (await shared.wallets())[0]?.balanceMicros
  const typesTold = () => told.map(({ type }) => type)

  test('the same record reported again, at once or later, is stored and debited once', async () => {
    const { ocs } = await node(oneUnit)
    await ocs.authorize(question('a', '1555'))
    await Promise.all([ocs.report(call('a', 20)), ocs.report(call('a', 20))])
    await ocs.report(call('a', 20))
    expect(await shared.records()).toHaveLength(1)
    expect(await balance()).toBe(980_000n)
    expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 980_000n, reservedMicros: 0n })
    expect(typesTold().filter((type) => type === 'call.ended')).toHaveLength(1)
    expect(await ocs.check()).toEqual([])
  })

  test('a call that had ended before the crash, but was not stored, is stored by the next process', async () => {
    const { ocs, kill } = await node(oneUnit)
    await ocs.authorize(question('a', '1555'))
    await ocs.answered(openCall('a', Date.now(), { customerId, calledNumber: '1555' }))
    await new Promise<void>((safe) => void ocs.report(call('a', 20), safe))
    await kill()
    expect(await shared.records()).toEqual([])
    const next = await shared.node('a')
    expect(await next.ocs.start()).toMatchObject({ recoveredCalls: 1 })
    expect(await shared.records()).toEqual([{ call_uuid: 'a', billsec: 20, cost_micros: 20_000 }])
    expect(await balance()).toBe(980_000n)
  })

  test('a crash between the commit and the note of it changes nothing at the next start', async () => {
    const { ocs, kill } = await node(oneUnit)
    await ocs.authorize(question('a', '1555'))
    const stored = ocs.report(call('a', 20))
    await stored
    // The journal writes that it is gone some milliseconds later.
    await kill()
    const next = await shared.node('a')
    expect(await next.ocs.start()).toMatchObject({ recoveredCalls: 0, unansweredCalls: 0 })
    expect(await shared.records()).toHaveLength(1)
    expect(await balance()).toBe(980_000n)
  })

  test('while the server is away calls wait, and are stored once when it is back', async () => {
    const proxy = await postgresProxy(shared.url)
    proxies.push(proxy)
    const { ocs, log } = await node(oneUnit, 'a', proxy.url)
    for (const uuid of ['a', 'b']) await ocs.authorize(question(uuid, '1555'))
    proxy.cut()
    const both = [ocs.report(call('a', 20)), ocs.report(call('b', 30))]
    await eventually(() => expect(ocs.stats().commitFailures).toBeGreaterThanOrEqual(3))
    expect(log[0]).toContain('billing: records cannot be stored')
    // A call goes on with what is leased, and waits for no server.
    expect(await ocs.extend('a', 1)).toMatchObject({ kind: 'denied', code: 'unknown_call' })
    proxy.mend()
    await Promise.all(both)
    expect(await shared.records()).toHaveLength(2)
    expect(await balance()).toBe(950_000n)
    expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 950_000n, reservedMicros: 0n })
  })

  test('when the answer to a COMMIT is lost, the call is stored and debited once', async () => {
    const proxy = await postgresProxy(shared.url)
    proxies.push(proxy)
    const { ocs } = await node(oneUnit, 'a', proxy.url)
    await ocs.authorize(question('a', '1555'))
    const stored = ocs.report(call('a', 20))
    // Answers are held back until the other side has committed.
    proxy.delayMs = 400
    await eventually(async () => expect(await shared.records()).toHaveLength(1))
    proxy.cut()
    proxy.delayMs = 0
    proxy.mend()
    await stored
    expect(await shared.records()).toHaveLength(1)
    expect(await balance()).toBe(980_000n)
    expect(await shared.wallets()).toMatchObject([{ ledgerMicros: 980_000n }])
    expect(ocs.balanceOf(customerId)?.reservedMicros).toBe(0n)
    // The lease in memory is what is stored: all that is left may be spent, and no more.
    await ocs.move({
      customerId,
      kind: 'adjust',
      amountMicros: -980_000,
      ref: 'all',
      actor: 'test',
      note: null,
    })
    expect(await balance()).toBe(0n)
  })

  test('a record that the database refuses for ever does not hold up the others', async () => {
    const { ocs } = await node(oneUnit)
    for (const uuid of ['bad', 'good']) await ocs.authorize(question(uuid, '1555'))
    const bad = ocs.report(call('bad', 20, { disposition: 'UNKNOWN' as 'FAILED' }))
    const good = ocs.report(call('good', 20))
    await expect(bad).rejects.toThrow('disposition')
    await good
    expect((await shared.records()).map((row) => row.call_uuid)).toEqual(['good'])
    expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 980_000n, reservedMicros: 0n })
  })

  test('a name that PostgreSQL cannot store does not keep a call from being charged', async () => {
    const { ocs } = await node(oneUnit)
    await ocs.authorize(question('a', '1555'))
    await ocs.report(call('a', 20, { callerName: 'zero \0 half \uD800 \\u0000' }))
    expect(await balance()).toBe(980_000n)
    const name = shared.store.db.selectFrom('cdr').select('caller_id_name').compile()
    const row = await shared.store.statements.prepare(name.sql).get([])
    expect(row).toEqual({ caller_id_name: 'zero \uFFFD half \uFFFD \\u0000' })
  })

  test('a node that repeats its report gets the same answer, and another duration is kept apart', async () => {
    const { ocs } = await node(oneUnit)
    await ocs.authorizeForNode(question('a', '1555'))
    const report = (billsec: number) => ocs.reportFromNode(call('a', billsec), '{"body":1}')
    const settled = { kind: 'settled', costMicros: 20_000, balanceAfterMicros: 980_000n }
    expect(await report(20)).toMatchObject({ ...settled, isDuplicate: false })
    expect(await report(20)).toMatchObject({ ...settled, isDuplicate: true })
    expect(await report(21)).toEqual({ kind: 'conflict' })
    expect(await balance()).toBe(980_000n)
  })

  /** Until both are refused, also a while after the other one could give something back. How many seconds in all. */
  async function talkInTurns(nodes: readonly Node[], longest: number): Promise<number> {
    let talked = 0
    let refusals = 0
    for (let round = 0; refusals < 2 * nodes.length; round += 1)
      for (const { ocs, name } of nodes) {
        const uuid = `${name}-${round}`
        const verdict = await ocs.authorize(question(uuid, '1555'))
        if (verdict.kind === 'granted') {
          const billsec = Math.min(verdict.grantedSeconds, longest)
          talked += billsec
          await ocs.report(call(uuid, billsec))
          refusals = 0
        } else {
          refusals += 1
          await later(300)
        }
      }
    return talked
  }

  test('a wallet is spent to its last second by two processes, and is told to be empty once', async () => {
    const [a, b] = [await node(100_000, 'a'), await node(0, 'b')]
    expect(await talkInTurns([a, b], 7)).toBe(100)
    expect(await balance()).toBe(0n)
    expect(typesTold().filter((type) => type === 'wallet.depleted')).toHaveLength(1)
    expect(await a.ocs.authorize(question('more', '1555'))).toMatchObject({
      code: 'insufficient_funds',
    })
  })

  test('the limit of a day holds for two processes together, whatever else the wallet has', async () => {
    const { db, statements } = shared.store
    const limit = db.updateTable('customer').set({ max_daily_spend_micros: 100_000 }).compile()
    await statements.prepare(limit.sql).run([100_000])
    const [a, b] = [await node(oneUnit, 'a'), await node(0, 'b')]
    expect(await talkInTurns([a, b], 9)).toBe(100)
    expect(await balance()).toBe(900_000n)
    const code = 'daily_spend_limit'
    expect(await b.ocs.authorize(question('more', '1555'))).toMatchObject({ kind: 'denied', code })
  })

  test('what one process holds for a call can be neither called nor deducted by another', async () => {
    const [a, b] = [await node(100_000, 'a'), await node(0, 'b')]
    expect(await a.ocs.authorize(question('held', '1555'))).toMatchObject({ grantedSeconds: 60 })
    const deduct = (amountMicros: number, ref: string) =>
      b.ocs.move({ customerId, kind: 'adjust', amountMicros, ref, actor: 'test', note: null })
    expect(await deduct(-40_001, 'too much')).toMatchObject({ kind: 'insufficient_funds' })
    expect(await deduct(-40_000, 'the rest')).toMatchObject({
      kind: 'moved',
      balanceMicros: 60_000n,
    })
    expect(await b.ocs.authorize(question('none', '1555'))).toMatchObject({ kind: 'denied' })
  })

  test('a process that others may take for dead starts no call, and extends none', async () => {
    const a = await node(oneUnit)
    await a.ocs.authorize(question('a', '1555'))
    a.isAlive = false
    expect(await a.ocs.authorize(question('b', '1555'))).toMatchObject({ kind: 'unreachable' })
    expect(await a.ocs.extend('a', 60)).toEqual({ kind: 'denied', code: 'ocs_unreachable' })
    a.isAlive = true
    await eventually(async () =>
      expect(await a.ocs.authorize(question('c', '1555'))).toMatchObject({ kind: 'granted' }),
    )
  })

  test('what a dead process held is free again, and its late calls are still charged once', async () => {
    const [dead, other] = [await node(60_000, 'a'), await node(0, 'b')]
    await dead.ocs.authorize(question('late', '1555'))
    await dead.ocs.answered(openCall('late', Date.now(), { customerId, calledNumber: '1555' }))
    await new Promise<void>((safe) => void dead.ocs.report(call('late', 10), safe))
    await dead.kill()
    expect(await other.ocs.authorize(question('b', '1555'))).toMatchObject({ kind: 'denied' })
    await shared.lose('a')
    await eventually(async () =>
      expect(await other.ocs.authorize(question('c', '1555'))).toMatchObject({
        grantedSeconds: 60,
      }),
    )
    shared.gone = []
    const back = await shared.node('a')
    expect(await back.ocs.start()).toMatchObject({ recoveredCalls: 1 })
    expect(await balance()).toBe(50_000n)
    expect(await shared.wallets()).toMatchObject([{ ledgerMicros: 50_000n, heldMicros: 60_000n }])
  })

  test('events of calls beyond 20,000 are lost while the server is away, and are counted and logged', async () => {
    const proxy = await postgresProxy(shared.url)
    proxies.push(proxy)
    const { ocs, log } = await node(0, 'a', proxy.url)
    proxy.cut()
    for (let index = 0; index < 20_010; index += 1)
      await ocs.authorize(question(`unknown-${index}`, '1555', '+1999'))
    // Those of one batch may be under way.
    const { lostEvents } = ocs.stats()
    expect(lostEvents).toBeGreaterThan(0)
    expect(lostEvents).toBeLessThanOrEqual(10)
    const isLoss = (line: string) => line.includes('events of calls are lost')
    expect(log.filter(isLoss)).toEqual([expect.stringContaining('"count":1')])
    await ocs.stop()
    expect(ocs.stats().lostEvents).toBe(20_010)
    expect(log.filter(isLoss)).toHaveLength(2)
    proxy.mend()
  })
})
