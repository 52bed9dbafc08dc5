import { expect, test } from 'vitest'
import type { Store } from '../../../schema/storage/store.ts'
import { customerWith, endedCall, ocsOn, openCall, question, start } from '../../support/books.ts'
import { failing, readRows, runSql } from '../../support/stored.ts'
import { journalOf } from '../../support/journals.ts'
import { ManualTime } from '../../support/manual-time.ts'

const customerInFunds = () => customerWith(100_000_000)

/** Call `a` of a customer in funds has been answered at `start`. */
async function answeredCall(state?: string) {
  const books = await customerInFunds()
  await books.ocs.authorize(question('a'))
  void books.ocs.answered(openCall('a', start, { customerId: books.customerId }), state)
  return books
}

const records = (store: Store) =>
  readRows(
    store,
    'SELECT call_uuid, billsec, cost_micros, is_recovered, disposition, hangup_by FROM cdr ORDER BY call_uuid',
  )

test('a call that a crash cut off is billed once, up to its last sign of life', async () => {
  const { ocs, time, customerId, store } = await answeredCall()
  ocs.alive(['a'], start + 84_200)
  time.advance(100)
  // It has the price of its start.
  await runSql(store, 'DELETE FROM rate')
  const after = await ocsOn(store, new ManualTime(start + 3_600_000))
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 1, saved: [] })
  expect(await records(store)).toEqual([
    {
      call_uuid: 'a',
      billsec: 85,
      cost_micros: 641_700,
      is_recovered: 1,
      disposition: 'ANSWERED',
      hangup_by: 'system',
    },
  ])
  expect(after.ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: 100_000_000n - 641_700n,
    reservedMicros: 0n,
  })
  expect(await (await ocsOn(store)).ocs.start()).toMatchObject({ recoveredCalls: 0, saved: [] })
  expect(await after.ocs.check()).toEqual([])
})

test('a call that a crash cut off before its first sign of life is charged a second', async () => {
  const { time, customerId, store } = await answeredCall()
  time.advance(100)
  const after = await ocsOn(store)
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 1, saved: [] })
  expect(await records(store)).toMatchObject([{ billsec: 1, cost_micros: 600_000 }])
  expect(after.ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 100_000_000n - 600_000n })
})

test('a restart that crashes before its commit leaves everything to the next one', async () => {
  const { ocs, time, customerId, store } = await customerInFunds()
  const uuids = Array.from({ length: 150 }, (_, index) => `call-${index}`)
  for (const uuid of uuids) {
    await ocs.authorize(question(uuid))
    void ocs.answered(openCall(uuid, start, { customerId }))
  }
  ocs.alive(uuids, start + 20_000)
  time.advance(100)
  const works = await failing(store, 'INSERT', 'ledger_entry')
  const interrupted = await ocsOn(store)
  await interrupted.ocs.start()
  expect(await records(store)).toEqual([])
  await works()
  const after = await ocsOn(store)
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 150, saved: [] })
  expect(await records(store)).toHaveLength(150)
  expect(after.ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: 100_000_000n - 150n * 600_000n,
  })
})

test('a call that was free when it was answered is charged to no customer whose number it shows', async () => {
  const { customerId, store } = await customerInFunds()
  const { ocs, time } = await ocsOn(store, new ManualTime(start), 'allow')
  await ocs.authorize(question('a', '4930123', '101'))
  void ocs.answered(openCall('a', start, { callerNumber: '+15550001' }))
  ocs.alive(['a'], start + 20_000)
  time.advance(100)
  const after = await ocsOn(store, new ManualTime(start + 60_000), 'allow')
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 1, saved: [] })
  expect(await records(store)).toMatchObject([{ call_uuid: 'a', billsec: 20, cost_micros: 0 }])
  expect(after.ocs.balanceOf(customerId)?.balanceMicros).toBe(100_000_000n)
})

test('a call that had ended before the crash keeps its end and its price', async () => {
  const { ocs, time, customerId, store } = await answeredCall()
  void ocs.report(endedCall('a', 85))
  void ocs.report(endedCall('never answered', 0))
  time.advance(20)
  expect(await records(store)).toEqual([])
  const after = await ocsOn(store)
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 2, saved: [] })
  expect(await records(store)).toMatchObject([
    { call_uuid: 'a', billsec: 85, cost_micros: 641_700, is_recovered: 0, hangup_by: 'caller' },
    { call_uuid: 'never answered', billsec: 0, cost_micros: 0, disposition: 'NO ANSWER' },
  ])
  expect(after.ocs.balanceOf(customerId)?.balanceMicros).toBe(100_000_000n - 641_700n)
  expect(await after.ocs.check()).toEqual([])
})

test('a crash between the commit of a call and the note of it bills nothing twice', async () => {
  const { ocs, time, store, pass } = await answeredCall()
  void ocs.report(endedCall('a', 85))
  await pass(100)
  expect(await records(store)).toHaveLength(1)
  expect(journalOf(store, time.schedule).left()).toHaveLength(1)
  const after = await ocsOn(store)
  expect(await after.ocs.start()).toMatchObject({ recoveredCalls: 0, saved: [] })
  expect(await records(store)).toHaveLength(1)
  expect(await after.ocs.check()).toEqual([])
})

test('a call that is resumed holds what it held, and is billed to its real end', async () => {
  const { ocs, time, customerId, store } = await customerInFunds()
  const grant = await ocs.authorize(question('a'))
  expect(grant).toMatchObject({ grantedSeconds: 60 })
  void ocs.answered(openCall('a', start, { customerId }), 'first')
  time.advance(50)
  await ocs.extend('a', 60)
  ocs.changed('a', 'second')
  time.advance(50)
  const before = ocs.balanceOf(customerId)
  await runSql(store, 'DELETE FROM rate')

  const after = await ocsOn(store, new ManualTime(start + 3_000))
  expect(await after.ocs.start()).toEqual({
    recoveredCalls: 0,
    unansweredCalls: 0,
    saved: [
      expect.objectContaining({ callUuid: 'a', state: 'second', shiftMs: 0, aliveAt: start }),
    ],
  })
  expect(await records(store)).toEqual([])
  expect(after.ocs.balanceOf(customerId)).toEqual(before)
  expect(after.ocs.resume('a')).toBe(true)
  expect(after.ocs.resume('a')).toBe(false)
  expect(after.ocs.balanceOf(customerId)).toEqual(before)
  expect(after.ocs.costSoFar('a', 85)).toEqual(ocs.costSoFar('a', 85))
  expect(await after.ocs.extend('a', 120)).toEqual({ kind: 'granted', grantedSeconds: 180 })
  void after.ocs.report(endedCall('a', 130))
  await after.pass(100)
  expect(await records(store)).toMatchObject([
    { billsec: 130, cost_micros: 716_700, is_recovered: 0 },
  ])
  expect(after.ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 0n, openCalls: 0 })
  expect(await after.ocs.check()).toEqual([])
})

test('a call that is abandoned is closed at its last sign of life, once', async () => {
  const { ocs, time, store } = await answeredCall('state')
  ocs.alive(['a'], start + 84_200)
  time.advance(100)
  const after = await ocsOn(store, new ManualTime(start + 90_000))
  expect((await after.ocs.start()).saved).toMatchObject([
    { callUuid: 'a', aliveAt: start + 84_200 },
  ])
  after.ocs.abandon('a')
  after.ocs.abandon('a')
  expect(after.ocs.resume('a')).toBe(false)
  await after.pass(200)
  expect(await records(store)).toMatchObject([
    { billsec: 85, cost_micros: 641_700, is_recovered: 1 },
  ])
  expect(await after.ocs.start()).toEqual({ recoveredCalls: 0, unansweredCalls: 0, saved: [] })
  expect(await after.ocs.check()).toEqual([])
})

test('a call that was dialled at the crash has one record, and costs nothing', async () => {
  const { ocs, time, customerId, store } = await customerInFunds()
  await ocs.authorize(question('a'))
  const { answeredAt: _, ...call } = openCall('a', start, { customerId })
  ocs.begun(call)
  time.advance(100)
  const after = await ocsOn(store)
  expect(await after.ocs.start()).toEqual({ recoveredCalls: 0, unansweredCalls: 1, saved: [] })
  expect(await records(store)).toEqual([
    {
      call_uuid: 'a',
      billsec: 0,
      cost_micros: 0,
      is_recovered: 1,
      disposition: 'FAILED',
      hangup_by: 'system',
    },
  ])
  expect(after.ocs.balanceOf(customerId)?.balanceMicros).toBe(100_000_000n)
})
