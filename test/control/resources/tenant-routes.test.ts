import { expect, test } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'
import { runSql } from '../../support/stored.ts'

const acme = { slug: 'acme', name: 'Acme', domains: ['acme.example', 'acme.test'] }

const idOf = async (answer: ReturnType<TestResources['call']>): Promise<number> =>
  (await answer).data<{ id: number }>().id

test('numbers are listed by the platform: a block each, of one tenant, without its plus', async () => {
  const { call, callAs } = await openResources()
  const { id } = (
    await call('POST', '/tenants', { slug: 'acme', numbers: ['+1555010', '1800'] })
  ).data<{ id: number }>()
  expect((await call('GET', `/tenants/${id}`)).data()).toMatchObject({
    numbers: ['1555010', '1800'],
  })
  const beta = await call('POST', '/tenants', { slug: 'beta', numbers: ['1800'] })
  expect([beta.status, beta.body]).toMatchObject([409, { details: [{ path: 'numbers' }] }])
  // A part of a block may be another tenant's.
  const part = await call('POST', '/tenants', { slug: 'beta', numbers: ['18005551'] })
  expect(part.status).toBe(201)
  const changed = await call('PATCH', `/tenants/${id}`, { numbers: ['1555010'] })
  expect(changed.data()).toMatchObject({ numbers: ['1555010'], domains: [] })
  for (const numbers of [[''], ['x'], ['+1', '1'], 'many'])
    expect((await call('PATCH', `/tenants/${id}`, { numbers })).status).toBe(400)
  const own = await callAs('acme', 'PATCH', `/tenants/${id}`, { numbers: ['1900'] })
  expect(own.status).toBe(403)
  expect((await call('DELETE', `/tenants/${id}`)).status).toBe(409)
})

test('a slug or domain that another tenant has is a conflict', async () => {
  const { call } = await openResources()
  await call('POST', '/tenants', acme)
  const slug = await call('POST', '/tenants', { slug: 'acme' })
  expect(slug.body).toMatchObject({ statusCode: 409, details: [{ path: 'slug' }] })
  const domain = await call('POST', '/tenants', { slug: 'b', domains: ['acme.test'] })
  expect(domain.body).toMatchObject({ statusCode: 409, details: [{ path: 'domains' }] })
  expect((await call('GET', '/tenants')).body).toMatchObject({ meta: { total: 1 } })
})

test('a domain in which extensions live cannot be taken away', async () => {
  const { call, store } = await openResources()
  const id = await idOf(call('POST', '/tenants', acme))
  await runSql(
    store,
    `INSERT INTO extension (tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
     VALUES (${id}, 'acme.example', '100', 'x', '', '', 0, 0)`,
  )
  const refused = await call('PATCH', `/tenants/${id}`, { domains: ['acme.test'] })
  expect([refused.status, refused.code]).toEqual([409, 'in_use'])
  const kept = await call('PATCH', `/tenants/${id}`, { domains: ['acme.example', 'new.test'] })
  expect(kept.data()).toMatchObject({ domains: ['acme.example', 'new.test'] })
})

test('a tenant with call records, customers or keys cannot be removed', async () => {
  const { call, callAs } = await openResources()
  const id = await idOf(call('POST', '/tenants', acme))
  const empty = await idOf(call('POST', '/tenants', { slug: 'empty' }))
  await callAs('acme', 'GET', '/tenants')
  expect((await call('DELETE', `/tenants/${id}`)).status).toBe(409)
  expect((await call('DELETE', `/tenants/${empty}`)).data()).toEqual({ id: empty, deleted: true })
})

test('the id of a removed tenant, carrier or customer is not given again: nothing that is kept of one is of the next', async () => {
  const { call } = await openResources()
  const bodies = {
    '/tenants': (name: string) => ({ slug: name }),
    '/customers': (name: string) => ({ name }),
    '/routing/carriers': (name: string) => ({ name, gateways: [{ host: '10.9.0.1' }] }),
  }
  for (const [path, body] of Object.entries(bodies)) {
    const id = await idOf(call('POST', path, body('gone')))
    await call('PATCH', `${path}/${id}`, body('gone-2'))
    expect((await call('DELETE', `${path}/${id}`)).status).toBe(200)
    expect(await idOf(call('POST', path, body('next')))).toBeGreaterThan(id)
  }
})
