import { expect, test } from 'vitest'
import type { Principal } from '../../../control/auth/principal.ts'
import { TenantScope } from '../../../control/auth/tenants.ts'
import { aroundStatements } from '../../support/around-statements.ts'
import { openControl, type TestControl } from '../../support/control.ts'

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

test('keys of a tenant that is switched off are refused from the next request on, and taken again when it is back', async () => {
  const { keyOf, key, health, request, acme } = await opened()
  const [token, admin] = [await keyOf('acme'), await key()]
  const put = (is_active: boolean) =>
    request(`/api/v1/tenants/${acme}`, { method: 'PATCH', token: admin, body: { is_active } })
  expect((await health(token)).status).toBe(200)
  expect((await put(false)).status).toBe(200)
  expect((await health(token)).status).toBe(403)
  expect((await put(true)).status).toBe(200)
  expect((await health(token, 'acme')).status).toBe(200)
  const renamed = { method: 'PATCH', token: admin, body: { slug: 'acme-2' } }
  expect((await request(`/api/v1/tenants/${acme}`, renamed)).status).toBe(200)
  expect((await health(token, 'acme')).status).toBe(403)
  expect((await health(token, 'acme-2')).status).toBe(200)
})

test('a domain that a tenant loses or gets counts from the next request on for the keys of its others', async () => {
  const { keyOf, key, request, acme } = await opened()
  const scopes = ['cdrs:read']
  const [token, admin] = [await keyOf('acme', { domain: 'acme.example', scopes }), await key()]
  const records = async () =>
    (await request('/api/v1/reports/cdrs?start_date=2026-01-01&end_date=2026-01-02', { token }))
      .status
  const domains = (...names: readonly string[]) =>
    request(`/api/v1/tenants/${acme}`, { method: 'PATCH', token: admin, body: { domains: names } })
  expect(await records()).toBe(403)
  expect((await domains('acme.example')).status).toBe(200)
  expect(await records()).toBe(200)
  expect((await domains('acme.example', 'acme.test')).status).toBe(200)
  expect(await records()).toBe(403)
})

/** A store that counts what is read from it. */
function counting({ store }: TestControl) {
  const counted = { reads: 0 }
  const around = <T>(work: () => Promise<T>) => {
    counted.reads += 1
    return work()
  }
  return { counted, store: aroundStatements(store, around) }
}

test('a known tenant is not read again until tenants change, or this instance has heard of none for ten minutes', async () => {
  const control = await opened()
  const { counted, store } = counting(control)
  const heard = { agoMs: 0 }
  const tenants = new TenantScope(store, () => heard.agoMs)
  const principal = {
    kind: 'key',
    tenantId: control.acme,
    tenantSlug: 'acme',
    domain: 'acme.example',
  } as Principal
  const readsOf = async (): Promise<number> => {
    const before = counted.reads
    const both = await Promise.all([1, 2].map(async () => tenants.narrow(principal, undefined)))
    expect(both).toMatchObject([{ isOnlyDomain: false }, { isOnlyDomain: false }])
    return counted.reads - before
  }
  expect(await readsOf()).toBe(2)
  expect(await readsOf()).toBe(0)
  tenants.clear()
  expect(await readsOf()).toBe(2)
  heard.agoMs = 600_000
  expect(await readsOf()).toBe(2)
  expect(await readsOf()).toBe(2)
  heard.agoMs = 0
  expect(await readsOf()).toBe(0)
})

test('what was read of a tenant while it was changed is not remembered', async () => {
  const control = await opened()
  const { counted, store } = counting(control)
  const tenants = new TenantScope(store)
  const principal = {
    kind: 'key',
    tenantId: control.acme,
    tenantSlug: 'acme',
    domain: null,
  } as Principal
  const underWay = tenants.narrow(principal, undefined)
  tenants.clear()
  await underWay
  await tenants.narrow(principal, undefined)
  expect(counted.reads).toBe(2)
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
