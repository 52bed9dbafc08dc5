import { expect, test } from 'vitest'
import { callWith, type SippResult } from '../support/sipp.ts'
import { attemptsOf, cents, expectPaid, shareProgram } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const answers = { nodes: ['answers'] }

const caseOf = shareProgram(
  {
    paid: answers,
    hungUp: { nodes: ['hangs-up'] },
    byTcp: answers,
    poor: { ...answers, customer: { balance: '0' } },
    almostBroke: { ...answers, customer: { balance: '0.02' } },
    cancels: { nodes: ['rings'], ownNodes: true },
    races: { nodes: ['answers-after-ringing'], customer: { balance: '100.00' } },
    stranger: answers,
  },
  // As installed, but for the stranger's address.
  { TRUSTED_SOURCES: '127.0.0.1' },
)

const place = (
  { tollgate, options }: ReturnType<typeof caseOf>,
  scenario: string,
  more: object = {},
): Promise<SippResult> => callWith(scenario, tollgate.sipPort, { ...options, ...more })

test('a call is set up, recorded, and charged by the second', async () => {
  const own = caseOf('paid')
  expect(await place(own, 'inbound/answered.xml')).toEqual(clean)
  expect(await place(own, 'inbound/talks-2500-ms.xml')).toEqual(clean)
  const [short, long] = await own.waitForCalls(2)
  expect(short).toMatchObject({
    disposition: 'ANSWERED',
    sip_code: 200,
    hangup_by: 'caller',
    node: own.uris[0],
    caller_id_number: own.options.keys?.['caller'],
    destination_number: own.options.service,
  })
  const left = cents(1_000) - expectPaid(short, 1) - expectPaid(long, 3)
  expect(own.wallet()).toEqual({ balance: left, ledger: left, debits: 2 })
})

test('the node hangs up: the caller gets BYE, and the record says who ended the call', async () => {
  const own = caseOf('hungUp')
  expect(await place(own, 'inbound/caller-is-hung-up.xml')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call?.hangup_by).toBe('callee')
  expectPaid(call, 1)
})

test('a caller by TCP reaches a node by UDP', async () => {
  const own = caseOf('byTcp')
  expect(await place(own, 'inbound/answered.xml', { transport: 'tcp' })).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expectPaid(call, 1)
})

test('without funds the caller gets 402 with the text of the specification, and pays nothing', async () => {
  const own = caseOf('poor')
  expect(await place(own, 'inbound/no-funds.xml')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({
    disposition: 'FAILED',
    sip_code: 402,
    denial_code: 'insufficient_funds',
    cost_micros: 0,
    node: null,
    required_micros: expect.any(Number),
    available_micros: expect.any(Number),
  })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([])
})

test('when the funds run out in mid-call both sides are hung up, and the wallet is empty, not below', async () => {
  const own = caseOf('almostBroke')
  expect(await place(own, 'inbound/hung-up-without-funds.xml')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({
    disposition: 'ANSWERED',
    hangup_by: 'system',
    denial_code: 'insufficient_funds',
    billsec: 2,
    cost_micros: cents(2),
  })
  expect(own.wallet()).toMatchObject({ balance: 0, ledger: 0 })
})

test('the caller gives up: 487, the node is cancelled, nothing is charged', async () => {
  const own = caseOf('cancels')
  expect(await place(own, 'inbound/cancels-while-ringing.xml')).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'CANCELED', sip_code: 487, cost_micros: 0 })
  expect(await own.nodes[0]?.stop()).toBe('')
})

test('a CANCEL that races the answer ends the call once, whichever wins', async () => {
  const own = caseOf('races')
  const calls = 20
  const result = await place(own, 'inbound/cancel-races-answer.xml', { calls, rate: 20 })
  // SIPp remarks on what arrives in the moment in which it sends; what counts is that every call
  // ended.
  expect(result.exitCode).toBe(0)
  const records = await own.waitForCalls(calls)
  expect(records).toHaveLength(calls)
  const charged = records.reduce((sum, call) => sum + call.cost_micros, 0)
  for (const call of records) {
    expect(['ANSWERED', 'CANCELED']).toContain(call.disposition)
    // One that ended in the millisecond of its answer lasted no second.
    if (call.disposition === 'ANSWERED') expect(call.cost_micros).toBe(cents(call.billsec))
    else expect(call).toMatchObject({ billsec: 0, cost_micros: 0 })
  }
  expect(own.wallet()).toMatchObject({
    balance: cents(10_000) - charged,
    ledger: cents(10_000) - charged,
  })
})

test('an unknown source gets 403', async () => {
  const own = caseOf('stranger')
  const extra = [...(own.options.extra ?? []), '-i', '127.0.0.3']
  expect(await place(own, 'inbound/unknown-source.xml', { extra })).toEqual(clean)
  const [call] = await own.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'FAILED', sip_code: 403, cost_micros: 0 })
})
