import { expect, test, beforeEach } from 'vitest'
import type { ActiveCall, EndedCall } from '../../../schema/contracts/calls.ts'
import { activeCall, nodeStatus } from '../../support/engine-views.ts'
import { openControl, startOfTime, type TestControl } from '../../support/control.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import { answeredCall } from '../../support/report-rig.ts'
import { storeCall } from '../../support/stored-calls.ts'

const uuid = '00000000-0000-4000-8000-000000000001'

const otherUuid = uuid.replace(/1$/, '2')

const call = activeCall({
  callUuid: uuid,
  callerNumber: '15550001111',
  calledNumber: '18005551212',
  startedAt: startOfTime - 20_000,
  answeredAt: startOfTime - 12_500,
  customerId: 4,
  setId: 1,
  node: 'sip:10.0.0.1:5060;transport=udp',
  peers: { caller: '203.0.113.7:5060', callee: '10.0.0.1:5060' },
})

async function open(calls: readonly ActiveCall[] = [call]) {
  const control = await openControl()
  control.engine.activeCalls.push(...calls)
  return control
}

test('active calls are a bare array with the fields of the specification', async () => {
  const { request, key } = await open()
  const { status, body } = await request('/api/v1/pbx/calls/active', { token: await key() })
  expect(status).toBe(200)
  expect(body).toEqual([
    {
      uuid,
      call_uuid: uuid,
      caller_id_number: '15550001111',
      destination_number: '18005551212',
      duration_seconds: 12,
      state: 'ACTIVE',
      direction: 'inbound',
      start_stamp: '2025-12-31T23:59:40.000Z',
      answer_stamp: '2025-12-31T23:59:47.500Z',
      set_id: 1,
      node: 'sip:10.0.0.1:5060;transport=udp',
      instance: 'sbc-1',
      node_state: null,
      carrier: null,
      caller_address: '203.0.113.7:5060',
      callee_address: '10.0.0.1:5060',
      customer_id: 4,
      tags: null,
      transfer: null,
      recording: false,
      cost: 0,
      cost_exact: '0.00',
      currency: null,
      price: null,
    },
  ])
})

test('however many calls there are, each is listed once, and others have their turn meanwhile', async () => {
  const calls = Array.from({ length: 1_201 }, (_, index) => ({ ...call, callUuid: `c-${index}` }))
  const { app, key } = await open(calls)
  let turns = 0
  const turn = () => {
    turns += 1
    immediate = setImmediate(turn)
  }
  let immediate = setImmediate(turn)
  const headers = { Authorization: `Bearer ${await key()}` }
  const answer = await app.request('/api/v1/pbx/calls/active', { headers })
  clearImmediate(immediate)
  const listed = (await answer.json()) as { uuid: string }[]
  expect(listed.map(({ uuid: each }) => each)).toEqual(calls.map(({ callUuid }) => callUuid))
  expect(turns).toBeGreaterThanOrEqual(2)
})

test('calls on a node in maintenance are listed by their node until they end', async () => {
  const { request, key, engine } = await open([call, { ...call, callUuid: otherUuid, node: null }])
  const destination = 'sip:10.0.0.1:5060;transport=udp'
  engine.sets.push({ setId: 1, nodes: [nodeStatus({ destination, state: 'inactive' })] })
  const path = `/api/v1/pbx/calls/active?node=${encodeURIComponent(destination)}`
  const { body } = await request(path, { token: await key() })
  expect(body).toMatchObject([{ uuid, node_state: 'inactive' }])
  expect(body).toHaveLength(1)
})

test('the cost so far is what the call would be charged if it ended now: a second at least, its grant at most', async () => {
  const control = await open([{ ...call, startedAt: startOfTime, answeredAt: startOfTime }])
  const token = await control.key()
  const ask = (path: string, body: object) => control.request(path, { token, body })
  await ask('/rate-plans', { name: 'golden' })
  await ask('/rates', {
    rate_plan: 'golden',
    prefix: '1800',
    connect_fee: '0.40',
    rate_per_minute: '0.10',
    first_increment: 60,
    first_rate_per_minute: '0.20',
  })
  const customer = { name: 'acme', numbers: ['15550001111'], rate_plan: 'golden' }
  const made = await ask('/customers', customer)
  const { id } = made.data<{ id: number }>()
  await ask(`/customers/${id}/wallet/adjust`, { amount: '100', kind: 'topup', reason: 'x' })
  const query = `caller=15550001111&callee=18005551212&call_uuid=${uuid}`
  expect((await control.request(`/api/ocs/authorize?${query}`, { token })).status).toBe(200)
  const cost = async () => {
    const { body } = await control.request('/api/v1/pbx/calls/active', { token })
    const [{ cost, cost_exact, currency } = {}] = body as Record<string, unknown>[]
    return [cost, cost_exact, currency]
  }
  expect(await cost()).toEqual([0.6, '0.60', 'USD'])
  control.tick(19_500)
  expect(await cost()).toEqual([0.6, '0.60', 'USD'])
  // Granted are 60 seconds: what comes after them is not the customer's to pay.
  control.tick(70_000)
  expect(await cost()).toEqual([0.6, '0.60', 'USD'])
})

test.each([
  ['ending', 200],
  ['already_ending', 409],
  ['not_found', 404],
] as const)('a hang-up that the engine answers with %s is a %i', async (result, status) => {
  const control = await open()
  const asked: unknown[] = []
  Object.assign(control.engine.calls, {
    hangUp: (...words: unknown[]) => {
      asked.push(words)
      return result
    },
  })
  const answer = await control.request('/api/v1/telephony/hangup', {
    token: await control.key(),
    method: 'POST',
    body: { call_uuid: uuid },
  })
  expect(answer.status).toBe(status)
  expect(asked).toEqual([[uuid, 16]])
})

const live = activeCall({
  callUuid: uuid,
  state: 'DIALING',
  direction: 'outbound',
  callerNumber: '101',
  calledNumber: '15550100',
  answeredAt: null,
  customerId: 7,
})

const ended: EndedCall = { ...answeredCall, callUuid: uuid, endedAt: startOfTime + 9_000 }

const record: CallRecord = { ...answeredCall, callUuid: uuid, disposition: 'BUSY', billsec: 0 }

let control: TestControl

beforeEach(async () => {
  control = await openControl()
})

const ask = async (token?: string) =>
  control.request(`/api/v1/pbx/calls/${uuid}`, { token: token ?? (await control.key()) })

test.each([
  ['DIALING', 'originating'],
  ['RINGING', 'ringing'],
  ['EARLY', 'ringing'],
  ['ACTIVE', 'answered'],
  ['HELD', 'answered'],
] as const)('a live call that is %s is %s', async (state, status) => {
  control.engine.activeCalls.push({ ...live, state })
  expect((await ask()).data()).toMatchObject({ call_uuid: uuid, status, end_stamp: null })
})

test.each([
  [{ disposition: 'ANSWERED' }, 'completed'],
  [{ disposition: 'BUSY' }, 'busy'],
  [{ disposition: 'NO ANSWER' }, 'no_answer'],
  [{ disposition: 'CANCELED' }, 'canceled'],
  [{ disposition: 'FAILED' }, 'failed'],
  [{ disposition: 'CONGESTION' }, 'failed'],
  [{ disposition: 'CANCELED', hangupBy: 'api' }, 'canceled'],
  [{ disposition: 'ANSWERED', hangupBy: 'api' }, 'completed'],
] as const)('a call that has just ended with %j is %s', async (change, status) => {
  control.engine.calls.recent = () => ({ ...ended, ...change })
  const { disposition } = change
  expect((await ask()).data()).toMatchObject({
    status,
    disposition,
    end_stamp: '2026-01-01T00:00:09.000Z',
  })
})

test('a call of long ago is found in its record, by its tenant only', async () => {
  const tenantId = await control.tenant('acme', ['acme.example'])
  await control.tenant('beta', ['beta.example'])
  await storeCall(control.store, { ...record, tenantId }, { costMicros: 0, currency: null })
  const key = (tenant_slug: string) =>
    control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug })
  expect((await ask(await key('acme'))).data()).toMatchObject({ status: 'busy', billsec: 0 })
  expect((await ask(await key('beta'))).status).toBe(404)
})

test('a call that a node has reported under a name of its own is found, too', async () => {
  const reported = { ...record, callUuid: 'node 7/4711' }
  await storeCall(control.store, reported, { costMicros: 0, currency: null })
  const path = `/api/v1/pbx/calls/${encodeURIComponent('node 7/4711')}`
  const answer = await control.request(path, { token: await control.key() })
  expect(answer.data()).toMatchObject({ call_uuid: 'node 7/4711', status: 'busy' })
})
