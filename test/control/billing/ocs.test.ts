import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../schema/open.ts'
import {
  addCustomer,
  addPlan,
  customerWith,
  endedCall,
  freshStore,
  ocsOn,
  openCall,
  plainRate,
  question,
  start,
  topUp,
} from '../../support/books.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const oneUnit = 1_000_000

test('a call is granted a minute, and exactly the price of that minute is reserved', async () => {
  const { ocs, customerId } = customerWith(oneUnit)
  expect(await ocs.authorize(question('a'))).toEqual({
    kind: 'granted',
    grantedSeconds: 60,
    account: {
      customerId,
      tenantId: null,
      ratePrefix: '49',
      currency: 'USD',
      isUnauthorizedByOcs: false,
    },
  })
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: oneUnit,
    reservedMicros: 600_000,
    availableMicros: 400_000,
  })
})

test('a balance that does not pay a minute is granted what it pays', async () => {
  const { ocs } = customerWith(17_000)
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ grantedSeconds: 17 })
})

test('a balance below the first increment is refused', async () => {
  const { ocs } = customerWith(599_999)
  expect(await ocs.authorize(question('a'))).toMatchObject({
    kind: 'denied',
    code: 'insufficient_funds',
  })
})

test('concurrent calls share the balance: no promise is made twice', async () => {
  const { ocs } = customerWith(1_500_000)
  const verdicts = await Promise.all(['a', 'b', 'c'].map((uuid) => ocs.authorize(question(uuid))))
  expect(verdicts.map(({ kind }) => kind)).toEqual(['granted', 'granted', 'denied'])
})

test('the same call asked twice gets the same answer and reserves once', async () => {
  const { ocs, customerId } = customerWith(oneUnit)
  const first = await ocs.authorize(question('a'))
  expect(await ocs.authorize(question('a'))).toEqual(first)
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000, openCalls: 1 })
})

test('the credit limit is there to be spent', async () => {
  const { ocs } = customerWith(0, { credit_limit_micros: 600_000 })
  expect(await ocs.authorize(question('a'))).toMatchObject({ kind: 'granted' })
  expect(await ocs.authorize(question('b'))).toMatchObject({ kind: 'denied' })
})

test('an ended call costs what it talked, and its reservation is gone', async () => {
  const { ocs, time, customerId, store } = customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  const stored = ocs.report(endedCall('a', 85))
  time.advance(10)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: 1_358_300,
    reservedMicros: 0,
    openCalls: 0,
  })
  expect(store.sqlite.prepare('SELECT cost_micros, currency, billsec FROM cdr').get()).toEqual({
    cost_micros: 641_700,
    currency: 'USD',
    billsec: 85,
  })
  expect(
    store.sqlite
      .prepare(
        "SELECT amount_micros, balance_after_micros, ref FROM ledger_entry WHERE kind = 'debit'",
      )
      .all(),
  ).toEqual([{ amount_micros: -641_700, balance_after_micros: 1_358_300, ref: 'a' }])
})

test('a call that was not answered costs nothing and leaves a record', async () => {
  const { ocs, time, customerId, store } = customerWith(oneUnit)
  await ocs.authorize(question('a'))
  const stored = ocs.report(endedCall('a', 0))
  time.advance(10)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: oneUnit, reservedMicros: 0 })
  expect(store.sqlite.prepare('SELECT disposition, cost_micros FROM cdr').all()).toHaveLength(1)
})

test('what an ended call does not need is free again before its debit is written', async () => {
  const { ocs, customerId } = customerWith(600_000)
  await ocs.authorize(question('a'))
  const stored = ocs.report(endedCall('a', 0))
  expect(await ocs.authorize(question('b'))).toMatchObject({ kind: 'granted' })
  ocs.stop()
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000 })
})

test('the same record reported again, at once or later, is stored and debited once', async () => {
  const { ocs, time, customerId, store } = customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  const both = [ocs.report(endedCall('a', 20)), ocs.report(endedCall('a', 20))]
  time.advance(10)
  await Promise.all(both)
  const later = ocs.report(endedCall('a', 20))
  time.advance(10)
  await later
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000, reservedMicros: 0 })
  expect(store.sqlite.prepare('SELECT count(*) FROM cdr').pluck().get()).toBe(1)
  expect(ocs.check()).toEqual([])
})

test('an extension adds a minute to what was used, and the same question adds nothing', async () => {
  const { ocs, customerId } = customerWith(oneUnit)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 110 })
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 110 })
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 110_000 })
})

test('the last extension gives what is left, then none is given', async () => {
  const { ocs } = customerWith(75_000)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 75 })
  expect(await ocs.extend('a', 70)).toEqual({ kind: 'denied', code: 'insufficient_funds' })
})

test('a top-up in mid-call is there for the next extension', async () => {
  const { ocs, customerId } = customerWith(60_000)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 55)).toMatchObject({ kind: 'denied' })
  topUp(ocs, customerId, 20_000)
  expect(await ocs.extend('a', 55)).toEqual({ kind: 'granted', grantedSeconds: 80 })
})

test('a call that nobody knows is not extended', async () => {
  const { ocs } = customerWith(oneUnit)
  expect(await ocs.extend('nobody', 1)).toEqual({ kind: 'denied', code: 'unknown_call' })
})

test('the moment that cutting a call takes is not charged beyond the wallet', async () => {
  const { ocs, time, customerId } = customerWith(30_000)
  await ocs.authorize(question('a', '1555'))
  const stored = ocs.report(endedCall('a', 31, { calledNumber: '1555' }))
  time.advance(10)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 0 })
})

test('a call that went on far past its grant is charged for what it consumed', async () => {
  const { ocs, time, customerId } = customerWith(30_000)
  await ocs.authorize(question('a', '1555'))
  const stored = ocs.report(endedCall('a', 40, { calledNumber: '1555' }))
  time.advance(10)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: -10_000 })
  expect(ocs.check()).toEqual([])
})

test('a call keeps the price of its start when the rate changes', async () => {
  const { ocs, time, store, customerId } = customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  store.sqlite.exec('UPDATE rate SET connect_fee_micros = 0')
  ocs.reload()
  await ocs.authorize(question('b'))
  const stored = [ocs.report(endedCall('a', 20)), ocs.report(endedCall('b', 20))]
  time.advance(10)
  await Promise.all(stored)
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: 2 * oneUnit - 600_000 - 200_000,
  })
})

// ---- who is calling ----------------------------------------------------------------------------

test('a number is recognized with and without its plus', async () => {
  const { ocs } = customerWith(oneUnit)
  expect(await ocs.authorize(question('a', '4930', '15550001'))).toMatchObject({ kind: 'granted' })
})

test('the customer that the source determines pays, whatever number it shows', async () => {
  const { ocs, customerId } = customerWith(oneUnit)
  const asked = { ...question('a', '4930', '+1999'), customerId }
  expect(await ocs.authorize(asked)).toMatchObject({ kind: 'granted', account: { customerId } })
})

test("an extension's number leads to its customer, unless two domains disagree", async () => {
  const store = freshStore()
  const planId = addPlan(store, [plainRate])
  const customerId = addCustomer(store, { name: 'acme', rate_plan_id: planId })
  const other = addCustomer(store, { name: 'beta', rate_plan_id: planId })
  store.sqlite.exec(`INSERT INTO tenant VALUES (1, 'a', 'A', 1, 0), (2, 'b', 'B', 1, 0);
    INSERT INTO tenant_domain VALUES ('a.test', 1), ('b.test', 2);`)
  const extension = store.sqlite.prepare(`INSERT INTO extension (tenant_id, domain, extension,
    display_name, customer_id, ha1_md5, ha1_sha256, created_at, updated_at)
    VALUES (?, ?, ?, '', ?, '', '', 0, 0)`)
  extension.run(1, 'a.test', '101', customerId)
  extension.run(1, 'a.test', '102', customerId)
  extension.run(2, 'b.test', '102', other)
  const { ocs } = ocsOn(store)
  topUp(ocs, customerId, oneUnit)
  expect(await ocs.authorize(question('a', '1555', '101'))).toMatchObject({
    account: { customerId },
  })
  expect(await ocs.authorize(question('b', '1555', '102'))).toMatchObject({
    code: 'unknown_caller',
  })
})

test('an unknown caller is refused, or let through at no cost where that is allowed', async () => {
  const { ocs } = customerWith(oneUnit)
  expect(await ocs.authorize(question('a', '4930', '+1999'))).toEqual({
    kind: 'denied',
    code: 'unknown_caller',
    account: null,
  })
  const open = ocsOn(freshStore(), undefined, 'allow')
  expect(await open.ocs.authorize(question('a', '4930', '+1999'))).toMatchObject({
    kind: 'granted',
    grantedSeconds: Infinity,
    account: { customerId: null },
  })
  const stored = open.ocs.report(endedCall('a', 300, { callerNumber: '+1999' }))
  open.time.advance(10)
  await stored
  expect(open.store.sqlite.prepare('SELECT cost_micros FROM cdr').pluck().get()).toBe(0)
})

test('a destination without a price is refused, one that is free is granted without end', async () => {
  const store = freshStore()
  const free = { prefix: '800', first_rate_per_minute_micros: 0, rate_per_minute_micros: 0 }
  const planId = addPlan(store, [free])
  addCustomer(store, { name: '+15550001', rate_plan_id: planId })
  const { ocs } = ocsOn(store)
  expect(await ocs.authorize(question('a', '900'))).toMatchObject({ code: 'no_rate' })
  expect(await ocs.authorize(question('b', '800555'))).toMatchObject({ grantedSeconds: Infinity })
})

test('a price in another currency than the wallet is no price', async () => {
  const { ocs, store } = customerWith(oneUnit)
  store.sqlite.exec("UPDATE rate_plan SET currency = 'EUR'")
  ocs.reload()
  expect(await ocs.authorize(question('a'))).toMatchObject({ code: 'no_rate' })
})

// ---- limits ------------------------------------------------------------------------------------

test('a blocked prefix denies', async () => {
  const { ocs, store } = customerWith(oneUnit)
  store.sqlite.exec('UPDATE rate SET is_blocked = 1')
  ocs.reload()
  expect(await ocs.authorize(question('a'))).toMatchObject({ code: 'destination_blocked' })
})

test('an inactive customer, or one of an inactive tenant, neither starts nor extends a call', async () => {
  const { ocs, store } = customerWith(oneUnit)
  await ocs.authorize(question('a', '1555'))
  store.sqlite.exec('UPDATE customer SET is_active = 0')
  ocs.reload()
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'customer_inactive' })
  expect(await ocs.extend('a', 50)).toMatchObject({ code: 'customer_inactive' })
  store.sqlite.exec(`INSERT INTO tenant VALUES (1, 'a', 'A', 0, 0);
    UPDATE customer SET is_active = 1, tenant_id = 1`)
  ocs.reload()
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'customer_inactive' })
})

test('no more calls are open at once than allowed; an ended call makes room at once', async () => {
  const { ocs } = customerWith(10 * oneUnit, { max_concurrent_calls: 2 })
  await ocs.authorize(question('a'))
  await ocs.authorize(question('b'))
  expect(await ocs.authorize(question('c'))).toMatchObject({ code: 'concurrent_limit' })
  const stored = ocs.report(endedCall('a', 5))
  expect(await ocs.authorize(question('c'))).toMatchObject({ kind: 'granted' })
  ocs.stop()
  await stored
})

test('no more calls start within any second than allowed', async () => {
  const { ocs, time } = customerWith(10 * oneUnit, { max_cps: 2 })
  const kindAt = async (ms: number, uuid: string) => {
    time.advance(start + ms - time.now())
    return (await ocs.authorize(question(uuid, '1555'))).kind
  }
  expect([
    await kindAt(0, 'a'),
    await kindAt(600, 'b'),
    await kindAt(999, 'c'),
    await kindAt(1_000, 'd'),
    await kindAt(1_599, 'e'),
    await kindAt(1_600, 'f'),
  ]).toEqual(['granted', 'granted', 'denied', 'granted', 'denied', 'granted'])
})

test('a day costs no more than allowed, promises included, and the next day is a new one', async () => {
  const { ocs, time, store } = customerWith(10 * oneUnit, { max_daily_spend_micros: 1_000_000 })
  await ocs.authorize(question('a'))
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'daily_spend_limit' })
  const stored = ocs.report(endedCall('a', 20))
  time.advance(10)
  await stored
  expect(await ocs.authorize(question('c'))).toMatchObject({ code: 'daily_spend_limit' })
  // What was spent is known after a restart as well.
  const restarted = ocsOn(store, time)
  expect(await restarted.ocs.authorize(question('c'))).toMatchObject({ code: 'daily_spend_limit' })
  time.advance(24 * 3_600_000)
  expect(await restarted.ocs.authorize(question('d'))).toMatchObject({ kind: 'granted' })
})

test('no call is granted more than the cap per call', async () => {
  const { ocs } = customerWith(10 * oneUnit, { max_call_seconds: 90 })
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 90 })
  expect(await ocs.extend('a', 80)).toEqual({ kind: 'denied', code: 'max_call_seconds' })
})

// ---- calls that are lost, databases that fail --------------------------------------------------

test('a call of which nothing is heard gives back what it holds', async () => {
  const { ocs, time, customerId, log } = customerWith(oneUnit)
  ocs.start()
  await ocs.authorize(question('a'))
  time.advance(11 * 60_000 + 1_000)
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 0, openCalls: 0 })
  expect(log).toEqual(['warn billing: calls without a report'])
})

test('a call that shows signs of life keeps what it holds', async () => {
  const { ocs, time, customerId } = customerWith(oneUnit)
  ocs.start()
  await ocs.authorize(question('a'))
  for (let minute = 0; minute < 60; minute += 1) {
    time.advance(60_000)
    ocs.alive(['a'], time.now())
  }
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000 })
})

test('while records cannot be stored they wait, and are stored once when that works again', async () => {
  const { ocs, time, customerId, store, log } = customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  store.sqlite.exec('ALTER TABLE cdr RENAME TO cdr_away')
  const stored = ocs.report(endedCall('a', 20))
  time.advance(500)
  expect(log[0]).toBe('error billing: records cannot be stored')
  expect(ocs.stats().waitingWrites).toBe(1)
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 2 * oneUnit })
  store.sqlite.exec('ALTER TABLE cdr_away RENAME TO cdr')
  time.advance(1_000)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000, reservedMicros: 0 })
  expect(ocs.stats().waitingWrites).toBe(0)
})

test('a record that the database refuses for ever does not hold up the others', async () => {
  const { ocs, time, customerId, store } = customerWith(2 * oneUnit)
  await ocs.authorize(question('bad'))
  await ocs.authorize(question('good'))
  const bad = ocs.report(endedCall('bad', 20, { endedAt: Number.NaN }))
  const good = ocs.report(endedCall('good', 20))
  const refusal = expect(bad).rejects.toThrow('NOT NULL')
  time.advance(10)
  await good
  await refusal
  expect(store.sqlite.prepare('SELECT call_uuid FROM cdr').pluck().all()).toEqual(['good'])
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000, reservedMicros: 0 })
})

test('money that another process moves is noticed within a second', async () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  const store = freshStore(path)
  const planId = addPlan(store, [plainRate])
  const customerId = addCustomer(store, { name: '+15550001', rate_plan_id: planId })
  const { ocs, time } = ocsOn(store)
  ocs.start()
  const other = openDatabase(path)
  topUp(ocsOn(other).ocs, customerId, oneUnit)
  other.close()
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ kind: 'denied' })
  time.advance(1_000)
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ kind: 'granted' })
  store.close()
})

test('the verdicts since the start are counted by kind', async () => {
  const { ocs } = customerWith(oneUnit)
  await ocs.authorize(question('a'))
  await ocs.authorize(question('b'))
  await ocs.authorize(question('c', '4930', '+1999'))
  expect(ocs.stats()).toMatchObject({
    openCalls: 1,
    reservedMicros: 600_000,
    verdicts: { granted: 1, insufficient_funds: 1, unknown_caller: 1 },
  })
})

test('the journal holds a call from its answer to its end', async () => {
  const { ocs, time, store } = customerWith(2 * oneUnit)
  const journal = () => store.sqlite.prepare('SELECT call_uuid, alive_at FROM call_journal').all()
  await ocs.authorize(question('a'))
  ocs.answered(openCall('a', start + 2_000))
  time.advance(10)
  expect(journal()).toEqual([{ call_uuid: 'a', alive_at: start + 2_000 }])
  ocs.alive(['a'], start + 9_000)
  time.advance(10)
  expect(journal()).toEqual([{ call_uuid: 'a', alive_at: start + 9_000 }])
  const stored = ocs.report(endedCall('a', 20))
  time.advance(10)
  await stored
  expect(journal()).toEqual([])
})
