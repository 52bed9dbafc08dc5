import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { eventually, watchedNodes } from '../support/waiting.ts'
import { attemptsOf, expectPaid, holdCall, paying, startCase, type Case } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const options = { keys: { caller: paying } }

/** Waits until the node's state has changed to this one. */
const becomes = (
  { tollgate }: Case,
  uri: string | undefined,
  state: 'active' | 'probing',
): Promise<void> =>
  eventually(() =>
    expect(
      tollgate.log.findLast((line) => /node is \w+/.test(line) && line.includes(`"${uri}"`)),
    ).toContain(`node is ${state}`),
  )

test.each([503, 500])(
  'a node that answers %i is passed over, and the next one takes the call',
  async (status) => {
    const { tollgate, uris } = await startCase({ nodes: [`refuses-${status}`, 'answers'] })
    expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
    const [call] = await tollgate.waitForCalls(1)
    expect(call?.node).toBe(uris[1])
    expectPaid(call, 1)
    expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([status, 200])
  },
)

test('a node that is silent is passed over after NODE_TIMEOUT_MS', async () => {
  const { tollgate, uris } = await startCase({
    nodes: ['ignores-calls', 'answers'],
    environment: { ...watchedNodes, PROBE_FAILURES: '100' },
  })
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', node: uris[1] })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([0, 200])
})

test('a node that has gone is passed over, and soon out of the set', async () => {
  const started = await startCase({ nodes: ['answers', 'answers'], environment: watchedNodes })
  const { tollgate, nodes, uris } = started
  await nodes[0]?.stop()
  const gone = performance.now()
  const takenOut = becomes(started, uris[0], 'probing').then(() => performance.now() - gone)
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  // By the schedule 4.9 s (dispatcher/detection.test.ts); the rest is for a machine that stands still.
  expect(await takenOut).toBeLessThan(15_000)
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual([uris[1], uris[1]])
  expect(attemptsOf(calls[1] ?? { attempts: '[]' })).toEqual([200])
})

test('with every node dead the caller gets 503 with the text of the specification', async () => {
  const environment = { PROBE_FAILURES: '3' }
  const started = await startCase({ nodes: ['answers', 'answers'], environment })
  const { tollgate, nodes, uris } = started
  for (const node of nodes) node.freeze()
  for (const uri of uris) await becomes(started, uri, 'probing')
  expect(await callWith('failover/no-nodes.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'CONGESTION', sip_code: 503, cost_micros: 0 })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([])
})

test('a node that comes back takes calls again after three answered probes', async () => {
  const started = await startCase({ nodes: ['answers', 'answers'], environment: watchedNodes })
  const { tollgate, nodes, uris } = started
  nodes[0]?.freeze()
  await becomes(started, uris[0], 'probing')
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  nodes[0]?.thaw()
  await becomes(started, uris[0], 'active')
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual([uris[1], uris[0]])
})

test('a node that declines (603) ends the call: no other phone rings', async () => {
  const { tollgate } = await startCase({ nodes: ['refuses-603', 'answers'] })
  expect(await callWith('failover/declined.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([603])
})

test('a node that fails after early media ends the call: the caller has heard it', async () => {
  const { tollgate } = await startCase({ nodes: ['early-media-fails', 'answers'] })
  const result = await callWith('failover/announcement-then-503.xml', tollgate.sipPort, options)
  expect(result).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([503])
})

test('when all nodes have refused, the caller gets the last answer', async () => {
  const { tollgate } = await startCase({ nodes: ['refuses-503', 'refuses-500'] })
  expect(await callWith('failover/last-answer.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([503, 500])
})

test('a live call survives the death of another node, and ends in order', async () => {
  const started = await startCase({ nodes: ['answers', 'answers'], environment: watchedNodes })
  const { tollgate, nodes, uris } = started
  const hangUp = await holdCall(tollgate, () =>
    callWith('inbound/caller-is-hung-up.xml', tollgate.sipPort, options),
  )
  await nodes[1]?.stop()
  await becomes(started, uris[1], 'probing')
  await hangUp()
  const [call] = await tollgate.waitForCalls(1)
  // The other node was silent for so long.
  expectPaid(call, 3)
})
