/** `ETag` and `If-Match` of everything that is changed by PATCH, PUT or DELETE. */
import { beforeAll, describe, expect, test } from 'vitest'
import { documentOf } from '../../support/documented.ts'
import { fillOwned, ownPath } from '../../support/owned-world.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

type Json = Readonly<Record<string, unknown>>

let world: TestResources
let ownKey: string
/** Every change of the OpenAPI document, and whether it takes `If-Match`. */
let changes: readonly {
  readonly method: string
  readonly path: string
  readonly isConditional: boolean
}[]

const methods = ['post', 'put', 'patch', 'delete']
const stale = '"aaaaaaaaaaaaaaaaaaaaaa"'

beforeAll(async () => {
  world = await openResources()
  ;({ ownKey } = await fillOwned(world))
  // One admin has to stay.
  await world.user('root', 'admin')
  const paths = documentOf(world.app).document['paths'] as Record<string, Record<string, Json>>
  changes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([method]) => methods.includes(method))
      .map(([method, { parameters = [] }]) => ({
        method: method.toUpperCase(),
        path,
        isConditional: JSON.stringify(parameters).includes('IfMatch'),
      })),
  )
})

const send = (method: string, path: string, body: unknown, ifMatch?: string) => {
  world.tick(1_000)
  return world.call(method, path, body, {
    ...(ifMatch !== undefined && { headers: { 'If-Match': ifMatch } }),
  })
}

const get = (path: string) => send('GET', path, undefined)
const etagOf = ({ headers }: { readonly headers: Headers }): string => headers.get('etag') ?? ''

/** A node of the dispatcher is shown with what its probes find out. */
const withoutStatus = (shown: unknown): unknown => {
  const { status: _, ...rest } = shown as Json
  return rest
}

/** One row of each kind that is changed by its own path. */
const rows = (): readonly string[] =>
  changes
    .filter(({ method, isConditional }) => method === 'PATCH' && isConditional)
    .map(({ path }) => ownPath(path, ownKey))

test('every PATCH has a condition, with the DELETE beside it; nothing else has one', () => {
  const patches = changes.filter(({ method }) => method === 'PATCH')
  expect(patches.filter(({ isConditional }) => !isConditional)).toEqual([])
  expect(patches.length).toBeGreaterThan(20)
  const paths = new Set(patches.map(({ path }) => path))
  const others = changes.filter(({ method, isConditional }) => method !== 'PATCH' && isConditional)
  expect(others.every(({ method, path }) => method === 'DELETE' && paths.has(path))).toBe(true)
  const removals = changes.filter(({ method, path }) => method === 'DELETE' && paths.has(path))
  expect(removals.filter(({ isConditional }) => !isConditional)).toEqual([])
})

test('a change of another version than the present one is refused with what is there', async () => {
  for (const path of rows()) {
    const before = await get(path)
    expect([path, before.status, etagOf(before)]).toEqual([
      path,
      200,
      expect.stringMatching(/^"[\w-]{22}"$/),
    ])
    for (const method of ['PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? {} : undefined
      const refused = await send(method, path, body, stale)
      expect([path, method, refused.status, refused.code]).toEqual([
        path,
        method,
        412,
        'precondition_failed',
      ])
      expect([path, etagOf(refused)]).toEqual([path, etagOf(before)])
      const { current } = refused.body as Json
      const shown = path.includes('/pbx/') ? before.body : before.data()
      expect([path, withoutStatus(current)]).toEqual([path, withoutStatus(shown)])
    }
    const after = await get(path)
    expect([path, after.status, etagOf(after)]).toEqual([path, 200, etagOf(before)])
  }
})

test('a change of the present version is made, and its answer names the next one', async () => {
  for (const path of rows()) {
    const before = etagOf(await get(path))
    for (const condition of [before, `${stale}, ${before}`, '*', undefined]) {
      const etag = condition?.replace(before, etagOf(await get(path)))
      const changed = await send('PATCH', path, {}, etag)
      expect([path, condition, changed.status]).toEqual([path, condition, 200])
      expect([path, etagOf(changed)]).toEqual([path, etagOf(await get(path))])
    }
  }
})

test('a weak version is never the present one; what is no version is refused as such', async () => {
  for (const path of rows()) {
    const etag = etagOf(await get(path))
    const weak = await send('PATCH', path, {}, `W/${etag}`)
    expect([path, weak.status]).toEqual([path, 412])
    for (const wrong of [etag.slice(1, -1), `${etag} ${etag}`, '""x', '*, *', '', `${etag},`]) {
      const refused = await send('PATCH', path, {}, wrong)
      expect([path, wrong, refused.status, refused.code]).toEqual([
        path,
        wrong,
        400,
        'validation_failed',
      ])
      const removal = await send('DELETE', path, undefined, wrong)
      expect([path, wrong, removal.status]).toEqual([path, wrong, 400])
    }
  }
})

test('a change that does not look at the version refuses the header', async () => {
  const unconditional = changes.filter(({ isConditional }) => !isConditional)
  expect(unconditional.length).toBeGreaterThan(40)
  const others: unknown[] = []
  for (const { method, path } of unconditional) {
    // Customers and payment providers have credentials of their own.
    if (path.startsWith('/api/client/')) continue
    const body = method === 'DELETE' ? undefined : {}
    const { status, code } = await send(method, ownPath(path, ownKey), body, stale)
    if (status !== 400 || code !== 'if_match_not_supported') others.push([method, path, status])
  }
  expect(others).toEqual([])
})

test('what is gone is not found, whatever version is named', async () => {
  for (const path of ['/api/v1/customers/99', '/api/v1/users/99', '/api/v1/webhooks/99'])
    for (const condition of ['*', stale])
      expect((await send('PATCH', path, {}, condition)).status).toBe(404)
})

describe('the version of a row', () => {
  const path = '/api/v1/customers/2'

  test('is another one after two changes within a millisecond, and after a change and back', async () => {
    const seen = new Set<string>()
    const patch = async (body: Json) => seen.add(etagOf(await world.call('PATCH', path, body)))
    await patch({ max_cps: 1 })
    await patch({ max_cps: 2 })
    await patch({ max_cps: 3 })
    expect(seen.size).toBe(3)
    world.tick(1)
    await patch({ max_cps: 1 })
    expect(seen.size).toBe(4)
  })

  test('is another one after its password was changed, which is not shown', async () => {
    const before = etagOf(await get(path))
    await send('PATCH', path, { password: 'another long password' })
    expect(etagOf(await get(path))).not.toBe(before)
  })

  test('stays while money moves and a key is used', async () => {
    const before = etagOf(await get(path))
    const moved = { amount: '5.00', reason: 'paid' }
    expect((await send('POST', `${path}/wallet/adjust`, moved)).status).toBeLessThan(300)
    expect(etagOf(await get(path))).toBe(before)
    const self = await get('/api/v1/application-keys/self')
    const key = `/api/v1/application-keys/${self.data<{ uuid: string }>().uuid}`
    const first = etagOf(await get(key))
    await get(path)
    world.tick(600_000)
    expect(etagOf(await get(key))).toBe(first)
  })
})

test('who may not read gets the refusal without what is there', async () => {
  const token = await world.key({ scopes: ['customers:write', 'users:write', 'webhooks:write'] })
  for (const path of ['/api/v1/customers/2', '/api/v1/users/2', '/api/v1/webhooks/2']) {
    world.tick(1_000)
    const headers = { 'If-Match': stale }
    const refused = await world.call('PATCH', path, {}, { token, headers })
    expect([path, refused.status, refused.body]).toEqual([
      path,
      412,
      expect.not.objectContaining({ current: expect.anything() as unknown }),
    ])
  }
})

test('a tenant learns nothing about rows of others', async () => {
  const token = await world.key({ tenant_slug: 'own' })
  const headers = { 'If-Match': stale }
  for (const path of ['/api/v1/customers/1', '/api/v1/users/1', '/api/v1/webhooks/1']) {
    world.tick(1_000)
    const refused = await world.call('PATCH', path, {}, { token, headers })
    expect([path, refused.status, refused.headers.get('etag')]).toEqual([path, 404, null])
  }
})

test('of two changes of one version at once, one is made', async () => {
  for (const path of rows()) {
    const etag = etagOf(await get(path))
    world.tick(1_000)
    const headers = { 'If-Match': etag }
    const answers = await Promise.all(
      [1, 2, 3].map(() => world.call('PATCH', path, {}, { headers })),
    )
    const statuses = answers.map(({ status }) => status).toSorted((one, other) => one - other)
    // The same state without a time is the same version.
    const isDated = (await get(path)).text.includes('"updated_at"')
    if (isDated) expect([path, statuses]).toEqual([path, [200, 412, 412]])
  }
})

test('of two changes of one version to different values, one is kept', async () => {
  for (const [path, field] of [
    ['/api/v1/rate-plans/2', 'name'],
    ['/api/v1/customers/2', 'name'],
    ['/api/v1/routing/carriers/2', 'name'],
    ['/api/v1/dispatcher/2/nodes/2', 'description'],
    [`/api/v1/application-keys/${ownKey}`, 'description'],
    ['/api/v1/webhooks/2', 'description'],
  ] as const) {
    const etag = etagOf(await get(path))
    const headers = { 'If-Match': etag }
    const answers = await Promise.all(
      ['one', 'two'].map((value) => world.call('PATCH', path, { [field]: value }, { headers })),
    )
    expect([path, answers.map(({ status }) => status).toSorted((a, b) => a - b)]).toEqual([
      path,
      [200, 412],
    ])
    const kept = answers[0]?.status === 200 ? 'one' : 'two'
    expect([path, (await get(path)).data()]).toMatchObject([path, { [field]: kept }])
  }
})
