/** A call of the last run goes on in a world that may have changed meanwhile. */
import { expect, test } from 'vitest'
import type { Insertable } from 'kysely'
import {
  type Books,
  customerWith,
  endedCall,
  ocsOn,
  openCall,
  question,
  start,
  topUp,
} from '../../../support/books.ts'
import { readRows, runScript } from '../../../support/stored.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import type { CustomerTable } from '../../../../schema/tables/tenants.ts'

const plain = '15550100'

/** A call at 0.06 a minute that was answered at `start`, and the crash of its process. */
async function crashedCall(
  balanceMicros: number,
  terms: Partial<Insertable<CustomerTable>> = {},
  callee = plain,
) {
  const { ocs, time, store, customerId } = await customerWith(balanceMicros, terms)
  const verdict = await ocs.authorize(question('a', callee))
  void ocs.answered(openCall('a', start, { customerId, calledNumber: callee }), 'state')
  time.advance(20)
  /** The next process resumes it `seconds` after the answer. */
  const resumed = async (seconds: number) => {
    const next = await ocsOn(store, new ManualTime(start + seconds * 1_000))
    expect((await next.ocs.start()).saved).toMatchObject([{ callUuid: 'a' }])
    expect(next.ocs.resume('a')).toBe(true)
    return next
  }
  const costs = () => readRows(store, 'SELECT billsec, cost_micros FROM cdr')
  return { ocs, store, customerId, verdict, resumed, costs }
}

const report = ({ ocs, passUntil }: Books, billsec: number) =>
  passUntil(ocs.report(endedCall('a', billsec, { calledNumber: plain })))

test('what it holds counts against the limits of its customer', async () => {
  const { verdict, resumed, customerId } = await crashedCall(60_000, { max_concurrent_calls: 1 })
  expect(verdict).toMatchObject({ grantedSeconds: 60 })
  const { ocs } = await resumed(5)
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 60_000n, openCalls: 1 })
  expect(await ocs.authorize(question('b', plain))).toMatchObject({ code: 'concurrent_limit' })
  expect(await ocs.authorize(question('a', plain))).toMatchObject({ grantedSeconds: 60 })
})

test.each([
  ['deactivated', 'UPDATE customer SET is_active = 0'],
  // With a ledger it could not be removed.
  ['removed', 'DELETE FROM wallet; DELETE FROM phone_number; DELETE FROM customer'],
])(
  'a customer that was %s meanwhile ends it at the next heartbeat, and pays',
  async (_, change) => {
    const { store, resumed, costs } = await crashedCall(0, { credit_limit_micros: 1_000_000 })
    await runScript(store, change)
    const next = await resumed(5)
    const code = 'customer_inactive'
    expect(await next.ocs.extend('a', 60)).toEqual({ kind: 'denied', code })
    expect(next.ocs.alive(['a'], start + 6_000)).toEqual([{ callUuid: 'a', code }])
    await report(next, 6)
    expect(await costs()).toEqual([{ billsec: 6, cost_micros: 6_000 }])
    expect(await next.ocs.check()).toEqual([])
    expect(next.ocs.stats()).toMatchObject({ openCalls: 0 })
  },
)

test('a grant that was used up meanwhile is extended, and every second is charged', async () => {
  const { resumed, customerId, costs } = await crashedCall(1_000_000)
  const next = await resumed(150)
  expect(await next.ocs.extend('a', 150)).toEqual({ kind: 'granted', grantedSeconds: 210 })
  await report(next, 160)
  expect(await costs()).toEqual([{ billsec: 160, cost_micros: 160_000 }])
  expect(next.ocs.balanceOf(customerId)?.balanceMicros).toBe(840_000n)
})

test('nothing is left for a grant that was used up meanwhile: it costs all there is, and no more', async () => {
  const terms = { credit_limit_micros: 10_000 }
  const { verdict, resumed, customerId, costs } = await crashedCall(20_000, terms)
  expect(verdict).toMatchObject({ grantedSeconds: 30 })
  const next = await resumed(150)
  const refusal = { kind: 'denied', code: 'insufficient_funds' }
  expect(await next.ocs.extend('a', 150)).toEqual(refusal)
  await report(next, 151)
  expect(await costs()).toEqual([{ billsec: 151, cost_micros: 30_000 }])
  expect(next.ocs.balanceOf(customerId)?.balanceMicros).toBe(-10_000n)
  expect(await next.ocs.check()).toEqual([])
})

test('what was spent and is reserved counts against the day, as before', async () => {
  const { resumed } = await crashedCall(1_000_000, { max_daily_spend_micros: 100_000 })
  const next = await resumed(30)
  expect(await next.ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 100 })
  const refusal = { kind: 'denied', code: 'daily_spend_limit' }
  expect(await next.ocs.extend('a', 100)).toEqual(refusal)
  await report(next, 100)
  expect(await next.ocs.authorize(question('b', plain))).toMatchObject({
    code: 'daily_spend_limit',
  })
})

test('a free call, and one that was not authorized, go on without a reservation of money', async () => {
  const { store } = await customerWith(0)
  const first = await ocsOn(store, new ManualTime(start), 'allow')
  await first.ocs.authorize(question('free', plain, '101'))
  for (const uuid of ['free', 'internal'])
    void first.ocs.answered(openCall(uuid, start, { callerNumber: '101' }), 'state')
  first.time.advance(20)
  const next = await ocsOn(store, new ManualTime(start + 5_000), 'allow')
  await next.ocs.start()
  for (const uuid of ['free', 'internal']) expect(next.ocs.resume(uuid)).toBe(true)
  expect(next.ocs.stats()).toMatchObject({ openCalls: 1, reservedMicros: 0n })
  expect(await next.ocs.extend('free', 7_200)).toMatchObject({ grantedSeconds: Infinity })
})

test('a clock that was set back while the machine started again puts no answer into the future', async () => {
  const { resumed } = await crashedCall(1_000_000)
  const { ocs } = await resumed(-3_600)
  await topUp(ocs, 1, 1)
  expect(await ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 120 })
})
