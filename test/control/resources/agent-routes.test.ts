import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const path = '/api/v1/telephony/ai-agents'

const bot = { name: 'bot', extension: '700', sip_uri: 'sip:bot@192.0.2.9:5070;transport=tcp' }

test('an agent is kept as given, with its defaults and its live calls', async () => {
  const { call, engine, reloads } = await openResources()
  Object.assign(engine.calls, { countByAgent: (id: number) => (id === 1 ? 2 : 0) })
  const created = await call('POST', path, bot)
  expect(created.status).toBe(201)
  const kept = { ...bot, max_calls: 0, media_profile: 'auto', dtmf: 'auto', is_active: true }
  expect(created.data()).toMatchObject({ ...kept, active_calls: 2 })
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

const phone = { extension: '100', password: 'a password', display_name: 'Desk' }

const target = { name: 'bot', extension: '700', sip_uri: 'sip:target@192.0.2.9' }

async function open() {
  const control = await openResources()
  await control.tenant('acme', ['acme.example', 'acme.test'])
  await control.tenant('beta', ['beta.example'])
  const { call, callAs } = control
  await callAs('acme', 'POST', '/pbx/extensions', { ...phone, domain: 'acme.example' })
  await callAs('acme', 'POST', '/telephony/ai-agents', target)
  const route = (body: object) => call('POST', '/inbound-routes', { name: 'in', ...body })
  return { ...control, route }
}

test('a route sends calls to an extension, which is found in the domain that has it', async () => {
  const { call, route } = await open()
  const created = await route({ extension: '100' })
  expect(created.data()).toMatchObject({
    extension: '100',
    extension_domain: 'acme.example',
    set_id: null,
    agent: null,
  })
  const changed = await call('PATCH', '/inbound-routes/1', { priority: 5 })
  expect(changed.data()).toEqual({ ...created.data<object>(), priority: 5 })
})

test('an extension of several domains is named with its domain', async () => {
  const { callAs, route } = await open()
  await callAs('acme', 'POST', '/pbx/extensions', { ...phone, domain: 'acme.test' })
  const refused = await route({ extension: '100' })
  expect(refused.body).toMatchObject({ details: [{ path: 'extension_domain' }] })
  const created = await route({ extension: '100', extension_domain: 'acme.test' })
  expect(created.data()).toMatchObject({ extension_domain: 'acme.test' })
})

test('a route whose extension has gone can still be changed', async () => {
  const { call, callAs, route } = await open()
  await route({ extension: '100' })
  expect((await callAs('acme', 'DELETE', '/pbx/extensions/1')).status).toBe(200)
  expect((await call('PATCH', '/inbound-routes/1', { is_active: false })).status).toBe(200)
})

test('a route follows its agent to a new name, and keeps it from being removed', async () => {
  const { call, route } = await open()
  expect((await route({ agent: 'bot' })).data()).toMatchObject({ agent: 'bot', set_id: null })
  await call('PATCH', '/telephony/ai-agents/1', { name: 'robot' })
  expect((await call('GET', '/inbound-routes/1')).data()).toMatchObject({ agent: 'robot' })
  expect((await call('DELETE', '/telephony/ai-agents/1')).code).toBe('in_use')
  await call('DELETE', '/inbound-routes/1')
  expect((await call('DELETE', '/telephony/ai-agents/1')).status).toBe(200)
})

test.each([
  ['set_id', {}],
  ['set_id', { extension: '100', agent: 'bot' }],
  ['extension', { extension: '999' }],
  ['extension', { extension: 'abc' }],
  ['extension_domain', { agent: 'bot', extension_domain: 'acme.example' }],
  ['agent', { agent: 'unknown' }],
  ['agent', { agent: 'bot', tenant: 'beta' }],
  ['extension', { extension: '100', tenant: 'beta' }],
])('a route with a wrong %s is refused: %j', async (path, body) => {
  const { route } = await open()
  expect((await route(body)).body).toMatchObject({ statusCode: 400, details: [{ path }] })
})
