import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'
import { runSql } from '../../support/stored.ts'

const node = { host: '10.0.0.1' }
const set = { endpoint_name: 'pbx', algorithm: 8, set_id: 7, nodes: [node] }

test('a set gets the defaults of the specification, and its destinations as SIP URIs', async () => {
  const { call } = await openResources()
  const created = await call('POST', '/api/v1/dispatcher', set)
  expect(created.status).toBe(201)
  const { id, nodes, ...rest } = created.data<{ id: number; nodes: { id: number }[] }>()
  expect(created.headers.get('location')).toBe(`/api/v1/dispatcher/${id}`)
  expect(rest).toMatchObject({ endpoint_name: 'pbx', algorithm: 8, set_id: 7, tenant: null })
  expect(nodes).toEqual([
    {
      id: expect.any(Number),
      host: '10.0.0.1',
      internal_port: 5060,
      external_port: 5080,
      weight: 100,
      priority: 10,
      description: null,
      transport: 'udp',
      is_enabled: true,
      max_calls: 0,
      operator_state: 'active',
      destination: 'sip:10.0.0.1:5060;transport=udp',
      status: null,
    },
  ])
  expect((await call('GET', `/api/v1/dispatcher/${id}`)).data()).toEqual(created.data())
})

test.each(['8', '4', '9', '6', '0', 8, 4, 9, 6, 0])(
  'algorithm %j is accepted',
  async (algorithm) => {
    const { call } = await openResources()
    const created = await call('POST', '/dispatcher', { ...set, algorithm })
    expect(created.data()).toMatchObject({ algorithm: Number(algorithm) })
  },
)

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['PBX.Example.com.', 'pbx.example.com'],
  ['pbx1', 'pbx1'],
  ['[2001:DB8::1]', '2001:db8::1'],
])('host %s is stored as %s', async (host, stored) => {
  const { call } = await openResources()
  const created = await call('POST', '/dispatcher', { ...set, nodes: [{ host }] })
  expect(created.data()).toMatchObject({ nodes: [{ host: stored }] })
})

const manyNodes = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ host: `10.0.1.${index}` }))

test.each([
  ['endpoint_name', { endpoint_name: '' }],
  ['endpoint_name', { endpoint_name: 'x'.repeat(101) }],
  ['endpoint_name', { endpoint_name: 'a\r\nb' }],
  ['endpoint_name', { endpoint_name: 'a\u0000b' }],
  ['endpoint_name', { endpoint_name: undefined }],
  ['algorithm', { algorithm: 5 }],
  ['algorithm', { algorithm: 'round robin' }],
  ['algorithm', { algorithm: undefined }],
  ['set_id', { set_id: 0 }],
  ['set_id', { set_id: 65_536 }],
  ['set_id', { set_id: 1.5 }],
  ['set_id', { set_id: '7' }],
  ['nodes', { nodes: [] }],
  ['nodes', { nodes: manyNodes(101) }],
  ['nodes.1.host', { nodes: [node, node] }],
  ['color', { color: 'red' }],
  ['tenant', { tenant: 'unknown' }],
  ['probe.interval_ms', { probe: { interval_ms: 99 } }],
  ['probe.timeout_ms', { probe: { interval_ms: 500, timeout_ms: 501 } }],
  ['probe.fail_threshold', { probe: { fail_threshold: 0 } }],
  ['probe.recover_threshold', { probe: { recover_threshold: 21 } }],
  ['probe.ok_codes.0', { probe: { ok_codes: ['300-200'] } }],
  ['probe.ok_codes.0', { probe: { ok_codes: [199] } }],
  ['probe.ok_codes', { probe: { ok_codes: [] } }],
])('a set with a wrong %s is refused with that path', async (path, change) => {
  const { call } = await openResources()
  const answer = await call('POST', '/dispatcher', { ...set, ...change })
  expect(answer.status).toBe(400)
  expect(answer.body).toMatchObject({ success: false, statusCode: 400, details: [{ path }] })
})

test.each([
  ['host', { host: undefined }],
  ['host', { host: '' }],
  ['host', { host: '300.1.1.1' }],
  ['host', { host: '1.2.3' }],
  ['host', { host: '0.0.0.0' }],
  ['host', { host: 'a b' }],
  ['host', { host: '-a.example' }],
  ['host', { host: `${'a'.repeat(64)}.example` }],
  ['host', { host: "'; DROP TABLE dispatcher_node; --" }],
  ['internal_port', { internal_port: 0 }],
  ['internal_port', { internal_port: 65_536 }],
  ['internal_port', { internal_port: null }],
  ['external_port', { external_port: '5080' }],
  ['weight', { weight: 0 }],
  ['weight', { weight: 101 }],
  ['priority', { priority: 0 }],
  ['priority', { priority: 101 }],
  ['description', { description: 'x'.repeat(101) }],
  ['transport', { transport: 'sctp' }],
  ['is_enabled', { is_enabled: 1 }],
  ['max_calls', { max_calls: -1 }],
])('a node with a wrong %s is refused with that path', async (path, change) => {
  const { call } = await openResources()
  const answer = await call('POST', '/dispatcher', { ...set, nodes: [{ ...node, ...change }] })
  expect(answer.status).toBe(400)
  expect(answer.body).toMatchObject({ details: [{ path: `nodes.0.${path}` }] })
})

test('a node may be reached by TLS', async () => {
  const { call } = await openResources()
  const nodes = [{ ...node, internal_port: 5061, transport: 'tls' }]
  const answer = await call('POST', '/dispatcher', { ...set, nodes })
  expect(answer.status).toBe(201)
  const { nodes: stored } = answer.data() as { nodes: object[] }
  expect(stored).toMatchObject([{ internal_port: 5061, transport: 'tls' }])
})

test('a second set of the same name or number is a conflict', async () => {
  const { call } = await openResources()
  await call('POST', '/dispatcher', set)
  const sameName = await call('POST', '/dispatcher', { ...set, set_id: 8 })
  expect(sameName.status).toBe(409)
  expect(sameName.body).toMatchObject({ code: 'duplicate', details: [{ path: 'endpoint_name' }] })
  const sameNumber = await call('POST', '/dispatcher', { ...set, endpoint_name: 'other' })
  expect(sameNumber.status).toBe(409)
  expect(sameNumber.body).toMatchObject({ details: [{ path: 'set_id' }] })
})

test('without set_id a set gets the lowest free number', async () => {
  const { call } = await openResources()
  await call('POST', '/dispatcher', { ...set, set_id: 1 })
  const second = await call('POST', '/dispatcher', {
    ...set,
    endpoint_name: 'b',
    set_id: undefined,
  })
  expect(second.data()).toMatchObject({ set_id: 2 })
})

test('a change keeps what it does not name, and null clears or returns to the default', async () => {
  const { call } = await openResources()
  const full = { ...set, probe: { interval_ms: 1_000, ok_codes: [404, '200-299'] } }
  const { id } = (await call('POST', '/dispatcher', full)).data<{ id: number }>()
  const renamed = await call('PATCH', `/dispatcher/${id}`, { endpoint_name: 'new' })
  expect(renamed.data()).toMatchObject({
    endpoint_name: 'new',
    set_id: 7,
    probe: { interval_ms: 1_000, ok_codes: ['404', '200-299'] },
    nodes: [{ host: '10.0.0.1' }],
  })
  const cleared = await call('PATCH', `/dispatcher/${id}`, { probe: null })
  expect(cleared.data()).toMatchObject({ endpoint_name: 'new', probe: null })
  const refused = await call('PATCH', `/dispatcher/${id}`, { nodes: null })
  expect(refused.body).toMatchObject({ statusCode: 400, details: [{ path: 'nodes' }] })
})

test('every write is told to the engine, so that it holds from the next INVITE on', async () => {
  const { call, reloads } = await openResources()
  const { id } = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
  expect(reloads.dispatcher).toBe(1)
  await call('PATCH', `/dispatcher/${id}`, { algorithm: 4 })
  expect(reloads.dispatcher).toBe(2)
  const added = await call('POST', `/dispatcher/${id}/nodes`, { host: '10.0.0.2' })
  expect(reloads.dispatcher).toBe(3)
  const { id: nodeId } = added.data<{ id: number }>()
  await call('PATCH', `/dispatcher/${id}/nodes/${nodeId}`, { weight: 50 })
  expect(reloads.dispatcher).toBe(4)
  await call('DELETE', `/dispatcher/${id}/nodes/${nodeId}`)
  expect(reloads.dispatcher).toBe(5)
  await call('DELETE', `/dispatcher/${id}`)
  expect(reloads.dispatcher).toBe(6)
  expect((await call('POST', '/dispatcher/reload')).data()).toMatchObject({
    status: 'synchronized',
  })
  expect(reloads.dispatcher).toBe(7)
})

test('a refused write is not told to the engine and leaves the set as it was', async () => {
  const { call, reloads } = await openResources()
  const { id } = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
  const before = (await call('GET', `/dispatcher/${id}`)).data()
  await call('PATCH', `/dispatcher/${id}`, { endpoint_name: 'x', nodes: [{ host: 'bad host' }] })
  expect(reloads.dispatcher).toBe(1)
  expect((await call('GET', `/dispatcher/${id}`)).data()).toEqual(before)
})

test('the last node in service can be neither removed, nor disabled, nor replaced by disabled ones', async () => {
  const { call } = await openResources()
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<{
    id: number
    nodes: { id: number }[]
  }>()
  const path = `/dispatcher/${id}/nodes/${nodes[0]?.id}`
  const removed = await call('DELETE', path)
  expect([removed.status, removed.code]).toEqual([409, 'last_active_node'])
  expect((await call('PATCH', path, { is_enabled: false })).code).toBe('last_active_node')
  const replaced = { nodes: [{ host: '10.0.0.9', is_enabled: false }] }
  expect((await call('PATCH', `/dispatcher/${id}`, replaced)).code).toBe('last_active_node')
  await call('POST', `/dispatcher/${id}/nodes`, { host: '10.0.0.2' })
  expect((await call('DELETE', path)).status).toBe(200)
})

test('a set whose other nodes are in maintenance keeps its last one', async () => {
  const { call, store } = await openResources()
  const two = { ...set, nodes: [node, { host: '10.0.0.2' }] }
  const { id, nodes } = (await call('POST', '/dispatcher', two)).data<{
    id: number
    nodes: { id: number }[]
  }>()
  await runSql(
    store,
    "UPDATE dispatcher_node SET operator_state = 'inactive' WHERE host = '10.0.0.2'",
  )
  expect((await call('DELETE', `/dispatcher/${id}/nodes/${nodes[0]?.id}`)).code).toBe(
    'last_active_node',
  )
})

test('a node keeps its id and the word of the operator when its set is written anew', async () => {
  const { call, store } = await openResources()
  const two = { ...set, nodes: [node, { host: '10.0.0.2' }] }
  const { id, nodes } = (await call('POST', '/dispatcher', two)).data<{
    id: number
    nodes: { id: number }[]
  }>()
  await runSql(
    store,
    "UPDATE dispatcher_node SET operator_state = 'inactive' WHERE host = '10.0.0.2'",
  )
  const changed = await call('PATCH', `/dispatcher/${id}`, {
    nodes: [{ host: '10.0.0.3' }, { host: '10.0.0.2', weight: 1 }],
  })
  expect(changed.data()).toMatchObject({
    nodes: [
      { id: nodes[1]?.id, host: '10.0.0.2', weight: 1, operator_state: 'inactive' },
      { host: '10.0.0.3', operator_state: 'active' },
    ],
  })
})

test('a node that the set has already is a conflict', async () => {
  const { call } = await openResources()
  const { id } = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
  const twin = await call('POST', `/dispatcher/${id}/nodes`, node)
  expect([twin.status, twin.code]).toEqual([409, 'duplicate'])
  expect(
    (await call('POST', `/dispatcher/${id}/nodes`, { ...node, transport: 'tcp' })).status,
  ).toBe(201)
})

test('a set shows what the engine sees of each node', async () => {
  const { call, engine } = await openResources()
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<{
    id: number
    nodes: { id: number; destination: string }[]
  }>()
  const [shown] = nodes
  engine.sets = [
    {
      setId: 7,
      nodes: [
        {
          nodeId: shown?.id ?? 0,
          destination: shown?.destination ?? '',
          state: 'probing',
          priority: 10,
          weight: 100,
          latencyMs: 1.5,
          description: null,
          activeCalls: 3,
          lastProbe: { at: Date.UTC(2026, 0, 1), status: 503, reason: 'Service Unavailable' },
          probes: { sent: 9, answered: 6, failed: 3 },
        },
      ],
    },
  ]
  const status = {
    state: 'probing',
    latency_ms: 1.5,
    active_calls: 3,
    last_probe: { at: '2026-01-01T00:00:00.000Z', status: 503, reason: 'Service Unavailable' },
    probes: { sent: 9, answered: 6, failed: 3 },
  }
  expect((await call('GET', `/dispatcher/${id}`)).data()).toMatchObject({ nodes: [{ status }] })
  expect((await call('GET', '/dispatcher')).data()).toMatchObject([{ nodes: [{ status }] }])
  expect((await call('GET', `/dispatcher/${id}/nodes/${shown?.id}`)).data()).toMatchObject({
    status,
  })
})

test("a tenant finds its own sets only, and another's answer as sets that do not exist", async () => {
  const { call, callAs, tenant } = await openResources()
  await tenant('acme')
  await tenant('beta')
  const shared = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
  const made = await callAs('acme', 'POST', '/dispatcher', {
    ...set,
    endpoint_name: 'a',
    set_id: 8,
    nodes: [{ host: '10.8.0.1' }],
  })
  expect(made.data()).toMatchObject({ tenant: 'acme' })
  const { id } = made.data<{ id: number }>()
  expect((await callAs('acme', 'GET', '/dispatcher')).body).toMatchObject({
    data: [{ endpoint_name: 'a' }],
    meta: { total: 1 },
  })
  expect((await callAs('beta', 'GET', '/dispatcher')).body).toMatchObject({
    data: [],
    meta: { total: 0 },
  })
  for (const [tenantSlug, set] of [
    ['beta', id],
    ['acme', shared.id],
  ] as const) {
    expect((await callAs(tenantSlug, 'GET', `/dispatcher/${set}`)).status).toBe(404)
    expect((await callAs(tenantSlug, 'PATCH', `/dispatcher/${set}`, { algorithm: 4 })).status).toBe(
      404,
    )
    expect((await callAs(tenantSlug, 'DELETE', `/dispatcher/${set}`)).status).toBe(404)
    expect(
      (await callAs(tenantSlug, 'POST', `/dispatcher/${set}/nodes`, { host: '1.1.1.1' })).status,
    ).toBe(404)
  }
  const foreign = await callAs('beta', 'POST', '/dispatcher', { ...set, tenant: 'acme', set_id: 9 })
  expect([foreign.status, foreign.code]).toEqual([403, 'wrong_tenant'])
})

test('a set with a new number keeps its callers, and one with callers cannot be removed', async () => {
  const { call } = await openResources()
  const { id } = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
  const carrier = { name: 'loop', gateways: [{ host: '192.0.2.1' }], inbound_set_id: 7 }
  await call('POST', '/routing/carriers', carrier)
  await call('POST', '/inbound-routes', { name: 'in', set: 'pbx' })
  await call('PATCH', `/dispatcher/${id}`, { set_id: 70 })
  expect((await call('GET', '/routing/carriers')).data()).toMatchObject([{ inbound_set_id: 70 }])
  expect((await call('GET', '/inbound-routes')).data()).toMatchObject([{ set_id: 70 }])
  const removed = await call('DELETE', `/dispatcher/${id}`)
  expect([removed.status, removed.code]).toEqual([409, 'in_use'])
})

test('lists are paged, searched, and take what is searched literally', async () => {
  const { call } = await openResources()
  for (const [index, name] of ['a%b', 'axb', 'A_b'].entries())
    await call('POST', '/dispatcher', { ...set, endpoint_name: name, set_id: index + 1 })
  expect((await call('GET', '/dispatcher?limit=2&page=2')).body).toMatchObject({
    data: [{ endpoint_name: 'A_b' }],
    meta: { page: 2, limit: 2, total: 3 },
  })
  expect((await call('GET', '/dispatcher?search=A%25B')).data()).toMatchObject([
    { endpoint_name: 'a%b' },
  ])
  expect((await call('GET', '/dispatcher?search=x')).data()).toHaveLength(1)
  expect((await call('GET', '/dispatcher?page=0')).status).toBe(400)
  expect((await call('GET', '/dispatcher?color=red')).status).toBe(400)
})

test.each(['0', '-1', '1e3', 'x', '999', '9'.repeat(30)])('there is no set %s', async (id) => {
  const { call } = await openResources()
  expect((await call('GET', `/dispatcher/${id}`)).status).toBe(404)
})
