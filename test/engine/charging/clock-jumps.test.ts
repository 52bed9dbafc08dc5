/**
 * Money goes by what was measured, whatever the machine's clock is set to; entries are dated by
 * that clock.
 */
import { expect, test } from 'vitest'
import { customerWith, endedCall, ocsOn, openCall, question, start } from '../../support/books.ts'
import { readColumn, readRows } from '../../support/stored.ts'

const oneUnit = 1_000_000
const hour = 3_600_000
const day = 24 * hour
const jumps = [hour, -hour, 40 * day, -40 * day] as const

test.each(jumps)(
  'set by %i ms: a live call keeps what it holds, a lost one gives it back in time',
  async (jumpMs) => {
    const { ocs, time, customerId } = await customerWith(oneUnit)
    await ocs.start()
    await ocs.authorize(question('a'))
    time.jump(jumpMs)
    time.advance(10 * 60_000)
    expect(ocs.balanceOf(customerId)).toMatchObject({ openCalls: 1, reservedMicros: 600_000n })
    time.advance(61_000)
    expect(ocs.balanceOf(customerId)).toMatchObject({ openCalls: 0, reservedMicros: 0n })
  },
)

test.each(jumps)('set by %i ms: no more calls per second than allowed', async (jumpMs) => {
  const { ocs, time } = await customerWith(100 * oneUnit, { max_cps: 1 })
  await ocs.authorize(question('a'))
  time.jump(jumpMs)
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'cps_limit' })
  time.advance(1_000)
  expect(await ocs.authorize(question('c'))).toMatchObject({ kind: 'granted' })
})

test.each(jumps)('set by %i ms: the daily limit is not forgotten', async (jumpMs) => {
  const { ocs, time, passUntil } = await customerWith(10 * oneUnit, {
    max_daily_spend_micros: 1_000_000,
  })
  await ocs.authorize(question('a'))
  await passUntil(ocs.report(endedCall('a', 60)))
  time.jump(jumpMs)
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'daily_spend_limit' })
})

test.each(jumps)('set by %i ms before a crash: charged is what was talked', async (jumpMs) => {
  const { ocs, time, store, customerId } = await customerWith(10 * oneUnit)
  await ocs.authorize(question('a'))
  void ocs.answered(openCall('a', start, { customerId }))
  time.jump(jumpMs)
  time.advance(20_000)
  ocs.alive(['a'], time.now())
  time.advance(100)
  const after = await ocsOn(store, time)
  await after.ocs.start()
  expect(
    await readRows(store, 'SELECT billsec, end_stamp - answer_stamp AS talked FROM cdr'),
  ).toEqual([{ billsec: 20, talked: 20_000 }])
})

test('entries of the ledger are dated by the clock of the machine', async () => {
  const { ocs, time, store, customerId } = await customerWith(0)
  time.jump(hour)
  const move = {
    customerId,
    kind: 'topup',
    amountMicros: 1,
    ref: 'a',
    actor: 'x',
    note: null,
  } as const
  await ocs.move(move)
  expect(await readColumn(store, 'SELECT created_at FROM ledger_entry')).toEqual([start + hour])
})
