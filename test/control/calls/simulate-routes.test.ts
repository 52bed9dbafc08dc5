import { usualHunting } from '../../../schema/rules/hunting.ts'
import { expect, test } from 'vitest'
import type { Simulation, SimulationRequest } from '../../../schema/contracts/engine.ts'
import { execute } from '../../../schema/sql/query.ts'
import { openControl } from '../../support/control.ts'
import { runSql } from '../../support/stored.ts'

const answer: Simulation = {
  origin: { kind: 'carrier', id: 1, name: 'trunk', tenantIds: [] },
  callerNumber: '4930100',
  calledNumber: '4940200',
  direction: 'inbound',
  verification: null,
  isEmergency: false,
  payment: {
    kind: 'asked',
    verdict: 'granted',
    code: null,
    longestSeconds: 1_000,
    minuteMicros: 600_000,
    payer: { customerId: 1, tenantId: null },
    tariff: {
      prefix: '49',
      currency: 'USD',
      connectFeeMicros: 0,
      firstIncrementSeconds: 1,
      firstRatePerMinuteMicros: 600_000,
      incrementSeconds: 1,
      ratePerMinuteMicros: 600_000,
      decimals: 4,
    },
  },
  verdict: { kind: 'goes_on' },
  candidates: [
    {
      kind: 'gateway',
      uri: 'sip:192.0.2.1:5060;transport=udp',
      name: 'out',
      id: 2,
      number: '4940200',
      route: 'world',
      phones: null,
      invite: { uri: 'sip:4940200@192.0.2.1:5060;transport=udp', headers: {} },
      ruledBy: [2],
      minuteMicros: 100_000,
      profit: null,
      share: 1 / 3,
      withheld: null,
      presented: null,
      hunting: { ...usualHunting, stopOn: ['503'], maxAttempts: 2 },
      signature: null,
      lowQuality: null,
    },
  ],
  order: 'drawn',
  setId: null,
  decidedByNumber: null,
  hooks: [],
  passedOver: [
    { kind: 'route', name: 'theirs', uri: null, tenantId: 2, why: 'other_caller' },
    { kind: 'node', name: 'sip:n', uri: 'sip:n', tenantId: 1, why: 'drained' },
  ],
}

async function openSimulator(told: Partial<Simulation> = {}) {
  const api = await openControl()
  const asked: SimulationRequest[] = []
  api.engine.simulate = (request) => {
    asked.push(request)
    return Promise.resolve({ ...answer, ...told })
  }
  const { store } = api
  const [acme, other] = [
    await api.tenant('acme', ['acme.example']),
    await api.tenant('other', ['b.example']),
  ]
  const carrier = (name: string, tenantId: number | null) =>
    execute(
      store,
      store.db
        .insertInto('carrier')
        .values({ name, tenant_id: tenantId, created_at: 0, updated_at: 0 }),
    )
  const phone = (extension: string, domain: string, tenantId: number) =>
    execute(
      store,
      store.db.insertInto('extension').values({
        extension,
        domain,
        tenant_id: tenantId,
        display_name: '',
        ha1_md5: '',
        ha1_sha256: '',
        created_at: 0,
        updated_at: 0,
      }),
    )
  const simulate = async (body: object, token?: string) =>
    api.request('/api/v1/telephony/simulate', {
      token: token ?? (await api.key()),
      body: { from: '4930100', to: '4940200', ...body },
    })
  return { api, asked, carrier, phone, simulate, acme, other }
}

test('a source is an address, a carrier or an extension by its name', async () => {
  const { asked, carrier, phone, simulate, acme } = await openSimulator()
  await carrier('trunk', null)
  await phone('100', 'acme.example', acme)
  for (const source of ['203.0.113.7', '203.0.113.7:5080', '2001:db8::1', '[2001:db8::1]:5070'])
    expect((await simulate({ source })).status).toBe(200)
  expect((await simulate({ source: 'trunk' })).status).toBe(200)
  expect((await simulate({ source: '100@ACME.example', from: '100' })).status).toBe(200)
  expect(asked.map(({ source }) => source)).toEqual([
    { kind: 'address', address: '203.0.113.7', port: 5_060 },
    { kind: 'address', address: '203.0.113.7', port: 5_080 },
    { kind: 'address', address: '2001:db8::1', port: 5_060 },
    { kind: 'address', address: '2001:db8::1', port: 5_070 },
    { kind: 'carrier', carrierId: 1 },
    { kind: 'extension', domain: 'acme.example', extension: '100' },
  ])
  expect((await simulate({ source: 'unknown' })).status).toBe(404)
  const asOther = await simulate({ source: '100@acme.example' })
  expect(asOther.body).toMatchObject({ details: [{ path: 'from' }] })
})

test('without a source it is the extension that calls, the only carrier, or a program of the platform', async () => {
  const { api, asked, carrier, phone, simulate, acme, other } = await openSimulator()
  expect((await simulate({})).data()).toMatchObject({ other_sources: [] })
  await carrier('trunk', null)
  expect((await simulate({})).status).toBe(200)
  await phone('100', 'acme.example', acme)
  expect((await simulate({ from: '100' })).status).toBe(200)
  expect(asked.map(({ source }) => source.kind)).toEqual(['trusted', 'carrier', 'extension'])
  await phone('100', 'b.example', other)
  await carrier('another', null)
  const which = 'such as 100@acme.example, 100@b.example, another, trunk'
  expect((await simulate({ from: '100' })).body).toMatchObject({
    details: [{ path: 'source', message: expect.stringContaining(which) }],
  })
  expect((await simulate({})).data()).toMatchObject({ other_sources: ['another', 'trunk'] })
  expect(asked.at(-1)?.source).toEqual({ kind: 'trusted' })
  // Nothing is trusted, or a tenant asks: which there are is said.
  api.engine.simulate = () => Promise.resolve(undefined)
  expect((await simulate({})).text).toContain('such as another, trunk')
  const token = await api.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  await carrier('mine', acme)
  await carrier('mine, too', acme)
  const own = (await simulate({}, token)).text
  expect(own).toContain('such as mine, mine, too')
  expect(own).not.toContain('another')
})

test('of each carrier: what a minute costs, what is left of the price, and nothing of it for others', async () => {
  const { api, carrier, simulate } = await openSimulator({
    candidates: [
      ...answer.candidates,
      ...answer.candidates.map((each) => ({ ...each, id: 1, minuteMicros: null })),
      ...answer.candidates.map((each) => ({ ...each, id: 3, minuteMicros: null })),
    ],
  })
  const root = await api.key({ name: 'root' })
  for (const [name, rate] of [
    ['cheap', '0.25'],
    ['dear', '0.75'],
  ]) {
    await api.request('/api/v1/rate-plans', { token: root, body: { name } })
    const body = { rate_plan: name, prefix: '49', rate_per_minute: rate }
    expect((await api.request('/api/v1/rates', { token: root, body })).status).toBe(201)
  }
  for (const name of ['one', 'two', 'three']) await carrier(name, null)
  await runSql(api.store, 'UPDATE carrier SET rate_plan_id = CASE id WHEN 1 THEN 2 ELSE 1 END')
  await runSql(api.store, 'UPDATE carrier SET rate_plan_id = NULL WHERE id = 3')
  const shown = (await simulate({ source: '203.0.113.7' })).data()
  expect(shown).toMatchObject({
    payment: { price_exact: '0.60' },
    candidates: [
      { carrier_price_exact: '0.10', margin_exact: '0.50' },
      { carrier_price_exact: '0.75', margin_exact: '-0.15' },
      { carrier_price_exact: null, margin_exact: null },
    ],
  })
  const withoutRates = await api.key({ scopes: ['calls:read'] })
  expect((await simulate({ source: '203.0.113.7' }, withoutRates)).data()).toMatchObject({
    payment: { price_exact: null },
    candidates: [{ margin_exact: null }, { margin_exact: null }, { margin_exact: null }],
  })
})

test('a tenant asks about its own sources, and sees no money and no names of others', async () => {
  const { api, asked, carrier, simulate, acme } = await openSimulator({
    origin: { kind: 'carrier', id: 1, name: 'mine', tenantIds: [1] },
  })
  const token = await api.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  await carrier('trunk', null)
  await carrier('mine', acme)
  expect((await simulate({ source: 'trunk' }, token)).status).toBe(404)
  expect(asked).toEqual([])
  const {
    payment,
    candidates,
    passed_over: passed,
  } = (await simulate({ source: 'mine' }, token)).data<{
    payment: object
    candidates: object[]
    passed_over: object[]
  }>()
  expect(payment).toMatchObject({ customer_id: null, rate: null, longest_seconds: null })
  expect(candidates).toMatchObject([
    { share: 0.333, carrier_price_exact: null, margin_exact: null },
  ])
  expect(passed).toEqual([
    { kind: 'node', name: 'sip:n', uri: 'sip:n', why: 'drained', expected: null },
  ])
  // An address of others is like one that does not exist.
  api.engine.simulate = () => Promise.resolve(answer)
  expect((await simulate({ source: '203.0.113.7' }, token)).status).toBe(404)
})

test('the expected call is for the owner of the carrier, and for those who may read prices', async () => {
  const profit = (carrierTenantId: number | null) => ({
    seconds: 90,
    costMicros: 120_000,
    costCurrency: 'USD',
    saleMicros: 90_000,
    saleCurrency: 'USD',
    salePrefix: '49',
    marginMicros: -30_000,
    carrierTenantId,
    verdict: 'refused' as const,
    judgedBy: { tenantId: null },
  })
  const [each] = answer.candidates
  const { api, carrier, simulate, acme } = await openSimulator({
    origin: { kind: 'carrier', id: 1, name: 'mine', tenantIds: [1] },
    ...(each && {
      candidates: [
        { ...each, profit: profit(null) },
        { ...each, profit: profit(1) },
        { ...each, profit: profit(2) },
      ],
    }),
    passedOver: [null, 1, 2].map((owner) => ({
      ...{ kind: 'route', name: 'r', uri: null, tenantId: 1, why: 'below_margin' },
      profit: profit(owner),
    })),
  })
  await carrier('mine', acme)
  const expected = {
    seconds: 90,
    price_exact: '0.09',
    currency: 'USD',
    cost_exact: '0.12',
    cost_currency: 'USD',
    margin_exact: '-0.03',
    is_below_margin: true,
  }
  const seenBy = async (token: string) => {
    const shown = (await simulate({ source: 'mine' }, token)).data<{
      candidates: { expected: object | null }[]
      passed_over: { expected: object | null }[]
    }>()
    return [shown.candidates, shown.passed_over].map((list) => list.map((one) => one.expected))
  }
  const all = [expected, expected, expected]
  expect(await seenBy(await api.key({ name: 'root' }))).toEqual([all, all])
  expect(await seenBy(await api.key({ scopes: ['calls:read'] }))).toEqual([
    [null, null, null],
    [null, null, null],
  ])
  // The payer of this call is a customer of the platform: its price is not for the tenant.
  const unsold = { ...expected, price_exact: null, currency: null, margin_exact: null }
  const own = [null, unsold, null]
  const ofAcme = await api.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect(await seenBy(ofAcme)).toEqual([own, own])
})

test('the operator sees price and parts; another time is refused where it changes nothing', async () => {
  const { api, asked, simulate } = await openSimulator()
  const source = '203.0.113.7'
  const at = '2026-02-01T00:00:00Z'
  const told = await simulate({ source, at, call_id: 'c' })
  expect(asked).toMatchObject([{ at: Date.UTC(2026, 1, 1), callId: 'c' }])
  expect(told.data()).toMatchObject({
    verdict: 'goes_on',
    payment: { rate: { rate_per_minute_exact: '0.60' }, longest_seconds: 1_000 },
    candidates: [{ carrier_price_exact: '0.10' }],
  })
  const token = await api.key({ scopes: ['calls:read'] })
  const withoutRates = await simulate({ source }, token)
  expect(withoutRates.data()).toMatchObject({ payment: { rate: null } })
  api.engine.simulate = () => Promise.resolve({ ...answer, payment: { kind: 'free' } })
  expect((await simulate({ source, at })).body).toMatchObject({ details: [{ path: 'at' }] })
  api.engine.simulate = () => Promise.resolve(undefined)
  expect((await simulate({ source })).body).toMatchObject({ details: [{ path: 'source' }] })
  expect((await simulate({ source }, await api.key({ scopes: ['cdrs:read'] }))).status).toBe(403)
})

test('a simulation shows what a hook has done, marked as its doing', async () => {
  const hooks = [
    { hook: 'onInvite', by: 'hooks.ts', decision: { set: 4 }, failed: null },
    { hook: 'onRoute', by: 'hooks.ts', decision: null, failed: 'no table' },
  ] as const
  const { simulate } = await openSimulator({ hooks })
  expect((await simulate({ source: '203.0.113.7' })).data()).toMatchObject({ hooks })
})
