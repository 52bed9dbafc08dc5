import { expect, test } from 'vitest'
import { wrongBalancesIn } from '../../../schema/migrations/migrate.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import { readValue, runSql } from '../../support/stored.ts'

interface Customer {
  readonly id: number
}

async function withCustomer(body: Readonly<Record<string, unknown>> = {}) {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'default', currency: 'EUR' })
  const customer = { name: 'acme', rate_plan: 'default', balance: '10.00', ...body }
  const created = await control.call('POST', '/api/v1/customers', customer)
  return { ...control, created, id: created.data<Customer>().id }
}

const adjust = (control: TestResources, id: number, body: unknown, key?: string) =>
  control.call('POST', `/customers/${id}/wallet/adjust`, body, {
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })

test('a customer starts with a wallet in the currency of the plan, and the opening balance in its ledger', async () => {
  const { created, call, id } = await withCustomer({ numbers: ['+4930100', 'alice'] })
  expect(created.status).toBe(201)
  expect(created.headers.get('location')).toBe(`/api/v1/customers/${id}`)
  expect(created.data()).toMatchObject({
    has_password: false,
    rate_plan: 'default',
    numbers: ['+4930100', 'alice'],
    credit_limit: 0,
    is_balance_low: false,
    currency: 'EUR',
    balance: '10.00',
    balance_number: 10,
  })
  expect((await call('GET', `/customers/${id}/ledger`)).body).toMatchObject({
    data: [{ kind: 'topup', amount: 10, balance_after_exact: '10.00', note: 'opening balance' }],
    meta: { page: 1, limit: 50, total: 1 },
  })
})

test('numbers are stored in their normal form, so that their callers are recognized; user names are stored as given', async () => {
  const { created, call, id, ocs } = await withCustomer({
    numbers: ['+1 (202) 555-0100', '202.555.0101', 'acme.trunk-1', 'a+b_1'],
  })
  const stored = ['+12025550100', '2025550101', 'a+b_1', 'acme.trunk-1']
  expect(created.data()).toMatchObject({ numbers: stored })
  expect((await call('GET', `/customers/${id}`)).data()).toMatchObject({ numbers: stored })
  const question = { callUuid: 'a', callee: '1', customerId: null, startedAt: 0 }
  for (const caller of ['12025550100', '+12025550100', '2025550101', 'acme.trunk-1'])
    expect(await ocs.authorizeForNode({ ...question, caller })).toMatchObject({
      kind: 'denied',
      code: 'no_rate',
    })
  expect(await ocs.authorizeForNode({ ...question, caller: 'acme' })).toMatchObject({
    code: 'unknown_caller',
  })
})

test('an adjustment moves the balance, for the ledger, the wallet and the next call alike', async () => {
  const control = await withCustomer()
  const { call, id, ocs, store } = control
  const answer = await adjust(control, id, { amount: '-2.50', reason: 'goodwill taken back' })
  expect(answer.status).toBe(200)
  expect(answer.data()).toMatchObject({ amount: -2.5, balance: '7.50', available: '7.50' })
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(7_500_000n)
  expect((await call('GET', `/customers/${id}/wallet`)).data()).toEqual({
    customer_id: id,
    currency: 'EUR',
    balance: '7.50',
    balance_number: 7.5,
    credit_limit: 0,
    reserved: '0.00',
    available: '7.50',
    open_calls: 0,
  })
  const [entry] = (await call('GET', `/customers/${id}/ledger`)).data<unknown[]>()
  expect(entry).toMatchObject({
    kind: 'adjust',
    amount_exact: '-2.50',
    balance_after_exact: '7.50',
    actor: expect.stringMatching(/^key:/),
    note: 'goodwill taken back',
  })
  expect(await wrongBalancesIn(store)).toEqual([])
})

test('a higher credit limit ends a depletion, a lower one does not', async () => {
  const control = await withCustomer()
  const { call, id } = control
  await adjust(control, id, { amount: -10, reason: 'x' })
  const isDepleted = () => readValue(control.store, 'SELECT is_depleted FROM wallet')
  expect(await isDepleted()).toBe(1)
  await call('PATCH', `/customers/${id}`, { credit_limit: '0' })
  expect(await isDepleted()).toBe(1)
  await call('PATCH', `/customers/${id}`, { credit_limit: '5' })
  expect(await isDepleted()).toBe(0)
})

test('an adjustment with an Idempotency-Key moves money once, even after its answer is forgotten', async () => {
  const control = await withCustomer()
  const { id, ocs, store } = control
  const body = { amount: 5, reason: 'cash' }
  const once = await adjust(control, id, body, 'k1')
  const again = await adjust(control, id, body, 'k1')
  expect(again.data()).toEqual(once.data())
  await runSql(store, 'DELETE FROM idempotent_answer')
  expect((await adjust(control, id, body, 'k1')).status).toBe(200)
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(15_000_000n)
  await runSql(store, 'DELETE FROM idempotent_answer')
  const other = await adjust(control, id, { ...body, amount: 6 }, 'k1')
  expect([other.status, other.code]).toEqual([409, 'idempotency_conflict'])
  await adjust(control, id, body, 'k2')
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(20_000_000n)
})

test('the ledger is shown newest first, by kind and by period', async () => {
  const control = await withCustomer()
  const { id, call, tick } = control
  tick(3_600_000)
  await adjust(control, id, { amount: 1, reason: 'one' })
  await adjust(control, id, { amount: 2, reason: 'two', kind: 'topup' })
  const amounts = async (query: string) =>
    (await call('GET', `/customers/${id}/ledger${query}`))
      .data<{ amount: number }[]>()
      .map((entry) => entry.amount)
  expect(await amounts('')).toEqual([2, 1, 10])
  expect(await amounts('?kind=topup')).toEqual([2, 10])
  expect(await amounts('?start_date=2026-01-01T01:00:00Z')).toEqual([2, 1])
  expect(await amounts('?end_date=2026-01-01T01:00:00Z')).toEqual([10])
  expect(await amounts('?limit=1&page=2')).toEqual([1])
  expect((await call('GET', `/customers/${id}/ledger?start_date=yesterday`)).status).toBe(400)
})

test('a customer with a history is not removed; one without is', async () => {
  const { call, id } = await withCustomer()
  const refused = await call('DELETE', `/customers/${id}`)
  expect([refused.status, refused.code]).toEqual([409, 'in_use'])
  const { id: fresh } = (await call('POST', '/customers', { name: 'b' })).data<Customer>()
  expect((await call('DELETE', `/customers/${fresh}`)).data()).toEqual({ id: fresh, deleted: true })
})

test('the currency of a wallet is fixed by its first entry', async () => {
  const { call, id } = await withCustomer()
  await call('POST', '/rate-plans', { name: 'dollars' })
  const refused = await call('PATCH', `/customers/${id}`, { rate_plan: 'dollars' })
  expect([refused.status, refused.code]).toEqual([409, 'currency_fixed'])
  const { id: fresh } = (
    await call('POST', '/customers', { name: 'b', currency: 'EUR' })
  ).data<Customer>()
  const changed = await call('PATCH', `/customers/${fresh}`, { rate_plan: 'dollars' })
  expect(changed.data()).toMatchObject({ currency: 'USD' })
})

test('dates of a ledger are days of the customer, then of its tenant; a zone that is asked for goes first', async () => {
  const { call, store } = await openResources()
  await runSql(store, "INSERT INTO tenant (slug, name, created_at) VALUES ('acme', 'Acme', 0)")
  const made = await call('POST', '/customers', { name: 'late', tenant: 'acme', balance: '5.00' })
  const { id } = made.data<{ id: number }>()
  expect(made.data()).toMatchObject({ time_zone: null, effective_time_zone: null })
  // The entry was made at 23:30 of the last day of the year in London.
  const onServer = isOnPostgres ? ' ON ledger_entry' : ''
  await runSql(store, `DROP TRIGGER ledger_entry_no_update${onServer}`)
  await runSql(store, `UPDATE ledger_entry SET created_at = ${Date.parse('2025-12-31T23:30:00Z')}`)
  const january = 'start_date=2026-01-01&end_date=2026-02-01'
  const count = async (more = '') =>
    (await call('GET', `/customers/${id}/ledger?${january}${more}`)).data<object[]>().length
  expect([await count(), await count('&time_zone=Europe/Berlin')]).toEqual([0, 1])
  await runSql(store, "UPDATE tenant SET time_zone = 'Asia/Tokyo'")
  expect(await count()).toBe(1)
  expect((await call('GET', `/customers/${id}`)).data()).toMatchObject({
    effective_time_zone: 'Asia/Tokyo',
  })
  await call('PATCH', `/customers/${id}`, { time_zone: 'America/New_York' })
  expect([await count(), await count('&time_zone=Asia/Tokyo')]).toEqual([0, 1])
  expect((await call('GET', `/customers/${id}`)).data()).toMatchObject({
    effective_time_zone: 'America/New_York',
  })
  expect((await call('GET', `/customers/${id}/ledger?time_zone=+01:00`)).status).toBe(400)
})
