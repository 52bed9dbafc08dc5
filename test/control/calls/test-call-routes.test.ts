import { beforeEach, expect, test } from 'vitest'
import type { OriginateRequest, OriginateResult } from '../../../schema/contracts/calls.ts'
import { openControl, type TestControl } from '../../support/control.ts'

const callUuid = '00000000-0000-4000-8000-000000000007'
const body = { source_extension: '101', destination_number: '+1 555-0100' }

let control: TestControl
let asked: OriginateRequest[]
let result: OriginateResult
/** Carriers of acme and the platform. */
let [ours, platform] = [0, 0]

const make = async (path: string, made: object): Promise<number> => {
  const answer = await control.request(path, { token: await control.key(), body: made })
  expect(answer.status).toBe(201)
  return answer.data<{ id: number } | undefined>()?.id ?? 0
}

beforeEach(async () => {
  control = await openControl()
  asked = []
  result = { kind: 'originating', callUuid }
  control.engine.originate = (request) => {
    asked.push(request)
    return Promise.resolve(result)
  }
  for (const tenant of ['acme', 'beta']) {
    await control.tenant(tenant, [`${tenant}.example`])
    const phone = { extension: tenant === 'acme' ? '101' : '202', display_name: 'Phone' }
    await make('/pbx/extensions', { ...phone, tenant, password: 'a long password' })
  }
  const carrier = (name: string, host: string, of: object = {}) =>
    make('/routing/carriers', { name, gateways: [{ host }], ...of })
  ours = await carrier('ours', '192.0.2.1', { tenant: 'acme' })
  platform = await carrier('platform', '192.0.2.3')
})

const ofAcme = (scopes = ['calls:originate', 'carriers:read']) =>
  control.key({ tenant_scope: 'tenant', tenant_slug: 'acme', scopes })

const start = async (id: number | string, token?: string, changes: object = {}) =>
  control.request(`/api/v1/routing/carriers/${id}/test-call`, {
    token: token ?? (await ofAcme()),
    method: 'POST',
    body: { ...body, ...changes },
  })

test('a test call is a click-to-call through the carrier, and tells where the call is', async () => {
  const answer = await start(ours)
  expect(answer.status).toBe(201)
  expect(answer.data()).toEqual({ call_uuid: callUuid, status: 'originating', max_seconds: 30 })
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${callUuid}`)
  expect(asked).toEqual([
    {
      domain: 'acme.example',
      extension: '101',
      destination: '+15550100',
      callerNumber: undefined,
      callerName: undefined,
      autoAnswer: false,
      ringMs: 30_000,
      testedCarrierId: ours,
    },
  ])
  const audit = await control.request('/audit?target=test-call', { token: await control.key() })
  expect(audit.data()).toMatchObject([
    { target: `/api/v1/routing/carriers/${ours}/test-call`, status: 201, tenant_id: 1 },
  ])
})

test('six a minute for a carrier and tenant, then 429 until one leaves the window', async () => {
  for (let n = 0; n < 6; n += 1) expect((await start(ours)).status).toBe(201)
  const refused = await start(ours)
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  // By whatever credential; another carrier has a window of its own.
  expect((await start(ours, await control.key())).status).toBe(429)
  expect((await start(platform, await control.key())).status).toBe(201)
  expect(asked).toHaveLength(7)
})

test.each([
  [{ kind: 'denied', code: 'no_gateway' }, 409, 'no_gateway'],
  [{ kind: 'denied', code: 'no_route' }, 409, 'no_route'],
  [{ kind: 'denied', code: 'carrier_limit' }, 409, 'carrier_limit'],
  [{ kind: 'denied', code: 'emergency_number' }, 409, 'emergency_number'],
  [{ kind: 'denied', code: 'internal_number' }, 409, 'internal_number'],
  [{ kind: 'denied', code: 'destination_blocked' }, 403, 'destination_blocked'],
  [{ kind: 'denied', code: 'insufficient_funds' }, 402, 'insufficient_funds'],
  [{ kind: 'extension_unregistered' }, 409, 'extension_unregistered'],
  [{ kind: 'draining' }, 503, 'draining'],
] satisfies [OriginateResult, number, string][])('%j is a %i %s', async (refusal, status, code) => {
  result = refusal
  const answer = await start(ours)
  expect([answer.status, answer.code]).toEqual([status, code])
})
