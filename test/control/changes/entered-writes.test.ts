/**
 * Changes that people make through the API are in the list of changes as those of tools are, and is
 * undone as that.
 */
import { expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { readColumn, readRows } from '../../support/stored.ts'
import { forgetChanges, openToolRig, type ToolRig } from '../../support/tools-rig.ts'

const minute = 60_000

type Made = { change_id: string }

async function opened() {
  const rig = await openToolRig()
  const make = async (path: string, body: object): Promise<number> => {
    const answer = await rig.request(`/api/v1${path}`, { token: rig.root, body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return (answer.body as { data?: { id: number }; id?: number }).data?.id ?? 0
  }
  const act =
    (method: string) =>
    (path: string, body?: object, token = rig.root): Promise<Answer> =>
      rig.request(`/api/v1${path}`, { token, method, ...(body !== undefined && { body }) })
  const [patch, remove] = [act('PATCH'), act('DELETE')]
  const get = async (path: string) =>
    (await rig.request(`/api/v1${path}`, { token: rig.root })).data<Record<string, unknown>>()
  const undo = (changeId: string | null, token = rig.root) =>
    rig.request(`/api/v1/changes/${changeId ?? ''}/undo`, { token, body: { reason: 'a mistake' } })
  const trunk = { name: 'acme trunk', tenant: 'acme', gateways: [{ host: '10.9.0.1' }] }
  const carrier = `/routing/carriers/${await make('/routing/carriers', trunk)}`
  await forgetChanges(rig)
  return { ...rig, rig, make, patch, remove, get, undo, carrier }
}

const idOf = (answer: Answer): string | null => answer.headers.get('x-change-id')

const entries = ({ store }: ToolRig) =>
  readRows<Record<string, string | null>>(
    store,
    'SELECT tool, target_kind, target_id, reason, state_before, state_after, undo, state FROM change_entry ORDER BY id',
  )

test('an effect has names for ids, a currency for amounts, and what a list got', async () => {
  const { make, patch, get } = await opened()
  for (const name of ['euro', 'cheap'])
    await make('/rate-plans', { name, currency: 'EUR', tenant: 'acme' })
  const fresh = { name: 'fresh', tenant: 'acme', rate_plan: 'euro' }
  const customer = `/customers/${await make('/customers', fresh)}`
  const effectOf = async (path: string, body: object) =>
    (await get(`/changes/${idOf(await patch(path, body))}`))['effect']
  expect(await effectOf(customer, { credit_limit: '5', max_cps: 3, rate_plan: 'cheap' })).toBe(
    'The customer "fresh" is changed: credit limit 5.00 EUR, was 0.00 EUR; ' +
      'rate plan "cheap", was "euro"; calls per second 3, was unlimited.',
  )
  expect(await effectOf(customer, { numbers: ['12025550199'], is_active: false })).toBe(
    'The customer "fresh" is changed: in use no, was yes; numbers: "12025550199" added.',
  )
  const rate = { rate_plan: 'euro', tenant: 'acme', prefix: '49', rate_per_minute: '0.1' }
  expect(await effectOf(`/rates/${await make('/rates', rate)}`, { connect_fee: '0.5' })).toBe(
    'The rate for "49" of the plan "euro" is changed: ' +
      'price of an answered call 0.50 EUR, was 0.00 EUR.',
  )
})

test('nodes, keys, live calls and reloads are entered, too', async () => {
  const { rig, patch, remove, get, undo, request, root } = await opened()
  const weighted = await patch('/dispatcher/1/nodes/1', { weight: 7 })
  expect((await undo(idOf(weighted))).status).toBe(200)
  expect(await get('/dispatcher/1/nodes/1')).toMatchObject({ weight: 100 })
  await remove('/dispatcher/1/nodes/2')

  await rig.key({ name: 'phone' })
  const [uuid] = await readColumn<string>(
    rig.store,
    "SELECT uuid FROM application_key WHERE name = 'phone'",
  )
  const slower = await patch(`/application-keys/${uuid}`, { rate_limit_rpm: 5, is_active: false })
  expect((await undo(idOf(slower))).status).toBe(200)
  expect(await get(`/application-keys/${uuid}`)).toMatchObject({
    rate_limit_rpm: 1_200,
    state: 'active',
  })
  const revoked = await remove(`/application-keys/${uuid}?reason=it+has+leaked`)
  expect((await undo(idOf(revoked))).code).toBe('not_reversible')
  expect(idOf(await remove(`/application-keys/${uuid}`))).toBeNull()

  const body = { call_uuid: rig.engine.activeCalls[0]?.callUuid }
  await request('/api/v1/telephony/hangup?reason=fraud', { token: root, body })
  await request('/api/v1/dispatcher/reload', { token: root, method: 'POST' })
  expect(
    (await entries(rig)).map(({ tool, undo: way, reason }) => `${tool} ${way} ${reason}`),
  ).toEqual([
    'PATCH /api/v1/dispatcher/:id/nodes/:nodeId restores null',
    'DELETE /api/v1/dispatcher/:id/nodes/:nodeId restores null',
    'PATCH /api/v1/application-keys/:uuid restores null',
    'DELETE /api/v1/application-keys/:uuid none it has leaked',
    'hangup_call none fraud',
    'reload_dispatchers none null',
  ])
  const audit = await request('/api/v1/audit?limit=100', { token: root })
  const audited = audit.data<{ change_id: string | null }[]>().map(({ change_id: id }) => id)
  for (const id of await readColumn(rig.store, 'SELECT change_id FROM change_entry'))
    expect(audited).toContain(id)
})

test('a secret is not entered, and what is written with it cannot be undone', async () => {
  const { rig, patch, undo } = await opened()
  const changed = await patch('/customers/1', { password: 'a new secret word', max_cps: 4 })
  expect((await undo(idOf(changed))).code).toBe('not_reversible')
  const [entry] = await entries(rig)
  expect(entry).toMatchObject({ state_before: '{"max_cps":0}', state_after: '{"max_cps":4}' })
  expect(JSON.stringify(await readRows(rig.store, 'SELECT * FROM change_entry'))).not.toContain(
    'secret word',
  )
})

test('undoing takes the scopes that the way back takes', async () => {
  const { rig, patch, undo } = await opened()
  const less = await patch('/customers/1', { credit_limit: '5' })
  expect(
    (await undo(idOf(less), await rig.key({ scopes: ['audit:read', 'customers:write'] }))).code,
  ).toBe('insufficient_scope')
  const scopes = ['audit:read', 'customers:write', 'wallets:write']
  expect((await undo(idOf(less), await rig.key({ scopes }))).status).toBe(200)
})

test('a tenant undoes its own PATCH, and writes no more by that than by another PATCH', async () => {
  const { rig, patch, undo, get } = await opened()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const body = { name: 'platform plan' }
  const { id } = (await rig.request('/api/v1/rate-plans', { token: rig.root, body })).data<{
    id: number
  }>()
  await patch('/customers/1', { rate_plan_id: id })
  const own = await patch('/customers/1', { rate_plan: 'acme plan' }, acme)
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect((await undo(idOf(own), other)).status).toBe(404)
  const refused = await undo(idOf(own), acme)
  const again = await patch('/customers/1', { rate_plan_id: id }, acme)
  expect([refused.status, refused.code]).toEqual([again.status, again.code])
  expect(await get('/customers/1')).toMatchObject({
    rate_plan: again.status === 200 ? 'platform plan' : 'acme plan',
  })
})

test('a key that was bound to a domain does not undo that', async () => {
  const { rig, patch, undo, get } = await opened()
  const acme = { tenant_scope: 'tenant', tenant_slug: 'acme' }
  const admin = await rig.key({ ...acme, name: 'admin of acme' })
  const bound = await rig.key({ ...acme, name: 'bound' })
  const self = await rig.request('/api/v1/application-keys/self', { token: bound })
  const path = `/application-keys/${self.data<{ uuid: string }>().uuid}`
  const narrowed = await patch(path, { domain: 'acme.example' }, admin)
  expect(narrowed.status).toBe(200)
  const refused = await undo(idOf(narrowed), bound)
  const again = await patch(path, { domain: null }, bound)
  expect([refused.status, refused.code]).toEqual([403, 'wrong_tenant'])
  expect([again.status, again.code]).toEqual([403, 'wrong_tenant'])
  expect(await get(path)).toMatchObject({ domain: 'acme.example' })
  expect((await undo(idOf(narrowed), admin)).status).toBe(200)
  expect(await get(path)).toMatchObject({ domain: null })
})

const drained = async (rig: ToolRig, more: object = {}): Promise<Made> => {
  const given = { carrier: 'acme trunk', state: 'inactive', reason: 'one-way audio', ...more }
  return (await rig.tool('set_trunk_state', given)).data<Made>()
}

test.each([
  ['back and forth', [{ is_active: true }, { is_active: false }], false, 'superseded'],
  ['the same again', [{ is_active: false }], false, 'superseded'],
  ['another state', [{ is_active: true }], true, 'superseded'],
  ['another field', [{ max_calls: 9 }], true, 'expired'],
  ['nothing', [], true, 'expired'],
] as const)(
  'the end of a temporary change takes back no PATCH that was made meanwhile: %s',
  async (_, patches, isActive, state) => {
    const { rig, patch, get, carrier } = await opened()
    const made = await drained(rig, { duration: 60 })
    for (const body of patches) expect((await patch(carrier, body)).status).toBe(200)
    rig.tick(minute)
    await rig.changes.poll()
    expect(await get(carrier)).toMatchObject({ is_active: isActive })
    const change = await get(`/changes/${made.change_id}`)
    expect(change).toMatchObject({ state })
  },
)

test('a limit that ends under a later one is not what the later one leads back to', async () => {
  const { rig, get } = await opened()
  const raise = (credit_limit: string, duration: number) =>
    rig.tool('set_customer_limits', {
      customer: 1,
      credit_limit,
      duration,
      reason: 'top-up is late',
    })
  await raise('5', 60)
  await raise('9', 120)
  rig.tick(minute)
  await rig.changes.poll()
  expect(await get('/customers/1')).toMatchObject({ credit_limit: 9 })
  rig.tick(minute)
  await rig.changes.poll()
  expect(await get('/customers/1')).toMatchObject({ credit_limit: 0 })
})

async function openedCreations() {
  const rig = await openToolRig()
  const call = (method: string, path: string, body?: object, token = rig.root) =>
    rig.request(`/api/v1${path}`, { token, method, ...(body !== undefined && { body }) })
  const create = async (path: string, body: object, token = rig.root) => {
    const answer = await call('POST', `${path}?reason=a+new+office`, body, token)
    expect([answer.status, answer.text]).toEqual([201, answer.text])
    const at = (answer.headers.get('location') ?? '').replace('/api/v1', '')
    return { answer, at, changeId: madeChange(answer) }
  }
  const undo = (changeId: string, token = rig.root, more: object = {}) =>
    call('POST', `/changes/${changeId}/undo`, { reason: 'a mistake', ...more }, token)
  const entry = async (changeId: string) =>
    (await call('GET', `/changes/${changeId}`)).data<Record<string, unknown>>()
  return { rig, call, create, undo, entry }
}

const madeChange = (answer: Answer): string => answer.headers.get('x-change-id') ?? ''

test('what was changed since, or what something depends on, is not removed by undoing its creation', async () => {
  const { call, create, undo, entry } = await openedCreations()
  const plan = await create('/rate-plans', { name: 'p' })
  const customer = await create('/customers', { name: 'nova', rate_plan: 'p' })
  const used = await undo(plan.changeId)
  const deleted = await call('DELETE', plan.at)
  expect([used.status, used.code]).toEqual([409, 'in_use'])
  expect([deleted.status, deleted.code]).toEqual([used.status, used.code])

  const patched = await call('PATCH', customer.at, { max_cps: 3 })
  const later = await undo(customer.changeId)
  expect([later.code, later.text.includes(madeChange(patched))]).toEqual(['changed_since', true])
  await undo(madeChange(patched))
  // A secret is not in the state, and counts as any other field.
  const secret = await call('PATCH', customer.at, { password: 'a new secret word' })
  expect((await undo(customer.changeId)).text).toContain(madeChange(secret))
  expect(await entry(customer.changeId)).toMatchObject({ state: 'made', undone_at: null })
  expect((await call('GET', customer.at)).status).toBe(200)
})

test('a rate plan with rates is not removed by undoing its creation: they are in no change', async () => {
  const { rig, call, create, undo } = await openedCreations()
  const plan = await create('/rate-plans', { name: 'p' })
  const query = '/api/v1/rates/import?rate_plan=p'
  const imported = await rig.request(query, {
    token: rig.root,
    method: 'POST',
    headers: { 'Content-Type': 'text/csv' },
    body: 'prefix,rate_per_minute\n49,1\n44,2\n',
  })
  expect([imported.status, imported.text]).toEqual([200, imported.text])
  for (const isDryRun of [true, false]) {
    const refused = await undo(plan.changeId, undefined, { dry_run: isDryRun })
    expect([refused.status, refused.code]).toEqual([409, 'in_use'])
  }
  expect((await call('GET', '/rates?rate_plan=p')).text).toContain('"prefix":"49"')
})

test('a customer with an opening balance is not removed by undoing its creation', async () => {
  const { call, create, undo } = await openedCreations()
  const { at, changeId } = await create('/customers', { name: 'nova', balance: '5' })
  expect((await undo(changeId)).code).toBe('not_reversible')
  expect((await call('GET', at)).data<object>()).toMatchObject({ balance_number: 5 })
})

test('a key is entered without its token, and revoked by undoing that, but not by itself', async () => {
  const { rig, call, create, undo, entry } = await openedCreations()
  const body = { name: 'office', scopes: ['*'], rate_limit_rpm: 60 }
  const { answer, at, changeId } = await create('/application-keys', body)
  const { token } = answer.data<{ token: string }>()
  expect(await entry(changeId)).toMatchObject({
    tool: 'POST /api/v1/application-keys',
    target_kind: 'api_key',
    before: null,
    is_reversible: true,
    after: { name: 'office', rate_limit_rpm: 60, revoked_at: null },
  })
  expect((await undo(changeId, token)).code).toBe('confirm_self')
  const undone = await undo(changeId)
  expect(undone.data<{ effect: string }>().effect).toContain('is revoked permanently')
  expect((await call('GET', at)).data<object>()).toMatchObject({ state: 'revoked' })
  expect((await call('GET', '/application-keys/self', undefined, token)).status).toBe(401)
  expect((await undo(changeId)).data<object>()).toMatchObject({ changed: false })
  expect(JSON.stringify(await readRows(rig.store, 'SELECT * FROM change_entry'))).not.toContain(
    token,
  )
})

test('a new token for a key is entered without it, and cannot be undone', async () => {
  const { rig, call, create, undo, entry } = await openedCreations()
  const made = await create('/application-keys', { name: 'office', scopes: ['*:read'] })
  const path = `${made.at}/rotate?reason=it+may+have+leaked`
  const headers = { 'Idempotency-Key': 'once' }
  const rotate = () =>
    rig.request(`/api/v1${path}`, { token: rig.root, headers, body: { grace_seconds: 60 } })
  const rotated = await rotate()
  const { token } = rotated.data<{ token: string }>()
  expect(await entry(madeChange(rotated))).toMatchObject({
    tool: 'POST /api/v1/application-keys/:uuid/rotate',
    reason: 'it may have leaked',
    effect: 'The key "office" is changed: its token.',
    is_reversible: false,
    before: {},
    after: {},
    is_state_kept: true,
  })
  expect((await undo(madeChange(rotated))).code).toBe('not_reversible')
  // Who has the new token would lose it.
  expect((await undo(made.changeId)).code).toBe('changed_since')
  expect(JSON.stringify(await readRows(rig.store, 'SELECT * FROM change_entry'))).not.toContain(
    token.slice(12),
  )
  expect(madeChange(await rotate())).toBe(madeChange(rotated))
  expect((await call('GET', '/changes?target_kind=api_key')).data<object[]>()).toHaveLength(2)
})
