import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { readRow } from '../../support/stored.ts'
import { digestSecrets } from '../../../control/resources/extensions.ts'
import type { ExtensionStatus } from '../../../schema/contracts/engine.ts'
import { all, execute } from '../../../schema/sql/query.ts'
import { openControl, type RequestOptions } from '../../support/control.ts'

const path = '/api/v1/pbx/extensions'
/** Without a domain. */
const bare = { extension: '100', password: 'a password', display_name: 'Desk' }
const desk = { ...bare, domain: 'acme.example' }

async function open() {
  const control = await openControl()
  await control.tenant('acme', ['acme.example', 'acme.test'])
  await control.tenant('beta', ['beta.example'])
  const changed: number[] = []
  const registered = new Map<string, ExtensionStatus>()
  Object.assign(control.engine.registrations, {
    statusOf: (domain: string, extension: string): ExtensionStatus =>
      registered.get(`${extension}@${domain}`) ?? {
        status: 'unregistered',
        userAgent: null,
        contacts: [],
      },
    changed: async (extensionIds: readonly number[]) => void changed.push(...extensionIds),
    end: async (domain: string, extension: string, contact?: string) => {
      const status = registered.get(`${extension}@${domain}`)
      const contacts = status?.contacts.filter(({ uri }) => uri !== contact) ?? []
      if (status === undefined || contacts.length === status.contacts.length) return false
      registered.set(`${extension}@${domain}`, { ...status, contacts })
      return true
    },
  })
  const keyOf = (tenant: string, domain?: string): Promise<string> =>
    control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: tenant, domain })
  const token = await keyOf('acme')
  const call = (method: string, item = '', body?: unknown, options: RequestOptions = {}) =>
    control.request(`${path}${item}`, { token, method, body, ...options })
  return { ...control, changed, registered, keyOf, call }
}

test('an extension is answered in exactly the shape of the specification, without a password', async () => {
  const { call } = await open()
  const created = await call('POST', '', { ...desk, call_recording: 'never' })
  expect(created.status).toBe(201)
  expect(created.headers.get('location')).toBe(`${path}/1`)
  const shape = {
    id: 1,
    extension: '100',
    display_name: 'Desk',
    voicemail_enabled: true,
    status: 'unregistered',
    user_agent: '',
  }
  expect(created.body).toEqual(shape)
  expect((await call('GET', '/1')).body).toEqual(shape)
  expect((await call('GET')).body).toEqual({
    data: [shape],
    total: 1,
    meta: { page: 1, limit: 50, total: 1 },
  })
  const changed = await call('PATCH', '/1', { voicemail_enabled: false })
  expect(changed.body).toEqual({ ...shape, voicemail_enabled: false })
  expect((await call('DELETE', '/1')).body).toEqual({ id: 1, deleted: true })
  expect((await call('GET', '/1')).body).toMatchObject({ success: false, statusCode: 404 })
  expect((await call('DELETE', '/1')).status).toBe(404)
})

test('status and user agent are what the registrar knows at this moment', async () => {
  const { call, registered } = await open()
  await call('POST', '', desk)
  registered.set('100@acme.example', {
    status: 'registered',
    userAgent: 'Phone/1.0',
    contacts: [
      {
        uri: 'sip:100@192.0.2.7',
        userAgent: 'Phone/1.0',
        source: { protocol: 'udp', address: '2001:db8::7', port: 5060 },
        holder: 'sbc-2',
        expiresAt: 0,
      },
    ],
  })
  const known = { status: 'registered', user_agent: 'Phone/1.0' }
  expect((await call('GET', '/1')).body).toMatchObject(known)
  expect((await call('GET')).body).toMatchObject({ data: [known] })
  expect((await call('GET', '/1/details')).data()).toMatchObject({
    domain: 'acme.example',
    call_recording: 'always',
    recording_active: false,
    registrars: ['sip:192.0.2.1:5060;transport=udp'],
    status: 'registered',
    contacts: [{ uri: 'sip:100@192.0.2.7', source: 'udp/[2001:db8::7]:5060', node: 'sbc-2' }],
  })
})

test('a key of one domain lives in that domain', async () => {
  const { call, keyOf } = await open()
  const inTest = { token: await keyOf('acme', 'acme.test') }
  await call('POST', '', desk)
  expect((await call('POST', '', bare, inTest)).status).toBe(201)
  const details = (await call('GET', '/2/details', undefined, inTest)).data<{ domain: string }>()
  expect(details.domain).toBe('acme.test')
  expect((await call('GET', '', undefined, inTest)).body).toMatchObject({ total: 1 })
  expect((await call('GET', '/1', undefined, inTest)).status).toBe(404)
  const wrong = await call('POST', '', { ...desk, domain: 'acme.example' }, inTest)
  expect(wrong.status).toBe(403)
})

test('a key of all tenants names a tenant or a domain, unless there is one domain only', async () => {
  const { call, key } = await open()
  const global = { token: await key() }
  const refused = await call('POST', '', bare, global)
  expect(refused.body).toMatchObject({ statusCode: 400, details: [{ path: 'tenant' }] })
  expect((await call('POST', '', { ...bare, tenant: 'beta' }, global)).status).toBe(201)
  expect((await call('POST', '', { ...desk, domain: 'acme.test' }, global)).status).toBe(201)

  const alone = await openControl()
  const token = await alone.key()
  const none = await alone.request(path, { token, body: bare })
  expect(none.body).toMatchObject({ statusCode: 400, details: [{ path: 'domain' }] })
  await alone.tenant('only', ['only.example'])
  expect((await alone.request(path, { token, body: bare })).status).toBe(201)
})

test('a new password ends the bindings with its own commit, another change does not', async () => {
  const { call, store } = await open()
  await call('POST', '', desk)
  const bind = () =>
    execute(
      store,
      store.db.insertInto('binding').values({
        extension_id: 1,
        contact: 'sip:100@192.0.2.7',
        q: 1_000,
        call_id: 'c',
        cseq: 1,
        path: '[]',
        user_agent: '',
        node: 'one',
        registered_at: 0,
        expires_at: 1,
        source_protocol: 'udp',
        source_address: '192.0.2.7',
        source_port: 5060,
      }),
    )
  const bound = async () =>
    (await all(store, store.db.selectFrom('binding').select('id'))).length === 1
  await bind()
  await call('PATCH', '/1', { display_name: 'New name', voicemail_enabled: null })
  await call('PATCH', '/1', { password: desk.password })
  expect(await bound()).toBe(true)
  await call('PATCH', '/1', { password: 'another password' })
  expect(await bound()).toBe(false)
  await bind()
  await call('PATCH', '/1', { extension: '101', password: 'another password' })
  expect(await bound()).toBe(false)
})

test('the registrar is told of each change once it is committed, and before it is answered', async () => {
  const { call, changed } = await open()
  await call('POST', '', desk)
  await call('PATCH', '/1', { display_name: 'New name' })
  await call('DELETE', '/1')
  expect(changed).toEqual([1, 1, 1])
  await call('PATCH', '/1', { display_name: 'New name' })
  expect(changed).toEqual([1, 1, 1])
})

test('a password cannot be taken away, and a number cannot be changed without one', async () => {
  const { call } = await open()
  await call('POST', '', desk)
  for (const change of [{ extension: '101' }, { domain: 'acme.test' }])
    expect((await call('PATCH', '/1', change)).body).toMatchObject({
      statusCode: 400,
      details: [{ path: 'password' }],
    })
  for (const change of [{ password: null }, { display_name: null }])
    expect((await call('PATCH', '/1', change)).status).toBe(400)
})

test('the registration of one phone is removed, by its own tenant only', async () => {
  const { call, registered, keyOf } = await open()
  await call('POST', '', desk)
  const source = { protocol: 'udp', address: '192.0.2.7', port: 5060 }
  const contacts = ['sip:100@192.0.2.7', 'sip:100@192.0.2.8'].map((uri) => ({
    uri,
    userAgent: 'Phone/1.0',
    source,
    holder: null,
    expiresAt: 0,
  }))
  registered.set('100@acme.example', { status: 'registered', userAgent: 'Phone/1.0', contacts })
  const item = `/1/registrations?contact=${encodeURIComponent('sip:100@192.0.2.7')}`
  const remove = async (tenant: string) =>
    call('DELETE', item, undefined, { token: await keyOf(tenant) })
  expect((await remove('beta')).status).toBe(404)
  expect((await remove('acme')).data()).toMatchObject({ contacts: [{ uri: 'sip:100@192.0.2.8' }] })
  expect((await remove('acme')).status).toBe(404)
})

test('what is stored of a password are the secrets of HTTP digest, of user, realm and password', async () => {
  // RFC 7616 §3.9.1: the A1 of its example, hashed as §3.4.2 says.
  const a1 = 'Mufasa:http-auth@example.org:Circle of Life'
  expect(digestSecrets('Mufasa', 'http-auth@example.org', 'Circle of Life')).toEqual({
    md5: '3d78807defe7de2157e2b0b6573a855f',
    sha256: createHash('sha256').update(a1).digest('hex'),
  })
  const { call, store } = await open()
  await call('POST', '', desk)
  const stored = () => readRow(store, 'SELECT ha1_md5, ha1_sha256 FROM extension')
  const secrets = digestSecrets('100', 'acme.example', desk.password)
  const kept = { ha1_md5: secrets.md5, ha1_sha256: secrets.sha256 }
  expect(await stored()).toEqual(kept)
  await call('PATCH', '/1', { display_name: 'New' })
  expect(await stored()).toEqual(kept)
  await call('PATCH', '/1', { extension: '101', password: desk.password })
  expect(await stored()).toMatchObject({
    ha1_md5: digestSecrets('101', 'acme.example', desk.password).md5,
  })
})

test('a new extension names its domain where its tenant has several, whoever makes it', async () => {
  const { call, key } = await open()
  const global = { token: await key() }
  for (const [body, by] of [
    [bare, {}],
    [{ ...bare, tenant: 'acme' }, global],
  ] as const) {
    const { status, body: answer } = await call('POST', '', body, by)
    expect([status, answer]).toMatchObject([
      400,
      { details: [{ path: 'domain', message: 'is required: the tenant has several' }] },
    ])
  }
  expect((await call('POST', '', desk)).status).toBe(201)
  expect((await call('PATCH', '/1', { display_name: 'Front' })).status).toBe(200)
})
