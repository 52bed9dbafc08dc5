import { expect, test } from 'vitest'
import { openToolRig, type ToolRig } from '../../support/tools-rig.ts'

const destination = 'sip:10.0.0.1:5060;transport=udp'
const CHANGES = '/api/v1/changes'

type Made = { change_id: string; state: string }

const stateOf = ({ engine }: ToolRig) => engine.dispatcher.status(1)[0]?.nodes[0]?.state

async function opened() {
  const rig = await openToolRig()
  const ofAcme = { tenant_scope: 'tenant', tenant_slug: 'acme' }
  const acme = await rig.key({ name: 'acme', ...ofAcme })
  const drain = (token: string) =>
    rig.tool(
      'set_dispatcher_state',
      { state: 'inactive', setId: 1, destination, reason: 'one-way audio' },
      token,
    )
  const undo = (changeId: string, token: string, body: object = { reason: 'repaired' }) =>
    rig.request(`${CHANGES}/${changeId}/undo`, { token, body })
  return { ...rig, rig, acme, drain, undo }
}

test('changes are listed with their reason, and undone by a person with the scopes of their tools', async () => {
  const { rig, drain, undo, access } = await opened()
  const made = (await drain(rig.root)).data<Made>()
  await rig.user('ada', 'operator')
  const login = { username: 'ada', password: 'correct horse' }
  await access.prepare()
  const { token } = (await rig.request('/api/v1/auth/login', { body: login })).data<{
    token: string
  }>()
  const shown = await rig.request(`${CHANGES}/${made.change_id}`, { token })
  expect(shown.data<object>()).toMatchObject({
    state: 'made',
    before: 'active',
    after: 'inactive',
    is_reversible: true,
    reason: 'one-way audio',
    target_id: `1/${destination}`,
    actor_name: 'root',
  })
  const dry = await undo(made.change_id, token, { reason: 'repaired', dry_run: true })
  expect([dry.data<object>(), stateOf(rig)]).toMatchObject([{ changed: true }, 'inactive'])
  const undone = await undo(made.change_id, token)
  expect(undone.data<object>()).toMatchObject({
    changed: true,
    change: { state: 'undone', undone_by: 'user:ada', undo_reason: 'repaired' },
  })
  expect(stateOf(rig)).toBe('active')
  const audit = await rig.request('/api/v1/audit?action=POST&target=/undo', { token })
  expect(audit.data<object[]>()[0]).toMatchObject({
    change_id: made.change_id,
    reason: 'repaired',
    actor: 'user:ada',
  })
  const listed = await rig.request(`${CHANGES}?state=made`, { token })
  expect(listed.data<object[]>()).toEqual([])
})

test('a tenant sees and undoes its own changes, and not what the platform did to it', async () => {
  const { rig, acme, drain, undo } = await opened()
  const own = (await drain(acme)).data<Made>()
  expect((await undo(own.change_id, acme)).status).toBe(200)
  const ofPlatform = (await drain(rig.root)).data<Made>()
  expect((await undo(ofPlatform.change_id, acme)).status).toBe(404)
  const listed = (await rig.request(CHANGES, { token: acme })).data<Made[]>()
  expect(listed.map(({ change_id: changeId }) => changeId)).toEqual([own.change_id])
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect((await undo(own.change_id, other)).status).toBe(404)
  expect(stateOf(rig)).toBe('inactive')
})

test('the state route of a node enters the change as the tool does', async () => {
  const { rig, undo } = await opened()
  const path = '/api/v1/dispatcher/1/nodes/1/state'
  const put = (body: object) => rig.request(path, { token: rig.root, method: 'PUT', body })
  const changed = await put({ state: 'inactive', reason: 'maintenance', duration: 3_600 })
  const { change_id: changeId } = changed.data<Made>()
  expect((await put({ state: 'inactive', duration: 60 })).data<object>()).toMatchObject({
    change_id: null,
  })
  expect((await put({ state: 'probing', expected_state: 'active' })).code).toBe('state_differs')
  const { data } = await rig.request('/api/v1/audit?action=PUT', { token: rig.root })
  expect(data<object[]>().at(-1)).toMatchObject({ change_id: changeId, reason: 'maintenance' })
  expect((await undo(changeId, rig.root)).status).toBe(200)
  expect(stateOf(rig)).toBe('active')
})
