/** Shares of wallets in PostgreSQL, while others change the same wallets. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ShareRows } from '../../../engine/shares/share-rows.ts'
import { lockedTransaction } from '../../../schema/sql/query.ts'
import { topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

describe.runIf(hasPostgres)('shares of wallets in PostgreSQL', () => {
  let shared: SharedWallets
  let wallet: string

  beforeEach(async () => {
    shared = await SharedWallets.open(() => 0.5)
    const customerId = await shared.addCustomer({ name: '+15550001' })
    const { ocs, stop } = await shared.instance('first')
    await topUp(ocs, customerId, 100_000)
    await stop()
    wallet = String((await shared.wallets())[0]?.id)
  })
  afterEach(() => shared.close())

  const rowsOf = (name: string, process = `${name}1`) =>
    new ShareRows(shared.store, 'wallet', { name, process })
  const take = async (rows: ShareRows, base: number, used = 0, isAlone = false, of = wallet) => {
    const request = { resource: of, limit: Infinity, used, base, extra: 0, version: 0 }
    const [answer] = await rows.take([request], 1, isAlone, 0)
    return answer
  }
  const waitingForLocks = `SELECT count(*) AS n FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND datname = current_database()`
  /** As settlement: the wallet is locked while `meanwhile` asks, and then has so much less. */
  const debit = (micros: number, meanwhile: () => Promise<unknown>) => {
    const { statements } = shared.store
    const outside = AsyncLocalStorage.snapshot()
    return lockedTransaction(shared.store, async () => {
      await statements.prepare('SELECT id FROM wallet FOR NO KEY UPDATE').all([])
      const answer = outside(meanwhile)
      let isOver = false
      void answer.then(() => (isOver = true))
      await eventually(async () => {
        // A transaction sees this view as it was when it first looked.
        const waiting = await outside(() =>
          statements.prepare<{ n: number }>(waitingForLocks).get([]),
        )
        expect(isOver || waiting?.n === 1).toBe(true)
      })
      await statements
        .prepare('UPDATE wallet SET balance_micros = balance_micros - $1')
        .run([micros])
      await statements
        .prepare(
          'UPDATE share SET amount = amount - $1, version = version + 1 WHERE node = $2 AND amount > 0',
        )
        .run([micros, 'a'])
      return { answer }
    })
  }

  test('a share that is set while a debit changes it is no more than the money after the debit', async () => {
    const rows = rowsOf('a')
    await take(rows, 60_000)
    const { answer } = await debit(50_000, () => take(rows, 60_000, 60_000))
    expect(await answer).toMatchObject({ amount: 50_000, version: 3 })
    expect(await take(rowsOf('b'), 1)).toMatchObject({ amount: 0, elsewhere: 50_000 })
  })

  test('what earlier processes of an instance held is of the next one, as far as its calls use it, after a debit too', async () => {
    await take(rowsOf('a'), 60_000)
    await take(rowsOf('b'), 40_000)
    const next = rowsOf('a', 'a2')
    expect(await take(next, 60_000, 60_000)).toMatchObject({ amount: 0, elsewhere: 100_000 })
    const { answer } = await debit(10_000, () => take(next, 60_000, 60_000, true))
    expect(await answer).toMatchObject({ amount: 50_000 })
    expect(await shared.shares()).toEqual({ a2: 50_000, b1: 40_000 })
  })

  test('a request that comes after a later one changes nothing', async () => {
    const late = rowsOf('a')
    const newer = rowsOf('a')
    await take(newer, 1_000)
    await take(newer, 2_000)
    expect(await take(late, 60_000)).toBeUndefined()
    expect(await shared.shares()).toEqual({ a1: 2_000 })
  })

  test('what an instance holds is freed only while it is gone', async () => {
    const other = rowsOf('b')
    const { kill } = await shared.instance('a')
    await take(rowsOf('a'), 60_000)
    await kill()
    await shared.lose('a')
    const [gone] = shared.gone
    if (gone === undefined) throw new Error('it is not gone')
    // It starts again before the list of those that are gone is read again.
    await shared.instance('a')
    await take(rowsOf('a'), 60_000)
    await other.release(gone)
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 60_000n }])
    await shared.lose('a')
    await other.release(shared.gone[0] ?? gone)
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 0n }])
  })

  test('of a wallet with a limit of the day no more is held than that leaves', async () => {
    const { statements } = shared.store
    await statements.prepare('UPDATE customer SET max_daily_spend_micros = 30000').run([])
    await statements.prepare('UPDATE wallet SET spent_micros = 5000, spent_on = 0').run([])
    expect(await take(rowsOf('a'), 20_000)).toMatchObject({ amount: 20_000, isOfDay: true })
    expect(await take(rowsOf('b'), 20_000)).toMatchObject({ amount: 5_000, isOfDay: true })
  })
})
