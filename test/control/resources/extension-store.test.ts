import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { ApiError } from '../../../control/http/api-error.ts'
import { digestSecrets, extensions as definition } from '../../../control/resources/extensions.ts'
import { ResourceStore } from '../../../control/resources/resource.ts'
import { tenants as tenantDefinition } from '../../../control/resources/tenants.ts'
import { first } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

const scope = { tenantId: null, actor: 'test', now: 1 }

async function open(domains: readonly string[] = ['acme.example']) {
  const store = emptyStore()
  const tenants = new ResourceStore(tenantDefinition, { store })
  await tenants.insert(tenantDefinition.body.parse({ slug: 'acme', domains }), scope)
  await tenants.insert(
    tenantDefinition.body.parse({ slug: 'beta', domains: ['beta.example'] }),
    scope,
  )
  const extensions = new ResourceStore(definition, { store })
  const row = (id: number) =>
    first(store, store.db.selectFrom('extension').selectAll().where('id', '=', id))
  return { extensions, row }
}

const desk = definition.body.parse({
  extension: '100',
  password: 'a password',
  display_name: 'Desk',
  tenant: 'acme',
})

const problemOf = async (work: () => Promise<unknown>): Promise<unknown> => {
  try {
    await work()
  } catch (error) {
    return error instanceof ApiError ? error.details?.[0]?.path : error
  }
  return undefined
}

test('the secrets are those of HTTP digest, of user, realm and password', () => {
  // RFC 7616 §3.9.1: the A1 of its example, hashed as §3.4.2 says.
  const a1 = 'Mufasa:http-auth@example.org:Circle of Life'
  expect(digestSecrets('Mufasa', 'http-auth@example.org', 'Circle of Life')).toEqual({
    md5: '3d78807defe7de2157e2b0b6573a855f',
    sha256: createHash('sha256').update(a1).digest('hex'),
  })
})

test('an extension lives in the only domain of its tenant, and its password is kept as secrets', async () => {
  const { extensions, row } = await open()
  const id = await extensions.insert(desk, scope)
  const { md5, sha256 } = digestSecrets('100', 'acme.example', 'a password')
  expect(await row(id)).toMatchObject({
    domain: 'acme.example',
    ha1_md5: md5,
    ha1_sha256: sha256,
    voicemail_enabled: 1,
    call_recording: 'always',
  })
  expect(JSON.stringify(await row(id))).not.toContain('a password')
  expect(await extensions.identify(desk)).toBe(id)
})

test('a change without a password keeps the secrets; a new number needs one', async () => {
  const { extensions, row } = await open()
  const id = await extensions.insert(desk, scope)
  const before = await row(id)
  const { password: _, ...rest } = desk
  await extensions.replace(id, { ...rest, display_name: 'New' }, scope)
  expect(await row(id)).toEqual({ ...before, display_name: 'New' })
  expect(await problemOf(() => extensions.replace(id, { ...rest, extension: '101' }, scope))).toBe(
    'password',
  )
  await extensions.replace(id, { ...desk, extension: '101' }, scope)
  expect((await row(id))?.ha1_md5).toBe(digestSecrets('101', 'acme.example', 'a password').md5)
})
