/**
 * Loads that take a while meet settlements and money moves: memory never falls behind what is
 * committed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Customers } from '../../../../engine/charging/customers/customers.ts'
import type { LocalStore } from '../../../../schema/storage/store.ts'
import type { RowsText, Statements } from '../../../../schema/sql/statements.ts'
import {
  addCustomer,
  addPlan,
  endedCall,
  freshStore,
  goldenRate,
  ocsOn,
  plainRate,
  question,
  start,
} from '../../../support/books.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { readValue, runSql } from '../../../support/stored.ts'

/** The same store, whose statements run after a few turns and answer after a few more. */
function slow(store: LocalStore, random: () => number): LocalStore {
  const inTransaction = new AsyncLocalStorage<true>()
  const later = async <T>(statement: () => Promise<T>): Promise<T> => {
    if (inTransaction.getStore() === true) return statement()
    for (let turns = Math.floor(random() * 3); turns > 0; turns -= 1) await nextTurn()
    const result = await statement()
    for (let turns = Math.floor(random() * 3); turns > 0; turns -= 1) await nextTurn()
    return result
  }
  const prepare: Statements['prepare'] = <R>(sql: string) => {
    const statement = store.statements.prepare<R>(sql)
    return {
      all: (values) => later(() => statement.all(values)),
      get: (values) => later(() => statement.get(values)),
      arrays: (values) => later(() => statement.arrays(values)),
      run: (values) => later(() => statement.run(values)),
    }
  }
  // A transaction of SQLite ends in the turn in which it begins.
  const transaction: Statements['transaction'] = (work) =>
    inTransaction.run(true, () => store.statements.transaction(work))
  const afterCommit: Statements['afterCommit'] = (work) => store.statements.afterCommit(work)
  const prepareRows: Statements['prepareRows'] = <R>(text: RowsText) => {
    const statement = store.statements.prepareRows<R>(text)
    return (rows) => later(() => statement(rows))
  }
  const notify: Statements['notify'] = (...notice) => store.statements.notify(...notice)
  const transactions = {
    transaction,
    lockedTransaction: transaction,
    groupTransaction: transaction,
    onDisk: () => store.statements.onDisk(),
    afterCommit,
    notify,
  }
  return { ...store, statements: { prepare, prepareRows, ...transactions, isShared: false } }
}

const names = ['+15550001', '+15550002', '+15550003'] as const

async function storeOfThree(): Promise<LocalStore> {
  const store = freshStore()
  const planId = await addPlan(store, [goldenRate, plainRate])
  for (const name of names) await addCustomer(store, { name, rate_plan_id: planId })
  // The third one gets its wallet by its first top-up.
  await runSql(store, 'DELETE FROM wallet WHERE customer_id = 3')
  return store
}

const oneUnit = 1_000_000

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'loads, settlements and moves in any order: every sum is right at every moment (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const below = (limit: number): number => Math.floor(random() * limit)
    const store = await storeOfThree()
    const { ocs, time, pass, passUntil } = await ocsOn(slow(store, random))
    const stored = store.sqlite.prepare<[number], { balance: bigint }>(
      'SELECT balance_micros AS balance FROM wallet WHERE customer_id = ?',
    )
    stored.safeIntegers(true)
    const limit =
      'UPDATE customer SET max_daily_spend_micros = ?, max_concurrent_calls = ? WHERE id = ?'
    const live = new Map<string, { customerId: number; granted: number }>()
    const running: Promise<unknown>[] = []
    const paidIn = [0n, 0n, 0n]
    let count = 0
    const move = (customerId: number, kind: 'topup' | 'adjust', amountMicros: number): void => {
      count += 1
      const entry = { customerId, kind, amountMicros, ref: `m-${count}`, actor: 'test', note: null }
      const moved = async (): Promise<void> => {
        if ((await ocs.move(entry)).kind === 'moved')
          paidIn[customerId - 1] = (paidIn[customerId - 1] ?? 0n) + BigInt(amountMicros)
      }
      running.push(moved())
    }
    const authorize = async (customerId: number): Promise<void> => {
      count += 1
      const uuid = `call-${count}`
      const caller = names[customerId - 1] ?? ''
      const verdict = await ocs.authorize(question(uuid, below(2) ? '4930' : '1555', caller))
      if (verdict.kind === 'granted')
        live.set(uuid, { customerId, granted: verdict.grantedSeconds })
    }
    const report = (): void => {
      const [uuid, call] = [...live][below(live.size)] ?? []
      if (uuid === undefined || call === undefined) return
      live.delete(uuid)
      const callerNumber = names[call.customerId - 1] ?? ''
      const billsec = below(Math.min(call.granted, 120) + 1)
      running.push(ocs.report(endedCall(uuid, billsec, { callerNumber, calledNumber: '1555' })))
    }
    const check = (): void => {
      // The handle shows what is not committed yet.
      if (store.sqlite.inTransaction) return
      for (const customerId of [1, 2, 3]) {
        const balance = ocs.balanceOf(customerId)
        const row = stored.get(customerId)
        expect([seed, balance?.balanceMicros]).toEqual([seed, row?.balance ?? 0n])
        // A wallet does not vanish again by a load that began before it was there.
        expect([seed, balance?.currency]).toEqual([seed, row === undefined ? null : 'USD'])
        expect(balance?.reservedMicros).toBeGreaterThanOrEqual(0n)
        const open = [...live.values()].filter((call) => call.customerId === customerId)
        expect(balance?.openCalls).toBeGreaterThanOrEqual(open.length)
      }
    }
    move(1, 'topup', 5 * oneUnit)
    for (let step = 0; step < 150; step += 1) {
      const customerId = 1 + below(3)
      const draw = below(10)
      if (draw < 2) await authorize(customerId)
      else if (draw < 4) report()
      else if (draw === 4) move(customerId, 'topup', 1 + below(oneUnit))
      else if (draw === 5) move(customerId, 'adjust', -(1 + below(oneUnit)))
      else if (draw === 6) running.push(ocs.reloadCustomers())
      else if (draw === 7) {
        void runSql(store, limit, below(2) * 50 * oneUnit, below(2) * 50, customerId)
        running.push(ocs.reloadCustomers())
      } else {
        // Timers do not run inside a turn, and so not while a transaction is open.
        await nextTurn()
        if (draw === 8) time.advance(below(120))
      }
      check()
    }
    while (live.size > 0) report()
    await nextTurn()
    await pass(1_000)
    await passUntil(Promise.all(running))
    check()
    const spent = 'SELECT coalesce(sum(cost_micros), 0) FROM cdr WHERE caller_id_number = ?'
    for (const customerId of [1, 2, 3]) {
      const cost = BigInt((await readValue<number>(store, spent, names[customerId - 1] ?? '')) ?? 0)
      expect(ocs.balanceOf(customerId)).toMatchObject({
        balanceMicros: (paidIn[customerId - 1] ?? 0n) - cost,
        reservedMicros: 0n,
        openCalls: 0,
      })
    }
    expect(await ocs.check()).toEqual([])
    store.close()
  },
)

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'a daily limit that begins while calls are debited counts each debit once (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const store = await storeOfThree()
    const now = (): number => start + 1_000
    const customers = new Customers({ store: slow(store, random), now })
    await customers.reload()
    const customer = customers.byId(1)
    if (customer === undefined) throw new Error('there is a customer')
    let debits = 0
    const debit = (): void => {
      debits += 1
      store.sqlite
        .prepare(
          `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
           VALUES (1, 'debit', -7, ?, ?, 'ocs', ?)`,
        )
        .run(-7 * debits, `call-${debits}`, now())
      store.sqlite.prepare('UPDATE wallet SET balance_micros = ? WHERE id = 1').run(-7 * debits)
      customer.posted(BigInt(-7 * debits), debits)
      customer.addSpending(7, now())
    }
    debit()
    store.sqlite.exec('UPDATE customer SET max_daily_spend_micros = 1000 WHERE id = 1')
    const seen = { isLoaded: false }
    const load = customers.reload().finally(() => (seen.isLoaded = true))
    while (!seen.isLoaded) {
      if (debits < 4 && random() < 0.3) debit()
      await nextTurn()
    }
    await load
    expect(customer.dailyBudgetMicros(now())).toBe(1_000n - 7n * BigInt(debits))
    expect(customer.balanceMicros).toBe(-7n * BigInt(debits))
    store.close()
  },
)
