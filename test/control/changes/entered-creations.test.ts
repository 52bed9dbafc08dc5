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
