import { expect, test } from 'vitest'
import { callWith, type SippResult } from '../support/sipp.ts'
import { eventually, watchedNodes } from '../support/waiting.ts'
import {
  attemptsOf,
  expectPaid,
  holdCall,
  shareProgram,
  type Case,
  type SharedCase,
} from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const two = { nodes: ['answers', 'answers'], ownNodes: true }

const caseOf = shareProgram({
  'refuses-503': { nodes: ['refuses-503', 'answers'] },
  'refuses-500': { nodes: ['refuses-500', 'answers'] },
  dead: { ...two, probe: { fail_threshold: 3 } },
  declines: { nodes: ['refuses-603', 'answers'] },
  announces: { nodes: ['early-media-fails', 'answers'] },
  refuse: { nodes: ['refuses-503', 'refuses-500'] },
})

const watchedCase = shareProgram(
  {
    silent: { nodes: ['ignores-calls', 'answers'], probe: { fail_threshold: 20 } },
    gone: two,
    comesBack: two,
    outlives: two,
  },
  watchedNodes,
)

const place = ({ tollgate, options }: SharedCase, name: string): Promise<SippResult> =>
  callWith(`${name}.xml`, tollgate.sipPort, options)

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

test.each([503, 500] as const)(
  'a node that answers %i is passed over, and the next one takes the call',
  async (status) => {
    const own = caseOf(`refuses-${status}`)
    expect(await place(own, 'inbound/answered')).toEqual(clean)
    const [call] = await own.waitForCalls(1)
    expect(call?.node).toBe(own.uris[1])
    expectPaid(call, 1)
    expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([status, 200])
  },
)

test('a node that is silent is passed over after NODE_TIMEOUT_MS', async () => {
  const own = watchedCase('silent')
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', node: own.uris[1] })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([0, 200])
})

test('a node that has gone is passed over, and soon out of the set', async () => {
  const own = watchedCase('gone')
  const { nodes, uris } = own
  await nodes[0]?.stop()
  const gone = performance.now()
  const takenOut = becomes(own, uris[0], 'probing').then(() => performance.now() - gone)
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  // By the schedule 4.9 s (dispatcher/detection.test.ts); the rest is for a machine that stands still.
  expect(await takenOut).toBeLessThan(15_000)
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  const calls = await own.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual([uris[1], uris[1]])
  expect(attemptsOf(calls[1] ?? { attempts: '[]' })).toEqual([200])
})

test('with every node dead the caller gets 503 with the text of the specification', async () => {
  const own = caseOf('dead')
  const { nodes, uris } = own
  for (const node of nodes) node.freeze()
  for (const uri of uris) await becomes(own, uri, 'probing')
  expect(await place(own, 'failover/no-nodes')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'CONGESTION', sip_code: 503, cost_micros: 0 })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([])
})

test('a node that comes back takes calls again after three answered probes', async () => {
  const own = watchedCase('comesBack')
  const { nodes, uris } = own
  nodes[0]?.freeze()
  await becomes(own, uris[0], 'probing')
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  nodes[0]?.thaw()
  await becomes(own, uris[0], 'active')
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  const calls = await own.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual([uris[1], uris[0]])
})

test('a node that declines (603) ends the call: no other phone rings', async () => {
  const own = caseOf('declines')
  expect(await place(own, 'failover/declined')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([603])
})

test('a node that fails after early media ends the call: the caller has heard it', async () => {
  const own = caseOf('announces')
  const result = await place(own, 'failover/announcement-then-503')
  expect(result).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([503])
})

test('when all nodes have refused, the caller gets the last answer', async () => {
  const own = caseOf('refuse')
  expect(await place(own, 'failover/last-answer')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([503, 500])
})

test('a live call survives the death of another node, and ends in order', async () => {
  const own = watchedCase('outlives')
  const { tollgate, nodes, uris } = own
  const hangUp = await holdCall(tollgate, () => place(own, 'inbound/caller-is-hung-up'), own)
  await nodes[1]?.stop()
  await becomes(own, uris[1], 'probing')
  await hangUp()
  const [call] = await own.waitForCalls(1)
  // The other node was silent for so long.
  expectPaid(call, 3)
})
