/**
 * Calls that the API makes, moves and lets supervisors into: what the engine is asked, and how it
 * refuses.
 */
import { beforeEach, expect, test } from 'vitest'
import { openControl, type TestControl } from '../../support/control.ts'
import { activeCall } from '../../support/engine-views.ts'

const callUuid = '00000000-0000-4000-8000-000000000001'
const madeUuid = '00000000-0000-4000-8000-000000000007'
const refusal = (kind: string, code?: string) => ({ kind, ...(code !== undefined && { code }) })

let control: TestControl
let root: string
let acme: string
/** The questions to the engine, and its answers. */
let asked: object[]
let result: object
/** Carriers of acme and of the platform. */
let [ours, platform] = [0, 0]

const make = async (path: string, body: object): Promise<number> => {
  const answer = await control.request(`/api/v1${path}`, { token: root, body })
  expect([path, answer.status, answer.text]).toEqual([path, 201, answer.text])
  return answer.data<{ id: number } | undefined>()?.id ?? 0
}
const phone = (extension: string, domain: string) =>
  make('/pbx/extensions', { extension, domain, password: 'long enough', display_name: 'Phone' })

/** Two tenants with a phone and a number each; acme has a live call at the set 1. */
beforeEach(async () => {
  control = await openControl()
  root = await control.key()
  for (const [tenant, number, extension] of [
    ['acme', '15550100', '101'],
    ['beta', '15550200', '202'],
  ] as const) {
    await control.tenant(tenant, [`${tenant}.example`, `two.${tenant}.example`])
    await make('/customers', { name: tenant, tenant, numbers: [number] })
    await phone(extension, `${tenant}.example`)
  }
  acme = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const carrier = (name: string, host: string, of: object = {}) =>
    make('/routing/carriers', { name, gateways: [{ host }], ...of })
  ours = await carrier('ours', '192.0.2.1', { tenant: 'acme' })
  platform = await carrier('platform', '192.0.2.3')
  asked = []
  result = { kind: 'originating', callUuid: madeUuid }
  const answer = async (request: object) => {
    asked.push(request)
    return result as never
  }
  const spy = (request: object) => {
    asked.push(request)
    return result as never
  }
  Object.assign(control.engine, { originate: answer, placeTestCall: answer, transfer: answer, spy })
  const node = 'sip:10.0.0.1:5060;transport=udp'
  control.engine.activeCalls.push(activeCall({ callUuid, tenantId: 1, setId: 1, node }))
})

const post = (path: string, body: object, token = acme, headers = {}) =>
  control.request(path, { token, body, headers })
const originate = (change: object = {}, path = '/api/v1/pbx/calls/originate', headers = {}) =>
  post(path, { source_extension: '101', destination_number: '+15550999', ...change }, acme, headers)
const place = (body: object, token = root) =>
  post('/api/v1/telephony/test-call', { to: '+1 800 555-1212', ...body }, token)
const tryCarrier = (id = ours, token = acme) =>
  post(
    `/api/v1/routing/carriers/${id}/test-call`,
    { source_extension: '101', destination_number: '+1 555-0100' },
    token,
  )
const transfer = (body: object = {}) =>
  post('/telephony/transfer', { call_uuid: callUuid, destination: '102', ...body })
const spyOn = (change: object = {}, token = acme) =>
  post(
    '/telephony/spy',
    { call_uuid: callUuid, supervisor_extension: '101', mode: 'listen', ...change },
    token,
  )

const refusals: readonly [string, () => ReturnType<typeof post>, object, number, string][] = [
  ['originate', originate, refusal('extension_unregistered'), 409, 'extension_unregistered'],
  ['originate', originate, refusal('denied', 'insufficient_funds'), 402, 'insufficient_funds'],
  ['originate', originate, refusal('denied', 'destination_blocked'), 403, 'destination_blocked'],
  ['originate', originate, refusal('denied', 'ocs_unreachable'), 503, 'ocs_unreachable'],
  ['originate', originate, refusal('draining'), 503, 'draining'],
  ['originate', originate, refusal('overload'), 503, 'overload'],
  ['originate', originate, refusal('unknown_extension'), 404, 'not_found'],
  ['a test call', () => place({ from: '101' }), refusal('denied', 'no_rate'), 403, 'no_rate'],
  ['a test call', () => place({ from: '101' }), refusal('draining'), 503, 'draining'],
  ['a try of a carrier', tryCarrier, refusal('denied', 'no_gateway'), 409, 'no_gateway'],
  ['a try of a carrier', tryCarrier, refusal('denied', 'no_route'), 409, 'no_route'],
  ['a try of a carrier', tryCarrier, refusal('denied', 'carrier_limit'), 409, 'carrier_limit'],
  [
    'a try of a carrier',
    tryCarrier,
    refusal('denied', 'emergency_number'),
    409,
    'emergency_number',
  ],
  ['a try of a carrier', tryCarrier, refusal('denied', 'internal_number'), 409, 'internal_number'],
  ['transfer', transfer, refusal('not_found'), 404, 'not_found'],
  ['transfer', transfer, refusal('not_answered'), 409, 'call_not_answered'],
  ['transfer', transfer, refusal('already_ending'), 409, 'call_ending'],
  ['transfer', transfer, refusal('transfer_in_progress'), 409, 'transfer_in_progress'],
  ['transfer', transfer, refusal('not_transferable'), 409, 'not_transferable'],
  ['transfer', transfer, refusal('denied', 'draining'), 503, 'draining'],
  ['spy', spyOn, refusal('unknown_call'), 404, 'not_found'],
  ['spy', spyOn, refusal('call_not_answered'), 409, 'call_not_answered'],
  ['spy', spyOn, refusal('spy_mode_unavailable'), 501, 'spy_mode_unavailable'],
  ['spy', spyOn, refusal('overload'), 503, 'overload'],
]

test.each(refusals)(
  '%s: what the engine refuses is told: %o%o',
  async (_, ask, refused, ...told) => {
    result = refused
    const answer = await ask()
    expect([answer.status, answer.code]).toEqual(told)
    if (answer.status === 503) expect(answer.headers.get('retry-after')).toBe('5')
  },
)

test.each(['/api/v1/pbx/calls/originate', '/api/v1/telephony/originate', '/telephony/originate'])(
  '%s answers 201, bare, with where the call can be looked at',
  async (path) => {
    const answer = await originate({}, path)
    expect([answer.status, answer.body]).toEqual([
      201,
      { call_uuid: madeUuid, status: 'originating' },
    ])
    expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${madeUuid}`)
    expect(asked).toMatchObject([
      { domain: 'acme.example', extension: '101', destination: '+15550999', ringMs: 60_000 },
    ])
  },
)

test('the caller id is a number of who pays for the extension, or one that nobody owns', async () => {
  await make('/customers', { name: 'other', tenant: 'acme', numbers: ['15550300'] })
  await make('/numbers', { number: '+15550400', last_number: '+15550499', tenant: 'acme' })
  await make('/numbers', { number: '+15550500', tenant: 'acme', is_active: false })
  await make('/numbers', { number: '+15550600', tenant: 'beta' })
  const extension = '103'
  const body = { extension, domain: 'acme.example', password: 'long enough', display_name: 'Phone' }
  await make('/pbx/extensions', { ...body, customer: 'acme' })
  const shows = async (caller_id_number: string, source_extension = extension) =>
    (await originate({ caller_id_number, source_extension })).status
  expect(await shows('+15550100')).toBe(201)
  expect(await shows('15550300')).toBe(400)
  // An extension without a customer is the tenant's.
  expect(await shows('15550300', '101')).toBe(201)
  expect(await shows('15550450')).toBe(201)
  expect(await shows('15550500')).toBe(400)
  expect(await shows('15550600')).toBe(400)
})

test('the caller id is one of the numbers of the tenant; numbers are read in any spelling', async () => {
  for (const caller_id_number of ['15550200', '15550000'])
    expect((await originate({ caller_id_number })).status).toBe(400)
  for (const caller_id_number of ['15550100', '+15550100', '101', '1 (555) 0100'])
    expect((await originate({ caller_id_number })).status).toBe(201)
  expect(asked.map((each) => (each as { callerNumber?: string }).callerNumber)).toEqual([
    '15550100',
    '+15550100',
    '101',
    '15550100',
  ])
  asked.length = 0
  expect((await originate({ destination_number: '1-900.(555) 1234' })).status).toBe(201)
  result = { kind: 'transferring', callUuid: madeUuid }
  expect((await transfer({ destination: '1 (900) 555-1234' })).status).toBe(202)
  expect(asked).toMatchObject([{ destination: '19005551234' }, { destination: '19005551234' }])
  for (const number of ['1+900', '++1900', 'alice', '1900x', '-', '１９００', '1%20900']) {
    expect((await originate({ destination_number: number })).status).toBe(400)
    expect((await transfer({ destination: number })).status).toBe(400)
  }
})

test('an extension of another tenant does not exist; of two domains one has to be named', async () => {
  expect((await originate({ source_extension: '202' })).status).toBe(404)
  await phone('101', 'two.acme.example')
  const unclear = await originate()
  expect([unclear.status, unclear.text]).toEqual([400, expect.stringContaining('domain')])
  expect((await originate({ domain: 'two.acme.example' })).status).toBe(201)
  expect(asked).toMatchObject([{ domain: 'two.acme.example' }])
})

test('the same Idempotency-Key starts one call and gets the same answer, by whatever path', async () => {
  const headers = { 'Idempotency-Key': 'click-1' }
  const first = await originate({}, undefined, headers)
  for (const path of [undefined, '/api/v1/telephony/originate', '/telephony/originate']) {
    const again = await originate({}, path, headers)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('location')).toBe(first.headers.get('location'))
  }
  expect(asked).toHaveLength(1)
})

test('a test call in the name of a number or an extension of the own tenant tells where it is', async () => {
  const answer = await place({ from: '+15550100' }, acme)
  expect(answer.data()).toEqual({ call_uuid: madeUuid, status: 'originating', max_seconds: 5 })
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${madeUuid}`)
  expect((await place({ from: '101', max_seconds: 30 })).status).toBe(201)
  for (const from of ['+15550200', '202', '+15550999'])
    expect((await place({ from }, acme)).status).toBe(404)
  expect(asked).toEqual([
    { from: { kind: 'number', number: '15550100' }, destination: '+18005551212', maxSeconds: 5 },
    {
      from: { kind: 'extension', domain: 'acme.example', extension: '101' },
      destination: '+18005551212',
      maxSeconds: 30,
    },
  ])
})

test('a try of a carrier is a click-to-call through it, and is audited', async () => {
  const answer = await tryCarrier()
  expect(answer.data()).toEqual({ call_uuid: madeUuid, status: 'originating', max_seconds: 30 })
  expect(asked).toMatchObject([
    { extension: '101', destination: '+15550100', ringMs: 30_000, testedCarrierId: ours },
  ])
  const audit = await control.request('/audit?target=test-call', { token: root })
  expect(audit.data()).toMatchObject([
    { target: `/api/v1/routing/carriers/${ours}/test-call`, status: 201, tenant_id: 1 },
  ])
})

test('six test calls a minute for a tenant, and six for a carrier and tenant; others have windows of their own', async () => {
  for (let n = 0; n < 6; n += 1) expect((await place({ from: '101' })).status).toBe(201)
  const refused = await place({ from: '+15550100' }, acme)
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited'])
  expect((await place({ from: '202' })).status).toBe(201)
  for (let n = 0; n < 6; n += 1) expect((await tryCarrier()).status).toBe(201)
  expect((await tryCarrier()).code).toBe('rate_limited')
  // The limit holds by whatever credential.
  expect((await tryCarrier(ours, root)).status).toBe(429)
  expect((await tryCarrier(platform, root)).status).toBe(201)
})

test('a transfer is 202 at once; the caller is moved unless one says otherwise, and the call shows it', async () => {
  result = { kind: 'transferring', callUuid: madeUuid }
  const answer = await transfer()
  expect([answer.status, answer.data()]).toEqual([
    202,
    {
      call_uuid: callUuid,
      transfer_uuid: madeUuid,
      destination: '102',
      leg: 'caller',
      mode: 'blind',
      status: 'transferring',
    },
  ])
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${madeUuid}`)
  const path = `/api/v1/pbx/calls/${callUuid}`
  await post(`${path}/transfer`, { destination: '+4930100', leg: 'callee' })
  expect(asked).toEqual([
    { callUuid, destination: '102', moved: 'caller' },
    { callUuid, destination: '+4930100', moved: 'callee' },
  ])
  const failed = { callUuid: madeUuid, destination: '102', sipCode: 486, state: 'failed' as const }
  control.engine.activeCalls = [activeCall({ callUuid, tenantId: 1, transfer: failed })]
  const shown = { state: 'failed', call_uuid: madeUuid, destination: '102', sip_code: 486 }
  const list = await control.request('/api/v1/pbx/calls/active', { token: acme })
  expect(list.body).toMatchObject([{ transfer: shown }])
  const status = await control.request(path, { token: acme })
  expect(status.data()).toMatchObject({ status: 'answered', transfer: shown })
})

const setWith = (spy_uri: string | null) =>
  make('/dispatcher', {
    endpoint_name: 'pbx',
    algorithm: 8,
    set_id: 1,
    nodes: [{ host: '10.0.0.1' }],
    spy_uri,
  })

test('a supervisor is called and let into the call; its own call may be followed', async () => {
  await setWith('sip:{mode}-{side}-{call_uuid}@{node}')
  const answer = await spyOn({ mode: 'whisper', side: 'callee' })
  expect([answer.status, answer.data()]).toEqual([
    201,
    {
      spy_uuid: madeUuid,
      call_uuid: callUuid,
      mode: 'whisper',
      side: 'callee',
      status: 'originating',
    },
  ])
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${madeUuid}`)
  expect(asked).toEqual([
    { callUuid, domain: 'acme.example', extension: '101', mode: 'whisper', side: 'callee' },
  ])
})

test('a mode or a side for which the PBX has no word is not possible; a call of none is listened to at its relay', async () => {
  const unavailable = async (change: object) => {
    const { status, code } = await spyOn(change)
    return [status, code]
  }
  await setWith('sip:spy-{call_uuid}@{node}')
  for (const change of [{ mode: 'barge' }, { mode: 'whisper', side: 'caller' }])
    expect(await unavailable(change)).toEqual([501, 'spy_mode_unavailable'])
  expect((await spyOn()).status).toBe(201)
  await control.request('/dispatcher/1', { token: root, method: 'PATCH', body: { spy_uri: null } })
  for (const mode of ['whisper', 'barge'])
    expect(await unavailable({ mode })).toEqual([501, 'spy_mode_unavailable'])
  expect((await spyOn()).status).toBe(201)
  expect(asked).toMatchObject([{ mode: 'listen', side: 'both' }, { mode: 'listen' }])
})

test('a credential of all tenants rings an extension of the tenant of the call only', async () => {
  expect((await spyOn({}, root)).status).toBe(201)
  expect((await spyOn({ supervisor_extension: '202' }, root)).status).toBe(404)
  expect(asked).toMatchObject([{ domain: 'acme.example' }])
})
