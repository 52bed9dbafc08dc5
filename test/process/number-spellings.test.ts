/** A number in another spelling costs, is blocked and goes where its plain form does: the program, from outside. */
import { expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { startWithNode } from '../support/scripted-node.ts'
import { sdp, type Leg, type SipPeer } from '../support/sip-peer.ts'
import type { StoredCall, TollgateProcess } from '../support/tollgate-process.ts'
import { finalNotify, notified } from '../support/transfer-rig.ts'

const domain = 'acme.example'

/** Calls to 1900 cost 6.00 a minute, those to 1976 are blocked by price, those to 1809 by route. */
const seedFor = ([gateway]: readonly number[]) => ({
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [{ name: 'retail' }],
  rates: [
    { prefix: '1', rate_per_minute: '0.60' },
    { prefix: '1900', rate_per_minute: '6.00', first_increment: 60 },
    { prefix: '1976', rate_per_minute: '6.00', blocked: true },
  ].map((rate) => ({ rate_plan: 'retail', ...rate })),
  customers: [{ name: 'acme', tenant: 'acme', rate_plan: 'retail', balance: '1000.00' }],
  carriers: [{ name: 'north', direction: 'out', gateways: [{ host: '127.0.0.1', port: gateway }] }],
  outbound_routes: [
    { name: 'all', prefix: '1', carrier: 'north' },
    { name: 'none', prefix: '1809', mode: 'block' },
  ],
  extensions: ['101', '102'].map((extension) => ({
    tenant: 'acme',
    extension,
    password: `secret-${extension}`,
    display_name: extension,
    customer: 'acme',
  })),
})

interface World {
  readonly tollgate: TollgateProcess
  readonly gateway: SipPeer
  phone(user: string): Promise<DigestPhone>
}

async function start(): Promise<World> {
  const { tollgate, node: gateway } = await startWithNode(seedFor)
  const phone = async (user: string): Promise<DigestPhone> => {
    const account = { user, domain, password: `secret-${user}` }
    const opened = await DigestPhone.open(tollgate.listener(), account)
    onTestFinished(() => opened.close())
    return opened
  }
  return { tollgate, gateway, phone }
}

/** The gateway takes its next call; where it was sent. */
async function answered(gateway: SipPeer): Promise<string> {
  const invite = await gateway.next('INVITE')
  gateway.reply(invite, 200, { tag: 'g', body: sdp('gateway') })
  await gateway.next('ACK')
  return invite.uri
}

async function hangUp(caller: SipPeer, leg: Leg, gateway: SipPeer): Promise<void> {
  caller.request('BYE', leg)
  gateway.reply(await gateway.next('BYE'), 200)
  await caller.next('200 BYE')
}

const premium = { destination_number: '19005551234', carrier: 'north', cost_micros: 6_000_000 }
const premiumUri = /^sip:19005551234@127\.0\.0\.1:\d+/

const refusal = ({ sip_code, denial_code }: StoredCall) => [sip_code, denial_code]

test('an INVITE in any spelling is charged as premium, or refused, as the plain number is', async () => {
  const { tollgate, gateway, phone } = await start()
  const caller = await phone('101')
  for (const spelling of ['19005551234', '1-900-555.1234', '1(900)%205551234']) {
    const leg = await caller.call(spelling)
    expect(await answered(gateway)).toMatch(premiumUri)
    caller.peer.learn(leg, await caller.answerTo(leg))
    caller.peer.request('ACK', leg)
    await hangUp(caller.peer, leg, gateway)
  }
  const refused = [
    '19765551234',
    '1-976-5551234',
    '1%209765551234',
    '%31976.5551234',
    '18095551234',
    '1-809-5551234',
    '1+9005551234',
    '1%09900',
    'premium',
  ]
  for (const spelling of refused) await caller.answerTo(await caller.call(spelling))
  const calls = await tollgate.waitForCalls(3 + refused.length)
  for (const call of calls.slice(0, 3)) expect(call).toMatchObject(premium)
  expect(calls.slice(3).map(refusal)).toEqual([
    ...Array.from({ length: 4 }, () => [402, 'destination_blocked']),
    ...Array.from({ length: 2 }, () => [403, 'destination_blocked']),
    ...Array.from({ length: 2 }, () => [484, 'malformed_number']),
    [404, 'unknown_name'],
  ])
  expect(gateway.inbox).toEqual([])
})

test('a REFER, a 302 and click-to-call in another spelling: premium is charged, blocked is refused', async () => {
  const { tollgate, gateway, phone } = await start()
  const token = await tollgate.createKey('--name', 'n', '--scopes', '*')
  const [caller, forwarder] = [await phone('101'), await phone('102')]
  for (const each of [caller, forwarder]) expect((await each.signOn()).status).toBe(200)

  // REFER: 101 talks to an ordinary number, and sends it on.
  const leg = await caller.call('12025550100')
  await answered(gateway)
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  const refer = async (target: string): Promise<number> => {
    caller.peer.request('REFER', leg, { headers: [`Refer-To: <${target}>`] })
    return (await caller.peer.next((message) => message.get('CSeq').endsWith('REFER'))).status
  }
  expect(await refer(`sip:1+900@${domain}`)).toBe(484)
  expect(await refer(`sip:premium@${domain}`)).toBe(404)
  expect(await refer(`sip:1-976-5551234@${domain}`)).toBe(202)
  expect((await finalNotify(caller.peer)).body).toContain('402')
  expect(await refer(`sip:1-900-(555)1234@${domain}`)).toBe(202)
  await notified(caller.peer)
  expect(await answered(gateway)).toMatch(premiumUri)
  // The first callee gets the new media; then both calls end.
  gateway.reply(await gateway.next('INVITE'), 200, { body: sdp('gateway') })
  await gateway.next('ACK')
  await finalNotify(caller.peer)
  caller.peer.request('BYE', leg)
  await caller.peer.next('200 BYE')
  await hangUpAll(tollgate, token, gateway)

  // 302: 102 sends its calls to a premium number.
  const forwarded = await caller.call('102')
  const ringing = await forwarder.peer.next('INVITE')
  forwarder.peer.contact = `sip:1.900.555.1234@${domain}`
  forwarder.peer.reply(ringing, 302, { tag: 'f' })
  forwarder.peer.contact = undefined
  expect(await answered(gateway)).toMatch(premiumUri)
  caller.peer.learn(forwarded, await caller.answerTo(forwarded))
  caller.peer.request('ACK', forwarded)
  await hangUp(caller.peer, forwarded, gateway)

  // Click-to-call.
  const originate = (destination_number: string) =>
    fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/pbx/calls/originate`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ source_extension: '101', destination_number }),
    })
  expect((await originate('1 (976) 555-1234')).status).toBe(403)
  expect((await originate('1+900')).status).toBe(400)
  expect((await originate('1 (900) 555-1234')).status).toBe(201)
  const pickedUp = await caller.peer.next('INVITE')
  caller.peer.reply(pickedUp, 200, { tag: 'p', body: sdp('phone') })
  expect(await answered(gateway)).toMatch(premiumUri)
  await caller.peer.next('ACK')
  await hangUp(caller.peer, caller.peer.calledLeg(pickedUp, 'p'), gateway)

  const calls = await tollgate.waitForCalls(6)
  const toPremium = calls.filter((call) => call.destination_number === '19005551234')
  expect(toPremium.map((call) => call.cost_micros)).toEqual([6_000_000, 6_000_000, 6_000_000])
  expect(calls.filter((call) => call.destination_number === '19765551234').map(refusal)).toEqual([
    [402, 'destination_blocked'],
  ])
})

/** By the API; the gateway answers every BYE. */
async function hangUpAll(tollgate: TollgateProcess, token: string, gateway: SipPeer) {
  const open = tollgate.openCalls()
  for (const call of open)
    await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/telephony/hangup`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ call_uuid: call.call_uuid }),
    })
  for (const _call of open) gateway.reply(await gateway.next('BYE'), 200)
}
