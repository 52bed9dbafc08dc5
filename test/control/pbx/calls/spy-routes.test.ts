import { expect, test } from 'vitest'
import type { ActiveCall } from '../../../../control/deps.ts'
import { openControl, startOfTime } from '../../../support/control.ts'

const uuid = '00000000-0000-4000-8000-000000000001'
const call: ActiveCall = {
  ...{ callUuid: uuid, state: 'ACTIVE', direction: 'inbound', callerNumber: '1' },
  ...{ calledNumber: '2', startedAt: startOfTime, answeredAt: startOfTime, tenantId: 2 },
  ...{ customerId: null, setId: 1, node: null, carrier: null },
  peers: { caller: null, callee: null },
}
const body = { call_uuid: uuid, supervisor_extension: '100', mode: 'listen' }

function open(scopes: readonly string[] = ['*']) {
  const control = openControl()
  for (const slug of ['acme', 'beta']) control.tenant(slug)
  control.engine.activeCalls.push(call)
  const spy = (changes: object = {}, token = control.key({ scopes })) =>
    control.request('/telephony/spy', { token, method: 'POST', body: { ...body, ...changes } })
  return { ...control, spy }
}

test.each(['listen', 'whisper', 'barge'])(
  'to %s is not possible here, and said so',
  async (mode) => {
    const answer = await open().spy({ mode })
    expect([answer.status, answer.code]).toEqual([501, 'spy_mode_unavailable'])
  },
)

test('a call that is not live, or another tenant’s, is not found', async () => {
  const { spy, key } = open()
  expect((await spy({ call_uuid: uuid.replace(/1$/, '2') })).status).toBe(404)
  const token = key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect((await spy({}, token)).status).toBe(404)
})

test('spying needs calls:spy and a mode that exists', async () => {
  expect((await open(['calls:control']).spy()).status).toBe(403)
  expect((await open().spy({ mode: 'record' })).status).toBe(400)
})
