import { expect, test } from 'vitest'
import { SippNode, callWith } from '../support/sipp.ts'
import { attemptsOf, cents, paying, startCase } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const options = { keys: { caller: paying } }

test.each([503, 500])(
  'a node that answers %i is passed over, and the next one takes the call',
  async (status) => {
    const { tollgate, uris } = await startCase({ nodes: [`refuses-${status}`, 'answers'] })
    expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
    const [call] = await tollgate.waitForCalls(1)
    expect(call).toMatchObject({ disposition: 'ANSWERED', node: uris[1], cost_micros: cents(1) })
    expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([status, 200])
  },
)

test('a node that is silent is passed over after NODE_TIMEOUT_MS', async () => {
  const { tollgate, uris } = await startCase({ nodes: ['ignores-calls', 'answers'] })
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', node: uris[1] })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([0, 200])
})

test('a node that has gone is passed over, and out of the set within two seconds', async () => {
  const { tollgate, nodes, uris } = await startCase({ nodes: ['answers', 'answers'] })
  await nodes[0]?.stop()
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual([uris[1], uris[1]])
  expect(attemptsOf(calls[1] ?? { attempts: '[]' })).toEqual([200])
})

test('with every node dead the caller gets 503 with the text of the specification', async () => {
  const { tollgate, nodes } = await startCase({ nodes: ['answers', 'answers'] })
  for (const node of nodes) node.freeze()
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await callWith('failover/no-nodes.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'CONGESTION', sip_code: 503, cost_micros: 0 })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([])
})

test('a node that comes back takes calls again after three answered probes', async () => {
  const { tollgate, nodes, uris } = await startCase({ nodes: ['answers', 'answers'] })
  nodes[0]?.freeze()
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  nodes[0]?.thaw()
  await new Promise((resolve) => setTimeout(resolve, 3_000))
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
  const { tollgate, nodes } = await startCase({ nodes: ['answers', 'answers'] })
  const talking = callWith('inbound/talks-2500-ms.xml', tollgate.sipPort, options)
  await new Promise((resolve) => setTimeout(resolve, 500))
  await nodes[1]?.stop()
  expect(await talking).toEqual(clean)
  const replacement = await SippNode.start('nodes/answers.xml')
  await replacement.stop()
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', billsec: 3 })
})
