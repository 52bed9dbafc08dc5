import { expect, test } from 'vitest'
import type { AlgorithmCode } from '../../../engine/dispatcher/algorithms.ts'
import { sampleNode, sampleSet, simulate, uriOf } from './samples.ts'

const countOf = (list: readonly (number | undefined)[], nodeId: number) =>
  list.filter((each) => each === nodeId).length
const three = [sampleNode(1), sampleNode(2), sampleNode(3)]
const ids = (list: readonly { readonly nodeId: number }[]) => list.map(({ nodeId }) => nodeId)

test('a candidate says where to send, in the form of the specification', () => {
  const { dispatcher } = simulate([sampleSet([sampleNode(1)])])
  expect(dispatcher.candidates(1, 'c')).toEqual([
    {
      kind: 'node',
      nodeId: 1,
      setId: 1,
      tenantId: null,
      uri: 'sip:192.0.2.1:5060;transport=udp',
      host: '192.0.2.1',
      port: 5060,
      transport: 'udp',
    },
  ])
})

test('an unknown set has no candidates, and neither has one without nodes', () => {
  const { dispatcher } = simulate([sampleSet([])])
  expect(dispatcher.candidates(1, 'c')).toEqual([])
  expect(dispatcher.candidates(9, 'c')).toEqual([])
})

test.each<AlgorithmCode>([0, 4, 6, 8, 9])(
  'algorithm %i offers active nodes only, whatever happened to the others',
  async (algorithm) => {
    const { dispatcher } = simulate([sampleSet(three, { algorithm })])
    await dispatcher.setState(1, uriOf(2), 'inactive')
    await dispatcher.setState(1, uriOf(3), 'probing')
    for (let call = 0; call < 20; call += 1)
      expect(ids(dispatcher.candidates(1, `call-${call}`))).toEqual([1])
    await dispatcher.setState(1, uriOf(2), 'active')
    expect(ids(dispatcher.candidates(1, 'c')).toSorted((a, b) => a - b)).toEqual([1, 2])
  },
)

test('weights stay exact when a node leaves and comes back', async () => {
  const weights = [sampleNode(1), sampleNode(2, { weight: 50 }), sampleNode(3, { weight: 50 })]
  const { dispatcher } = simulate([sampleSet(weights, { algorithm: 9 })])
  const firsts = (calls: number) =>
    Array.from({ length: calls }, (_, call) => dispatcher.candidates(1, `${call}`)[0]?.nodeId)
  firsts(5)
  await dispatcher.setState(1, uriOf(3), 'inactive')
  const without = firsts(30)
  expect([countOf(without, 1), countOf(without, 2), countOf(without, 3)]).toEqual([20, 10, 0])
  await dispatcher.setState(1, uriOf(3), 'active')
  const again = firsts(40)
  expect([countOf(again, 1), countOf(again, 2), countOf(again, 3)]).toEqual([20, 10, 10])
})

test('a node at max_calls is left out, and the set is at capacity when all are', () => {
  const nodes = [sampleNode(1, { maxCalls: 2, priority: 1 }), sampleNode(2, { maxCalls: 1 })]
  const { dispatcher, calls } = simulate([sampleSet(nodes)])
  calls.set(1, 2)
  expect(ids(dispatcher.candidates(1, 'c'))).toEqual([2])
  expect(dispatcher.isAtCapacity(1)).toBe(false)
  calls.set(2, 1)
  expect(dispatcher.candidates(1, 'c')).toEqual([])
  expect(dispatcher.isAtCapacity(1)).toBe(true)
  calls.set(1, 1)
  expect(ids(dispatcher.candidates(1, 'c'))).toEqual([1])
})

test('what the next call would get is told without a turn, and why other nodes get none', async () => {
  const nodes = [1, 2, 3, 4].map((nodeId) => sampleNode(nodeId, { maxCalls: nodeId === 3 ? 1 : 0 }))
  const { dispatcher, calls } = simulate([sampleSet(nodes, { algorithm: 4 })])
  await dispatcher.setState(1, uriOf(4), 'inactive')
  calls.set(3, 1)
  const foreseen = dispatcher.foreseen(1, 'a', () => 0.5)
  expect(dispatcher.foreseen(1, 'a', () => 0.5)).toEqual(foreseen)
  expect(dispatcher.candidates(1, 'a')).toEqual(foreseen)
  expect(dispatcher.selection(1)).toMatchObject([
    { nodeId: 1, why: null, share: 0.5 },
    { nodeId: 2, why: null, share: 0.5 },
    { nodeId: 3, why: 'node_limit', share: 0 },
    { nodeId: 4, why: 'drained', share: 0 },
  ])
  await dispatcher.setState(1, uriOf(1), 'probing')
  expect(dispatcher.selection(1)[0]).toMatchObject({ why: 'out_of_service', share: 0 })
  expect([dispatcher.foreseen(2, 'a', () => 0.5), dispatcher.selection(2)]).toEqual([[], []])
})

test('a set whose nodes are all down is not at capacity', async () => {
  const { dispatcher } = simulate([sampleSet([sampleNode(1)])])
  await dispatcher.setState(1, uriOf(1), 'probing')
  expect(dispatcher.isAtCapacity(1)).toBe(false)
})

test("a tenant's caller has the lowest of its own sets and the common ones", () => {
  const { dispatcher } = simulate([
    sampleSet([], { setId: 2, tenantId: 8 }),
    sampleSet([], { setId: 4, tenantId: null }),
    sampleSet([], { setId: 5, tenantId: 9 }),
    sampleSet([], { setId: 3, tenantId: 9 }),
  ])
  expect([null, 8, 9, 10].map((tenantId) => dispatcher.defaultSetId(tenantId))).toEqual([
    4, 2, 3, 4,
  ])
  const { dispatcher: foreign } = simulate([sampleSet([], { setId: 2, tenantId: 8 })])
  expect(foreign.defaultSetId(9)).toBeUndefined()
})

test('an operator state is stored, announced and holds from the next call on', async () => {
  const { dispatcher, saved, changes } = simulate([sampleSet(three)])
  expect(await dispatcher.setState(1, 'SIP:192.0.2.1', 'inactive')).toBe('changed')
  expect(saved).toEqual([[1, 'inactive']])
  expect(changes).toMatchObject([
    {
      nodeId: 1,
      setId: 1,
      destination: uriOf(1),
      from: 'active',
      to: 'inactive',
      cause: 'operator',
    },
  ])
  expect(ids(dispatcher.candidates(1, 'c'))).not.toContain(1)
  await dispatcher.setState(1, uriOf(1), 'probing')
  expect(saved.at(-1)).toEqual([1, 'active'])
})

test('a node that an operator puts into service is probed at once', async () => {
  const { nodes, dispatcher } = simulate([sampleSet(three)])
  dispatcher.start()
  await dispatcher.setState(1, uriOf(1), 'inactive')
  expect(nodes.sent).toEqual([])
  await dispatcher.setState(1, uriOf(1), 'active')
  expect(nodes.sent).toEqual([{ destination: uriOf(1), at: 0 }])
})

test('a probing node whose name DNS does not know does not count as in service', async () => {
  const set = sampleSet([sampleNode(1), sampleNode(2, { host: 'gone.example' })])
  const hosts = {
    version: 0,
    addressesOf: () => [],
    watch: () => undefined,
    isUnresolvable: (host: string) => host === 'gone.example',
  }
  const { dispatcher } = simulate([set], { hosts })
  // As long as it is active it takes calls.
  expect(dispatcher.isUnresolvable(2)).toBe(false)
  await dispatcher.setState(1, 'sip:gone.example', 'probing')
  expect(dispatcher.isUnresolvable(2)).toBe(true)
  expect(await dispatcher.setState(1, uriOf(1), 'inactive')).toBe('last_active_node')
  expect(await dispatcher.setState(1, 'sip:gone.example', 'inactive')).toBe('changed')
})

test('an operator error names what is wrong and changes nothing', async () => {
  const { dispatcher, saved, changes } = simulate([sampleSet([sampleNode(1), sampleNode(2)])])
  expect(await dispatcher.setState(9, uriOf(1), 'inactive')).toBe('unknown_set')
  expect(await dispatcher.setState(1, 'sip:192.0.2.9:5060', 'inactive')).toBe('unknown_destination')
  expect(await dispatcher.setState(1, 'not a uri', 'inactive')).toBe('unknown_destination')
  await dispatcher.setState(1, uriOf(1), 'inactive')
  expect(await dispatcher.setState(1, uriOf(2), 'inactive')).toBe('last_active_node')
  expect(dispatcher.isLastInService(2)).toBe(true)
  expect(dispatcher.isLastInService(1)).toBe(false)
  expect(saved).toHaveLength(1)
  expect(changes).toHaveLength(1)
})

test('when the operator state cannot be stored, it does not hold either', async () => {
  const { dispatcher, stateOf } = simulate([sampleSet(three)], {
    saveOperatorState: () => {
      throw new Error('disk full')
    },
  })
  await expect(dispatcher.setState(1, uriOf(1), 'inactive')).rejects.toThrow('disk full')
  expect(stateOf(1)).toBe('active')
})

test('of two nodes that are taken out at once, one stays in service', async () => {
  const { dispatcher, saved } = simulate([sampleSet([sampleNode(1), sampleNode(2)])])
  const results = [1, 2].map((nodeId) => dispatcher.setState(1, uriOf(nodeId), 'inactive'))
  expect(await Promise.all(results)).toEqual(['changed', 'last_active_node'])
  expect(saved).toEqual([[1, 'inactive']])
})

test('a load that began before an operator decided does not undo the decision', async () => {
  const saved: number[] = []
  const loads: (() => void)[] = []
  const { dispatcher, stateOf } = simulate([sampleSet(three)], {
    loadSets: async () => {
      const nodes = three.map((node) =>
        saved.includes(node.nodeId) ? { ...node, operatorState: 'inactive' as const } : node,
      )
      await new Promise<void>((resolve) => loads.push(resolve))
      return [sampleSet(nodes)]
    },
    saveOperatorState: async (nodeId) => saved.push(nodeId) > 0,
  })
  const reload = dispatcher.reload()
  const result = dispatcher.setState(1, uriOf(1), 'inactive')
  await new Promise((resolve) => setImmediate(resolve))
  loads[0]?.()
  await reload
  expect(await result).toBe('changed')
  expect(stateOf(1)).toBe('inactive')
})

test('a stored maintenance holds from the start', () => {
  const { dispatcher, stateOf } = simulate([
    sampleSet([sampleNode(1, { operatorState: 'inactive' }), sampleNode(2)]),
  ])
  expect(stateOf(1)).toBe('inactive')
  expect(ids(dispatcher.candidates(1, 'c'))).toEqual([2])
})

test('a reload keeps the probe state of nodes that stay and starts new ones as active', async () => {
  const { clock, nodes, stored, dispatcher, stateOf, changes } = simulate([sampleSet(three)])
  dispatcher.start()
  nodes.dead.add(uriOf(1))
  await clock.advance(2_500)
  expect(stateOf(1)).toBe('probing')
  const probes = dispatcher.status(1)[0]?.nodes[0]?.probes
  stored.sets = [sampleSet([sampleNode(1, { weight: 5 }), sampleNode(2), sampleNode(4)])]
  await dispatcher.reload()
  expect(stateOf(1)).toBe('probing')
  expect(dispatcher.status(1)[0]?.nodes[0]).toMatchObject({ weight: 5, probes })
  expect([stateOf(3), stateOf(4)]).toEqual([undefined, 'active'])
  expect(changes).toHaveLength(1)
  await clock.advance(1_000)
  expect(stateOf(1)).toBe('probing')
})

test('a node that moved to another address starts anew', async () => {
  const { clock, nodes, stored, dispatcher, stateOf } = simulate([sampleSet(three)])
  dispatcher.start()
  nodes.dead.add(uriOf(1))
  await clock.advance(2_500)
  stored.sets = [sampleSet([sampleNode(1, { host: '192.0.2.77' }), sampleNode(2)])]
  await dispatcher.reload()
  expect(stateOf(1)).toBe('active')
  await clock.advance(1_000)
  expect(dispatcher.status(1)[0]?.nodes[0]?.latencyMs).toBe(2)
})

test('a reload follows the operator state in the database, and tells it after it holds', async () => {
  const seen: (string | undefined)[] = []
  const simulation = simulate([sampleSet(three)], {
    onNodeChange: (change) => {
      const offered = ids(simulation.dispatcher.candidates(1, 'c'))
      seen.push(`${change.nodeId} ${change.to} ${change.cause} ${offered.includes(change.nodeId)}`)
    },
  })
  const { stored, dispatcher } = simulation
  stored.sets = [sampleSet([sampleNode(1, { operatorState: 'inactive' }), ...three.slice(1)])]
  await dispatcher.reload()
  stored.sets = [sampleSet(three)]
  await dispatcher.reload()
  expect(seen).toEqual(['1 inactive reload false', '1 active reload true'])
})

test('a reload in the middle of a probe loses neither the probe nor its count', async () => {
  const { clock, nodes, dispatcher, changes } = simulate([sampleSet(three)])
  dispatcher.start()
  nodes.dead.add(uriOf(1))
  for (let step = 0; step < 19; step += 1) {
    await clock.advance(100)
    await dispatcher.reload()
  }
  expect(changes).toMatchObject([{ nodeId: 1, to: 'probing' }])
})

test('probe settings of a set override the defaults one by one', async () => {
  const probe = { failuresToProbing: 1, okCodes: [{ from: 404, to: 404 }] }
  const { clock, nodes, dispatcher, stateOf } = simulate([sampleSet(three, { probe })])
  nodes.statuses.set(uriOf(1), 404)
  nodes.statuses.set(uriOf(2), 200)
  dispatcher.start()
  await clock.advance(600)
  expect([stateOf(1), stateOf(2)]).toEqual(['active', 'probing'])
})

test('a timeout longer than the interval is cut to it, so that probes keep their rhythm', async () => {
  const { clock, nodes, dispatcher } = simulate([sampleSet(three, { probe: { timeoutMs: 5_000 } })])
  nodes.dead.add(uriOf(1))
  dispatcher.start()
  await clock.advance(10_000)
  expect(dispatcher.status(1)[0]?.nodes[0]?.probes.failed).toBeGreaterThanOrEqual(18)
})

test('status tells the state of each node with its calls and its last probe', async () => {
  const described = sampleNode(1, { description: 'Frankfurt', maxCalls: 40, priority: 2 })
  const { clock, nodes, dispatcher, calls } = simulate([
    sampleSet([described, sampleNode(2)], { algorithm: 9, name: 'pbx' }),
  ])
  nodes.statuses.set(uriOf(2), 503)
  calls.set(1, 17)
  dispatcher.start()
  await clock.advance(2_000)
  const [status] = dispatcher.status(1)
  expect(status).toMatchObject({
    setId: 1,
    name: 'pbx',
    algorithm: 9,
    activeNodes: 1,
    probingNodes: 1,
  })
  expect(status?.nodes[0]).toMatchObject({
    destination: uriOf(1),
    state: 'active',
    priority: 2,
    weight: 100,
    latencyMs: 2,
    description: 'Frankfurt',
    activeCalls: 17,
    maxCalls: 40,
    lastProbe: { status: 200 },
    probes: { sent: 4, answered: 4, failed: 0 },
  })
  expect(status?.nodes[1]).toMatchObject({
    state: 'probing',
    lastProbe: { status: 503 },
    probes: { sent: 4, answered: 4, failed: 4 },
  })
  expect(dispatcher.status(2)).toEqual([])
})

test('a tenant has the voicemail of its own set, or else of a common one, never of another tenant', () => {
  const set = (setId: number, tenantId: number | null, voicemailUri: string | null) =>
    sampleSet(three, { setId, tenantId, voicemailUri })
  const { dispatcher } = simulate([
    set(3, null, 'sip:common'),
    set(4, 7, 'sip:own'),
    set(5, 7, 'sip:later'),
    set(1, 7, null),
    set(2, 8, 'sip:other'),
  ])
  expect([7, 8, 9].map((tenantId) => dispatcher.voicemailOf(tenantId))).toEqual([
    'sip:own',
    'sip:other',
    'sip:common',
  ])
})
