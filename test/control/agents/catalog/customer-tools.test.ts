import { expect, test } from 'vitest'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'

type Customers = {
  customers: { name: string; available: string; is_balance_low: boolean }[]
  total: number
}

async function opened() {
  const rig = await openToolRig()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const make = async (body: object) => {
    const answer = await rig.request('/api/v1/customers', { token: rig.root, body })
    return answer.data<{ id: number; is_balance_low: boolean }>()
  }
  const list = async (given: object, token = rig.root) =>
    (await rig.tool('list_customers', given, token)).data<Customers>()
  return { ...rig, acme, other, make, list }
}

const namesIn = ({ customers }: Customers) => customers.map(({ name }) => name)

test('list_customers finds those whose next call would be refused, with any threshold', async () => {
  const rig = await opened()
  const { make, list, root, request } = rig
  expect(await make({ name: 'empty' })).toMatchObject({ is_balance_low: true })
  await make({ name: 'on credit', credit_limit: 5 })
  await make({ name: 'below', balance: '3', low_balance_threshold: 4 })
  const { id } = await make({ name: 'a rest', balance: '0.05' })
  await make({ name: 'rich', balance: '50' })
  expect(namesIn(await list({ low_balance: true }))).toEqual(['below', 'empty'])
  // What is left does not pay for the calls that the customer makes.
  await storeRecord(rig, null, 'refused', {
    customer_id: id,
    denial_code: 'insufficient_funds',
    disposition: 'FAILED',
    required_micros: 100_000,
    available_micros: 50_000,
    cost_micros: 0,
  })
  expect(await list({ low_balance: true })).toMatchObject({
    customers: [{ name: 'a rest', available: '0.05', is_balance_low: true }, {}, {}],
    total: 3,
  })
  await request(`/api/v1/customers/${id}/wallet/adjust`, {
    token: root,
    body: { amount: '1', reason: 'paid', kind: 'topup' },
  })
  expect(namesIn(await list({ low_balance: true }))).toEqual(['below', 'empty'])
  expect(namesIn(await list({ search: 'REST' }))).toEqual(['a rest'])
  expect(await list({ limit: 2 })).toMatchObject({ customers: [{}, {}], total: 6 })
})

test('get_ledger lists what moved a balance in a period, newest first, and adds it up', async () => {
  const { root, request, acme, ...rig } = await opened()
  const adjust = (amount: string, kind: string, reason: string) =>
    request('/api/v1/customers/1/wallet/adjust', { token: root, body: { amount, kind, reason } })
  rig.tick(60_000)
  await adjust('2.50', 'topup', 'paid')
  rig.tick(60_000)
  await adjust('-1.25', 'adjust', 'mistake')
  const start = new Date(rig.now() - 90_000).toISOString()
  const answer = await rig.tool('get_ledger', { customer: 'acme customer', start }, acme)
  expect(answer.data()).toMatchObject({
    customer_id: 1,
    currency: 'USD',
    balance: '11.25',
    total: 2,
    entries: [
      { kind: 'adjust', amount: '-1.25', balance_after: '11.25', note: 'mistake' },
      { kind: 'topup', amount: '2.50', balance_after: '12.50', note: 'paid' },
    ],
    sums: { adjust: '-1.25', topup: '2.50' },
  })
  const topups = await rig.tool('get_ledger', { customer: 1, kind: 'topup', limit: 1 })
  expect(topups.data()).toMatchObject({ entries: [{ amount: '2.50' }], total: 2 })
})

test('search_audit finds who changed what, by actor, action and target', async () => {
  const { root, request, acme, ...rig } = await opened()
  await rig.tool('list_instances')
  await rig.tool('reload_dispatchers', {}, acme)
  await request('/api/v1/customers/1', { method: 'PATCH', token: root, body: { max_cps: 3 } })
  const search = async (given: object, token = root) =>
    (await rig.tool('search_audit', given, token)).data<{
      entries: { action: string; actor_name: string; target: string }[]
      total: number
    }>()
  const all = await search({})
  expect(all.entries[0]).toMatchObject({
    action: 'PATCH /api/v1/customers/:id',
    actor_name: 'root',
    target: '/api/v1/customers/1',
    outcome: 'success',
  })
  const changes = await search({ changes_only: true, actor: 'root' })
  expect(changes.entries.map(({ action }) => action)).not.toContain('tool list_instances')
  expect((await search({ action: 'tool list' })).total).toBe(1)
  expect((await search({ target: 'customers/1' })).total).toBe(1)
  expect((await search({ end: '2025-01-01' })).total).toBe(0)
  const own = await search({}, acme)
  expect(own.entries.map(({ action }) => action)).toEqual(['tool reload_dispatchers'])
})
