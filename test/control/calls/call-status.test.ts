import { beforeEach, expect, test } from 'vitest'
import type { ActiveCall, EndedCall } from '../../../schema/contracts/calls.ts'
import type { CallRecord } from '../../../schema/call-record.ts'
import { openControl, startOfTime, type TestControl } from '../../support/control.ts'
import { activeCall } from '../../support/engine-views.ts'
import { answeredCall } from '../../support/report-rig.ts'
import { storeCall } from '../../support/stored-calls.ts'

const uuid = '00000000-0000-4000-8000-000000000001'
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
