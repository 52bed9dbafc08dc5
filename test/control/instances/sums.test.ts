import { expect, test } from 'vitest'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { activeCall, nodeStatus } from '../../support/engine-views.ts'
import { joinInstances, type JoinedInstance } from '../../support/joined-nodes.ts'

const destination = 'sip:10.0.0.1:5060;transport=udp'

const statusOf = (nodeId: number, activeCalls: number) =>
  nodeStatus({
    nodeId,
    destination,
    activeCalls,
    latencyMs: 1,
    probes: { sent: 1, answered: 1, failed: 0 },
  })

interface SetView {
  readonly id: number
  readonly nodes: readonly { readonly id: number; readonly status: { active_calls: number } }[]
}

/** A set with one node, which has one call of `a`, two of `b` and four of `c`. */
async function three() {
  const joined = await joinInstances(['a', 'b', 'c'])
  const [a, b, c] = joined.instances as [JoinedInstance, JoinedInstance, JoinedInstance]
  const token = await joined.control.key()
  const body = { endpoint_name: 'pbx', algorithm: 8, set_id: 7, nodes: [{ host: '10.0.0.1' }] }
  const created = await a.request('/api/v1/dispatcher', { token, body })
  const { id, nodes } = created.data<SetView>()
  const nodeId = nodes[0]?.id ?? 0
  for (const [index, { engine }] of [a, b, c].entries()) {
    engine.sets = [{ setId: 7, nodes: [statusOf(nodeId, 2 ** index)] }]
    engine.calls.countByNode = (asked) => (asked === nodeId ? 2 ** index : 0)
  }
  return { ...joined, a, b, c, token, id, nodeId }
}

test('a node of a set shows the calls that all instances have on it, so that it can be drained', async () => {
  const { instances, token, id, nodeId, control } = await three()
  for (const instance of instances) {
    const get = (path: string) => instance.request(`/api/v1/dispatcher${path}`, { token })
    const [listed] = (await get('')).data<SetView[]>()
    expect(listed?.nodes[0]?.status.active_calls).toBe(7)
    expect((await get(`/${id}`)).data<SetView>().nodes[0]?.status.active_calls).toBe(7)
    expect((await get(`/${id}/nodes`)).data<SetView['nodes']>()[0]?.status.active_calls).toBe(7)
    const one = (await get(`/${id}/nodes/${nodeId}`)).data<SetView['nodes'][number]>()
    expect(one.status.active_calls).toBe(7)
  }
  expect(control.logged).toEqual([])
})

test('while an instance is silent its calls are not counted, and it is named', async () => {
  const { a, c, token, id, after } = await three()
  c.link = 'silent'
  const { answer, tookMs } = await after(a.request(`/api/v1/dispatcher/${id}`, { token }))
  expect(answer.data<SetView>().nodes[0]?.status.active_calls).toBe(3)
  expect(answer.headers.get('x-unreachable-nodes')).toBe('c')
  expect(tookMs).toBeLessThanOrEqual(1_000)
})

interface Telemetry {
  readonly calls: Readonly<Record<string, unknown>>
  readonly nodes: readonly { readonly active_calls: number }[]
  readonly platform_nodes?: readonly { readonly name: string; readonly active_calls: number }[]
}

test('telemetry has the sums of all instances, and what is about a process by instance', async () => {
  const { a, b, c, token } = await three()
  for (const [index, { engine }] of [a, b, c].entries())
    engine.figures = {
      active_calls: index + 1,
      calls_total: 10,
      calls_answered_total: index * 5,
      billed_seconds_total: 100,
    }
  const {
    calls,
    nodes,
    platform_nodes: platform,
  } = (await b.request('/api/v1/metrics/telemetry', { token })).data<Telemetry>()
  expect(calls).toMatchObject({
    active: 6,
    total: 30,
    answered: 15,
    asr_percent: 50,
    acd_seconds: 20,
    by_disposition: { ANSWERED: 15, BUSY: 0 },
  })
  expect(nodes[0]?.active_calls).toBe(7)
  const byName = platform?.map(({ name, active_calls: active }) => [name, active])
  expect(byName).toEqual([
    ['b', 2],
    ['a', 1],
    ['c', 3],
  ])
})

test('a tenant gets the sums of its own calls, and nothing of the platform', async () => {
  const { a, b, control } = await three()
  const tenantId = await control.tenant('acme')
  const call: Omit<ActiveCall, 'tenantId'> = activeCall({
    callUuid: 'x',
    startedAt: 0,
    answeredAt: 0,
  })
  b.engine.activeCalls.push({ ...call, tenantId }, { ...call, tenantId: null })
  const token = await control.key({ tenant_slug: 'acme' })
  const view = (await a.request('/api/v1/metrics/telemetry', { token })).data<Telemetry>()
  expect(view).toMatchObject({ calls: { active: 1 }, nodes: [] })
  expect(view.platform_nodes).toBeUndefined()
})
