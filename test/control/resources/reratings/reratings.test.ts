/** Past calls are priced anew, with the money and the sums that follow, and back again. */
import { expect, test } from 'vitest'
import type { Store } from '../../../../schema/storage/store.ts'
import { everywhere } from '../../../../control/auth/tenants.ts'
import {
  beginRerating,
  beginUndo,
  meantBy,
} from '../../../../control/resources/reratings/rerating-store.ts'
import { ReratingSteps } from '../../../../control/resources/reratings/rerating-steps.ts'
import { openReratingRig } from '../../../support/rerating-rig.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

type Rig = Awaited<ReturnType<typeof openReratingRig>>

/** A database that is lost before a statement, now and then: what was not committed is gone. */
function mortal(store: Store, random: () => number): Store {
  const live = <A extends unknown[], T>(work: (...args: A) => Promise<T>) => {
    return (...args: A): Promise<T> =>
      random() < 0.12 ? Promise.reject(new Error('killed')) : work(...args)
  }
  const statements = new Proxy(store.statements, {
    get(target, name) {
      if (name === 'prepareRows')
        return (text: never) => live(target.prepareRows(text) as () => Promise<unknown>)
      if (name === 'prepare')
        return (text: string) => {
          const { all, arrays, get, run } = target.prepare<never>(text)
          return { all: live(all), arrays: live(arrays), get: live(get), run: live(run) }
        }
      const found: unknown = Reflect.get(target, name, target)
      return typeof found === 'function' ? (found.bind(target) as unknown) : found
    },
  })
  return { ...store, statements }
}

/** Jobs are worked on by processes that die, and by others that have read the same position. */
async function workWithKills(rig: Rig, random: () => number): Promise<number> {
  let kills = 0
  for (let turn = 0; turn < 5_000; turn += 1) {
    const { webhooks } = rig.deps
    const options = { webhooks, ocs: rig.ocs, now: rig.now, log: () => undefined, process: 'a' }
    const steps = new ReratingSteps({ ...options, store: mortal(rig.store, random) })
    try {
      for (;;) {
        const [job] = await steps.open()
        if (job === undefined) return kills
        await steps.step(job)
        if (random() < 0.2) await steps.step(job)
      }
    } catch (error) {
      if (!String(error).includes('killed')) throw error
      kills += 1
    }
  }
  throw new Error('the job does not end')
}

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
  for (const { balance, entries, memory } of after)
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

  // So few calls may be done before the answer is written.
  const { state } = (await rig.undo(job.id)).data<{ readonly state: string }>()
  expect(['undoing', 'undone']).toContain(state)
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
  const [wallet] = await rig.money()
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
  for (const { balance, entries, memory } of await rig.money())
    expect([entries, memory]).toEqual([balance, balance])
})

/** The calls of a day that were sold. */
async function retailOf(rig: Rig) {
  const scope = { ...everywhere, now: rig.now(), actor: 'user:admin' }
  const order = {
    kind: 'sold',
    plan: 'retail',
    customer: null,
    carrier: null,
    from: rig.now() - 86_400_000,
    before: rig.now(),
    prefix: '',
    prices: 'at_call',
  } as const
  return { scope, meant: await meantBy(rig.store, order, scope) }
}

test('a job is for the process that has begun it: another one may know the old prices yet', async () => {
  const rig = await openReratingRig()
  await rig.talk()
  const { scope, meant } = await retailOf(rig)
  const [one, other] = [rig.steps('one'), rig.steps('other')]
  const id = await beginRerating(rig.store, meant, {
    ref: 'r',
    scope,
    claim: one.claim(),
    total: 1,
  })
  const seenBy = async (steps: typeof one) => (await steps.open()).map((job) => job.id)
  // A database in a file has one process, which takes the jobs of those that have died at once.
  const { isShared } = rig.store.statements
  expect([await seenBy(one), await seenBy(other)]).toEqual([[id], isShared ? [] : [id]])
  rig.tick(30_000)
  expect(await seenBy(other)).toEqual([id])
})

test('a job that is killed anywhere goes on, and changes each call and each wallet once', async () => {
  const rig = await openReratingRig()
  const [one = 0, two = 0] = rig.customers
  const seed = Number(process.env['SEED'] ?? 1)
  const random = seededRandom(seed)
  for (let call = 0; call < 250; call += 1)
    await rig.talk({ customerId: call % 3 === 0 ? two : one }, 60 + (call % 7))
  await rig.ocs.reloadCustomers()
  const [records, wallets, told] = [await rig.records(), await rig.money(), await rig.marginsNow()]
  await rig.rollUp()
  await rig.correct()
  const { scope, meant } = await retailOf(rig)
  const claim = rig.steps('a').claim()
  const id = await beginRerating(rig.store, meant, { ref: 'r', scope, claim, total: 250 })
  const kills = await workWithKills(rig, random)
  expect(kills, `seed ${seed}`).toBeGreaterThan(2)
  expect(await rig.job(id)).toMatchObject({ state: 'done', calls: 250, changed: 250, done: 250 })
  const costs = (await rig.records()).map((row) => Number(row['cost_micros']))
  expect(costs).toEqual(records.map((row) => Math.ceil(Number(row['cost_micros']) / 200) * 100))
  const due = records.reduce(
    (sum, row, at) => sum + Number(row['cost_micros']) - (costs[at] ?? 0),
    0,
  )
  const gained = (await rig.money()).reduce((sum, { balance }) => sum + Number(balance), 0)
  const had = wallets.reduce((sum, { balance }) => sum + Number(balance), 0)
  expect(gained - had).toBe(due)
  for (const { balance, entries, memory } of await rig.money())
    expect([entries, memory]).toEqual([balance, balance])

  await beginUndo(rig.store, id, scope)
  await workWithKills(rig, random)
  expect(await rig.job(id)).toMatchObject({ state: 'undone', restored: 250, kept: 0 })
  expect(await rig.records()).toEqual(records)
  expect(await rig.money()).toEqual(wallets)
  expect(await rig.marginsNow()).toEqual(told)
  await rig.rollUp()
  expect(await rig.marginsNow()).toEqual(told)
})

test('a tenant prices its own calls alone, and sees no job of others', async () => {
  const rig = await openReratingRig()
  const acme = await rig.tenant('acme')
  await rig.tenant('other')
  const make = (path: string, body: object) => rig.callAs('acme', 'POST', path, body)
  await make('/rate-plans', { name: 'own', currency: 'USD' })
  await make('/rates', { rate_plan: 'own', prefix: '49', rate_per_minute: '0.03' })
  const made = await make('/customers', { name: 'c', rate_plan: 'own', currency: 'USD' })
  const { id: customerId } = made.data<{ id: number }>()
  await rig.talk({ customerId, tenantId: acme }, 60)
  await rig.talk({}, 60)
  const order = { ...rig.order('sold'), rate_plan: 'own' }
  const foreign = await rig.callAs('acme', 'POST', '/rates/reratings', rig.order('sold'))
  expect(foreign).toMatchObject({ status: 400 })
  const ofOther = await rig.callAs('acme', 'POST', '/rates/reratings', {
    ...order,
    customer_id: rig.customers[0],
  })
  expect(ofOther.status).toBe(400)
  const begun = await make('/rates/reratings', order)
  const { id } = begun.data<{ id: number }>()
  expect(await rig.ended(id)).toMatchObject({ calls: 1, changed: 1 })
  const costs = (await rig.records()).map((row) => row['cost_micros'])
  expect(costs).toEqual([30_000, 60_000])
  for (const path of [`/rates/reratings/${id}`, '/rates/reratings']) {
    const seen = await rig.callAs('other', 'GET', path)
    expect(seen.text).not.toContain('"own"')
  }
  expect((await rig.callAs('other', 'POST', `/rates/reratings/${id}/undo`)).status).toBe(404)
})

test('money needs the scope of wallets, and names the scope of customers', async () => {
  const rig = await openReratingRig()
  await rig.talk({}, 60)
  await rig.correct()
  const token = await rig.key({ scopes: ['rates:read', 'rates:write'] })
  const refused = await rig.request('/rates/reratings', { token, body: rig.order('sold') })
  expect(refused).toMatchObject({ status: 403 })
  const preview = await rig.request('/rates/reratings/preview', { token, body: rig.order('sold') })
  expect(preview.data()).toMatchObject({ changed: 1, customers: [], examples: [] })
  const { id } = await rig.rerate('sold')
  const undone = await rig.request(`/rates/reratings/${id}/undo`, { token, method: 'POST' })
  expect(undone.status).toBe(403)
  const bought = await rig.request('/rates/reratings', { token, body: rig.order('bought') })
  expect(bought.status).toBe(201)
  await rig.ended(bought.data<{ id: number }>().id)
})

test.each([
  [{ kind: 'both' }, 'kind'],
  [{ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'to'],
  [{ from: '2027-01-01T00:00:00Z', to: '2027-01-02T00:00:00Z' }, 'to'],
  [{ rate_plan: null }, 'rate_plan'],
  [{ rate_plan: 'none' }, 'rate_plan'],
  [{ carrier: 'north' }, 'carrier'],
  [{ customer: 'one', rate_plan: 'cost' }, 'customer'],
  [{ prefix: '44792.0' }, 'prefix'],
  [{ prices: 'later' }, 'prices'],
  [{ surprise: 1 }, 'surprise'],
])('the order %j is refused at %j', async (change, path) => {
  const rig = await openReratingRig()
  const refused = await rig.begin('sold', change)
  expect(refused).toMatchObject({ status: 400, body: { details: [{ path }] } })
})
