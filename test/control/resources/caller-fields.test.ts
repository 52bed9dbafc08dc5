/** Fields about the caller: who may write which, and that they are shown, undone and seeded. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { seedFile } from '../../../engine/commands/seed.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

let control: TestResources

const carrier = { name: 'c', gateways: [{ host: '198.51.100.1' }], tenant: 'acme' }
const set = {
  endpoint_name: 'pbx',
  algorithm: 8,
  nodes: [{ host: '198.51.100.9' }],
  tenant: 'acme',
}
const bodies = {
  '/routing/carriers': carrier,
  '/dispatcher': set,
  '/customers': { name: 'payer', tenant: 'acme' },
  '/pbx/extensions': {
    extension: '101',
    password: 'correct horse',
    display_name: 'Ann',
    tenant: 'acme',
  },
} as const

type Path = keyof typeof bodies
const paths = Object.keys(bodies) as Path[]

beforeEach(async () => {
  control = await openResources()
  await control.tenant('acme', ['acme.example'])
  const [tenant] = await rowsAt<{ id: number }>('/api/v1/tenants')
  await control.call('PATCH', `/api/v1/tenants/${tenant?.id}`, { numbers: ['4930'] })
})
afterEach(() => control.close())

const create = (path: Path, fields: object) =>
  control.call('POST', `/api/v1${path}`, { ...bodies[path], ...fields })

const createAsTenant = (path: Path, fields: object) =>
  control.callAs('acme', 'POST', `/api/v1${path}`, { ...bodies[path], ...fields })

const idOf = ({ body }: { readonly body: unknown }): number => {
  const answer = body as { id?: number; data?: { id: number } }
  return answer.id ?? answer.data?.id ?? 0
}

async function rowsAt<Row>(path: string): Promise<readonly Row[]> {
  const { body } = await control.call('GET', path)
  return (body as { data: readonly Row[] }).data
}

async function shown(path: Path, id: number): Promise<Record<string, unknown>> {
  const suffix = path === '/pbx/extensions' ? '/details' : ''
  const { body } = await control.call('GET', `/api/v1${path}/${id}${suffix}`)
  return (body as { data: Record<string, unknown> }).data
}

const none = {
  ...{ present: null, allowed: null, numbers: null },
  ...{ otherwise: null, forwarded: null, emergency_number: null },
}

test.each(paths)('%s: rules are stored, shown, changed one by one and cleared', async (path) => {
  const wide = { allowed: 'list', numbers: ['+4940', '49 89'], otherwise: 'refuse' }
  const created = await create(path, { caller_identity: wide })
  expect(created.status).toBe(201)
  const id = idOf(created)
  const listed = { allowed: 'list', numbers: ['4940', '4989'], otherwise: 'refuse' }
  expect((await shown(path, id))['caller_identity']).toEqual({ ...none, ...listed })
  const change = (fields: object) =>
    control.call('PATCH', `/api/v1${path}/${id}`, { caller_identity: fields })
  expect((await change({ present: 'default', otherwise: null })).status).toBe(200)
  const changed = { ...none, ...listed, present: 'default', otherwise: null }
  expect((await shown(path, id))['caller_identity']).toEqual(changed)
  expect((await change(none)).status).toBe(200)
  expect((await shown(path, id))['caller_identity']).toEqual(none)
})

test.each(
  paths.flatMap((path) => [
    [path, 'caller_identity.allowed', { caller_identity: { allowed: 'any' } }, 403],
    [path, 'caller_identity.allowed', { caller_identity: { allowed: 'list' } }, 403],
    [path, 'caller_identity.numbers', { caller_identity: { numbers: ['4999'] } }, 403],
    [
      path,
      'caller_identity.emergency_number',
      { caller_identity: { emergency_number: '+4999112' } },
      400,
    ],
    ...(path === '/pbx/extensions'
      ? ([[path, 'caller_number', { caller_number: '+4999999' }, 400]] as const)
      : []),
    ...(path === '/customers'
      ? ([[path, 'default_number', { default_number: '+4999999' }, 400]] as const)
      : []),
  ]) as readonly (readonly [Path, string, object, number])[],
)('%s: a tenant cannot give itself numbers by %s', async (path, field, fields, status) => {
  const refused = await createAsTenant(path, fields)
  expect([refused.status, refused.text]).toEqual([status, expect.stringContaining(field)])
  const id = idOf(await create(path, {}))
  const changed = await control.callAs('acme', 'PATCH', `/api/v1${path}/${id}`, fields)
  expect([changed.status, changed.text]).toEqual([status, expect.stringContaining(field)])
})

test.each(paths)(
  '%s: a tenant narrows its rules, and keeps what the platform has widened',
  async (path) => {
    const own = {
      present: 'own',
      allowed: 'owned',
      otherwise: 'anonymous',
      emergency_number: '+4930112',
    }
    const created = await createAsTenant(path, { caller_identity: own })
    expect(created.status).toBe(201)
    const id = idOf(created)
    const wide = { allowed: 'list', numbers: ['4999'], emergency_number: '+4999112' }
    await control.call('PATCH', `/api/v1${path}/${id}`, { caller_identity: wide })
    const change = (fields: object) =>
      control.callAs('acme', 'PATCH', `/api/v1${path}/${id}`, { caller_identity: fields })
    expect((await change({ otherwise: 'refuse' })).status).toBe(200)
    expect((await change({ allowed: 'any' })).status).toBe(403)
    expect((await change({ numbers: ['4999', '49'] })).status).toBe(403)
    expect((await change({ allowed: 'owned', numbers: null })).status).toBe(200)
    expect((await change({ allowed: 'list' })).status).toBe(403)
  },
)

test('a number of another tenant, or of a customer of another tenant, is no own number', async () => {
  await control.tenant('other', ['other.example'])
  await control.call('POST', '/api/v1/customers', {
    name: 'x',
    tenant: 'other',
    numbers: ['+4930555'],
  })
  const number = { caller_number: '+4930555' }
  expect((await createAsTenant('/pbx/extensions', number)).status).toBe(400)
  expect((await createAsTenant('/pbx/extensions', { caller_number: '+4930101' })).status).toBe(201)
})

test('a seed file has the fields, and an undone change brings the former ones back', async () => {
  const rules = { present: 'default', allowed: 'list', numbers: ['4940'] }
  const seed = {
    customers: [
      { name: 'payer', tenant: 'acme', default_number: '+4930100', caller_identity: rules },
    ],
    extensions: [{ ...bodies['/pbx/extensions'], caller_number: '+4930101' }],
  }
  await seedFile(control.store, JSON.stringify(seed), Date.UTC(2026, 0, 2))
  const [customer] = await rowsAt<{ id: number }>('/api/v1/customers')
  const id = customer?.id ?? 0
  const before = await shown('/customers', id)
  expect(before).toMatchObject({ default_number: '+4930100', caller_identity: rules })
  await control.call('PATCH', `/api/v1/customers/${id}`, {
    default_number: null,
    caller_identity: { allowed: 'any' },
  })
  const [change] = await rowsAt<{ change_id: string }>('/api/v1/changes')
  const undone = await control.call('POST', `/api/v1/changes/${change?.change_id}/undo`, {
    reason: 'wrong',
  })
  expect(undone.status).toBe(200)
  expect(await shown('/customers', id)).toMatchObject({
    default_number: '+4930100',
    caller_identity: before['caller_identity'],
  })
})
