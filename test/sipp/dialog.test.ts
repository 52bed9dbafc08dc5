import { expect, test } from 'vitest'
import { callWith, traceCall, type TracedResult } from '../support/sipp.ts'
import { cents, expectPaid, shareProgram } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }

/** Caller scenario, node scenario, and what it proves. */
const cases = [
  ['dialog/holds.xml', 'is-held', 'hold by the caller passes with the sessions of both sides'],
  ['dialog/is-held.xml', 'holds', 'hold by the node passes the other way'],
  ['dialog/early-media.xml', 'early-media', 'early media reaches the caller before the answer'],
  ['dialog/dtmf.xml', 'speaks-dtmf', 'a digit sent as INFO reaches the node'],
  ['dialog/crossing-byes.xml', 'hangs-up', 'BYEs that cross on the side of the caller end it once'],
  ['inbound/answered.xml', 'crosses-bye', 'BYEs that cross on the side of the node end it once'],
  ['inbound/answered.xml', 'repeats', 'answers that arrive twice make one call'],
] as const

const withNode = (node: string) => ({ nodes: [node], ownNodes: true })

const ofNodes: Record<string, ReturnType<typeof withNode>> = Object.fromEntries(
  cases.map(([, node]) => [node, withNode(node)]),
)

const caseOf = shareProgram<string>({
  ...ofNodes,
  lostAck: withNode('answers'),
  twice: withNode('answers'),
})

test.each(cases)('%s with node %s: %s; one record, one charge', async (scenario, node) => {
  const { tollgate, nodes, options, waitForCalls, wallet } = caseOf(node)
  expect(await callWith(scenario, tollgate.sipPort, options)).toEqual(clean)
  const calls = await waitForCalls(1)
  expect(await nodes[0]?.stop()).toBe('')
  expect(calls).toHaveLength(1)
  const hangupBy = node === 'hangs-up' ? 'callee' : 'caller'
  expect(calls[0]).toMatchObject({ disposition: 'ANSWERED', hangup_by: hangupBy })
  expect(wallet()).toMatchObject({
    balance: cents(1_000) - (calls[0]?.cost_micros ?? 0),
    debits: 1,
  })
})

/** How many messages match, in this direction. */
const count = ({ messages }: TracedResult, direction: 'sent' | 'received', pattern: RegExp) =>
  messages.filter((message) => message.direction === direction && pattern.test(message.text)).length

const answersToInvite = /^SIP\/2\.0 200 [\s\S]*^CSeq: 1 INVITE/m

test('a lost ACK: the answer is repeated, and with the next ACK the call goes on', async () => {
  const { tollgate, nodes, options, waitForCalls } = caseOf('lostAck')
  // Without its own retransmissions SIPp shows the scenario those of others.
  const extra = [...(options.extra ?? []), '-nr']
  const result = await traceCall('dialog/lost-ack.xml', tollgate.sipPort, { ...options, extra })
  expect(result).toMatchObject(clean)
  expect(count(result, 'received', answersToInvite)).toBeGreaterThanOrEqual(2)
  expectPaid((await waitForCalls(1))[0], 2)
  expect(await nodes[0]?.stop()).toBe('')
})

test('every request arrives twice: it is one call with one charge', async () => {
  const { tollgate, nodes, options, waitForCalls, wallet } = caseOf('twice')
  const result = await traceCall('dialog/retransmissions.xml', tollgate.sipPort, options)
  expect(result).toMatchObject(clean)
  expect(count(result, 'sent', /^INVITE /)).toBe(2)
  expect(count(result, 'sent', /^BYE /)).toBe(2)
  const balance = cents(1_000) - expectPaid((await waitForCalls(1))[0], 1)
  expect(wallet()).toMatchObject({ debits: 1, balance })
  expect(await nodes[0]?.stop()).toBe('')
})
