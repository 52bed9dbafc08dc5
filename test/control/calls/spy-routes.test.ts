import { beforeEach, expect, test } from 'vitest'
import type { ActiveCall, SpyRequest, SpyResult } from '../../../schema/contracts/calls.ts'
import { openControl, startOfTime, type TestControl } from '../../support/control.ts'

const uuid = '00000000-0000-4000-8000-000000000001'
const spyUuid = '00000000-0000-4000-8000-00000000000a'
const body = { call_uuid: uuid, supervisor_extension: '101', mode: 'listen' }

let control: TestControl
let asked: SpyRequest[]
let result: SpyResult

/** A call of acme on a node of set 1, which lets supervisors in by this template. */
async function open(spyUri: string | null = 'sip:{mode}-{side}-{call_uuid}@{node}') {
  const set = { endpoint_name: 'pbx', algorithm: 8, set_id: 1, nodes: [{ host: '10.0.0.1' }] }
  const token = await control.key()
  await control.request('/dispatcher', { token, body: { ...set, spy_uri: spyUri } })
}

beforeEach(async () => {
  control = await openControl()
  await control.tenant('acme', ['acme.example'])
  await control.tenant('beta', ['beta.example'])
  const call: ActiveCall = {
    callUuid: uuid,
    state: 'ACTIVE',
    direction: 'inbound',
    callerNumber: '1',
    calledNumber: '2',
    startedAt: startOfTime,
    answeredAt: startOfTime,
    tenantId: 1,
    customerId: null,
    setId: 1,
    node: 'sip:10.0.0.1:5060;transport=udp',
    carrier: null,
    stampOffsetMs: 0,
    instance: 'sbc-1',
    peers: { caller: null, callee: null },
  }
  control.engine.activeCalls.push(call)
  for (const domain of ['acme.example', 'beta.example'])
    await control.request('/pbx/extensions', {
      token: await control.key(),
      body: { extension: '101', password: 'a long password', display_name: '101', domain },
    })
  asked = []
  result = { kind: 'originating', callUuid: spyUuid }
  control.engine.spy = (request) => {
    asked.push(request)
    return result
  }
})

const ofAcme = () => control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })

const spy = async (changes: object = {}, token?: string) =>
  control.request('/telephony/spy', {
    token: token ?? (await ofAcme()),
    method: 'POST',
    body: { ...body, ...changes },
  })

test.each(['whisper', 'barge'])(
  'to %s is refused with the reason when the PBX of the call does not support it',
  async (mode) => {
    await open(null)
    const answer = await spy({ mode, supervisor_extension: '999' })
    expect([answer.status, answer.code]).toEqual([501, 'spy_mode_unavailable'])
    expect(asked).toEqual([])
  },
)

test('a call that no PBX has may be listened to at its media relay, if there is one', async () => {
  await open(null)
  expect((await spy()).status).toBe(201)
  result = { kind: 'spy_mode_unavailable' }
  const answer = await spy({ side: 'caller' })
  expect([answer.status, answer.code]).toEqual([501, 'spy_mode_unavailable'])
  expect(asked).toMatchObject([{ mode: 'listen', side: 'both' }, { side: 'caller' }])
})

test('a supervisor is called and let into the call; its own call may be followed', async () => {
  await open()
  const answer = await spy({ mode: 'whisper', side: 'callee' })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${spyUuid}`)
  expect(answer.data()).toEqual({
    spy_uuid: spyUuid,
    call_uuid: uuid,
    mode: 'whisper',
    side: 'callee',
    status: 'originating',
  })
  expect(asked).toEqual([
    { callUuid: uuid, domain: 'acme.example', extension: '101', mode: 'whisper', side: 'callee' },
  ])
})

test('a mode or a side for which the PBX has no word is not possible', async () => {
  await open('sip:spy-{call_uuid}@{node}')
  for (const change of [{ mode: 'barge' }, { mode: 'whisper', side: 'caller' }])
    expect((await spy(change)).status).toBe(501)
  expect((await spy()).status).toBe(201)
})

test.each([
  [{ kind: 'unknown_call' }, 404, 'not_found'],
  [{ kind: 'unknown_extension' }, 404, 'not_found'],
  [{ kind: 'extension_unregistered' }, 409, 'extension_unregistered'],
  [{ kind: 'call_not_answered' }, 409, 'call_not_answered'],
  [{ kind: 'spy_mode_unavailable' }, 501, 'spy_mode_unavailable'],
  [{ kind: 'draining' }, 503, 'draining'],
  [{ kind: 'overload' }, 503, 'overload'],
] satisfies [SpyResult, number, string][])('%j is a %i %s', async (refusal, status, code) => {
  await open()
  result = refusal
  const answer = await spy()
  expect([answer.status, answer.code]).toEqual([status, code])
})

test('a credential of all tenants rings an extension of the tenant of the call only', async () => {
  await open()
  const ofAll = await control.key()
  expect((await spy({}, ofAll)).status).toBe(201)
  expect(asked).toMatchObject([{ domain: 'acme.example' }])
  await control.request('/pbx/extensions', {
    token: ofAll,
    body: {
      extension: '200',
      password: 'a long password',
      display_name: '',
      domain: 'beta.example',
    },
  })
  expect((await spy({ supervisor_extension: '200' }, ofAll)).status).toBe(404)
  expect(asked).toHaveLength(1)
})
