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
