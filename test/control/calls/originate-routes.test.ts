import { beforeEach, expect, test } from 'vitest'
import type { OriginateRequest, OriginateResult } from '../../../schema/contracts/calls.ts'
import { openControl, type TestControl } from '../../support/control.ts'

const callUuid = '00000000-0000-4000-8000-000000000007'
const body = { source_extension: '101', destination_number: '+15550100' }

let control: TestControl
let token: string
let asked: OriginateRequest[]
let result: OriginateResult

beforeEach(async () => {
  control = await openControl()
  await control.tenant('acme', ['acme.example', 'two.example'])
  await control.tenant('beta', ['beta.example'])
  token = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  asked = []
  result = { kind: 'originating', callUuid }
  control.engine.originate = (request) => {
    asked.push(request)
    return Promise.resolve(result)
  }
  await extension('101', 'acme.example')
})

async function extension(number: string, domain: string): Promise<void> {
  const { status } = await control.request('/api/v1/pbx/extensions', {
    token: await control.key(),
    method: 'POST',
    body: { extension: number, password: 'long enough', display_name: 'Phone', domain },
  })
  expect(status).toBe(201)
}

const originate = (
  changes: Readonly<Record<string, unknown>> = {},
  path = '/api/v1/pbx/calls/originate',
  headers: Readonly<Record<string, string>> = {},
) => control.request(path, { token, method: 'POST', body: { ...body, ...changes }, headers })

test.each(['/api/v1/pbx/calls/originate', '/api/v1/telephony/originate', '/telephony/originate'])(
  '%s answers 201, bare, with where the call can be looked at',
  async (path) => {
    const answer = await originate({}, path)
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({ call_uuid: callUuid, status: 'originating' })
    expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${callUuid}`)
    expect(asked).toEqual([
      {
        domain: 'acme.example',
        extension: '101',
        destination: '+15550100',
        callerNumber: undefined,
        callerName: undefined,
        autoAnswer: false,
        ringMs: 60_000,
      },
    ])
  },
)

test.each([
  [{ kind: 'extension_unregistered' }, 409, 'extension_unregistered'],
  [{ kind: 'denied', code: 'insufficient_funds' }, 402, 'insufficient_funds'],
  [{ kind: 'denied', code: 'destination_blocked' }, 403, 'destination_blocked'],
  [{ kind: 'denied', code: 'ocs_unreachable' }, 503, 'ocs_unreachable'],
  [{ kind: 'draining' }, 503, 'draining'],
  [{ kind: 'overload' }, 503, 'overload'],
  [{ kind: 'unknown_extension' }, 404, 'not_found'],
] satisfies [OriginateResult, number, string][])('%j is a %i %s', async (refusal, status, code) => {
  result = refusal
  const answer = await originate()
  expect([answer.status, answer.code]).toEqual([status, code])
  expect(answer.headers.get('retry-after')).toBe(status === 503 ? '5' : null)
})

test('the caller id must be one of the tenant’s numbers, with or without its plus', async () => {
  const { data } = await control.request('/api/v1/customers', {
    token: await control.key(),
    method: 'POST',
    body: { name: 'Acme', tenant: 'acme', numbers: ['15559999'] },
  })
  expect(data<{ id: number }>().id).toBeGreaterThan(0)
  const refused = await originate({ caller_id_number: '15550000' })
  expect(refused.status).toBe(400)
  expect(refused.text).toContain('caller_id_number')
  expect(asked).toEqual([])
  for (const caller_id_number of ['15559999', '+15559999', '101'])
    expect((await originate({ caller_id_number })).status).toBe(201)
  expect(asked.map(({ callerNumber }) => callerNumber)).toEqual(['15559999', '+15559999', '101'])
})

test('an extension of another tenant does not exist; of two domains one has to be named', async () => {
  await extension('200', 'beta.example')
  expect((await originate({ source_extension: '200' })).status).toBe(404)
  await extension('101', 'two.example')
  const unclear = await originate()
  expect(unclear.status).toBe(400)
  expect(unclear.text).toContain('domain')
  expect((await originate({ domain: 'two.example' })).status).toBe(201)
  expect(asked.map(({ domain }) => domain)).toEqual(['two.example'])
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

test('numbers are read in any spelling: the engine gets their normal form', async () => {
  const customer = { name: 'c', tenant: 'acme', numbers: ['12025550100'] }
  const path = '/api/v1/customers'
  await control.request(path, { token: await control.key(), method: 'POST', body: customer })
  const shown = { caller_id_number: '+1 (202) 555-0100' }
  expect((await originate({ destination_number: '1-900.(555) 1234', ...shown })).status).toBe(201)
  expect(asked).toMatchObject([{ destination: '19005551234', callerNumber: '+12025550100' }])
  for (const number of [
    '1+900',
    '++1900',
    'alice',
    '1900x',
    '-',
    '１９００',
    '1%20900',
    '1'.repeat(33),
  ])
    expect((await originate({ destination_number: number })).status).toBe(400)
})
