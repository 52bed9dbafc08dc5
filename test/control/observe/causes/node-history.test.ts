import { expect, test } from 'vitest'
import { execute } from '../../../../schema/sql/query.ts'
import { openToolRig, type ToolRig } from '../../../support/tools-rig.ts'

const minute = 60_000

/** The first node of set 1 of `acme` went down an hour ago. */
async function openOutage() {
  const rig = await openToolRig()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const change = (agoMs: number, from_state: string, to_state: string, more = {}) =>
    noteChange(rig, { at: rig.now() - agoMs, from_state, to_state, ...more })
  await change(120 * minute, 'active', 'inactive', {
    cause: 'operator',
    reason: 'set by operator',
    actor: 'user:root',
  })
  await change(90 * minute, 'inactive', 'active', {
    cause: 'operator',
    reason: 'set by operator',
    actor: 'user:acme/anna',
  })
  await change(60 * minute, 'active', 'probing')
  await rig.engine.dispatcher.setState(1, 'sip:10.0.0.1:5060;transport=udp', 'probing')
  return { ...rig, acme, other }
}

const noteChange = ({ store }: ToolRig, columns: object) =>
  execute(
    store,
    store.db.insertInto('state_change').values({
      kind: 'node',
      subject_id: 1,
      tenant_id: 1,
      name: 'sip:10.0.0.1:5060;transport=udp',
      from_state: 'active',
      to_state: 'probing',
      cause: 'probe',
      reason: 'no answer',
      actor: null,
      observer: 'a',
      at: 0,
      ...columns,
    }),
  )

test('the history of a node says since when it is down, why, and who changed it before', async () => {
  const rig = await openOutage()
  const asked = { node: 'sip:10.0.0.1:5060;transport=udp' }
  const answer = await rig.tool('get_node_history', asked)
  expect(answer.data()).toMatchObject({
    node: { id: 1, set_id: 1, state: 'probing' },
    down_since: '2025-12-31T23:00:00.000Z',
    down_because: 'no answer',
    changes: [
      { to: 'probing', cause: 'probe', by: null, seen_by: 'a' },
      { to: 'active', by: 'user:acme/anna' },
      { to: 'inactive', by: 'user:root' },
    ],
    has_older: false,
  })
  const twin = await rig.request('/api/v1/dispatcher/1/nodes/1/history', { token: rig.root })
  expect(twin.data()).toEqual(answer.data())
})

test('a tenant sees the history of its own nodes, and not which member of the platform acted', async () => {
  const rig = await openOutage()
  const own = await rig.tool('get_node_history', { node: 1 }, rig.acme)
  expect(own.data()).toMatchObject({
    changes: [{ by: null }, { by: 'user:acme/anna' }, { by: 'platform' }],
  })
  expect((await rig.tool('get_node_history', { node: 1 }, rig.other)).status).toBe(404)
  const path = '/api/v1/dispatcher/1/nodes/1/history'
  expect((await rig.request(path, { token: rig.other })).status).toBe(404)
  expect((await rig.request(path, { token: rig.acme })).status).toBe(200)
})
