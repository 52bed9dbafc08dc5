import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'
import { nodeStatus } from '../../support/engine-views.ts'
import { runSql } from '../../support/stored.ts'
import type { NodeState, SetStateResult } from '../../../schema/contracts/engine.ts'

interface Made {
  readonly id: number
  readonly nodes: readonly { readonly id: number; readonly destination: string }[]
}

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

test('the last node in service can be neither removed, nor disabled, nor replaced by disabled ones', async () => {
  const { call } = await openResources()
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<Made>()
  const path = `/dispatcher/${id}/nodes/${nodes[0]?.id}`
  const removed = await call('DELETE', path)
  expect([removed.status, removed.code]).toEqual([409, 'last_active_node'])
  expect((await call('PATCH', path, { is_enabled: false })).code).toBe('last_active_node')
  const replaced = { nodes: [{ host: '10.0.0.9', is_enabled: false }] }
  expect((await call('PATCH', `/dispatcher/${id}`, replaced)).code).toBe('last_active_node')
  await call('POST', `/dispatcher/${id}/nodes`, { host: '10.0.0.2' })
  expect((await call('DELETE', path)).status).toBe(200)
})

test('a node keeps its id and the word of the operator when its set is written anew', async () => {
  const { call, store } = await openResources()
  const two = { ...set, nodes: [node, { host: '10.0.0.2' }] }
  const { id, nodes } = (await call('POST', '/dispatcher', two)).data<Made>()
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
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<Made>()
  const [shown] = nodes
  engine.sets = [
    {
      setId: 7,
      nodes: [
        nodeStatus({
          nodeId: shown?.id ?? 0,
          destination: shown?.destination ?? '',
          state: 'probing',
          latencyMs: 1.5,
          activeCalls: 3,
          lastProbe: { at: Date.UTC(2026, 0, 1), status: 503, reason: 'Service Unavailable' },
          probes: { sent: 9, answered: 6, failed: 3 },
        }),
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

test('a node whose name DNS does not know keeps no set in service', async () => {
  const { call, engine } = await openResources()
  const two = {
    endpoint_name: 'pbx',
    algorithm: 8,
    nodes: [{ host: '10.0.0.1' }, { host: 'gone.example' }],
  }
  const { id, nodes } = (await call('POST', '/dispatcher', two)).data<Made>()
  const [alive, gone] = nodes.map((each) => each.id)
  Object.assign(engine.dispatcher, { isUnresolvable: (nodeId: number) => nodeId === gone })
  const path = `/dispatcher/${id}/nodes`
  const last = 'last_active_node'
  expect((await call('DELETE', `${path}/${alive}`)).code).toBe(last)
  expect((await call('PATCH', `${path}/${alive}`, { is_enabled: false })).code).toBe(last)
  const without = { nodes: [{ host: 'gone.example' }] }
  expect((await call('PATCH', `/dispatcher/${id}`, without)).code).toBe(last)
  // It may be renamed, another one may take the place of the last, and it may go itself.
  expect((await call('PATCH', `${path}/${gone}`, { description: 'old' })).status).toBe(200)
  const others = { nodes: [{ host: 'gone.example' }, { host: '10.0.0.3' }] }
  expect((await call('PATCH', `/dispatcher/${id}`, others)).status).toBe(200)
  expect((await call('DELETE', `${path}/${gone}`)).status).toBe(200)
})

test('the state of a node is pbx through the engine, whose refusals are answers', async () => {
  const { call, engine } = await openResources()
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<Made>()
  const asked: [number, string, NodeState][] = []
  let result: SetStateResult = 'changed'
  Object.assign(engine.dispatcher, {
    setState: (setId: number, destination: string, state: NodeState) => {
      asked.push([setId, destination, state])
      return result
    },
  })
  const destination = 'sip:10.0.0.1:5060;transport=udp'
  const status = nodeStatus({
    nodeId: nodes[0]?.id ?? 0,
    destination,
  })
  engine.sets = [{ setId: 7, nodes: [status] }]
  const path = `/dispatcher/${id}/nodes/${nodes[0]?.id}/state`
  const changed = await call('PUT', path, { state: 'inactive' })
  expect(changed.data()).toMatchObject({ id: nodes[0]?.id, state: 'inactive' })
  expect(asked).toEqual([[7, destination, 'inactive']])
  result = 'last_active_node'
  expect((await call('PUT', path, { state: 'inactive' })).code).toBe('last_active_node')
  engine.sets = []
  expect((await call('PUT', path, { state: 'active' })).code).toBe('node_disabled')
  expect((await call('PUT', path, { state: 'down' })).status).toBe(400)
  expect((await call('PUT', `/dispatcher/${id}/nodes/999/state`, { state: 'active' })).status).toBe(
    404,
  )
})
