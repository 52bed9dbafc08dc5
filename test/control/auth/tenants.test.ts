import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { runSql } from '../../support/stored.ts'

async function opened() {
  const control = await openControl()
  const acme = await control.tenant('acme', ['acme.example', 'acme.test'])
  await control.tenant('other', ['other.example'])
  const keyOf = (slug: string, extra: object = {}) =>
    control.key({ tenant_scope: 'tenant', tenant_slug: slug, ...extra })
  const health = (token: string, slug?: string) =>
    control.request('/api/v1/health', {
      token,
      headers: slug === undefined ? {} : { 'X-Tenant-Slug': slug },
    })
  return { ...control, acme, keyOf, health }
}

test("a tenant's key acts in its own tenant, with and without naming it", async () => {
  const { keyOf, health } = await opened()
  const token = await keyOf('acme')
  expect((await health(token)).status).toBe(200)
  expect((await health(token, 'acme')).status).toBe(200)
})

test("another tenant and an unknown one are the same 403 to a tenant's key", async () => {
  const { keyOf, health } = await opened()
  const token = await keyOf('acme')
  const id = { 'X-Correlation-ID': 'same' }
  const answers = await Promise.all(
    ['other', 'unknown', ''].map((slug) =>
      health(token, slug).then(({ status, body }) => ({
        status,
        body: { ...(body as object), request_id: id },
      })),
    ),
  )
  expect(answers[0]).toMatchObject({ status: 403, body: { code: 'wrong_tenant' } })
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})

test('a global key acts in all tenants, in the named one, and 403 in an unknown one', async () => {
  const { key, keyOf, health, request } = await opened()
  await keyOf('acme', { name: 'of acme' })
  await keyOf('other', { name: 'of other' })
  const token = await key({ name: 'global' })
  const names = async (headers: Record<string, string>) => {
    const answer = await request('/api/v1/application-keys', { token, headers })
    return answer.data<{ name: string }[]>().map(({ name }) => name)
  }
  expect(await names({})).toEqual(['of acme', 'of other', 'global'])
  expect(await names({ 'X-Tenant-Slug': 'other' })).toEqual(['of other'])
  expect((await health(token, 'unknown')).status).toBe(403)
})

test('keys of a tenant that is switched off are refused from the next request on', async () => {
  const { keyOf, health, store, acme } = await opened()
  const token = await keyOf('acme')
  expect((await health(token)).status).toBe(200)
  await runSql(store, 'UPDATE tenant SET is_active = 0 WHERE id = ?', acme)
  expect((await health(token)).status).toBe(403)
})

test('keys of another tenant are not found, listed, edited, rotated or revoked', async () => {
  const { keyOf, request } = await opened()
  const token = await keyOf('acme', { scopes: ['*'] })
  const foreign = await keyOf('other', { name: 'foreign' })
  const self = await request('/api/v1/application-keys/self', { token: foreign })
  const path = `/api/v1/application-keys/${self.data<{ uuid: string }>().uuid}`

  const attempts = [
    await request(path, { token }),
    await request(path, { token, method: 'PATCH', body: { name: 'mine' } }),
    await request(`${path}/rotate`, { token, method: 'POST' }),
    await request(path, { token, method: 'DELETE' }),
  ]
  expect(attempts.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  const list = await request('/api/v1/application-keys?tenant=other', { token })
  expect(list.body).toMatchObject({ data: [], meta: { total: 0 } })
  expect((await request('/api/v1/health', { token: foreign })).status).toBe(200)
})

test("a tenant's credential makes keys of its own tenant only", async () => {
  const { keyOf, request } = await opened()
  const token = await keyOf('acme')
  const create = (body: object) =>
    request('/api/v1/application-keys', { token, body: { name: 'new', ...body } })
  for (const body of [
    { tenant_scope: 'global' },
    { tenant_scope: 'tenant', tenant_slug: 'other' },
    { tenant_scope: 'tenant', tenant_slug: 'unknown' },
  ]) {
    const answer = await create(body)
    expect([answer.status, answer.code]).toEqual([403, 'wrong_tenant'])
  }
  expect((await create({})).body).toMatchObject({
    data: { tenant_scope: 'tenant', tenant_slug: 'acme' },
  })
})

test('a key of one domain sees and makes keys of that domain only', async () => {
  const { keyOf, request } = await opened()
  const token = await keyOf('acme', { name: 'own', domain: 'acme.example' })
  await keyOf('acme', { name: 'wider' })
  await keyOf('acme', { name: 'beside', domain: 'acme.test' })
  const list = await request('/api/v1/application-keys', { token })
  expect(list.body).toMatchObject({ data: [{ name: 'own' }], meta: { total: 1 } })

  const create = (body: object) => request('/api/v1/application-keys', { token, body })
  expect((await create({ name: 'a', domain: 'acme.test' })).status).toBe(403)
  expect((await create({ name: 'b', domain: null })).status).toBe(403)
  expect((await create({ name: 'c' })).body).toMatchObject({ data: { domain: 'acme.example' } })
})

test("a domain of another tenant is not a key's domain", async () => {
  const { key, request } = await opened()
  const answer = await request('/api/v1/application-keys', {
    token: await key(),
    body: { name: 'x', tenant_scope: 'tenant', tenant_slug: 'acme', domain: 'other.example' },
  })
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path: 'domain' }] })
})
