import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { shareProgram, taggedCalls } from './call-case.ts'

/** Enough to reserve a minute for every call at once, however slow the machine is. */
const customer = { balance: '100.00' }
const three = { nodes: ['answers', 'answers', 'answers'], customer }

const caseOf = shareProgram({
  failover: { ...three, algorithm: 8 },
  roundRobin: { ...three, algorithm: 4 },
  weight: { ...three, algorithm: 9, weights: [100, 50, 50] },
  random: { ...three, algorithm: 6 },
  hash: { ...three, algorithm: 0 },
})

/** Places calls one after the other; answers with the node of each, as its index. */
async function nodesChosen(
  { tollgate, uris, options, waitForCalls }: ReturnType<typeof caseOf>,
  calls: number,
  more: object = {},
) {
  const all = { ...options, calls, rate: 30, ...more }
  const result = await callWith('inbound/answered.xml', tollgate.sipPort, all)
  expect(result).toEqual({ exitCode: 0, errors: '' })
  const records = await waitForCalls(calls)
  return records
    .toSorted((a, b) => Number(a.call_id.split('-')[0]) - Number(b.call_id.split('-')[0]))
    .map((call) => uris.indexOf(call.node ?? ''))
}

const counts = (chosen: readonly number[]): number[] =>
  [0, 1, 2].map((node) => chosen.filter((index) => index === node).length)

test('failover (8): every call goes to the node of lowest priority number', async () => {
  expect(counts(await nodesChosen(caseOf('failover'), 12))).toEqual([12, 0, 0])
})

test('round robin (4): each node gets exactly every third call', async () => {
  const chosen = await nodesChosen(caseOf('roundRobin'), 30)
  expect(counts(chosen)).toEqual([10, 10, 10])
})

test('weight (9): 100, 50 and 50 get exactly two, one and one of every four calls', async () => {
  expect(counts(await nodesChosen(caseOf('weight'), 40))).toEqual([20, 10, 10])
})

test('random (6): every node gets calls, and every call reaches one', async () => {
  const chosen = await nodesChosen(caseOf('random'), 60)
  // The chance that one of three nodes gets none of 60 calls is below 1 in 10,000,000,000.
  expect(counts(chosen).every((count) => count > 0)).toBe(true)
  expect(chosen).toHaveLength(60)
})

test('Call-ID hash (0): the same Call-ID reaches the same node, different ones spread', async () => {
  const hashed = caseOf('hash')
  const again = taggedCalls(hashed.customer, '%u-same')
  const first = await nodesChosen(hashed, 30, again)
  const all = { ...hashed.options, calls: 30, rate: 30, ...again }
  const second = await callWith('inbound/answered.xml', hashed.tollgate.sipPort, all)
  expect(second).toEqual({ exitCode: 0, errors: '' })
  const records = await hashed.waitForCalls(60)
  const nodesOf = new Map<string, Set<string | null>>()
  for (const { call_id: callId, node } of records)
    nodesOf.set(callId, (nodesOf.get(callId) ?? new Set()).add(node))
  expect(nodesOf.size).toBe(30)
  expect([...nodesOf.values()].every((nodes) => nodes.size === 1)).toBe(true)
  expect(counts(first).every((count) => count > 0)).toBe(true)
})
