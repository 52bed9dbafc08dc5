import { beforeEach, expect, test } from 'vitest'
import type {
  ActiveCall,
  CallTransfer,
  TransferRequest,
  TransferResult,
} from '../../../schema/contracts/calls.ts'
import { openControl, startOfTime, type TestControl } from '../../support/control.ts'

const callUuid = '00000000-0000-4000-8000-000000000001'
const transferUuid = '00000000-0000-4000-8000-000000000002'

let control: TestControl
let token: string
let asked: TransferRequest[]
let result: TransferResult
let acme: number

const callOf = (tenantId: number): ActiveCall => ({
  callUuid,
  state: 'ACTIVE',
  direction: 'inbound',
  callerNumber: '15550001111',
  calledNumber: '101',
  startedAt: startOfTime,
  answeredAt: startOfTime,
  tenantId,
  customerId: 4,
  setId: null,
  node: null,
  carrier: null,
  stampOffsetMs: 0,
  instance: 'sbc-1',
  peers: { caller: null, callee: null },
})

beforeEach(async () => {
  control = await openControl()
  acme = await control.tenant('acme', ['acme.example'])
  token = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  asked = []
  result = { kind: 'transferring', callUuid: transferUuid }
  control.engine.activeCalls.push(callOf(acme))
  control.engine.transfer = (request) => {
    asked.push(request)
    return Promise.resolve(result)
  }
})

const transfer = (body: Readonly<Record<string, unknown>> = {}, key = token) =>
  control.request('/telephony/transfer', {
    token: key,
    method: 'POST',
    body: { call_uuid: callUuid, destination: '102', ...body },
  })

test('202 at once, with the call to the destination; the caller is moved unless one says otherwise', async () => {
  const answer = await transfer()
  expect(answer.status).toBe(202)
  expect(answer.data()).toEqual({
    call_uuid: callUuid,
    transfer_uuid: transferUuid,
    destination: '102',
    leg: 'caller',
    mode: 'blind',
    status: 'transferring',
  })
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${transferUuid}`)
  expect((await transfer({ leg: 'callee', mode: 'blind' })).status).toBe(202)
  expect(asked).toEqual([
    { callUuid, destination: '102', moved: 'caller' },
    { callUuid, destination: '102', moved: 'callee' },
  ])
  const audit = await control.request('/api/v1/audit', { token: await control.key() })
  const trail = audit.data<readonly object[]>()
  const action = 'POST /api/v1/telephony/transfer'
  expect(trail).toMatchObject([{ action, status: 202 }, { action }])
})

test('the same under the path of the call', async () => {
  const answer = await control.request(`/api/v1/pbx/calls/${callUuid}/transfer`, {
    token,
    method: 'POST',
    body: { destination: '+4930100', leg: 'callee' },
  })
  expect(answer.status).toBe(202)
  expect(asked).toEqual([{ callUuid, destination: '+4930100', moved: 'callee' }])
})

test.each([
  [{ kind: 'not_found' }, 404, 'not_found'],
  [{ kind: 'not_answered' }, 409, 'call_not_answered'],
  [{ kind: 'already_ending' }, 409, 'call_ending'],
  [{ kind: 'transfer_in_progress' }, 409, 'transfer_in_progress'],
  [{ kind: 'not_transferable' }, 409, 'not_transferable'],
  [{ kind: 'denied', code: 'insufficient_funds' }, 402, 'insufficient_funds'],
  [{ kind: 'denied', code: 'destination_blocked' }, 403, 'destination_blocked'],
  [{ kind: 'denied', code: 'draining' }, 503, 'draining'],
] satisfies [TransferResult, number, string][])('%j is a %i %s', async (refusal, status, code) => {
  result = refusal
  const answer = await transfer()
  expect([answer.status, answer.code]).toEqual([status, code])
})

test('the call shows its transfer: in the list and in its status', async () => {
  const transfer: CallTransfer = {
    state: 'failed',
    callUuid: transferUuid,
    destination: '102',
    sipCode: 486,
  }
  control.engine.activeCalls[0] = { ...callOf(acme), transfer }
  const shown = { state: 'failed', call_uuid: transferUuid, destination: '102', sip_code: 486 }
  const list = await control.request('/api/v1/pbx/calls/active', { token })
  expect(list.body).toMatchObject([{ transfer: shown }])
  const status = await control.request(`/api/v1/pbx/calls/${callUuid}`, { token })
  expect(status.data()).toMatchObject({ status: 'answered', transfer: shown })
})

test('the destination is read in any spelling: the engine gets its normal form', async () => {
  expect((await transfer({ destination: '1 (900) 555-1234' })).status).toBe(202)
  expect(asked).toMatchObject([{ destination: '19005551234' }])
  for (const destination of ['1+900', 'alice', '(-)', '１９００'])
    expect((await transfer({ destination })).status).toBe(400)
})
