import { expect, test } from 'vitest'
import { forgetChanges, noteChange, openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { openProposalRig } from '../../../support/proposal-rig.ts'
import type {
  CarrierRegistrationStatus,
  ProbedStatus,
} from '../../../../schema/contracts/engine.ts'

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
  // The rest of the money does not pay for the calls that the customer makes.
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

interface Changes {
  readonly changes: readonly { readonly change_id: string; readonly state: string }[]
  readonly total: number
}

async function openAdditions() {
  const rig = await openProposalRig()
  const block = { method: 'PATCH', token: rig.root, body: { numbers: ['4930'] } }
  expect((await rig.request('/api/v1/tenants/1', block)).status).toBe(200)
  await forgetChanges(rig)
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const numbers = async () => {
    const answer = await rig.request('/api/v1/customers/1', { token: rig.root })
    return answer.data<{ numbers: readonly string[] }>().numbers
  }
  const price = async (number: string) => {
    const answer = await rig.tool('lookup_rate', { number, customer: 'acme customer' })
    return answer.status === 200
      ? answer.data<{ rate_per_minute_exact: string }>().rate_per_minute_exact
      : answer.code
  }
  const changes = async (given: object = {}, token = rig.root) =>
    (await rig.tool('list_changes', given, token)).data<Changes>()
  return { ...rig, other, numbers, price, changes }
}

test('a number of no block of the tenant is refused when it is proposed, and a taken one without saying whose it is', async () => {
  const rig = await openAdditions()
  for (const number of ['4940200', '4930100']) {
    const foreign = await rig.tool('add_number', { customer: 1, number, reason: 'x' }, rig.other)
    expect([number, foreign.status]).toEqual([number, 400])
  }
  const given = { customer: 'acme customer', number: '4940200' }
  const proposed = await rig.propose('add_number', given)
  expect([proposed.status, proposed.text]).toEqual([400, expect.stringContaining('number block')])
  const dry = { ...given, reason: 'for the test', dry_run: true }
  expect((await rig.tool('add_number', dry)).status).toBe(200)

  const body = { name: 'another', tenant: 'acme' }
  await rig.request('/api/v1/customers', { token: rig.root, body })
  const taken = await rig.propose('add_number', { customer: 'another', number: '+4930100' })
  expect([taken.status, taken.code]).toEqual([409, 'duplicate'])
  expect(taken.text).not.toContain('acme customer')
})

const probed = (state: ProbedStatus['state'], answered: number): ProbedStatus => ({
  state,
  latencyMs: 3,
  lastProbe: { at: 0, status: 0, reason: 'no answer' },
  probes: { sent: 9, answered, failed: 9 - answered },
})

const failed: CarrierRegistrationStatus = {
  state: 'failed',
  registrar: 'sip:192.0.2.50',
  expiresAt: null,
  nextAttemptAt: null,
  lastAnswer: { at: 0, status: 403, reason: 'Forbidden' },
}

/**
 * Gateways 1 and 2 of `fine`, 3 and 4 of `half`, 5 of `gone` of acme, 6 of `shy`, 7 of `unknown`.
 */
async function openedTrunks() {
  const rig = await openToolRig()
  const make = (name: string, hosts: readonly string[], more = {}) =>
    rig.request('/api/v1/routing/carriers', {
      token: rig.root,
      body: { name, gateways: hosts.map((host) => ({ host })), ...more },
    })
  await make('fine', ['192.0.2.1', '192.0.2.2'])
  await make('half', ['192.0.2.3', '192.0.2.4'])
  await make('gone', ['192.0.2.5'], { tenant: 'acme' })
  await make('shy', ['192.0.2.6'])
  await make('unknown', ['192.0.2.7'])
  const states = new Map([
    [1, probed('active', 9)],
    [2, probed('active', 9)],
    [3, probed('active', 9)],
    [4, probed('probing', 5)],
    [5, probed('probing', 5)],
    [6, probed('probing', 0)],
    [7, probed('active', 9)],
  ])
  Object.assign(rig.engine.trunks, {
    gatewayStatus: (id: number) => states.get(id),
    registrationOf: (id: number) => (id === 5 ? failed : undefined),
  })
  Object.assign(rig.engine.calls, { countByCarrier: (id: number) => id })
  const note = (kind: 'gateway' | 'registration', subject_id: number, tenant_id: number | null) => {
    const to_state = kind === 'gateway' ? 'probing' : 'failed'
    const at = rig.now() - 60_000
    return noteChange(rig, {
      kind,
      subject_id,
      tenant_id,
      name: `${kind} ${subject_id}`,
      to_state,
      at,
    })
  }
  await note('gateway', 4, null)
  await note('gateway', 5, 1)
  await note('registration', 5, null)
  return rig
}

const since = '2025-12-31T23:59:00.000Z'

test('list_trunks puts those in trouble first, and says since when and why', async () => {
  const rig = await openedTrunks()
  const { trunks, total } = (await rig.tool('list_trunks')).data<{
    trunks: { name: string }[]
    total: number
  }>()
  expect(total).toBe(5)
  expect(trunks).toMatchObject([
    {
      name: 'gone',
      state: 'down',
      tenant: 'acme',
      active_calls: 3,
      registration: null,
      gateways: [{ state: 'down', since, reason: 'no answer', latency_ms: 3 }],
      last_failure: { at: since, what: 'gateway 5', reason: 'no answer' },
    },
    {
      name: 'unknown',
      state: 'down',
      registration: { state: 'failed', since, last_answer: '403 Forbidden' },
      last_failure: { what: 'registration' },
    },
    {
      name: 'half',
      state: 'degraded',
      gateways: [
        { destination: 'sip:192.0.2.4;transport=udp', state: 'down', since },
        { state: 'up', since: null },
      ],
    },
    { name: 'fine', state: 'up', last_failure: null },
    { name: 'shy', state: 'up', gateways: [{ state: 'unproven' }] },
  ])
  const troubled = await rig.tool('list_trunks', { troubled: true, limit: 1 })
  expect(troubled.data()).toMatchObject({ trunks: [{ name: 'gone' }], total: 3 })
  expect((await rig.tool('list_trunks', { search: 'SHY' })).data()).toMatchObject({ total: 1 })
})

test('a registration that nobody answers has no status in its last answer', async () => {
  const rig = await openedTrunks()
  const silent = { ...failed, lastAnswer: { at: 0, status: 0, reason: 'no answer' } }
  Object.assign(rig.engine.trunks, {
    registrationOf: (id: number) => (id === 5 ? silent : undefined),
  })
  const { data } = await rig.tool('list_trunks', { search: 'unknown' })
  expect(data()).toMatchObject({
    trunks: [{ name: 'unknown', registration: { state: 'failed', last_answer: 'no answer' } }],
  })
})

const reason = 'an incident'

async function openRig() {
  const rig = await openToolRig()
  const gateways = [{ host: '10.0.0.9', netmask: 32 }]
  const carrier = await rig.request('/api/v1/routing/carriers', {
    token: rig.root,
    body: {
      name: 'north',
      tenant: 'acme',
      gateways,
      direction: 'both',
      payer: 'from_number',
      auth: { type: 'digest', username: 'us', password: 'trunk password' },
    },
  })
  expect([carrier.status, carrier.text]).toEqual([201, carrier.text])
  return rig
}

test('the live calls of a trunk are those of its id: another tenant may have a trunk of the same name', async () => {
  const rig = await openRig()
  const [call] = rig.engine.activeCalls
  if (call === undefined) throw new Error('there is no live call')
  // The rig counts by id; a record has the name.
  rig.engine.activeCalls.push({ ...call, carrier: 'north' }, { ...call, carrier: '1' })
  const given = { carrier: 'north', state: 'inactive', reason, dry_run: true }
  const told = await rig.tool('set_trunk_state', given)
  expect(told.data<{ affected: unknown }>().affected).toEqual({ live_calls: 1 })
})
