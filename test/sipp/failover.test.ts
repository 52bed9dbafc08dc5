import { expect, test } from 'vitest'
import { callWith, type SippResult } from '../support/sipp.ts'
import { eventually, watchedNodes } from '../support/waiting.ts'
import { attemptsOf, expectPaid, shareProgram, type Case, type SharedCase } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const caseOf = shareProgram(
  {
    'refuses-503': { nodes: ['refuses-503', 'answers'] },
    comesBack: { nodes: ['answers', 'answers'], ownNodes: true },
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

test('a node that answers 503 is passed over, and the next one takes the call', async () => {
  const own = caseOf('refuses-503')
  expect(await place(own, 'inbound/answered')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call?.node).toBe(own.uris[1])
  expectPaid(call, 1)
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([503, 200])
})

test('a node that comes back takes calls again after three answered probes', async () => {
  const own = caseOf('comesBack')
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
