import { expect, test } from 'vitest'
import { type Reader, setReadingThread } from '../../../schema/sql/query.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

async function withPlan() {
  const control = await openResources()
  await control.call('POST', '/api/v1/rate-plans', { name: 'default', currency: 'EUR' })
  return control
}

const golden = {
  rate_plan: 'default',
  prefix: '+49',
  connect_fee: '0.40',
  first_increment: 60,
  first_rate_per_minute: 0.2,
  rate_per_minute: '0.10',
}

const lookup = (control: TestResources, query: string) =>
  control.call('GET', `/rates/lookup?rate_plan=default&${query}`)

test('prefixes and numbers are read in any spelling, and are one', async () => {
  const control = await withPlan()
  const rate = { rate_plan: 'default', rate_per_minute: 6 }
  const premium = await control.call('POST', '/rates', { ...rate, prefix: '+1 (900)' })
  expect(premium.data()).toMatchObject({ prefix: '1900' })
  const twin = await control.call('POST', '/rates', { ...rate, prefix: '1-900' })
  expect(twin.status).toBe(409)
  await control.call('POST', '/rates', { ...rate, prefix: '1', rate_per_minute: 0.1 })
  for (const number of ['19005551234', '1-900-555.1234', '%2B1(900)%205551234', '+1.9005551234'])
    expect((await lookup(control, `number=${number}`)).data()).toMatchObject({
      number: expect.stringMatching(/^\+?19005551234$/),
      prefix: '1900',
      cost: 6,
    })
  for (const number of [
    '1%2B900',
    '%2B%2B1900',
    'alice',
    '1900x',
    '-',
    '%EF%BC%91900',
    '1'.repeat(65),
  ])
    expect((await lookup(control, `number=${number}`)).status).toBe(400)
  for (const prefix of ['1+9', '++1', '1'.repeat(21), '1'.repeat(200), '1x'])
    expect((await control.call('POST', '/rates', { ...rate, prefix })).status).toBe(400)
})

test('a rate gets its defaults: by the second, the first increment at the same price', async () => {
  const { call } = await withPlan()
  const created = await call('POST', '/rates', {
    rate_plan: 'default',
    prefix: '1',
    rate_per_minute: 0.05,
  })
  expect(created.status).toBe(201)
  expect(created.data()).toEqual({
    id: 1,
    rate_plan_id: 1,
    rate_plan: 'default',
    prefix: '1',
    description: null,
    rate_per_minute: 0.05,
    rate_per_minute_exact: '0.05',
    connect_fee: 0,
    connect_fee_exact: '0.00',
    first_increment: 0,
    first_rate_per_minute: 0.05,
    first_rate_per_minute_exact: '0.05',
    increment: 1,
    blocked: false,
    effective_from: null,
    effective_to: null,
  })
})

test('a plan has one rate per prefix and start', async () => {
  const { call } = await withPlan()
  await call('POST', '/rates', golden)
  const twin = await call('POST', '/rates', { ...golden, prefix: '49' })
  expect(twin.body).toMatchObject({ statusCode: 409, details: [{ path: 'prefix' }] })
  const later = await call('POST', '/rates', {
    ...golden,
    effective_from: '2026-02-01T00:00:00+01:00',
  })
  expect(later.data()).toMatchObject({ effective_from: '2026-01-31T23:00:00.000Z' })
})

test('the parts of an explained price add up to it', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', { ...golden, increment: 6 })
  const answer = (await lookup(control, 'number=4930100&duration=85')).data<{
    charged_seconds: number
    parts: { part: string; seconds: number; amount_exact: string }[]
  }>()
  expect(answer.charged_seconds).toBe(90)
  expect(answer.parts).toEqual([
    { part: 'connect_fee', seconds: 0, amount_exact: '0.40' },
    { part: 'first_increment', seconds: 60, amount_exact: '0.20' },
    { part: 'further_increments', seconds: 30, amount_exact: '0.05' },
  ])
})

test('a look-up names the longest prefix, at the asked time, and an unescaped + means +', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', golden)
  await control.call('POST', '/rates', {
    ...golden,
    prefix: '4930',
    rate_per_minute: 1,
    effective_from: '2026-06-01T00:00:00Z',
  })
  expect((await lookup(control, 'number=+4930100')).data()).toMatchObject({ prefix: '49' })
  const later = await lookup(control, 'number=4930100&at=2026-07-01T00:00:00Z')
  expect(later.data()).toMatchObject({ prefix: '4930' })
})

test('a blocked prefix has no price, and a number without a rate is not found', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', { ...golden, blocked: true })
  expect((await lookup(control, 'number=49')).data()).toMatchObject({ blocked: true, cost: null })
  const missing = await lookup(control, 'number=1')
  expect([missing.status, missing.code]).toEqual([404, 'no_rate'])
})

test('a changed or removed rate holds for the next look-up', async () => {
  const control = await withPlan()
  const { id } = (await control.call('POST', '/rates', golden)).data<{ id: number }>()
  await control.call('PATCH', `/rates/${id}`, { connect_fee: 1 })
  expect((await lookup(control, 'number=49&duration=20')).data()).toMatchObject({ cost: 1.2 })
  await control.call('DELETE', `/rates/${id}`)
  expect((await lookup(control, 'number=49')).status).toBe(404)
})

test('a plan with customers keeps its currency and cannot be removed', async () => {
  const { call } = await withPlan()
  await call('POST', '/customers', { name: 'a', rate_plan: 'default' })
  expect((await call('PATCH', '/rate-plans/1', { currency: 'USD' })).code).toBe('in_use')
  expect((await call('PATCH', '/rate-plans/1', { decimals: 2 })).data()).toMatchObject({
    decimals: 2,
  })
  expect((await call('DELETE', '/rate-plans/1')).code).toBe('in_use')
})

test('a tenant has one turn to read, however many plans it exports at a time', async () => {
  const { store, callAs, tenant } = await withPlan()
  await tenant('acme')
  const readers: Reader[] = []
  setReadingThread(store.statements, {
    prepare(sql, reader) {
      if (/\+rate\.rate_plan_id/.test(sql)) readers.push(reader)
      return store.statements.prepare(sql)
    },
  })
  for (const name of ['one', 'two']) {
    await callAs('acme', 'POST', '/rate-plans', { name })
    expect((await callAs('acme', 'GET', `/rates/export?rate_plan=${name}`)).status).toBe(200)
  }
  expect(readers).toEqual([expect.any(Number), readers[0]])
})
