import { expect, test } from 'vitest'
import type { ActiveCall } from '../../../control/deps.ts'
import { openControl, startOfTime } from '../../support/control.ts'

const uuid = '00000000-0000-4000-8000-000000000001'

const call: ActiveCall = {
  callUuid: uuid,
  state: 'ACTIVE',
  direction: 'inbound',
  callerNumber: '15550001111',
  calledNumber: '18005551212',
  startedAt: startOfTime - 20_000,
  answeredAt: startOfTime - 12_500,
  tenantId: null,
  customerId: 4,
  setId: 1,
  node: 'sip:10.0.0.1:5060;transport=udp',
  carrier: null,
}

function open(calls: readonly ActiveCall[] = [call]) {
  const control = openControl()
  control.engine.activeCalls.push(...calls)
  return control
}

test('active calls are a bare array with the fields of the specification', async () => {
  const { request, key } = open()
  const { status, body } = await request('/api/v1/pbx/calls/active', { token: key() })
  expect(status).toBe(200)
  expect(body).toEqual([
    {
      uuid,
      caller_id_number: '15550001111',
      destination_number: '18005551212',
      duration_seconds: 12,
      state: 'ACTIVE',
      direction: 'inbound',
      start_stamp: '2025-12-31T23:59:40.000Z',
      answer_stamp: '2025-12-31T23:59:47.500Z',
      set_id: 1,
      node: 'sip:10.0.0.1:5060;transport=udp',
      carrier: null,
      customer_id: 4,
    },
  ])
})

test('a tenant sees and ends its own calls only; those of others do not exist', async () => {
  const control = open([])
  const acme = control.tenant('acme', ['acme.example'])
  const beta = control.tenant('beta', ['beta.example'])
  const other = uuid.replace(/1$/, '2')
  control.engine.activeCalls.push(
    { ...call, tenantId: acme },
    { ...call, callUuid: other, tenantId: beta },
  )
  const token = control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const list = await control.request('/api/v1/pbx/calls/active', { token })
  expect(list.body).toMatchObject([{ uuid }])
  const hangUp = (call_uuid: string) =>
    control.request('/telephony/hangup', { token, method: 'POST', body: { call_uuid } })
  expect((await hangUp(other)).status).toBe(404)
})

test.each([
  ['ending', 200],
  ['already_ending', 409],
  ['not_found', 404],
] as const)('a hang-up that the engine answers with %s is a %i', async (result, status) => {
  const control = open()
  const asked: unknown[] = []
  Object.assign(control.engine.calls, {
    hangUp: (...words: unknown[]) => {
      asked.push(words)
      return result
    },
  })
  const answer = await control.request('/api/v1/telephony/hangup', {
    token: control.key(),
    method: 'POST',
    body: { call_uuid: uuid },
  })
  expect(answer.status).toBe(status)
  expect(asked).toEqual([[uuid, 16]])
})

test('hanging up needs calls:control, reading does not give it', async () => {
  const { request, key } = open()
  const token = key({ scopes: ['calls:read'] })
  const body = { call_uuid: uuid }
  const answer = await request('/api/v1/telephony/hangup', { token, method: 'POST', body })
  expect(answer.status).toBe(403)
})
