/** Leases in PostgreSQL, while others change the same wallets. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LeaseRows } from '../../../../engine/charging/leases/lease-rows.ts'
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

  const rowsOf = (name: string, epoch = 1) => new LeaseRows(shared.store, { name, epoch })
  const lease = (rows: LeaseRows, amountMicros: bigint) =>
    rows.request([{ walletId, needMicros: amountMicros, wantMicros: amountMicros }], 1, 0)

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
})
