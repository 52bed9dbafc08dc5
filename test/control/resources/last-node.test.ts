import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

test('a node whose name DNS does not know keeps no set in service', async () => {
  const { call, engine } = await openResources()
  const two = {
    endpoint_name: 'pbx',
    algorithm: 8,
    nodes: [{ host: '10.0.0.1' }, { host: 'gone.example' }],
  }
  const { id, nodes } = (await call('POST', '/dispatcher', two)).data<{
    id: number
    nodes: { id: number }[]
  }>()
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
