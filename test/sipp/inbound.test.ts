import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { almostBroke, attemptsOf, cents, expectPaid, paying, poor, startCase } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const from = (caller: string) => ({ keys: { caller } })

test('a call is set up, recorded, and charged by the second', async () => {
  const { tollgate, uris } = await startCase({ nodes: ['answers'] })
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  expect(await callWith('inbound/talks-2500-ms.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  const [short, long] = await tollgate.waitForCalls(2)
  expect(short).toMatchObject({
    disposition: 'ANSWERED',
    sip_code: 200,
    hangup_by: 'caller',
    node: uris[0],
    caller_id_number: paying,
    destination_number: '18005551212',
  })
  const left = cents(1_000) - expectPaid(short, 1) - expectPaid(long, 3)
  expect(tollgate.wallet('paying')).toEqual({ balance: left, ledger: left, debits: 2 })
})

test('the node hangs up: the caller gets BYE, and the record says who ended the call', async () => {
  const { tollgate } = await startCase({ nodes: ['hangs-up'] })
  const result = await callWith('inbound/caller-is-hung-up.xml', tollgate.sipPort, from(paying))
  expect(result).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call?.hangup_by).toBe('callee')
  expectPaid(call, 1)
})

test('a caller by TCP reaches a node by UDP', async () => {
  const { tollgate } = await startCase({ nodes: ['answers'] })
  const options = { ...from(paying), transport: 'tcp' as const }
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expectPaid(call, 1)
})

test('without funds the caller gets 402 with the text of the specification, and pays nothing', async () => {
  const { tollgate } = await startCase({ nodes: ['answers'] })
  expect(await callWith('inbound/no-funds.xml', tollgate.sipPort, from(poor))).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
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
  const { tollgate } = await startCase({ nodes: ['answers'] })
  const result = await callWith(
    'inbound/hung-up-without-funds.xml',
    tollgate.sipPort,
    from(almostBroke),
  )
  expect(result).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({
    disposition: 'ANSWERED',
    hangup_by: 'system',
    denial_code: 'insufficient_funds',
    billsec: 2,
    cost_micros: cents(2),
  })
  expect(tollgate.wallet('almost-broke')).toMatchObject({ balance: 0, ledger: 0 })
})

test('busy passes to the caller, and no other node is tried', async () => {
  const { tollgate } = await startCase({ nodes: ['refuses-486', 'answers'] })
  expect(await callWith('inbound/busy.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'BUSY', sip_code: 486, cost_micros: 0 })
  expect(attemptsOf(call ?? { attempts: '[]' })).toEqual([486])
})

test('no answer: the ring limit ends the call', async () => {
  const { tollgate, nodes } = await startCase({
    nodes: ['rings'],
    environment: { RING_TIMEOUT_SECONDS: '2' },
  })
  expect(await callWith('inbound/no-answer.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'NO ANSWER', sip_code: 480, cost_micros: 0 })
  expect(await nodes[0]?.stop()).toBe('')
})

test.each(['inbound/cancels-at-once.xml', 'inbound/cancels-while-ringing.xml'])(
  'the caller gives up (%s): 487, the node is cancelled, nothing is charged',
  async (scenario) => {
    const { tollgate, nodes } = await startCase({ nodes: ['rings'] })
    expect(await callWith(scenario, tollgate.sipPort, from(paying))).toEqual(clean)
    const [call] = await tollgate.waitForCalls(1)
    expect(call).toMatchObject({
      disposition: 'CANCELED',
      sip_code: 487,
      hangup_by: 'caller',
      cost_micros: 0,
    })
    expect(await nodes[0]?.stop()).toBe('')
  },
)

test('a CANCEL that races the answer ends the call once, whichever wins', async () => {
  const { tollgate } = await startCase({ nodes: ['answers-after-ringing'], balance: '100.00' })
  const calls = 40
  const result = await callWith('inbound/cancel-races-answer.xml', tollgate.sipPort, {
    ...from(paying),
    calls,
    rate: 20,
  })
  // SIPp remarks on what arrives in the moment in which it sends; what counts is that every call ended.
  expect(result.exitCode).toBe(0)
  const records = await tollgate.waitForCalls(calls)
  expect(records).toHaveLength(calls)
  const charged = records.reduce((sum, call) => sum + call.cost_micros, 0)
  for (const call of records) {
    expect(['ANSWERED', 'CANCELED']).toContain(call.disposition)
    // One that ended in the millisecond of its answer lasted no second.
    if (call.disposition === 'ANSWERED') expect(call.cost_micros).toBe(cents(call.billsec))
    else expect(call).toMatchObject({ billsec: 0, cost_micros: 0 })
  }
  expect(tollgate.wallet('paying')).toMatchObject({
    balance: cents(10_000) - charged,
    ledger: cents(10_000) - charged,
  })
})

test('an unknown source gets 403', async () => {
  const { tollgate } = await startCase({
    nodes: ['answers'],
    environment: { TRUSTED_SOURCES: '192.0.2.0/24' },
  })
  const result = await callWith('inbound/unknown-source.xml', tollgate.sipPort, from(paying))
  expect(result).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'FAILED', sip_code: 403, cost_micros: 0 })
})
