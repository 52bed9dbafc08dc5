import { expect, test } from 'vitest'
import { openControl, type TestControl } from '../support/control.ts'
import { addCustomer, addPlan, plainRate } from '../support/books.ts'
import { localOf } from '../support/stored.ts'

/** As on a full disk: reading works, writing does not. */
function fill({ store }: TestControl): void {
  localOf(store).sqlite.pragma('query_only = ON')
  store.storage.failing(store, new Error('database or disk is full'))
  store.storage.declare()
}

function makeRoom({ store }: TestControl): void {
  localOf(store).sqlite.pragma('query_only = OFF')
  store.storage.working(store)
}

const unavailable = { status: 503, code: 'storage_unavailable' }

test('a full disk: /readyz says so, writes get 503 with Retry-After, reads go on', async () => {
  const control = await openControl()
  const token = await control.key()
  fill(control)
  const ready = await control.request('/readyz')
  expect(ready).toMatchObject(unavailable)
  expect(ready.body).toMatchObject({ error: 'database or disk is full' })
  const body = { slug: 'acme', name: 'Acme', domains: ['acme.example'] }
  const written = await control.request('/api/v1/tenants', { token, body })
  expect(written).toMatchObject(unavailable)
  expect(written.headers.get('retry-after')).toBe('5')
  expect(await control.request('/livez')).toMatchObject({ status: 200 })
  expect(await control.request('/api/v1/tenants', { token })).toMatchObject({ status: 200 })
  makeRoom(control)
  expect(await control.request('/readyz')).toMatchObject({ status: 200 })
  expect(await control.request('/api/v1/tenants', { token, body })).toMatchObject({ status: 201 })
})

test('a request that stores nothing is answered as ever; its audit entry follows', async () => {
  const control = await openControl()
  const token = await control.key()
  fill(control)
  const body = { call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11' }
  const answer = await control.request('/api/v1/telephony/hangup', { token, body })
  expect(answer).toMatchObject({ status: 404 })
  makeRoom(control)
  await control.access.tick()
  const audit = await control.request('/api/v1/audit', { token })
  expect(audit.text).toContain('/telephony/hangup')
})

test('nodes that charge here are refused at once: a call by 503, a report by 503 to come again', async () => {
  const control = await openControl()
  const token = await control.key({ kind: 'billing', scopes: ['ocs:*'] })
  const store = localOf(control.store)
  const plan = await addPlan(store, [plainRate])
  await addCustomer(store, { name: '+15550001', rate_plan_id: plan, credit_limit_micros: 1e9 })
  await control.ocs.reload()
  fill(control)
  const ask = '/api/ocs/authorize?caller=%2B15550001&callee=15551234'
  expect(await control.request(ask, { token })).toMatchObject({ status: 503, code: 'overloaded' })
  const body = { call_uuid: 'a-1', caller: '+15550001', callee: '15551234', billsec: 60 }
  const report = await control.request('/api/ocs/cdr', { token, body })
  expect(report).toMatchObject({ status: 503, code: 'overloaded' })
  expect(report.headers.get('retry-after')).toBe('5')
  expect(control.ocs.stats().waitingWrites).toBe(0)
})

test('what was done once with an Idempotency-Key is not done again when its answer could not be stored', async () => {
  const control = await openControl()
  await control.tenant('acme', ['acme.example'])
  const token = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  let calls = 0
  control.engine.originate = () => {
    calls += 1
    return Promise.resolve({ kind: 'originating', callUuid: `call-${calls}` })
  }
  const phone = { extension: '101', password: 'long enough', display_name: 'Phone' }
  await control.request('/api/v1/pbx/extensions', { token, body: phone })
  fill(control)
  const originate = () =>
    control.request('/api/v1/pbx/calls/originate', {
      token,
      headers: { 'Idempotency-Key': 'once' },
      body: { source_extension: '101', destination_number: '+15550100' },
    })
  const first = await originate()
  expect(first).toMatchObject({ status: 201 })
  const again = await originate()
  expect([again.text, calls]).toEqual([first.text, 1])
})
