// Call forwarding in a phone (RFC 3261 §8.1.3.4, RFC 5806).
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ExtensionRecord } from '../../../engine/registrar/extension-directory.ts'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import {
  acknowledge,
  denied,
  hangUp,
  addExtensions,
  carrierOf,
  extensionRecord,
  home,
  phoneOf,
} from './steps.ts'

const numbers = ['101', '102', '103', '104', '105', '106', '107', '108']

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, ...numbers.map((number) => record(number)))
  rig.answers.caller = { kind: 'extension', extension: record('101') }
})
afterEach(() => rig.stop())

const record = (extension: string, parts: Partial<ExtensionRecord> = {}) =>
  extensionRecord(extension, {
    customerId: 1_000 + Number(extension),
    isVoicemailEnabled: true,
    ...parts,
  })

async function dial(body = sdp('offer')): Promise<{ caller: SipPeer; leg: Leg }> {
  const caller = await rig.caller()
  const leg = caller.leg(`sip:102@${home}`)
  caller.request('INVITE', leg, { body })
  return { caller, leg }
}

/** The phone sends its call elsewhere: `<target>` or several; `headers` beside Contact. */
async function redirect(phone: SipPeer, targets: string, headers: readonly string[] = []) {
  const invite = await phone.next('INVITE')
  phone.contact = targets.slice(1, -1)
  phone.reply(invite, 302, { tag: 'f', headers })
  phone.contact = undefined
}

const outside = '<tel:+1-555-0123>'

/** Answered, acknowledged, and hung up by the caller. */
async function talk(called: SipPeer, invite: PeerMessage, caller: SipPeer, leg: Leg) {
  called.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  const answered = await acknowledge(caller, leg, called)
  expect(answered.body).toBe(sdp('answer'))
  await hangUp(caller, leg, called)
}

async function records(count: number) {
  const found = []
  while (found.length < count) found.push(await rig.record())
  return found.toSorted((one, other) => (one.callUuid < other.callUuid ? -1 : 1))
}

test('a forward inside the tenant is followed; the other phones get CANCEL, and Diversion names the forwarding extension', async () => {
  const [desk, mobile, target] = [
    await phoneOf(rig, '102'),
    await phoneOf(rig, '102'),
    await phoneOf(rig, '103'),
  ]
  const { caller, leg } = await dial()
  mobile.reply(await mobile.next('INVITE'), 180, { tag: 'm' })
  await caller.next('180 INVITE')
  await redirect(desk, '<sip:9@x.example>;q=0.1, <sip:103@10.0.0.1:5060;user=phone>', [
    'Diversion: <sip:102@10.0.0.9>;reason=do-not-disturb',
  ])
  expect((await mobile.next('CANCEL')).get('Reason')).toContain('cause=302')
  const invite = await target.next('INVITE')
  expect(invite.get('Diversion')).toMatch(/^<sip:102@[^>]+>;reason=do-not-disturb$/)
  expect(invite.get('From')).toMatch(/^"Phone 101" <sip:peer@acme\.example>/)
  expect(invite.get('To')).toBe('<sip:103@acme.example>')
  await talk(target, invite, caller, leg)
  const found = await rig.record()
  expect(found).toMatchObject({ disposition: 'ANSWERED', calledNumber: '102', isFree: true })
  expect(found.attempts.map(({ status }) => status)).toEqual([302, 180, 200])
  expect(rig.asked).toEqual([])
})

test('responses of the target reach the caller; a loop, and more than five forwards, are not followed', async () => {
  const phones = []
  for (const number of numbers.slice(1)) phones.push(await phoneOf(rig, number))
  const [second, third] = phones
  if (!second || !third) throw new Error('no phones')
  const busy = await dial()
  await redirect(second, `<sip:103@${home}>`)
  third.reply(await third.next('INVITE'), 486, { tag: 'b' })
  await busy.caller.next('486 INVITE')
  const loop = await dial()
  await redirect(second, `<sip:103@${home}>`)
  await redirect(third, `<sip:102@${home}>`)
  await loop.caller.next('480 INVITE')
  const chain = await dial()
  for (const [index, phone] of phones.slice(0, 6).entries())
    await redirect(phone, `<sip:${numbers[index + 2] ?? ''}@${home}>`)
  await chain.caller.next('480 INVITE')
  expect(phones.at(-1)?.inbox).toEqual([])
})

test('to the outside goes a call of its own, at the expense of the extension that forwards', async () => {
  const phone = await phoneOf(rig, '102')
  const carrier = await carrierOf(rig, { number: '15550123' })
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = { kind: 'trusted' }
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const { caller, leg } = await dial()
  await redirect(phone, outside)
  const invite = await carrier.next('INVITE')
  expect(invite.uri).toContain('15550123@')
  expect(invite.get('From')).toContain('sip:peer@')
  expect(invite.get('Diversion')).toMatch(/^<sip:102@[^>]+>;reason=unknown$/)
  expect(rig.asked).toMatchObject([
    { customerId: null, callee: '102', payerTenantId: null },
    { customerId: 1_102, caller: '102', callee: '+15550123', payerTenantId: 3 },
  ])
  carrier.reply(invite, 183, { tag: 'b', body: sdp('answer') })
  expect((await caller.next('183 INVITE')).body).toBe(sdp('answer'))
  await talk(carrier, invite, caller, leg)
  const [first, second] = await records(2)
  expect(first).toMatchObject({
    disposition: 'ANSWERED',
    direction: 'inbound',
    calledNumber: '102',
    hangupBy: 'caller',
    attempts: [{ status: 302 }, { destination: `sip:+15550123@${home}`, status: 200 }],
  })
  const shown = { callerNumber: '102', calledNumber: '+15550123' }
  const out = {
    direction: 'outbound',
    hangupBy: 'caller',
    carrier: 'north',
    sourceAddress: 'forward',
  }
  expect(second).toMatchObject({ disposition: 'ANSWERED', ...out, ...shown })
  expect(second?.callId).toBe(first?.callId)
  expect(rig.opened.map(({ callUuid }) => callUuid).toSorted()).toEqual(['uuid-1', 'uuid-2'])
  await rig.idle()
})

test('a target that is dialled with an exit code is the number with +', async () => {
  const [phone, carrier] = [await phoneOf(rig, '102'), await carrierOf(rig, { number: '15550123' })]
  await dial()
  await redirect(phone, '<sip:0015550123@acme.example>')
  await carrier.next('INVITE')
  expect(rig.asked.at(-1)).toMatchObject({ caller: '102', callee: '+15550123' })
})

test('the two calls end together: by the called party, or before the answer by the caller', async () => {
  const [phone, carrier] = [await phoneOf(rig, '102'), await carrierOf(rig, { number: '15550123' })]
  const { caller, leg } = await dial()
  await redirect(phone, outside)
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, carrier)
  carrier.request('BYE', carrier.calledLeg(invite, 'b'))
  caller.reply(await caller.next('BYE'), 200)
  for (const ended of await records(2)) expect(ended).toMatchObject({ hangupBy: 'callee' })
  const impatient = await dial()
  await redirect(phone, outside)
  carrier.reply(await carrier.next('INVITE'), 180, { tag: 'c' })
  await impatient.caller.next('180 INVITE')
  impatient.caller.request('CANCEL', impatient.leg)
  await impatient.caller.next('487 INVITE')
  await carrier.next('CANCEL')
  for (const ended of await records(2)) expect(ended).toMatchObject({ disposition: 'CANCELED' })
})

test('callers do not learn why an extension may not call the outside', async () => {
  const [phone, carrier] = [await phoneOf(rig, '102'), await carrierOf(rig, { number: '15550123' })]
  rig.answers.authorize = denied('insufficient_funds')
  const { caller } = await dial()
  await redirect(phone, outside)
  await caller.next('480 INVITE')
  expect(await records(2)).toMatchObject([
    { sipCode: 480, denialCode: null, attempts: [{ status: 302 }, { status: 480 }] },
    { sipCode: 402, denialCode: 'insufficient_funds', callerNumber: '102' },
  ])
  expect(carrier.inbox).toEqual([])
})

test.each([
  { title: "another tenant's extension", target: '<sip:200@rival.example>' },
  { title: 'an emergency number', target: '<sip:112@acme.example>', isEmergency: true },
  { title: 'an emergency number whose carrier is gone', target: '<sip:113@acme.example>' },
  { title: 'itself', target: '<sip:102@10.0.0.9>' },
  { title: 'no user', target: '<sip:10.0.0.9>' },
  { title: 'an emergency number in separators', target: '<sip:1-1%203@acme.example>' },
  { title: 'itself in separators', target: '<sip:1.02@10.0.0.9>' },
  { title: 'what is no number', target: '<sip:1+5550123@x.example>' },
  { title: 'a name', target: '<sip:alice@x.example>' },
])('a forward to $title is not followed; voicemail takes the call', async (forward) => {
  const [phone, carrier] = [
    await phoneOf(rig, '102'),
    await carrierOf(rig, {}, forward.isEmergency),
  ]
  rig.answers.emergencyNumber = '113'
  const rival = { domain: 'rival.example', tenantId: 4 }
  addExtensions(rig, record('200', rival))
  const stranger = await phoneOf(rig, '200', { domain: 'rival.example' })
  const voicemail = await rig.caller()
  rig.answers.voicemail = `sip:vm@127.0.0.1:${voicemail.port}`
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const { caller } = await dial()
  await redirect(phone, forward.target)
  voicemail.reply(await voicemail.next('INVITE'), 486, { tag: 'v' })
  await caller.next('486 INVITE')
  expect([...stranger.inbox, ...carrier.inbox]).toEqual([])
})

test('what an extension forwards to the outside at a time is bounded: a carrier may bring it back', async () => {
  const [phone, carrier] = [await phoneOf(rig, '102'), await carrierOf(rig, { number: '15550123' })]
  for (let count = 0; count < 10; count++) {
    await dial()
    await redirect(phone, outside)
    carrier.reply(await carrier.next('INVITE'), 180, { tag: `c${count}` })
  }
  const { caller } = await dial()
  await redirect(phone, outside)
  await caller.next('480 INVITE')
  expect(carrier.inbox).toEqual([])
})
