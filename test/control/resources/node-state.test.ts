import { expect, test } from 'vitest'
import type { NodeState, NodeStatus, SetStateResult } from '../../../schema/contracts/engine.ts'
import { nodeStatus } from '../../support/engine-views.ts'
import { openResources } from '../../support/resources.ts'

const set = { endpoint_name: 'pbx', algorithm: 8, set_id: 7, nodes: [{ host: '10.0.0.1' }] }

test('the state of a node is set through the engine, whose refusals are answers', async () => {
  const { call, engine } = await openResources()
  const { id, nodes } = (await call('POST', '/dispatcher', set)).data<{
    id: number
    nodes: { id: number }[]
  }>()
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
