/** The media description of click-to-call's phone is offered to the called side, if it can be. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { OriginateRequest } from '../../../schema/contracts/calls.ts'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import {
  areHungUp,
  denied,
  addExtensions,
  extensionRecord,
  originateRequest,
  phoneOf,
} from './steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
})
afterEach(() => rig.stop())

const phone = (extension: string) => phoneOf(rig, extension)

const originate = (change: Partial<OriginateRequest> = {}) =>
  rig.control.originate({ ...originateRequest, ...change })

interface PickedUp {
  readonly a: SipPeer
  readonly aLeg: Leg
  readonly b: SipPeer
  readonly toB: PeerMessage
}

/** 101 has picked up, and 15550100 is called. */
async function pickedUp(): Promise<PickedUp> {
  const [a, b] = [await phone('101'), await rig.node()]
  await originate()
  const toA = await a.next('INVITE')
  a.reply(toA, 180, { tag: 'a' })
  a.reply(toA, 200, { tag: 'a', body: sdp('offer of a') })
  return { a, b, aLeg: a.calledLeg(toA, 'a'), toB: await b.next('INVITE') }
}

/** Both talk. */
async function talking(): Promise<PickedUp & { readonly bLeg: Leg }> {
  const call = await pickedUp()
  const { a, b, toB } = call
  b.reply(toB, 200, { tag: 'b', body: sdp('answer of b') })
  await Promise.all([a.next('ACK'), b.next('ACK')])
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  return { ...call, bLeg: b.calledLeg(toB, 'b') }
}

/** As it reaches a party that was told of no media before. */
const afterSilence = (description: string): string =>
  description.replace('o=- 1 1 IN IP4 127.0.0.1', 'o=- 1 2 IN IP4 0.0.0.0')

test('the source rings first; its offer goes to the destination, whose answer comes in the ACK', async () => {
  const [a, b] = [await phone('101'), await rig.node()]
  expect(await originate()).toEqual({ kind: 'originating', callUuid: 'uuid-1' })
  const toA = await a.next('INVITE')
  expect([toA.body, toA.get('From')]).toEqual(['', expect.stringContaining('<sip:15550100@')])
  expect(toA.get('Alert-Info')).toBe('')
  expect(rig.calls.find('uuid-1')?.state).toBe('DIALING')
  a.reply(toA, 180, { tag: 'a' })
  await rig.until(() => rig.calls.find('uuid-1')?.state === 'RINGING')
  expect(rig.calls.find('uuid-1')?.peers).toEqual({ caller: null, callee: null })
  expect(b.inbox).toEqual([])
  a.reply(toA, 200, { tag: 'a', body: sdp('offer of a') })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(sdp('offer of a'))
  expect(toB.get('From')).toMatch(/^"Phone 101" <sip:101@/)
  b.reply(toB, 200, { tag: 'b', body: sdp('answer of b') })
  expect((await a.next('ACK')).body).toBe(sdp('answer of b'))
  await b.next('ACK')
  await rig.until(() => rig.calls.find('uuid-1')?.state === 'ACTIVE')
  expect(rig.calls.find('uuid-1')?.peers).toEqual({
    caller: `127.0.0.1:${a.port}`,
    callee: `127.0.0.1:${b.port}`,
  })
  await rig.advance(12_000)
  a.request('BYE', a.calledLeg(toA, 'a'))
  await a.next('200 BYE')
  b.reply(await b.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    callerNumber: '101',
    calledNumber: '15550100',
    hangupBy: 'caller',
    billsec: 12,
    customerId: 7,
    sourceAddress: 'api',
  })
  expect(rig.asked).toMatchObject([{ caller: '101', callee: '15550100', customerId: 7 }])
  await rig.idle()
})

test('with auto-answer the phone gets Alert-Info and Call-Info', async () => {
  const a = await phone('101')
  await originate({ autoAnswer: true })
  const invite = await a.next('INVITE')
  expect(invite.get('Alert-Info')).toContain('alert-autoanswer')
  expect(invite.get('Call-Info')).toContain('answer-after=0')
  a.reply(invite, 486, { tag: 'a' })
  await rig.record()
})

test('the called side is shown the caller id of the request', async () => {
  const [a, b] = [await phone('101'), await rig.node()]
  await originate({ callerNumber: '15559999', callerName: 'Sales' })
  const toA = await a.next('INVITE')
  a.reply(toA, 200, { tag: 'a', body: sdp('offer') })
  const toB = await b.next('INVITE')
  expect(toB.get('From')).toMatch(/^"Sales" <sip:15559999@/)
  b.reply(toB, 486, { tag: 'b' })
  await a.next('ACK')
  a.reply(await a.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ callerNumber: '15559999', disposition: 'BUSY' })
  // It would name another customer of the tenant.
  expect(rig.asked).toMatchObject([{ caller: '101', callee: '15550100' }])
})

test('without a phone, money or such an extension no phone rings and there is no record', async () => {
  expect(await originate()).toEqual({ kind: 'extension_unregistered' })
  expect(await originate({ extension: '999' })).toEqual({ kind: 'unknown_extension' })
  const a = await phone('101')
  rig.answers.authorize = denied('insufficient_funds')
  expect(await originate()).toEqual({ kind: 'denied', code: 'insufficient_funds' })
  await rig.seen(a)
  expect([a.inbox, rig.records, rig.events, rig.calls.size]).toEqual([[], [], [], 0])
})

test('a call between extensions asks no wallet', async () => {
  const [a, b] = [await phone('101'), await phone('102')]
  await originate({ destination: '102' })
  a.reply(await a.next('INVITE'), 200, { tag: 'a', body: sdp('offer') })
  const toB = await b.next('INVITE')
  expect(toB.get('To')).toBe('<sip:102@acme.example>')
  b.reply(toB, 200, { tag: 'b', body: sdp('answer') })
  await Promise.all([a.next('ACK'), b.next('ACK')])
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  rig.calls.hangUp('uuid-1', 16)
  await areHungUp(a, b)
  expect(await rig.record()).toMatchObject({ direction: 'internal', customerId: null })
  expect(rig.asked).toEqual([])
})

test('of several phones the first that is picked up is connected, the others stop ringing', async () => {
  const [one, two] = [await phone('101'), await phone('101')]
  const b = await rig.node()
  await originate()
  const [first, second] = await Promise.all([one.next('INVITE'), two.next('INVITE')])
  two.reply(second, 180, { tag: 'two' })
  await rig.until(() => rig.calls.list()[0]?.state === 'RINGING')
  one.reply(first, 200, { tag: 'one', body: sdp('offer of one') })
  const cancel = await two.next('CANCEL')
  expect(cancel.get('Reason')).toContain('Call completed elsewhere')
  two.reply(cancel, 200)
  two.reply(second, 487, { tag: 'two' })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(sdp('offer of one'))
  b.reply(toB, 480, { tag: 'b' })
  await one.next('ACK')
  one.reply(await one.next('BYE'), 200)
  await rig.record()
  await rig.idle()
})

test('a source that refuses ends the call, and the destination is not called', async () => {
  const [a, b] = [await phone('101'), await rig.node()]
  await originate()
  a.reply(await a.next('INVITE'), 486, { tag: 'a' })
  expect((await rig.record()).disposition).toBe('BUSY')
  expect(b.inbox).toEqual([])
  await rig.idle()
})

test('a source that is not picked up is given up after the time of the request', async () => {
  const a = await phone('101')
  await originate({ ringMs: 20_000 })
  const invite = await a.next('INVITE')
  a.reply(invite, 180, { tag: 'a' })
  await rig.until(() => rig.calls.list()[0]?.state === 'RINGING')
  await rig.advance(20_100)
  a.reply(await a.next('CANCEL'), 200)
  a.reply(invite, 487, { tag: 'a' })
  expect(await rig.record()).toMatchObject({ disposition: 'NO ANSWER', hangupBy: 'system' })
  await rig.idle()
})

test('a slow destination leaves the source without media, not without ACK', async () => {
  const { a, b, toB } = await pickedUp()
  b.reply(toB, 180, { tag: 'b' })
  await rig.seen(b)
  await rig.advance(2_100)
  const ack = await a.next('ACK')
  expect(ack.body).toContain('m=audio 9 ')
  expect(ack.body).toContain('a=inactive')
  b.reply(toB, 200, { tag: 'b', body: sdp('answer of b') })
  const again = await a.next('INVITE')
  expect(again.body).toBe(afterSilence(sdp('answer of b')))
  a.reply(again, 200, { body: sdp('offer of a') })
  await Promise.all([a.next('ACK'), b.next('ACK')])
  rig.calls.hangUp('uuid-1', 16)
  await areHungUp(a, b)
  expect((await rig.record()).hangupBy).toBe('api')
  await rig.idle()
})

test('a phone that refuses an INVITE without offer gets one without media', async () => {
  const [a, b] = [await phone('101'), await rig.node()]
  await originate()
  a.reply(await a.next('INVITE'), 488, { tag: 'x' })
  const toA = await a.next(({ method, body }) => method === 'INVITE' && body !== '')
  expect(toA.body).toContain('a=inactive')
  a.reply(toA, 200, { tag: 'a', body: sdp('answer of a').replace('sendrecv', 'inactive') })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(sdp('answer of a'))
  b.reply(toB, 200, { tag: 'b', body: sdp('answer of b') })
  const again = await a.next('INVITE')
  expect(again.body).toBe(afterSilence(sdp('answer of b')))
  a.reply(again, 200, { body: sdp('answer of a') })
  await b.next('ACK')
  rig.calls.hangUp('uuid-1', 16)
  await areHungUp(a, b)
  await rig.record()
  await rig.idle()
})

test.each([
  ['before its ACK', 0],
  ['after it', 2_100],
])('hanging up while the destination rings ends both, the source %s', async (_when, waitMs) => {
  const { a, b, toB } = await pickedUp()
  b.reply(toB, 180, { tag: 'b' })
  await rig.seen(b)
  await rig.advance(waitMs)
  if (waitMs > 0) await a.next('ACK')
  rig.calls.hangUp('uuid-1', 17)
  const [cancel, bye] = await Promise.all([b.next('CANCEL'), a.next('BYE')])
  for (const message of [cancel, bye])
    expect(message.get('Reason')).toBe('Q.850;cause=17;text="USER BUSY"')
  b.reply(cancel, 200)
  b.reply(toB, 487, { tag: 'b' })
  a.reply(bye, 200)
  expect(await rig.record()).toMatchObject({
    hangupBy: 'api',
    answeredAt: null,
    disposition: 'CANCELED',
    direction: 'internal',
  })
  await rig.idle()
})

test('the source hangs up while the destination rings: canceled by the caller', async () => {
  const { a, b, aLeg, toB } = await pickedUp()
  b.reply(toB, 180, { tag: 'b' })
  await rig.seen(b)
  await rig.advance(2_100)
  await a.next('ACK')
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  b.reply(await b.next('CANCEL'), 200)
  b.reply(toB, 487, { tag: 'b' })
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED', hangupBy: 'caller' })
  await rig.idle()
})

test('the grant of a click-to-call runs from the answer of the destination', async () => {
  const { a, b } = await talking()
  await rig.advance(60_100)
  for (const peer of [a, b]) {
    const bye = await peer.next('BYE')
    expect(bye.get('Reason')).toContain('Insufficient Funds')
    peer.reply(bye, 200)
  }
  expect((await rig.record()).billsec).toBe(60)
})

test('a draining platform starts no call', async () => {
  await phone('101')
  await rig.calls.drain(rig.time.now())
  expect(await originate()).toEqual({ kind: 'draining' })
})
