/** What is created through the API is in the list of changes, and undoing that removes it, as DELETE does. */
import { expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { readRows } from '../../support/stored.ts'
import { openToolRig } from '../../support/tools-rig.ts'

async function opened() {
  const rig = await openToolRig()
  const call = (method: string, path: string, body?: object, token = rig.root) =>
    rig.request(`/api/v1${path}`, { token, method, ...(body !== undefined && { body }) })
  const create = async (path: string, body: object, token = rig.root) => {
    const answer = await call('POST', `${path}?reason=a+new+office`, body, token)
    expect([answer.status, answer.text]).toEqual([201, answer.text])
    const at = (answer.headers.get('location') ?? '').replace('/api/v1', '')
    return { answer, at, changeId: idOf(answer) }
  }
  const undo = (changeId: string, token = rig.root, more: object = {}) =>
    call('POST', `/changes/${changeId}/undo`, { reason: 'a mistake', ...more }, token)
  const entry = async (changeId: string) =>
    (await call('GET', `/changes/${changeId}`)).data<Record<string, unknown>>()
  return { rig, call, create, undo, entry }
}

const idOf = (answer: Answer): string => answer.headers.get('x-change-id') ?? ''

const phone = {
  extension: '101',
  domain: 'acme.example',
  display_name: 'One',
  password: 'x9Kd72hQw1',
}
const agent = { name: 'a', extension: '700', sip_uri: 'sip:ai@192.0.2.9' }

test.each([
  ['/customers', { name: 'nova', numbers: ['4930999'] }, 'customer'],
  ['/routing/carriers', { name: 't', gateways: [{ host: '10.9.9.9' }] }, 'carrier'],
  ['/outbound-routes', { name: 'r', mode: 'block', prefix: '9' }, 'outbound_route'],
  ['/inbound-routes', { name: 'r', set_id: 2 }, 'inbound_route'],
  ['/rate-plans', { name: 'p' }, 'rate_plan'],
  ['/rates', { rate_plan: 'acme plan', prefix: '1', rate_per_minute: '1' }, 'rate'],
  ['/tenants', { slug: 'nova', domains: ['nova.example'] }, 'tenant'],
  [
    '/dispatcher',
    { endpoint_name: 's', algorithm: 8, nodes: [{ host: '10.0.0.9' }] },
    'dispatcher_set',
  ],
  ['/telephony/ai-agents', agent, 'agent'],
  ['/pbx/extensions', phone, 'extension'],
])(
  'a POST to %s is entered, and its undoing removes what it made, once',
  async (path, body, kind) => {
    const { call, create, undo, entry } = await opened()
    const { at, changeId } = await create(path, body)
    expect(await entry(changeId)).toMatchObject({
      tool: `POST /api/v1${path}`,
      target_kind: kind,
      target_id: at.split('/').at(-1),
      reason: 'a new office',
      state: 'made',
      before: null,
      is_reversible: true,
      effect: expect.stringMatching(/^The [a-z ]+ ".+" is created\.$/),
    })
    const dry = await undo(changeId, undefined, { dry_run: true })
    expect(dry.data<object>()).toMatchObject({ changed: true, dry_run: true })
    expect((await call('GET', at)).status).toBe(200)
    const undone = await undo(changeId)
    expect([undone.status, undone.text]).toEqual([200, undone.text])
    expect(undone.data<{ effect: string }>().effect).toContain(
      'is removed: it was not there before',
    )
    expect((await call('GET', at)).status).toBe(404)
    expect((await undo(changeId)).data<object>()).toMatchObject({ changed: false })
    // Nothing of it is in the way of the same again.
    await create(path, body)
  },
)

test('a rate is named by its plan and its prefix', async () => {
  const { call, create, entry } = await opened()
  await create('/rate-plans', { name: 'p' })
  const rate = { rate_plan: 'p', prefix: '', rate_per_minute: '1' }
  const { at, changeId } = await create('/rates', rate)
  const name = 'The rate for all other numbers of the plan "p"'
  expect(await entry(changeId)).toMatchObject({ effect: `${name} is created.` })
  const removed = await call('DELETE', at)
  expect(await entry(idOf(removed))).toMatchObject({ effect: `${name} is removed.` })
  const other = await create('/rates', { ...rate, prefix: '49' })
  expect(await entry(other.changeId)).toMatchObject({
    effect: 'The rate for "49" of the plan "p" is created.',
  })
})

test('what was changed since, or what something depends on, is not removed by undoing its creation', async () => {
  const { call, create, undo, entry } = await opened()
  const plan = await create('/rate-plans', { name: 'p' })
  const customer = await create('/customers', { name: 'nova', rate_plan: 'p' })
  const used = await undo(plan.changeId)
  const deleted = await call('DELETE', plan.at)
  expect([used.status, used.code]).toEqual([409, 'in_use'])
  expect([deleted.status, deleted.code]).toEqual([used.status, used.code])

  const patched = await call('PATCH', customer.at, { max_cps: 3 })
  const later = await undo(customer.changeId)
  expect([later.code, later.text.includes(idOf(patched))]).toEqual(['changed_since', true])
  await undo(idOf(patched))
  // A secret is not in the state, and counts as any other field.
  const secret = await call('PATCH', customer.at, { password: 'a new secret word' })
  expect((await undo(customer.changeId)).text).toContain(idOf(secret))
  expect(await entry(customer.changeId)).toMatchObject({ state: 'made', undone_at: null })
  expect((await call('GET', customer.at)).status).toBe(200)
})

test('a rate plan with rates is not removed by undoing its creation: they are in no change', async () => {
  const { rig, call, create, undo } = await opened()
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
  const { call, create, undo } = await opened()
  const { at, changeId } = await create('/customers', { name: 'nova', balance: '5' })
  expect((await undo(changeId)).code).toBe('not_reversible')
  expect((await call('GET', at)).data<object>()).toMatchObject({ balance_number: 5 })
})

test('undoing takes the scopes of the creation, and another tenant does not see it', async () => {
  const { rig, create, undo } = await opened()
  const acme = { tenant_scope: 'tenant', tenant_slug: 'acme' }
  const own = await rig.key({ ...acme, scopes: ['audit:read', 'customers:write', 'wallets:write'] })
  const { changeId } = await create('/customers', { name: 'nova' }, own)
  expect((await undo(changeId, await rig.key({ ...acme, scopes: ['*:read'] }))).code).toBe(
    'insufficient_scope',
  )
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect((await undo(changeId, other)).status).toBe(404)
  expect((await undo(changeId, own)).status).toBe(200)
})

test('a key is entered without its token, and revoked by undoing that, but not by itself', async () => {
  const { rig, call, create, undo, entry } = await opened()
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
  const { rig, call, create, undo, entry } = await opened()
  const made = await create('/application-keys', { name: 'office', scopes: ['*:read'] })
  const path = `${made.at}/rotate?reason=it+may+have+leaked`
  const headers = { 'Idempotency-Key': 'once' }
  const rotate = () =>
    rig.request(`/api/v1${path}`, { token: rig.root, headers, body: { grace_seconds: 60 } })
  const rotated = await rotate()
  const { token } = rotated.data<{ token: string }>()
  expect(await entry(idOf(rotated))).toMatchObject({
    tool: 'POST /api/v1/application-keys/:uuid/rotate',
    reason: 'it may have leaked',
    effect: 'The key "office" is changed: its token.',
    is_reversible: false,
    before: {},
    after: {},
    is_state_kept: true,
  })
  expect((await undo(idOf(rotated))).code).toBe('not_reversible')
  // Who has the new token would lose it.
  expect((await undo(made.changeId)).code).toBe('changed_since')
  expect(JSON.stringify(await readRows(rig.store, 'SELECT * FROM change_entry'))).not.toContain(
    token.slice(12),
  )
  expect(idOf(await rotate())).toBe(idOf(rotated))
  expect((await call('GET', '/changes?target_kind=api_key')).data<object[]>()).toHaveLength(2)
})
