/** Phones from outside: they register, are called, call each other and the world; books and wallets checked. */
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { cents, expectPaid, holdCall } from './call-case.ts'
import { domain, startPhones } from './phone-case.ts'
import { eventually } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const outside = '18005551212'

test('a registered phone is called by another phone of its tenant, at no cost', async () => {
  const { tollgate, phone } = await startPhones()
  const [one, two] = [await phone('101'), await phone('102')]
  expect(await one.register()).toEqual(clean)
  await one.answer()
  expect(await two.call('101')).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({
    caller_id_number: '102',
    destination_number: '101',
    disposition: 'ANSWERED',
    direction: 'internal',
    cost_micros: 0,
  })
  expect(call?.billsec).toBeGreaterThan(0)
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
  expect(tollgate.faults).toEqual([])
})

test('a wrong password registers nothing, and the extension cannot be called', async () => {
  const { tollgate, phone } = await startPhones()
  const [one, two] = [await phone('101'), await phone('102')]
  await one.fail(/SIP\/2\.0 401 /, { password: 'guessed-it' })
  expect(tollgate.query('SELECT 1 FROM binding')).toEqual([])
  await two.fail(/SIP\/2\.0 480 /, { number: '101' })
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ sip_code: 480, cost_micros: 0 }])
})

test('over a power cut a phone stays reachable where it registered', async () => {
  const { tollgate, phone } = await startPhones()
  const [one, two] = [await phone('101'), await phone('102')]
  expect(await one.register()).toEqual(clean)
  await tollgate.kill()
  await tollgate.restart()
  await one.answer()
  expect(await two.call('101')).toEqual(clean)
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
})

/** A carrier that takes calls, and may send them from another port. */
async function withCarrier(environment: Readonly<Record<string, string>> = {}) {
  const gateway = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await gateway.stop()))
  const port = await freePort()
  const started = await startPhones(
    {
      carriers: [
        {
          name: 'north',
          tenant: 'acme',
          customer: 'paying',
          gateways: [
            { host: '127.0.0.1', port: gateway.port, inbound: false },
            { host: '127.0.0.1', port, outbound: false },
          ],
        },
      ],
      outbound_routes: [
        { name: 'out', tenant: 'acme', prefix: '', carrier: 'north' },
        { name: 'help', tenant: 'acme', prefix: '112', carrier: 'north', emergency: true },
      ],
      inbound_routes: [{ name: 'in', tenant: 'acme', prefix: '18005550101', extension: '101' }],
    },
    environment,
  )
  return {
    ...started,
    gateway,
    callIn: (number: string) =>
      callWith('inbound/answered.xml', started.tollgate.sipPort, {
        port,
        service: number,
        keys: { caller: '15550001111' },
      }),
  }
}

test("a phone calls the outside through a carrier, and its customer's wallet pays", async () => {
  const { tollgate, phone, gateway } = await withCarrier()
  expect(await (await phone('101')).call(outside)).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({
    caller_id_number: '101',
    destination_number: outside,
    direction: 'outbound',
    carrier: 'north',
  })
  const balance = cents(1_000) - expectPaid(call, 1)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 1 })
  expect(await gateway.stop()).toBe('')
})

test('an extension without money gets 402 for the outside and its emergency call all the same', async () => {
  const { tollgate, phone } = await withCarrier()
  await (await phone('102')).fail(/402 Payment/, { number: outside })
  expect(await (await phone('102')).call('112')).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls).toMatchObject([
    { sip_code: 402, denial_code: 'insufficient_funds', cost_micros: 0 },
    { sip_code: 200, destination_number: '112', carrier: 'north', cost_micros: 0 },
  ])
  expect(tollgate.wallet('poor')).toMatchObject({ balance: 0, debits: 0 })
})

test('a carrier reaches a phone by the number that an inbound route gives it', async () => {
  const { tollgate, phone, callIn } = await withCarrier()
  const one = await phone('101')
  expect(await one.register()).toEqual(clean)
  await one.answer()
  expect(await callIn('18005550101')).toEqual(clean)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    {
      caller_id_number: '15550001111',
      destination_number: '18005550101',
      disposition: 'ANSWERED',
      direction: 'inbound',
      carrier: 'north',
    },
  ])
})

test('while Tollgate drains, an emergency call passes and any other is told to try later', async () => {
  const { tollgate, phone } = await withCarrier({ DRAIN_SECONDS: '50' })
  const [one, two] = [await phone('101'), await phone('102')]
  const hangUp = await holdCall(tollgate, () => one.call(outside, 'phones/is-hung-up'))
  const ended = tollgate.terminate()
  await eventually(() => expect(tollgate.log.join()).toContain('draining'))
  expect(await two.call(outside, 'phones/is-told-to-retry')).toEqual(clean)
  expect(await two.call('112')).toEqual(clean)
  await hangUp()
  expect(await ended).toBe(0)
  const calls = tollgate.calls().map((call) => [call.destination_number, call.sip_code])
  expect(new Set(calls.map(String))).toEqual(
    new Set([`${outside},503`, '112,200', `${outside},200`]),
  )
})

test('a phone cannot call with the number of another: not with its own password, not without', async () => {
  const { tollgate, phone } = await withCarrier()
  const thief = await phone('102')
  expect(await thief.call(outside, 'phones/claims-another-number', '101')).toEqual(clean)
  const stranger = { keys: { caller: '101', domain } }
  expect(await callWith('inbound/unknown-source.xml', tollgate.sipPort, stranger)).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls).toMatchObject([
    { sip_code: 403, denial_code: 'unknown_source', carrier: null },
    { sip_code: 403, denial_code: 'unknown_source', carrier: null },
  ])
  expect(tollgate.wallet('paying')).toMatchObject({ balance: cents(1_000), debits: 0 })
})
