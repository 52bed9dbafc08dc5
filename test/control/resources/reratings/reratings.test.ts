/** Past calls are priced anew, with the money and the sums that follow, and back again. */
import { expect, test } from 'vitest'
import { openReratingRig } from '../../../support/rerating-rig.ts'

test('what was sold is priced anew, once: records, wallet, ledger and sums say the same', async () => {
  const rig = await openReratingRig()
  const [one = 0, two = 0] = rig.customers
  await rig.talk({}, 60)
  await rig.talk({ customerId: two }, 120)
  await rig.rollUp()
  await rig.talk({}, 30)
  await rig.correct()
  const before = await rig.money()
  const preview = await rig.call('POST', '/rates/reratings/preview', rig.order('sold'))
  expect(preview.data()).toMatchObject({
    complete: true,
    calls: 3,
    changed: 3,
    before_exact: '0.21',
    after_exact: '0.105',
    customers: [
      { customer_id: two, customer: 'two', calls: 1, difference_exact: '-0.06' },
      { customer_id: one, customer: 'one', calls: 2, difference_exact: '-0.045' },
    ],
    examples: [{ before_exact: '0.12', after_exact: '0.06' }, {}, {}],
  })
  expect(await rig.money()).toEqual(before)

  const job = await rig.rerate('sold')
  expect(job).toMatchObject({
    state: 'done',
    done: 3,
    total: 3,
    calls: 3,
    changed: 3,
    before_exact: '0.21',
    after_exact: '0.105',
    customers: [
      { customer_id: two, posted_exact: '0.06' },
      { customer_id: one, posted_exact: '0.045' },
    ],
  })
  expect((await rig.records()).map((row) => row['cost_micros'])).toEqual([30_000, 60_000, 15_000])
  const after = await rig.money()
  const balances = [100_000_000 - 45_000, 100_000_000 - 60_000].map(String)
  expect(after.map((row) => row['balance'])).toEqual(balances)
  for (const { balance, entries, memory } of after as Record<string, string>[])
    expect([entries, memory]).toEqual([balance, balance])
  const ledger = (await rig.call('GET', `/customers/${one}/ledger?kind=adjust`)).data<object[]>()
  expect(ledger).toMatchObject([
    { amount_exact: '0.045', note: 're-rating 1: 2 calls by the prices of retail' },
  ])
  const told = await rig.marginsNow()
  expect(told[0]?.totals).toMatchObject([{ calls: 3, revenue: '0.105', carrier_cost: '0.21' }])
  await rig.rollUp()
  expect(await rig.marginsNow()).toEqual(told)

  // Again, nothing differs: no record, no entry.
  expect(await rig.rerate('sold')).toMatchObject({ calls: 3, changed: 0, customers: [] })
  expect(await rig.money()).toEqual(after)
})

test('what was bought changes records and margins alone, and an undo brings all back', async () => {
  const rig = await openReratingRig()
  await rig.talk({}, 60)
  await rig.talk({}, 90)
  await rig.rollUp()
  const [records, told, wallets] = [await rig.records(), await rig.marginsNow(), await rig.money()]
  await rig.correct()
  const job = await rig.rerate('bought')
  expect(job).toMatchObject({ changed: 2, before_exact: '0.15', after_exact: '0.075' })
  expect(await rig.money()).toEqual(wallets)
  expect((await rig.records()).map((row) => row['carrier_cost_micros'])).toEqual([30_000, 45_000])
  const corrected = await rig.marginsNow()
  expect(corrected[1]?.groups).toMatchObject([
    { group: 'north', carrier_cost: '0.075', margin: '0.075' },
  ])
  await rig.rollUp()
  expect(await rig.marginsNow()).toEqual(corrected)

  expect((await rig.undo(job.id)).data()).toMatchObject({ state: 'undoing' })
  expect(await rig.ended(job.id)).toMatchObject({ state: 'undone', restored: 2, kept: 0 })
  expect(await rig.records()).toEqual(records)
  expect(await rig.marginsNow()).toEqual(told)
  await rig.rollUp()
  expect(await rig.marginsNow()).toEqual(told)
  expect(await rig.undo(job.id)).toMatchObject({ status: 409, code: 'already_undone' })
})

test('a customer owes what a dearer price adds; the undo returns exactly that', async () => {
  const rig = await openReratingRig()
  const [one = 0] = rig.customers
  await rig.talk({}, 60)
  await rig.call('POST', `/customers/${one}/wallet/adjust`, { amount: '-99.93', reason: 'spent' })
  const before = await rig.money()
  const records = await rig.records()
  await rig.correct('0.60')
  const job = await rig.rerate('sold')
  expect(job.customers).toMatchObject([{ posted_exact: '-0.54' }])
  const [wallet] = (await rig.money()) as Record<string, string>[]
  expect(wallet).toMatchObject({ balance: '-530000', entries: '-530000', memory: '-530000' })
  await rig.undo(job.id)
  await rig.ended(job.id)
  expect(await rig.money()).toEqual(before)
  expect(await rig.records()).toEqual(records)
})

test('calls stay as they are whose price cannot be told, and each is counted', async () => {
  const rig = await openReratingRig()
  const [one = 0] = rig.customers
  await rig.talk({}, 60)
  await rig.talk({ calledNumber: '3312345', ratePrefix: '33' }, 60)
  await rig.talk({ ratePrefix: '44' }, 60)
  await rig.talk({ currency: 'EUR' }, 60)
  // It was free, it was not answered, nobody pays, it began later.
  await rig.talk({ ratePrefix: null }, 60, 0)
  await rig.talk({ disposition: 'BUSY', billsec: 0 }, 60, 0)
  await rig.talk({ customerId: null }, 60, 0)
  await rig.talk({ startedAt: Date.UTC(2026, 0, 2) }, 60)
  await rig.correct()
  expect(await rig.rerate('sold')).toMatchObject({
    calls: 1,
    changed: 1,
    without_rate: 1,
    unknown_number: 1,
    other_currency: 1,
  })
  const costs = (await rig.records()).map((row) => row['cost_micros'])
  expect(costs).toEqual([30_000, 60_000, 60_000, 60_000, 0, 0, 0, 60_000])
  expect(one).toBeGreaterThan(0)
})

test('a call that was cut for money never becomes dearer, only cheaper', async () => {
  const rig = await openReratingRig()
  await rig.talk({ denialCode: 'insufficient_funds' }, 60, 50_000)
  expect(await rig.rerate('sold')).toMatchObject({ calls: 1, changed: 0 })
  await rig.correct()
  expect(await rig.rerate('sold')).toMatchObject({ changed: 1 })
  expect((await rig.records())[0]).toMatchObject({ cost_micros: 30_000 })
})

test('a carrier is paid by the number that was sent to it', async () => {
  const rig = await openReratingRig()
  await rig.call('POST', '/rates', { rate_plan: 'cost', prefix: '7749', rate_per_minute: '0.06' })
  const cost = { costMicros: 60_000, currency: 'USD', tenantId: null }
  await rig.talk({ carrierCost: { ...cost, prefix: '7749', number: '774930100' } }, 60)
  // Of a record without the number, only the prefix tells that it was another one.
  await rig.talk({ carrierCost: { ...cost, prefix: '7749' } }, 60)
  await rig.talk({ carrierCost: undefined }, 60)
  await rig.correct('0.012', '7749')
  const job = await rig.rerate('bought')
  expect(job).toMatchObject({ calls: 1, changed: 1, unknown_number: 2 })
  const costs = (await rig.records()).map((row) => row['carrier_cost_micros'])
  expect(costs).toEqual([60_000, 60_000, null])
})

test('the price in force at the call counts, or on request the one of now', async () => {
  const rig = await openReratingRig()
  await rig.talk({}, 60)
  await rig.call('POST', '/rates', {
    rate_plan: 'retail',
    prefix: '49',
    rate_per_minute: '0.01',
    effective_from: '2026-01-01T12:00:00Z',
  })
  expect(await rig.rerate('sold')).toMatchObject({ calls: 1, changed: 0 })
  expect(await rig.rerate('sold', { prices: 'now' })).toMatchObject({ changed: 1 })
  expect((await rig.records())[0]).toMatchObject({ cost_micros: 10_000 })
})

test('a prefix and a customer narrow it', async () => {
  const rig = await openReratingRig()
  const [one = 0, two = 0] = rig.customers
  for (const customerId of [one, two]) {
    await rig.talk({ customerId, calledNumber: '4930100' })
    await rig.talk({ customerId, calledNumber: '+4940100' })
  }
  await rig.correct()
  const job = await rig.rerate('sold', { customer_id: two, prefix: '+4940' })
  expect(job).toMatchObject({ calls: 1, changed: 1, total: 2 })
  const costs = (await rig.records()).map((row) => row['cost_micros'])
  expect(costs).toEqual([60_000, 60_000, 60_000, 30_000])
})

test('one job at a time; a later one is undone first, and what was changed since stays', async () => {
  const rig = await openReratingRig()
  await rig.talk({}, 60)
  await rig.talk({}, 60)
  await rig.correct()
  const first = await rig.begin('sold')
  expect(await rig.begin('bought')).toMatchObject({ status: 409, code: 'rerating_under_way' })
  const { id } = await rig.ended(first.data<{ id: number }>().id)
  await rig.correct('0.12')
  const second = await rig.rerate('sold')
  expect(await rig.undo(id)).toMatchObject({ status: 409, code: 'later_rerating' })
  const { uuid } = { uuid: (await rig.records())[0]?.['call_uuid'] }
  const { statements } = rig.store
  await statements
    .prepare(`UPDATE cdr SET cost_micros = 5 WHERE call_uuid = '${String(uuid)}'`)
    .run([])
  await rig.undo(second.id)
  expect(await rig.ended(second.id)).toMatchObject({ restored: 1, kept: 1 })
  await rig.undo(id)
  expect(await rig.ended(id)).toMatchObject({ restored: 1, kept: 1 })
  expect((await rig.records()).map((row) => row['cost_micros'])).toEqual([5, 60_000])
  for (const { balance, entries, memory } of (await rig.money()) as Record<string, string>[])
    expect([entries, memory]).toEqual([balance, balance])
})
