import { expect, test } from 'vitest'
import { customerWith, endedCall, question, topUp } from '../../support/books.ts'
import { readRow, readRows, readValue, runSql } from '../../support/stored.ts'

const oneUnit = 1_000_000

test('a call is granted a minute, and exactly the price of that minute is reserved', async () => {
  const { ocs, customerId } = await customerWith(oneUnit)
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
    // The rest when it is granted; traces tell it.
    funds: { balanceMicros: oneUnit, availableMicros: 400_000 },
  })
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: BigInt(oneUnit),
    reservedMicros: 600_000n,
    availableMicros: 400_000n,
  })
})

test('a balance that does not pay a minute is granted what it pays', async () => {
  const { ocs } = await customerWith(17_000)
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ grantedSeconds: 17 })
})

test('a balance below the first increment is refused, and the verdict says what was missing', async () => {
  const { ocs } = await customerWith(599_999)
  expect(await ocs.authorize(question('a'))).toMatchObject({
    kind: 'denied',
    code: 'insufficient_funds',
    lack: { requiredMicros: 600_000, availableMicros: 599_999 },
  })
})

test('a limit of the day that is too small says what is left of the day', async () => {
  const { ocs } = await customerWith(2 * oneUnit, { max_daily_spend_micros: 700_000 })
  expect(await ocs.authorize(question('a'))).toMatchObject({ kind: 'granted' })
  expect(await ocs.authorize(question('b'))).toMatchObject({
    kind: 'denied',
    code: 'daily_spend_limit',
    lack: { requiredMicros: 600_000, availableMicros: 100_000 },
  })
})

test('concurrent calls share the balance: no promise is made twice', async () => {
  const { ocs } = await customerWith(1_500_000)
  const verdicts = await Promise.all(['a', 'b', 'c'].map((uuid) => ocs.authorize(question(uuid))))
  expect(verdicts.map(({ kind }) => kind)).toEqual(['granted', 'granted', 'denied'])
})

test('the same call asked twice gets the same answer and reserves once', async () => {
  const { ocs, customerId } = await customerWith(oneUnit)
  const first = await ocs.authorize(question('a'))
  expect(await ocs.authorize(question('a'))).toEqual(first)
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000n, openCalls: 1 })
})

test('the credit limit is there to be spent', async () => {
  const { ocs } = await customerWith(0, { credit_limit_micros: 600_000 })
  expect(await ocs.authorize(question('a'))).toMatchObject({ kind: 'granted' })
  expect(await ocs.authorize(question('b'))).toMatchObject({ kind: 'denied' })
})

test('an ended call costs what it talked, and its reservation is gone', async () => {
  const { ocs, passUntil, customerId, store } = await customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  await passUntil(ocs.report(endedCall('a', 85)))
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: 1_358_300n,
    reservedMicros: 0n,
    openCalls: 0,
  })
  expect(await readRow(store, 'SELECT cost_micros, currency, billsec FROM cdr')).toEqual({
    cost_micros: 641_700,
    currency: 'USD',
    billsec: 85,
  })
  expect(
    await readRows(
      store,
      "SELECT amount_micros, balance_after_micros, ref FROM ledger_entry WHERE kind = 'debit'",
    ),
  ).toEqual([{ amount_micros: -641_700, balance_after_micros: 1_358_300, ref: 'a' }])
})

test('a call that was not answered costs nothing and leaves a record', async () => {
  const { ocs, passUntil, customerId, store } = await customerWith(oneUnit)
  await ocs.authorize(question('a'))
  await passUntil(ocs.report(endedCall('a', 0)))
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: BigInt(oneUnit),
    reservedMicros: 0n,
  })
  expect(await readRows(store, 'SELECT disposition, cost_micros FROM cdr')).toHaveLength(1)
})

test('what an ended call does not need is free again before its debit is written', async () => {
  const { ocs, customerId } = await customerWith(600_000)
  await ocs.authorize(question('a'))
  const stored = ocs.report(endedCall('a', 0))
  expect(await ocs.authorize(question('b'))).toMatchObject({ kind: 'granted' })
  void ocs.stop()
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000n })
})

test('the same record reported again, at once or later, is stored and debited once', async () => {
  const { ocs, time, customerId, store } = await customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  const both = [ocs.report(endedCall('a', 20)), ocs.report(endedCall('a', 20))]
  time.advance(100)
  await both[0]
  time.advance(1)
  await both[1]
  const later = ocs.report(endedCall('a', 20))
  time.advance(100)
  await later
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000n, reservedMicros: 0n })
  expect(await readValue(store, 'SELECT count(*) FROM cdr')).toBe(1)
  expect(await ocs.check()).toEqual([])
})

test('an extension adds a minute to what was used, and the same question adds nothing', async () => {
  const { ocs, customerId } = await customerWith(oneUnit)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 110 })
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 110 })
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 110_000n })
})

test('the last extension gives what is left, then none is given', async () => {
  const { ocs } = await customerWith(75_000)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 75 })
  expect(await ocs.extend('a', 70)).toEqual({ kind: 'denied', code: 'insufficient_funds' })
})

test('a top-up in mid-call is there for the next extension', async () => {
  const { ocs, customerId } = await customerWith(60_000)
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 55)).toMatchObject({ kind: 'denied' })
  await topUp(ocs, customerId, 20_000)
  expect(await ocs.extend('a', 55)).toEqual({ kind: 'granted', grantedSeconds: 80 })
})

test('an unknown call is not extended', async () => {
  const { ocs } = await customerWith(oneUnit)
  expect(await ocs.extend('unknown', 1)).toEqual({ kind: 'denied', code: 'unknown_call' })
})

test('the moment that cutting a call takes is not charged beyond the wallet', async () => {
  const { ocs, passUntil, customerId } = await customerWith(30_000)
  await ocs.authorize(question('a', '1555'))
  await passUntil(ocs.report(endedCall('a', 31, { calledNumber: '1555' })))
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 0n })
})

test('a call that went on far past its grant is charged for what it consumed', async () => {
  const { ocs, passUntil, customerId } = await customerWith(30_000)
  await ocs.authorize(question('a', '1555'))
  await passUntil(ocs.report(endedCall('a', 40, { calledNumber: '1555' })))
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: -10_000n })
  expect(await ocs.check()).toEqual([])
})

test('a call keeps the price of its start when the rate changes', async () => {
  const { ocs, time, store, customerId } = await customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  await runSql(store, 'UPDATE rate SET connect_fee_micros = 0')
  await ocs.reload()
  await ocs.authorize(question('b'))
  const stored = [ocs.report(endedCall('a', 20)), ocs.report(endedCall('b', 20))]
  time.advance(100)
  await Promise.all(stored)
  expect(ocs.balanceOf(customerId)).toMatchObject({
    balanceMicros: BigInt(2 * oneUnit - 600_000 - 200_000),
  })
})

test('live calls of a deactivated customer, or of one that is gone, may not go on', async () => {
  const { ocs, store, time, customerId } = await customerWith(10_000_000)
  for (const uuid of ['a', 'b']) await ocs.authorize(question(uuid))
  expect(ocs.alive(['a', 'b', 'unknown'], time.now())).toEqual([])
  const setActive = (isActive: 0 | 1) =>
    runSql(store, 'UPDATE customer SET is_active = ? WHERE id = ?', isActive, customerId)
  await setActive(0)
  await ocs.reloadCustomers()
  const code = 'customer_inactive'
  expect(ocs.alive(['a'], time.now())).toEqual([{ callUuid: 'a', code }])
  await setActive(1)
  await ocs.reloadCustomers()
  expect(ocs.alive(['a'], time.now())).toEqual([])
})

test.each([
  ['an emergency call', { direction: 'outbound', isFree: true }],
  ['a call between phones of one tenant, which was never authorized', { direction: 'internal' }],
] as const)('%s costs nothing, whatever it dials', async (_, kind) => {
  const { ocs, passUntil, customerId } = await customerWith(oneUnit)
  await passUntil(ocs.report(endedCall('a', 60, { customerId, calledNumber: '4930123', ...kind })))
  expect(ocs.balanceOf(customerId)?.balanceMicros).toBe(BigInt(oneUnit))
})
