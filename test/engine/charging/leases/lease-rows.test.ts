/** Leases in PostgreSQL, while others change the same wallets. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { leaseNames } from '../../../../engine/charging/leases/lease-names.ts'
import { LeaseRows } from '../../../../engine/charging/leases/lease-rows.ts'
import type { Store } from '../../../../schema/open.ts'
import { lockedTransaction } from '../../../../schema/sql/query.ts'
import { topUp } from '../../../support/books.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { SharedWallets } from '../../../support/shared-wallets.ts'

describe.runIf(hasPostgres)('leases in PostgreSQL', () => {
  let shared: SharedWallets
  let walletId: number

  beforeEach(async () => {
    shared = await SharedWallets.open(() => 0.5)
    const customerId = await shared.addCustomer({ name: '+15550001' })
    const { ocs, stop } = await shared.node('first')
    await topUp(ocs, customerId, 100_000)
    await stop()
    walletId = (await shared.wallets())[0]?.id ?? 0
  })
  afterEach(() => shared.close())

  const rowsOf = (name: string, epoch = 1) => new LeaseRows(shared.store, leaseNames(name), epoch)
  const lease = (rows: LeaseRows, amountMicros: bigint, of = walletId) =>
    rows.request([{ walletId: of, needMicros: amountMicros, wantMicros: amountMicros }], 1, 0)

  test('a lease that is taken over while a debit changes it is the one after the debit', async () => {
    await lease(rowsOf('a'), 60_000n)
    const { statements } = shared.store
    const outside = AsyncLocalStorage.snapshot()
    const takenOver = await lockedTransaction(shared.store, async () => {
      const lock = statements.prepare('SELECT id FROM wallet WHERE id = $1 FOR NO KEY UPDATE')
      await lock.all([walletId])
      const known = statements.prepare<{ version: number }>('SELECT version FROM wallet_lease')
      const version = ((await known.get([]))?.version ?? 0) + 1
      const answer = outside(() => rowsOf('a').takeOver())
      await later(50)
      const debit = statements.prepare(
        'UPDATE wallet_lease SET amount_micros = 50000, version = $1',
      )
      await debit.run([version])
      return { answer, version }
    })
    const [taken] = await takenOver.answer
    expect(taken?.version).toBeGreaterThan(takenOver.version)
    expect(taken).toMatchObject({ walletId, amountMicros: 50_000n })
  })

  test('what a node has leased is freed only while it is gone', async () => {
    const other = rowsOf('b')
    const { kill } = await shared.node('a')
    await lease(rowsOf('a'), 60_000n)
    await kill()
    await shared.lose('a')
    const [gone] = shared.gone
    if (gone === undefined) throw new Error('it is not gone')
    // It starts again, and leases, before the list of those that are gone is read again.
    await shared.node('a')
    expect(await other.release(gone)).toBe(false)
    expect(await shared.wallets()).toMatchObject([{ leasedMicros: 60_000n }])
    await shared.lose('a')
    expect(await other.release(shared.gone[0] ?? gone)).toBe(true)
    expect(await shared.wallets()).toMatchObject([{ leasedMicros: 0n }])
  })

  test('what both processes of a node have leased is freed without a wait for one wallet that has locked another', async () => {
    const otherId = await shared.addCustomer({ name: '+15550002' })
    const { ocs, stop } = await shared.node('second')
    await topUp(ocs, otherId, 100_000)
    await stop()
    await shared.node('a')
    const laterWalletId = (await shared.wallets())[1]?.id ?? 0
    await lease(rowsOf('a'), 60_000n, laterWalletId)
    await lease(new LeaseRows(shared.store, leaseNames('a', 'a'), 1), 50_000n)
    await shared.lose('a')
    const [gone] = shared.gone
    if (gone === undefined) throw new Error('it is not gone')
    const other = rowsOf('b')
    const { statements } = shared.store
    const outside = AsyncLocalStorage.snapshot()
    const first = await lockedTransaction(shared.store, async () => {
      await statements
        .prepare('SELECT id FROM wallet WHERE id = $1 FOR NO KEY UPDATE')
        .all([walletId])
      return Promise.race([outside(() => other.release(gone)), later(1_000, 'it waits')])
    })
    expect(first).toBe(true)
    expect(await other.release(gone)).toBe(true)
    expect(await other.release(gone)).toBe(false)
    expect(await shared.wallets()).toMatchObject([{ leasedMicros: 0n }, { leasedMicros: 0n }])
  })

  test('as many leases as a node can have are taken over', async () => {
    const row = { wallet_id: 1, amount: '1', version: 1, request: 2 ** 40 }
    const rows = Array.from({ length: 200_000 }, () => row)
    const statement = { all: () => Promise.resolve(rows) }
    const store = { statements: { prepare: () => statement } } as unknown as Store
    expect(await new LeaseRows(store, leaseNames('a'), 1).takeOver()).toHaveLength(200_000)
  })

  test('what a node has leased is not freed before its longest grant is over', async () => {
    await shared.node('a')
    await lease(rowsOf('a'), 60_000n)
    await shared.lose('a')
    const [gone] = shared.gone
    const set = (silentMs: number) =>
      shared.store.statements
        .prepare(
          `UPDATE node SET longest_grant_seconds = 3600,
             heartbeat_at = floor(extract(epoch FROM clock_timestamp()) * 1000) - $1`,
        )
        .run([silentMs])
    await set(3_600_000 + 60_000)
    expect(gone && (await rowsOf('b').release(gone))).toBe(false)
    await set(3_600_000 + 71_000)
    expect(gone && (await rowsOf('b').release(gone))).toBe(true)
  })
})
