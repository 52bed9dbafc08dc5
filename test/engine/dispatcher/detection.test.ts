/** The promises of SPECIFICATION.md §3.2 and §11, over every moment at which a node can die. */
import { expect, test } from 'vitest'
import { sampleNode, sampleSet, simulate, uriOf } from './samples.ts'

const twoInstances = [sampleSet([sampleNode(1, { priority: 1 }), sampleNode(2, { priority: 2 })])]

/** Milliseconds from the death of node 1 at `diesAt` to its leaving the candidates. */
async function detectionMs(diesAt: number): Promise<number> {
  const { clock, nodes, dispatcher, changes } = simulate(twoInstances)
  dispatcher.start()
  await clock.advanceTo(diesAt)
  nodes.dead.add(uriOf(1))
  await clock.advance(2_500)
  expect(changes).toMatchObject([{ nodeId: 1, from: 'active', to: 'probing', cause: 'probe' }])
  return (changes[0]?.at ?? Infinity) - diesAt
}

test('a node that dies at any phase of the schedule is out within 1900 ms', async () => {
  const measured: number[] = []
  for (let phase = 0; phase < 500; phase += 2) measured.push(await detectionMs(5_000.5 + phase))
  expect(Math.max(...measured)).toBeLessThanOrEqual(1_900)
  expect(Math.min(...measured)).toBeGreaterThanOrEqual(1_390)
})

test('losing every second datagram takes no node out', async () => {
  const { clock, nodes, dispatcher, changes } = simulate(twoInstances)
  dispatcher.start()
  nodes.isLost = (_, count) => count % 2 === 0
  await clock.advance(60_000)
  expect(nodes.sentTo(uriOf(1)).length).toBeGreaterThanOrEqual(239)
  expect(changes).toEqual([])
})

test('after three answers in a row a dead node takes calls again', async () => {
  const { clock, nodes, dispatcher, stateOf } = simulate(twoInstances)
  dispatcher.start()
  nodes.dead.add(uriOf(1))
  await clock.advance(3_000)
  expect(dispatcher.candidates(1, 'c').map((node) => node.nodeId)).toEqual([2])
  nodes.dead.delete(uriOf(1))
  const answered = () => dispatcher.status(1)[0]?.nodes[0]?.successes ?? 0
  while (answered() < 2) await clock.advance(1)
  expect(stateOf(1)).toBe('probing')
  await clock.advance(500)
  expect(answered()).toBe(3)
  expect(dispatcher.candidates(1, 'c').map((node) => node.nodeId)).toEqual([1, 2])
})

test('failed calls take a node out sooner: one failure asks at once', async () => {
  const { clock, nodes, dispatcher, changes } = simulate(twoInstances)
  dispatcher.start()
  await clock.advance(1_100)
  nodes.dead.add(uriOf(1))
  const before = nodes.sentTo(uriOf(1)).length
  dispatcher.reportOutcome(1, 'failed')
  expect(nodes.sentTo(uriOf(1))).toHaveLength(before + 1)
  await clock.advance(1_000)
  expect(changes).toMatchObject([{ nodeId: 1, to: 'probing', cause: 'probe' }])
})

test('three failed calls in a row take a node out without any probe', () => {
  const { dispatcher, changes } = simulate(twoInstances)
  for (let call = 0; call < 3; call += 1) dispatcher.reportOutcome(1, 'failed')
  expect(changes).toMatchObject([{ nodeId: 1, to: 'probing', cause: 'call' }])
})

test('failed calls at any rate do not delay detection of a later death', async () => {
  for (let phase = 0; phase < 500; phase += 20) {
    const { clock, nodes, dispatcher, changes } = simulate(twoInstances)
    dispatcher.start()
    await clock.advanceTo(5_000.5 + phase)
    dispatcher.reportOutcome(1, 'failed')
    await clock.advance(3)
    nodes.dead.add(uriOf(1))
    await clock.advance(1_900)
    expect(changes).toMatchObject([{ nodeId: 1, to: 'probing' }])
  }
})
