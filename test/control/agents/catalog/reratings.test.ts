/** Agents price past calls anew: they try it, begin it, see its end, and take it back. */
import { expect, test } from 'vitest'
import { openReratingRig } from '../../../support/rerating-rig.ts'

async function open() {
  const rig = await openReratingRig()
  const [one = 0, two = 0] = rig.customers
  await rig.talk({ customerId: one }, 60)
  await rig.talk({ customerId: two }, 120)
  await rig.ocs.reloadCustomers()
  const root = await rig.key({ name: 'agent', scopes: ['*'] })
  const tool = (name: string, given: object, token = root) =>
    rig.request(`/api/v1/mcp/tools/${name}`, { token, body: given })
  const order = { kind: 'sold', rate_plan: 'retail', from: '2026-01-01', to: '2026-01-02' }
  const rerate = (more: object = {}, token = root) =>
    tool('rerate_calls', { ...order, reason: 'the price was wrong', ...more }, token)
  return { ...rig, tool, rerate, root }
}

interface Rerated {
  readonly rerating_id: number | null
  readonly change_id: string | null
  readonly effect: string
}

test('a dry run says how many calls and how much, and changes nothing', async () => {
  const rig = await open()
  const same = await rig.rerate({ dry_run: true })
  expect(same.data()).toMatchObject({ changed: false, records: 2, calls: 2, rerating_id: null })
  await rig.correct()
  const [records, wallets] = [await rig.records(), await rig.money()]
  const tried = await rig.rerate({ dry_run: true })
  expect(tried.data()).toMatchObject({
    dry_run: true,
    changed: true,
    changed_calls: 2,
    change_id: null,
    rerating_id: null,
    before_exact: '0.18',
    after_exact: '0.09',
    difference_exact: '-0.09',
    affected: { calls: 2, customers: 2 },
    effect:
      'Priced anew: 2 calls that began from 2026-01-01T00:00:00.000Z until before ' +
      '2026-01-02T00:00:00.000Z, as they are sold by the rate plan "retail", at the prices ' +
      'that it now has for the time of each call: 0.09 USD instead of 0.18 USD all together. ' +
      'The wallets of the customers get the difference, or pay it.',
  })
  expect([await rig.records(), await rig.money()]).toEqual([records, wallets])
  expect((await rig.tool('list_reratings', {})).data()).toMatchObject({ reratings: [], total: 0 })
})

test('the job is listed to its end, and undo_change gives calls and wallets back what they had', async () => {
  const rig = await open()
  await rig.correct()
  const [records, wallets] = [await rig.records(), await rig.money()]
  const made = (await rig.rerate()).data<Rerated>()
  expect(made.rerating_id).toBe(1)
  expect(await rig.ended(1)).toMatchObject({ state: 'done', changed: 2 })
  const listed = (await rig.tool('list_reratings', {})).data()
  expect(listed).toMatchObject({
    reratings: [{ id: 1, state: 'done', done: 2, total: 2, difference_exact: '-0.09' }],
    complete: true,
  })
  const costs = (await rig.records()).map((row) => Number(row['cost_micros']))
  expect(costs).toEqual([30_000, 60_000])
  const undo = (more: object = {}) =>
    rig.tool('undo_change', { change_id: made.change_id, reason: 'it was right before', ...more })
  expect((await undo({ dry_run: true })).data()).toMatchObject({
    effect: expect.stringContaining('is undone: calls and wallets get again what they had'),
  })
  expect((await undo()).status).toBe(200)
  expect(await rig.ended(1)).toMatchObject({ state: 'undone', restored: 2 })
  expect([await rig.records(), await rig.money()]).toEqual([records, wallets])
  expect((await undo()).data()).toMatchObject({ changed: false })
})

test('what was undone by a request is undone for agents, too', async () => {
  const rig = await open()
  await rig.correct()
  const made = (await rig.rerate()).data<Rerated>()
  await rig.ended(1)
  await rig.undo(1)
  await rig.ended(1)
  const undone = await rig.tool('undo_change', { change_id: made.change_id, reason: 'once more' })
  expect([undone.status, undone.code]).toEqual([409, 'changed_since'])
})

test('a plan for carriers takes no money, and a second job waits for the first', async () => {
  const rig = await open()
  await rig.correct()
  const bought = { kind: 'bought', rate_plan: 'cost', carrier: 'north', prefix: '4930' }
  expect((await rig.rerate({ ...bought, dry_run: true })).data()).toMatchObject({
    effect: expect.stringMatching(
      /by the carrier "north" to numbers that begin with 4930, as they are bought by the rate plan "cost".*all together\.$/,
    ),
  })
  const wallets = await rig.money()
  const wrong = await rig.rerate({ carrier: 'north' })
  expect([wrong.status, wrong.text]).toEqual([
    400,
    expect.stringContaining('is for calls that are bought'),
  ])
  const first = await rig.rerate(bought)
  expect(first.status).toBe(200)
  await rig.ended(1)
  expect((await rig.records()).map((row) => Number(row['carrier_cost_micros']))).toEqual([
    30_000, 60_000,
  ])
  expect(await rig.money()).toEqual(wallets)
})

test('it takes the scopes of rates and of wallets; an agent without them proposes it', async () => {
  const rig = await open()
  await rig.correct()
  const clerk = await rig.key({ name: 'clerk', scopes: ['mcp:*', 'rates:*'] })
  const refused = await rig.rerate({}, clerk)
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('wallets:write')])
  const agent = await rig.key({ name: 'night agent', scopes: ['*:read', 'mcp:propose'] })
  const order = { kind: 'sold', rate_plan: 'retail', from: '2026-01-01', to: '2026-01-02' }
  const proposed = await rig.tool(
    'propose_change',
    { tool: 'rerate_calls', arguments: order, reason: 'the price was wrong' },
    agent,
  )
  const { proposal_id: id } = proposed.data<{ proposal_id: string }>()
  await rig.user('ada', 'admin')
  const login = { body: { username: 'ada', password: 'correct horse' } }
  const { token } = (await rig.request('/auth/login', login)).data<{ token: string }>()
  const { revision } = (await rig.request(`/api/v1/proposals/${id}`, { token })).data<{
    revision: number
  }>()
  const approved = await rig.request(`/api/v1/proposals/${id}/approve`, {
    token,
    body: { revision },
  })
  expect([approved.status, approved.text]).toEqual([200, expect.any(String)])
  expect(await rig.ended(1)).toMatchObject({ state: 'done', changed: 2, started_by: 'user:ada' })
})

test('a tenant prices its own calls alone, and is told of no job of others', async () => {
  const rig = await open()
  await rig.correct()
  await rig.tenant('acme')
  const ofAcme = { tenant_scope: 'tenant', tenant_slug: 'acme', scopes: ['*'] }
  const foreign = await rig.key({ name: 'foreign', ...ofAcme })
  for (const rate_plan of ['retail', 1]) {
    const refused = await rig.rerate({ rate_plan }, foreign)
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining('there is no rate_plan'),
    ])
  }
  const made = (await rig.rerate()).data<Rerated>()
  await rig.ended(1)
  expect((await rig.tool('list_reratings', {}, foreign)).data()).toMatchObject({ total: 0 })
  const undo = { change_id: made.change_id, reason: 'mine now' }
  expect((await rig.tool('undo_change', undo, foreign)).status).toBe(404)
  expect(await rig.job(1)).toMatchObject({ state: 'done' })
})
