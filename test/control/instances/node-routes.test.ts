import { errorHandler } from '../../../control/http/front.ts'
import { expect, test } from 'vitest'
import { probeRoutes } from '../../../control/observe/health-routes.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { openControl } from '../../support/control.ts'

test('the platform sees the instances of the installation, a tenant does not', async () => {
  const control = await openControl()
  await control.tenant('acme')
  const seen = await control.request('/api/v1/nodes', { token: await control.key() })
  expect(seen.data()).toEqual([
    {
      name: 'test-1',
      epoch: 0,
      address: 'http://127.0.0.1:8080',
      version: '0.0.0-test',
      state: 'serving',
      live_calls: 0,
      is_this: true,
      differing_settings: [],
      clock_difference_seconds: 0,
      started_at: '2026-01-01T00:00:00.000Z',
      heartbeat_at: '2026-01-01T00:00:00.000Z',
    },
  ])
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect((await control.request('/api/v1/nodes', { token })).status).toBe(403)
})

test('an instance whose settings differ from those of another one says so everywhere, and is ready', async () => {
  const control = await openControl()
  const token = await control.key()
  const differingSettings = new Map([['test-1', ['EXIT_CODES', 'OCS_URL']]])
  Object.defineProperty(control.deps.instances, 'differingSettings', { value: differingSettings })
  const ready = await control.request('/readyz')
  expect([ready.status, ready.data()]).toEqual([
    200,
    expect.objectContaining({ settings: 'different' }),
  ])
  const [instance] = (await control.request('/api/v1/nodes', { token })).data<readonly unknown[]>()
  expect(instance).toMatchObject({ differing_settings: ['EXIT_CODES', 'OCS_URL'] })
  const text = (await control.request('/metrics', { token })).text
  expect(text).toContain('tollgate_platform_node_differing_settings{name="test-1"} 2\n')
})

test('an instance whose clock differs from the database server says so in the list, the metrics and as a finding', async () => {
  const control = await openControl()
  const token = await control.key()
  const [own] = control.deps.instances.list()
  const list = () => own && [{ ...own, clockDifferenceMs: 90_000 }]
  Object.defineProperty(control.deps.instances, 'list', { value: list })
  const [instance] = (await control.request('/api/v1/nodes', { token })).data<readonly unknown[]>()
  expect(instance).toMatchObject({ clock_difference_seconds: 90 })
  const text = (await control.request('/metrics', { token })).text
  expect(text).toContain('tollgate_platform_node_clock_difference_seconds{name="test-1"} 90\n')
  const anomalies = await control.request('/api/v1/anomalies?kinds=node', { token })
  expect(anomalies.data()).toMatchObject({
    findings: [
      {
        subject: 'instance test-1',
        what: 'The clock of instance test-1 is 90 s ahead of the database server.',
        next: { tool: 'list_instances' },
      },
    ],
  })
  await control.tenant('acme')
  const tenant = await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const ofTenant = await control.request('/api/v1/anomalies?kinds=node', { token: tenant })
  expect(ofTenant.data()).toMatchObject({ findings: [] })
})

test.each([
  ['valid', 200],
  ['unheard', 503],
  ['fenced', 503],
] as const)('an instance that is %s answers /readyz with %i', async (condition, status) => {
  const engine = { isReady: () => true, isDraining: () => false }
  const instances = { condition, differingSettings: new Map() }
  const routes = probeRoutes(engine, { store: { storage: new Storage() }, instances })
  routes.onError(errorHandler(() => undefined))
  expect((await routes.request('/readyz')).status).toBe(status)
})

test('an instance goes on being ready while the database server cannot be written for a moment', async () => {
  const storage = new Storage('server_unavailable')
  storage.failing({}, new Error('no'))
  storage.declare()
  const engine = { isReady: () => true, isDraining: () => false }
  const store = { storage }
  const instances = { condition: 'valid', differingSettings: new Map() } as const
  const routes = probeRoutes(engine, { store, instances })
  const answer = await routes.request('/readyz')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ data: { status: 'ready', database: 'unavailable' } })
})

test('an instance whose own disk takes no journal is not ready, whatever the database server takes', async () => {
  const disk = new Storage()
  disk.failing({}, new Error('the disk takes no journal of calls'))
  disk.declare()
  const engine = { isReady: () => true, isDraining: () => false }
  const store = { storage: new Storage('server_unavailable') }
  const instances = { condition: 'valid', differingSettings: new Map() } as const
  const routes = probeRoutes(engine, { store, disk, instances })
  routes.onError(errorHandler(() => undefined))
  const answer = await routes.request('/readyz')
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await answer.json()).toMatchObject({ code: 'storage_unavailable' })
})
