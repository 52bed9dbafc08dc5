import { expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { openToolRig, type ToolRig } from '../../support/tools-rig.ts'

const KEYS = '/api/v1/application-keys'

type Made = { change_id: string; key: { state: string } }

/** Whether a request of the key is accepted. */
const works = async (rig: ToolRig, token: string): Promise<boolean> =>
  (await rig.request(`${KEYS}/self`, { token })).status === 200

const uuidOf = async (rig: ToolRig, token: string): Promise<string> =>
  (await rig.request(`${KEYS}/self`, { token })).data<{ uuid: string }>().uuid

async function opened() {
  const rig = await openToolRig()
  const token = await rig.key({ name: 'phone', kind: 'pbx' })
  const uuid = await uuidOf(rig, token)
  const post = (path: string, body: object, as = rig.root): Promise<Answer> =>
    rig.request(`${KEYS}/${uuid}/${path}`, { token: as, body })
  const patch = (body: object) =>
    rig.request(`${KEYS}/${uuid}`, { token: rig.root, method: 'PATCH', body })
  const tool = (name: string, as = rig.root) =>
    rig.tool(name, { identifier: uuid, reason: 'an alert of the night' }, as)
  return { ...rig, rig, token, uuid, post, patch, tool }
}

test.each(['tool', 'REST'])(
  'a suspended key of any kind is rejected from its next request on, and accepted again when it is resumed: %s',
  async (way) => {
    const { rig, token, post, tool } = await opened()
    const act = (name: 'suspend' | 'resume') =>
      way === 'tool' ? tool(`${name}_api_key`) : post(name, { reason: 'an alert of the night' })
    expect((await act('suspend')).status).toBe(200)
    expect(await works(rig, token)).toBe(false)
    expect((await act('suspend')).data<object>()).toMatchObject({ changed: false })
    expect((await act('resume')).status).toBe(200)
    expect(await works(rig, token)).toBe(true)
    const { data } = await rig.request('/api/v1/changes', { token: rig.root })
    expect(data<object[]>()).toMatchObject([
      { tool: 'resume_api_key', target_kind: 'api_key', reason: 'an alert of the night' },
      { tool: 'suspend_api_key', state: 'made', actor_name: 'root' },
    ])
  },
)

test('a suspension and what an administrator says of a key do not touch each other', async () => {
  const { rig, token, post, patch } = await opened()
  const suspended = await post('suspend', { reason: 'it may have leaked', duration: 60 })
  expect(suspended.data<Made>().key.state).toBe('suspended')
  await patch({ is_active: true })
  expect(await works(rig, token)).toBe(false)
  await patch({ is_active: false })
  rig.tick(60_000)
  await rig.changes.poll()
  const { data } = await rig.request(`${KEYS}?state=inactive`, { token: rig.root })
  expect(data<object[]>()).toMatchObject([{ name: 'phone', state: 'inactive', suspended_at: null }])
  expect(await works(rig, token)).toBe(false)
})

test('a key that suspends or deletes itself must say so', async () => {
  const rig = await openToolRig()
  const agent = await rig.key({ name: 'agent', scopes: ['mcp:*', 'keys:*'] })
  const uuid = await uuidOf(rig, agent)
  const body = { reason: 'I leaked' }
  const self = { identifier: 'agent', ...body }
  const attempts = [
    await rig.tool('suspend_api_key', { ...self, dry_run: true }, agent),
    await rig.tool('suspend_api_key', self, agent),
    await rig.tool('revoke_sbc_api_key', { ...self, confirm_self: false }, agent),
    await rig.request(`${KEYS}/${uuid}/suspend`, { token: agent, body }),
    await rig.request(`${KEYS}/${uuid}`, { token: agent, method: 'DELETE' }),
  ]
  expect(attempts.map(({ code }) => code)).toEqual(attempts.map(() => 'confirm_self'))
  expect(await works(rig, agent)).toBe(true)
  const sure = { ...self, confirm_self: true }
  expect((await rig.tool('suspend_api_key', sure, agent)).status).toBe(200)
  expect(await works(rig, agent)).toBe(false)
})

test('a key revokes itself by the tool, as any key that is found, and is warned', async () => {
  const rig = await openToolRig()
  const agent = await rig.key({ name: 'agent', scopes: ['mcp:*', 'keys:*'] })
  await rig.key({ name: 'other' })
  const other = await rig.tool('revoke_sbc_api_key', { identifier: 'other' }, agent)
  expect(other.data()).toMatchObject({ warning: null, is_active: false })
  const tried = await rig.tool('revoke_sbc_api_key', { identifier: 'agent', dry_run: true }, agent)
  const warning = 'This request uses this very key: its next request would be rejected.'
  expect([tried.status, tried.data()]).toMatchObject([200, { warning, is_active: true }])
  expect(await works(rig, agent)).toBe(true)
  const own = await rig.tool('revoke_sbc_api_key', { identifier: 'agent' }, agent)
  expect([own.status, own.data()]).toMatchObject([
    200,
    { is_active: false, warning: warning.replace('would be', 'is') },
  ])
  expect(await works(rig, agent)).toBe(false)
})

test('a small key suspends a large one, but brings back only what it has suspended itself', async () => {
  const { rig, token, post, tool, uuid } = await opened()
  const small = await rig.key({ name: 'watch', scopes: ['mcp:*', 'keys:*'] })
  const undo = (change_id: string) =>
    rig.tool('undo_change', { change_id, reason: 'let me in' }, small)
  const own = (await tool('suspend_api_key', small)).data<Made>()
  expect(await works(rig, token)).toBe(false)
  expect((await undo(own.change_id)).status).toBe(200)
  expect(await works(rig, token)).toBe(true)
  const other = (await post('suspend', { reason: 'it has leaked', duration: 3_600 })).data<Made>()
  const refused = [
    await tool('resume_api_key', small),
    await post('resume', { reason: 'let me in' }, small),
    await undo(other.change_id),
  ]
  expect(refused.map(({ status, code }) => [status, code])).toEqual(
    refused.map(() => [403, 'scope_escalation']),
  )
  // Nor by a suspension of its own over it: it is longer, and never shorter.
  const short = { identifier: uuid, reason: 'let me in', duration: 60 }
  expect((await rig.tool('suspend_api_key', short, small)).data<object>()).toMatchObject({
    changed: false,
  })
  const longer = await rig.tool('suspend_api_key', { ...short, duration: 7_200 }, small)
  expect((await undo(longer.data<Made>().change_id)).code).toBe('scope_escalation')
  expect(await works(rig, token)).toBe(false)
})

test('who suspended a key last, and could resume it, decides: a weaker one that suspended it before does not', async () => {
  const { rig, token, post, tool, uuid } = await opened()
  const small = await rig.key({ name: 'watch', scopes: ['mcp:*', 'keys:*', 'audit:read'] })
  const first = (await tool('suspend_api_key', small)).data<Made>()
  const again = (await post('suspend', { reason: 'it has leaked' })).data<Made>()
  expect(again).toMatchObject({ changed: true })
  const undo = (change_id: string) =>
    rig.tool('undo_change', { change_id, reason: 'let me in' }, small)
  const refused = [
    await tool('resume_api_key', small),
    await undo(first.change_id),
    await undo(again.change_id),
  ]
  expect(refused.map(({ code }) => code)).toEqual(refused.map(() => 'scope_escalation'))
  // A weaker one that suspends it once more wins nothing.
  const third = { identifier: uuid, reason: 'let me in' }
  expect((await rig.tool('suspend_api_key', third, small)).data<object>()).toMatchObject({
    changed: false,
  })
  expect((await tool('resume_api_key', small)).code).toBe('scope_escalation')
  expect((await tool('resume_api_key')).status).toBe(200)
  expect(await works(rig, token)).toBe(true)
})

test('a suspension that ends under a longer one of a stronger key ends with that', async () => {
  const { rig, token, uuid } = await opened()
  const small = await rig.key({ name: 'watch', scopes: ['mcp:*', 'keys:*'] })
  const suspend = (duration: number, as: string) =>
    rig.tool('suspend_api_key', { identifier: uuid, reason: 'an alert', duration }, as)
  await suspend(60, small)
  await suspend(120, rig.root)
  rig.tick(60_000)
  await rig.changes.poll()
  expect(await works(rig, token)).toBe(false)
  rig.tick(60_000)
  await rig.changes.poll()
  expect(await works(rig, token)).toBe(true)
})

test('a revoked key is neither suspended nor resumed, and its suspension is not undone', async () => {
  const { rig, tool, uuid, token } = await opened()
  const { change_id } = (await tool('suspend_api_key')).data<Made>()
  await rig.request(`${KEYS}/${uuid}`, { token: rig.root, method: 'DELETE' })
  expect((await tool('suspend_api_key')).code).toBe('key_revoked')
  expect((await tool('resume_api_key')).code).toBe('key_revoked')
  const undone = await rig.tool('undo_change', { change_id, reason: 'a mistake' })
  expect([undone.status, undone.code]).toEqual([409, 'changed_since'])
  expect(await works(rig, token)).toBe(false)
})
