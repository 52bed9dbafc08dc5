import { expect, test } from 'vitest'
import { addCustomer, customerWith, openStore, ocsOn, question } from '../../../support/books.ts'
import { Ledger } from '../../../../engine/charging/ledger/ledger.ts'
import { transaction } from '../../../../schema/sql/query.ts'
import { runSql } from '../../../support/stored.ts'

const move = (more: Record<string, unknown> = {}) => ({
  customerId: 1,
  kind: 'topup' as const,
  amountMicros: 5_000_000,
  ref: 'pay-1',
  actor: 'payment',
  note: null,
  ...more,
})

test('ledger entries can be neither changed nor deleted', async () => {
  const { store } = await customerWith(1_000_000)
  for (const change of ['UPDATE ledger_entry SET amount_micros = 0', 'DELETE FROM ledger_entry'])
    await expect(runSql(store, change)).rejects.toThrow('append-only')
})

test('a top-up is there for the very next call', async () => {
  const { ocs } = await customerWith(0)
  expect(await ocs.authorize(question('a'))).toMatchObject({ kind: 'denied' })
  expect(await ocs.move(move())).toEqual({ kind: 'moved', balanceMicros: 5_000_000n })
  expect(await ocs.authorize(question('a'))).toMatchObject({ kind: 'granted' })
})

test('one payment credits once, however often it is told', async () => {
  const { ocs } = await customerWith(0)
  await ocs.move(move())
  expect(await ocs.move(move())).toEqual({
    kind: 'duplicate',
    amountMicros: 5_000_000,
    balanceMicros: 5_000_000n,
    isSame: true,
  })
  expect(await ocs.move(move({ amountMicros: 7 }))).toMatchObject({
    kind: 'duplicate',
    isSame: false,
  })
  expect(ocs.balanceOf(1)).toMatchObject({ balanceMicros: 5_000_000n })
})

test('the same reference may stand once for each kind', async () => {
  const { ocs } = await customerWith(0)
  await ocs.move(move())
  expect(await ocs.move(move({ kind: 'refund', amountMicros: 10 }))).toEqual({
    kind: 'moved',
    balanceMicros: 5_000_010n,
  })
})

test('a deduction takes nothing that is promised to a live call', async () => {
  const { ocs } = await customerWith(1_000_000)
  await ocs.authorize(question('a'))
  const deduct = (amountMicros: number, ref: string) =>
    ocs.move(move({ kind: 'adjust', amountMicros, ref }))
  expect(await deduct(-400_001, 'one')).toEqual({
    kind: 'insufficient_funds',
    availableMicros: 400_000n,
  })
  expect(await deduct(-400_000, 'two')).toEqual({ kind: 'moved', balanceMicros: 600_000n })
})

test('money for an unknown customer is refused, and a customer without a wallet gets one', async () => {
  const store = await openStore()
  await addCustomer(store, { name: 'acme' })
  await runSql(store, 'DELETE FROM wallet')
  const { ocs } = await ocsOn(store)
  expect(ocs.balanceOf(1)).toMatchObject({ currency: null })
  expect(await ocs.move(move({ customerId: 99 }))).toEqual({ kind: 'unknown_customer' })
  expect(await ocs.move(move())).toEqual({ kind: 'moved', balanceMicros: 5_000_000n })
  expect(ocs.balanceOf(1)).toMatchObject({ currency: 'USD', balanceMicros: 5_000_000n })
})

test('a top-up of nothing, or below nothing, is a mistake of the program', async () => {
  const { ocs } = await customerWith(0)
  await expect(ocs.move(move({ amountMicros: 0 }))).rejects.toThrow(RangeError)
  await expect(ocs.move(move({ amountMicros: -1 }))).rejects.toThrow(RangeError)
})

test('a balance that is not the sum of its ledger is found', async () => {
  const { ocs, store } = await customerWith(1_000_000)
  expect(await ocs.check()).toEqual([])
  await runSql(store, 'UPDATE wallet SET balance_micros = 2000000')
  expect(await ocs.check()).toEqual([
    'wallet 1 holds 2000000 micro-units, its ledger adds up to 1000000',
    'customer 1 has 2000000 micro-units, memory says 1000000',
  ])
})

test('payments of many customers at the same moment all take place', async () => {
  const store = await openStore()
  for (let n = 0; n < 30; n += 1)
    await transaction(store, async () => {
      for (let i = 0; i < 100; i += 1) await addCustomer(store, { name: `customer ${n * 100 + i}` })
    })
  await runSql(
    store,
    `INSERT INTO ledger_entry
       (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
     SELECT id, 'topup', 1, 1, id || ' before', 'payment', 0 FROM wallet`,
  )
  await runSql(store, 'ANALYZE')
  const ledger = new Ledger(store)
  const pay = (walletId: number) =>
    transaction(store, async () => {
      if ((await ledger.find('topup', `${walletId} now`)) !== undefined) return
      const entry = { kind: 'topup', amountMicros: 1, actor: 'payment', note: null, at: 1 } as const
      await ledger.post({ ...entry, walletId, ref: `${walletId} now` })
    })
  const waiting = Array.from({ length: 160 }, (_, i) => (i + 1) * 7)
  const work = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await pay(id)
  }
  await Promise.all([work(), work(), work(), work()])
  expect((await ledger.findAll('topup', ['7 now', '1120 now'])).size).toBe(2)
})
