/**
 * Phones from outside: they register, are called, call each other and the world; books and wallets
 * checked.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callWith, SippNode } from '../support/sipp.ts'
import { eventually } from '../support/waiting.ts'
import { cents, expectPaid, holdCall } from './call-case.ts'
import { domain, startPhones, type PhoneCase } from './phone-case.ts'

const clean = { exitCode: 0, errors: '' }
const outside = '18005551212'

let world: PhoneCase
let gateway: SippNode
beforeAll(async () => {
  gateway = await SippNode.start('nodes/answers.xml')
  world = await startPhones(gateway.port)
})
afterAll(async () => {
  await world.tollgate.stop()
  await gateway.stop()
})

/** The records that `place` adds. */
async function recordsOf(count: number, place: () => Promise<unknown>) {
  const known = world.tollgate.calls().length
  await place()
  return (await world.tollgate.waitForCalls(known + count)).slice(known)
}

test('a registered phone is called by another phone of its tenant, at no cost, also after a power cut', async () => {
  const { tollgate, phone } = world
  const [one, two] = [await phone('101'), await phone('102')]
  expect(await one.register()).toEqual(clean)
  const node = await one.answer()
  const calls = await recordsOf(2, async () => {
    expect(await two.call('101')).toEqual(clean)
    await tollgate.kill()
    await tollgate.restart()
    expect(await two.call('101')).toEqual(clean)
  })
  await node.stop()
  for (const call of calls)
    expect(call).toMatchObject({
      caller_id_number: '102',
      destination_number: '101',
      disposition: 'ANSWERED',
      direction: 'internal',
      cost_micros: 0,
    })
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
})

test("a phone calls the outside through a carrier, and its customer's wallet pays", async () => {
  const { tollgate, phone } = world
  const caller = await phone('101')
  const [call] = await recordsOf(1, async () => expect(await caller.call(outside)).toEqual(clean))
  expect(call).toMatchObject({
    caller_id_number: '101',
    destination_number: outside,
    direction: 'outbound',
    carrier: 'north',
  })
  const balance = cents(1_000) - expectPaid(call, 1)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 1 })
})

test('an extension without money gets 402 for the outside and its emergency call all the same', async () => {
  const { tollgate, phone } = world
  const calls = await recordsOf(2, async () => {
    await (await phone('102')).fail(/402 Payment/, outside)
    expect(await (await phone('102')).call('112')).toEqual(clean)
  })
  expect(calls).toMatchObject([
    { sip_code: 402, denial_code: 'insufficient_funds', cost_micros: 0 },
    { sip_code: 200, destination_number: '112', carrier: 'north', cost_micros: 0 },
  ])
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
})

test('a carrier reaches a phone by the number that an inbound route gives it', async () => {
  const { tollgate, phone, trunkPort } = world
  const one = await phone('101')
  expect(await one.register()).toEqual(clean)
  const node = await one.answer()
  const options = { port: trunkPort, service: '18005550101', keys: { caller: '15550001111' } }
  const calls = await recordsOf(1, async () =>
    expect(await callWith('inbound/answered.xml', tollgate.sipPort, options)).toEqual(clean),
  )
  await node.stop()
  expect(calls).toMatchObject([
    {
      caller_id_number: '15550001111',
      destination_number: '18005550101',
      disposition: 'ANSWERED',
      direction: 'inbound',
      carrier: 'north',
    },
  ])
})

test('a phone cannot call with the number of another: not with its own password, not without', async () => {
  const { tollgate, phone } = world
  const before = tollgate.wallet('paying')
  const thief = await phone('102')
  const stranger = { keys: { caller: '101', domain } }
  const calls = await recordsOf(2, async () => {
    expect(await thief.call(outside, 'phones/claims-another-number', '101')).toEqual(clean)
    expect(await callWith('inbound/unknown-source.xml', tollgate.sipPort, stranger)).toEqual(clean)
  })
  expect(calls).toMatchObject([
    { sip_code: 403, denial_code: 'unknown_source', carrier: null },
    { sip_code: 403, denial_code: 'unknown_source', carrier: null },
  ])
  expect(tollgate.wallet('paying')).toEqual(before)
})

test('while Tollgate drains, an emergency call passes and any other is told to try later', async () => {
  const { tollgate, phone } = world
  const [one, two] = [await phone('101'), await phone('102')]
  const before = tollgate.calls().length
  const hangUp = await holdCall(tollgate, () => one.call(outside, 'phones/is-hung-up'))
  const ended = tollgate.terminate()
  await eventually(() => expect(tollgate.log.join()).toContain('draining'))
  expect(await two.call(outside, 'phones/is-told-to-retry')).toEqual(clean)
  expect(await two.call('112')).toEqual(clean)
  await hangUp()
  expect(await ended).toBe(0)
  const calls = tollgate.calls().slice(before)
  expect(calls.map((call) => `${call.destination_number},${call.sip_code}`).toSorted()).toEqual(
    ['112,200', `${outside},200`, `${outside},503`].toSorted(),
  )
})
