import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { cents, paying, startCase } from './call-case.ts'

const options = { keys: { caller: paying } }

/** Caller scenario, node scenario, and what it proves. */
const cases = [
  ['dialog/holds.xml', 'is-held', 'hold by the caller passes with the sessions of both sides'],
  ['dialog/is-held.xml', 'holds', 'hold by the node passes the other way'],
  ['dialog/early-media.xml', 'early-media', 'early media reaches the caller before the answer'],
  ['dialog/dtmf.xml', 'speaks-dtmf', 'a digit sent as INFO reaches the node'],
  ['dialog/lost-ack.xml', 'answers', 'a lost ACK repeats the answer and does not hurt the call'],
  ['dialog/retransmissions.xml', 'answers', 'requests that arrive twice make one call'],
  ['inbound/answered.xml', 'repeats', 'answers that arrive twice make one call'],
] as const

test.each(cases)('%s with node %s: %s; one record, one charge', async (scenario, node) => {
  const { tollgate, nodes } = await startCase({ nodes: [node] })
  const result = await callWith(scenario, tollgate.sipPort, options)
  expect(result).toEqual({ exitCode: 0, errors: '' })
  const calls = await tollgate.waitForCalls(1)
  expect(await nodes[0]?.stop()).toBe('')
  expect(calls).toHaveLength(1)
  expect(calls[0]).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'caller' })
  expect(tollgate.wallet('paying')).toMatchObject({
    balance: cents(1_000) - (calls[0]?.cost_micros ?? 0),
    debits: 1,
  })
})

test('both sides hang up at once: each is answered, and the call is charged once', async () => {
  const { tollgate } = await startCase({ nodes: ['crosses-bye'] })
  const calls = 10
  const result = await callWith('dialog/crossing-byes.xml', tollgate.sipPort, {
    ...options,
    calls,
    rate: 10,
  })
  expect(result.exitCode).toBe(0)
  expect(await tollgate.waitForCalls(calls)).toHaveLength(calls)
  expect(tollgate.wallet('paying')).toMatchObject({ debits: calls, balance: cents(1_000 - calls) })
})

test('a caller that never acknowledges the answer is hung up after 32 s, and the node too', async () => {
  const { tollgate, nodes } = await startCase({ nodes: ['answers'] })
  const result = await callWith('dialog/never-acknowledged.xml', tollgate.sipPort, {
    ...options,
    timeoutSeconds: 45,
  })
  expect(result.exitCode).toBe(0)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED' })
  expect(await nodes[0]?.stop()).toBe('')
})
