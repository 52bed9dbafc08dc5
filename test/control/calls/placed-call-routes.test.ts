import { beforeEach, expect, test } from 'vitest'
import type { OriginateResult, TestCallRequest } from '../../../schema/contracts/calls.ts'
import { openControl, type TestControl } from '../../support/control.ts'

const callUuid = '00000000-0000-4000-8000-000000000007'

let control: TestControl
let placed: TestCallRequest[]
let result: OriginateResult

const make = async (path: string, body: object): Promise<void> => {
  const answer = await control.request(path, { token: await control.key(), body })
  expect(answer.status).toBe(201)
}

beforeEach(async () => {
  control = await openControl()
  placed = []
  result = { kind: 'originating', callUuid }
  control.engine.placeTestCall = (request) => {
    placed.push(request)
    return Promise.resolve(result)
  }
  for (const [tenant, number, extension] of [
    ['acme', '+15550100', '101'],
    ['beta', '+15550200', '202'],
  ] as const) {
    await control.tenant(tenant, [`${tenant}.example`])
    await make('/rate-plans', { name: `of ${tenant}`, currency: 'USD', tenant })
    await make('/customers', {
      name: tenant,
      tenant,
      rate_plan: `of ${tenant}`,
      numbers: [number],
    })
    const phone = { extension, display_name: 'Phone', password: 'a long password' }
    await make('/pbx/extensions', { ...phone, tenant })
  }
})

const ofAcme = (scopes = ['calls:originate']) =>
  control.key({ tenant_scope: 'tenant', tenant_slug: 'acme', scopes })

const place = async (body: object, token?: string) =>
  control.request('/api/v1/telephony/test-call', {
    token: token ?? (await control.key()),
    method: 'POST',
    body: { to: '+1 800 555-1212', ...body },
  })

test('a call in the name of a number or an extension tells where it is', async () => {
  const answer = await place({ from: '15550100' })
  expect(answer.status).toBe(201)
  expect(answer.data()).toEqual({ call_uuid: callUuid, status: 'originating', max_seconds: 5 })
  expect(answer.headers.get('location')).toBe(`/api/v1/pbx/calls/${callUuid}`)
  expect((await place({ from: '101', max_seconds: 30 })).status).toBe(201)
  expect(placed).toEqual([
    { from: { kind: 'number', number: '+15550100' }, destination: '+18005551212', maxSeconds: 5 },
    {
      from: { kind: 'extension', domain: 'acme.example', extension: '101' },
      destination: '+18005551212',
      maxSeconds: 30,
    },
  ])
})

test('a tenant calls in the name of its own numbers and extensions only', async () => {
  for (const from of ['+15550200', '202', '+15550999'])
    expect((await place({ from }, await ofAcme())).status).toBe(404)
  expect(placed).toEqual([])
  expect((await place({ from: '+15550100' }, await ofAcme())).status).toBe(201)
  expect((await place({ from: '+15550100' }, await ofAcme(['calls:read']))).status).toBe(403)
})

test('six a minute for a tenant, then 429', async () => {
  for (let n = 0; n < 6; n += 1) expect((await place({ from: '101' })).status).toBe(201)
  const refused = await place({ from: '+15550100' }, await ofAcme())
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited'])
  expect((await place({ from: '202' })).status).toBe(201)
})

test.each([
  [{ kind: 'denied', code: 'insufficient_funds' }, 402],
  [{ kind: 'denied', code: 'no_rate' }, 403],
  [{ kind: 'unknown_extension' }, 404],
  [{ kind: 'draining' }, 503],
] satisfies [OriginateResult, number][])('%j is a %i', async (refusal, status) => {
  result = refusal
  expect((await place({ from: '101' })).status).toBe(status)
})
