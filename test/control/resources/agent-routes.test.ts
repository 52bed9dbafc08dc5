import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const path = '/api/v1/telephony/ai-agents'
const bot = { name: 'bot', extension: '700', sip_uri: 'sip:bot@192.0.2.9:5070;transport=tcp' }

test('an agent is kept as given, with its defaults and its live calls', async () => {
  const { call, engine, reloads } = await openResources()
  Object.assign(engine.calls, { countByAgent: (id: number) => (id === 1 ? 2 : 0) })
  const created = await call('POST', path, bot)
  expect(created.status).toBe(201)
  expect(created.data()).toEqual({
    id: 1,
    tenant: null,
    ...bot,
    description: null,
    max_calls: 0,
    media: null,
    media_profile: 'auto',
    codecs: null,
    dtmf: 'auto',
    strip_headers: [],
    is_active: true,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    active_calls: 2,
  })
  expect(reloads.routing).toBe(1)
})

test.each([
  ['name', { name: '' }],
  ['extension', { extension: '7' }],
  ['extension', { extension: '7+1' }],
  ['sip_uri', { sip_uri: 'bot@192.0.2.9' }],
  ['sip_uri', { sip_uri: 'sips:bot@192.0.2.9' }],
  ['sip_uri', { sip_uri: 'sip:bot@0.0.0.0' }],
  ['sip_uri', { sip_uri: 'sip:bot@192.0.2.9;transport=ws' }],
  ['sip_uri', { sip_uri: 'sip:bot@192.0.2.9>\r\nX: y' }],
  ['sip_uri', { sip_uri: `sip:${'b'.repeat(300)}@192.0.2.9` }],
  ['max_calls', { max_calls: -1 }],
  ['description', { description: 'x'.repeat(501) }],
])('an agent with a wrong %s is refused: %j', async (field, change) => {
  const { call } = await openResources()
  const answer = await call('POST', path, { ...bot, ...change })
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path: field }] })
})

test.each(['sip:192.0.2.9', 'sip:+4930@pbx.example.com:5070', 'sip:a%20b@[2001:db8::1]'])(
  'a SIP URI may be %s',
  async (sip_uri) => {
    const { call } = await openResources()
    expect((await call('POST', path, { ...bot, sip_uri })).status).toBe(201)
  },
)

test('extensions and agents of a tenant share its numbers, other tenants have their own', async () => {
  const { call, tenant } = await openResources()
  await tenant('acme', ['acme.example'])
  await tenant('beta', ['beta.example'])
  const phone = { extension: '700', password: 'a password', display_name: 'Desk', tenant: 'acme' }
  await call('POST', '/pbx/extensions', phone)
  const taken = await call('POST', path, { ...bot, tenant: 'acme' })
  expect(taken.body).toMatchObject({ statusCode: 409, details: [{ path: 'extension' }] })
  expect((await call('POST', path, { ...bot, tenant: 'beta' })).status).toBe(201)
  const other = { ...phone, tenant: 'beta' }
  expect((await call('POST', '/pbx/extensions', other)).status).toBe(409)
})

test('a second agent with the same number or name is a conflict', async () => {
  const { call } = await openResources()
  await call('POST', path, bot)
  expect((await call('POST', path, { ...bot, extension: '701' })).body).toMatchObject({
    statusCode: 409,
    details: [{ path: 'name' }],
  })
  const twin = await call('POST', path, { ...bot, name: 'other' })
  expect(twin.body).toMatchObject({ statusCode: 409, details: [{ path: 'extension' }] })
})
