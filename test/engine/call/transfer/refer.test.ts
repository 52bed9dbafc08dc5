/** Blind transfer by REFER, over the real server, with scripted peers. */
import { afterEach, expect, test, beforeEach } from 'vitest'
import { type CallRig, granted, startCallRig } from '../../../support/call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../../support/sip-peer.ts'
import {
  asVersion,
  answeredBy,
  establish,
  finalNotify,
  notified,
  recordsOf,
  refer,
  transferring,
  type Pair,
} from '../../../support/transfer-rig.ts'
import {
  acknowledge,
  areHungUp,
  denied,
  hangUp,
  nextNode,
  carrierOrigin,
  carrierOf,
} from '../steps.ts'
import { readRefer } from '../../../../engine/call/transfer/refer.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

test('the target is called on the account of the transferor, and connected to the transferee', async () => {
  // Fast timers: in the end nothing may be left in the server's tables, either.
  await rig.stop()
  rig = await startCallRig({ withSipTimers: true })
  const { a, b, bLeg, c, toC } = await transferring(rig)
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', callee: '15550100', customerId: 7 })
  expect(toC.body).toBe(sdp('answer of b'))
  expect(rig.calls.find('uuid-1')).toMatchObject({
    state: 'ACTIVE',
    transfer: { state: 'transferring', callUuid: 'uuid-2', destination: '15550100' },
  })
  c.reply(toC, 180, { tag: 'c' })
  expect((await notified(a)).body).toBe('SIP/2.0 180 Test\r\n')

  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  await c.next('ACK')
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(asVersion(2, sdp('answer of c')))
  b.reply(toB, 200, { body: sdp('answer of b') })
  await b.next('ACK')
  expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
  expect(rig.opened.map(({ callUuid }) => callUuid)).toEqual(['uuid-1', 'uuid-2'])

  // The two talk to each other: what one says in the dialog reaches the other.
  b.request('INFO', bLeg, { body: '' })
  c.reply(await c.next('INFO'), 200)
  await b.next('200 INFO')

  await rig.advance(4_000)
  a.reply(await a.next('BYE'), 200)
  await rig.advance(6_000)
  await hangUp(b, bLeg, c)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { callUuid: 'uuid-1', hangupBy: 'callee', billsec: 10 },
    {
      callerNumber: '101',
      calledNumber: '15550100',
      customerId: 7,
      hangupBy: 'caller',
      billsec: 10,
    },
  ])
  await rig.idle()
  expect(rig.records).toEqual([])
})

test('a target that is dialled with an exit code is the number with +', async () => {
  const { a, aLeg } = await establish(rig)
  const c = await nextNode(rig)
  await refer(a, aLeg, 'sip:00-1555%200100@acme.example')
  await c.next('INVITE')
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', callee: '+15550100' })
  expect(rig.calls.list().map(({ calledNumber }) => calledNumber)).toContain('+15550100')
})

test('a transferor that hangs up after the 200 gets no BYE; the others go on', async () => {
  const { a, aLeg, b, c, cLeg } = await answeredBy(await transferring(rig))
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  await rig.advance(10_000)
  await rig.seen(a)
  expect(a.inbox.filter(({ method }) => method === 'BYE')).toEqual([])
  expect(rig.calls.size).toBe(2)
  await hangUp(c, cLeg, b)
  expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'caller' }, { hangupBy: 'callee' }])
  await rig.idle()
})

test('the callee may transfer its caller as well', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  const c = await nextNode(rig)
  await refer(b, bLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  expect(toC.body).toBe(sdp('offer of a'))
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  const toA = await a.next('INVITE')
  expect(toA.body).toBe(asVersion(2, sdp('answer of c')))
  a.reply(toA, 200, { body: sdp('offer of a') })
  await finalNotify(b)
  // The node that has transferred is not counted any more.
  expect(rig.calls.countByNode(1)).toBe(0)
  b.request('BYE', bLeg)
  await b.next('200 BYE')
  await hangUp(a, aLeg, c)
  expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'caller' }, { callerNumber: '1555' }])
  await rig.idle()
})

test('refused by the target: the transferor gets its status, and the call goes on', async () => {
  const { a, aLeg, b, c, toC } = await transferring(rig)
  c.reply(toC, 486, { tag: 'c' })
  const last = await finalNotify(a)
  expect(last.body).toMatch(/^SIP\/2.0 486 /)
  expect(await rig.record()).toMatchObject({
    callUuid: 'uuid-2',
    disposition: 'BUSY',
    sipCode: 486,
  })
  expect(rig.calls.find('uuid-1')).toMatchObject({
    state: 'ACTIVE',
    transfer: { state: 'failed', sipCode: 486 },
  })
  // As before: a re-INVITE passes.
  a.request('INVITE', aLeg, { body: sdp('hold') })
  const hold = await b.next(({ body }) => body === sdp('hold'))
  b.reply(hold, 200, { body: sdp('held') })
  await a.next('200 INVITE')
  a.request('ACK', aLeg)
  await hangUp(a, aLeg, b)
  expect(await rig.record()).toMatchObject({ callUuid: 'uuid-1', hangupBy: 'caller' })
  await rig.idle()
})

test('no funds: the transferor gets 402, no phone rings, and it is recorded', async () => {
  const { a, aLeg } = await establish(rig)
  const c = await rig.node()
  rig.answers.authorize = denied('insufficient_funds')
  await refer(a, aLeg, 'sip:15550100@acme.example')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 402 /)
  expect(c.inbox).toEqual([])
  expect(await rig.record()).toMatchObject({ sipCode: 402, denialCode: 'insufficient_funds' })
  expect(rig.calls.size).toBe(1)
})

test('a party on hold is offered as one that talks', async () => {
  const { a, aLeg, b } = await establish(rig)
  a.request('INVITE', aLeg, { body: sdp('hold').replace('sendrecv', 'sendonly') })
  const hold = await b.next(({ body }) => body.includes('sendonly'))
  b.reply(hold, 200, { body: sdp('held').replace('sendrecv', 'recvonly') })
  await a.next('200 INVITE')
  a.request('ACK', aLeg)
  await rig.until(() => rig.calls.find('uuid-1')?.state === 'HELD')
  const c = await nextNode(rig)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  expect(toC.body).toBe(sdp('held'))
  await answeredBy({ a, aLeg, b, bLeg: aLeg, c, toC })
  expect(rig.calls.list().map(({ state }) => state)).toEqual(['ACTIVE', 'ACTIVE'])
})

test('Refer-Sub: false is confirmed in the 202, and no NOTIFY is sent (RFC 4488)', async () => {
  const { a, aLeg } = await establish(rig)
  const c = await nextNode(rig)
  a.request('REFER', aLeg, { headers: ['Refer-To: <sip:9@h>', 'Refer-Sub: false'] })
  expect((await a.next('202 REFER')).get('Refer-Sub')).toBe('false')
  c.reply(await c.next('INVITE'), 486, { tag: 'c' })
  await rig.record()
  await rig.seen(a)
  expect(a.inbox.filter(({ method }) => method === 'NOTIFY')).toEqual([])
})

test.each([
  ['Refer-To: <mailto:a@b>', 416],
  ['Subject: without', 400],
])('%s is refused with %i', async (header, status) => {
  const { a, aLeg } = await establish(rig)
  a.request('REFER', aLeg, { headers: [header] })
  await a.next(`${status} REFER`)
  expect(rig.calls.size).toBe(1)
})

test('a second REFER while one is under way is refused; after it another may come', async () => {
  const { a, aLeg, c, toC } = await transferring(rig)
  a.request('REFER', aLeg, { headers: ['Refer-To: <sip:9@h>'] })
  await a.next('491 REFER')
  c.reply(toC, 486, { tag: 'c' })
  await finalNotify(a)
  await refer(a, aLeg, 'sip:9@h')
  c.reply(await c.next('INVITE'), 486, { tag: 'c2' })
  await finalNotify(a)
})

test('a carrier may not transfer: its customers would call at the expense of others', async () => {
  const { b, bLeg, a, aLeg } = await establish(rig, carrierOrigin())
  a.request('REFER', aLeg, { headers: ['Refer-To: <sip:9@h>'] })
  await a.next('403 REFER')
  await refer(b, bLeg, 'sip:9@h')
})

test('transferred parties can be transferred again, and each call ends with its last leg', async () => {
  const { a, aLeg, b, bLeg, c, cLeg } = await answeredBy(await transferring(rig))
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  const d = await nextNode(rig)
  // B was reached as a node, and leaves: the call in which only it was left is over.
  await refer(b, bLeg, 'sip:9@h')
  const toD = await d.next('INVITE')
  d.reply(toD, 200, { tag: 'd', body: sdp('answer of d') })
  c.reply(await c.next('INVITE'), 200, { body: sdp('answer of c') })
  expect((await finalNotify(b)).body).toBe('SIP/2.0 200 OK\r\n')
  b.reply(await b.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ callUuid: 'uuid-1', hangupBy: 'callee' })
  expect(rig.calls.list().map(({ callUuid }) => callUuid)).toEqual(['uuid-2', 'uuid-3'])
  await hangUp(c, cLeg, d)
  await recordsOf(rig, 2)
  await rig.idle()
})

test('hold passes between the transferred parties, and shows in both calls', async () => {
  const { b, bLeg, c } = await answeredBy(await transferring(rig))
  b.request('INVITE', bLeg, { body: sdp('hold').replace('sendrecv', 'sendonly') })
  const held = await c.next('INVITE')
  expect(held.body).toContain('a=sendonly')
  c.reply(held, 200, { body: sdp('held').replace('sendrecv', 'recvonly') })
  await b.next('200 INVITE')
  b.request('ACK', bLeg)
  await rig.until(() => rig.calls.list().every(({ state }) => state === 'HELD'))
  expect(rig.calls.size).toBe(2)
})

test('a transferred party that does not know its dialog any more ends both calls', async () => {
  const { a, aLeg, b, bLeg, c } = await answeredBy(await transferring(rig))
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  b.request('INFO', bLeg)
  c.reply(await c.next('INFO'), 481)
  await areHungUp(b, c)
  expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'system' }, { hangupBy: 'system' }])
  await rig.idle()
})

test('a chain of transfers without end is cut, and a fault ends nothing else', async () => {
  const { a, aLeg } = await establish(rig)
  const call = rig.calls.call('uuid-1')
  Object.assign(call ?? {}, { transfersBefore: 10 })
  await refer(a, aLeg, 'sip:9@h')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 483 /)
  expect(await rig.record()).toMatchObject({ sipCode: 483, denialCode: 'too_many_hops' })

  Object.assign(call ?? {}, { transfersBefore: 0 })
  rig.answers.authorize = () => Promise.reject(new Error('boom'))
  await refer(a, aLeg, 'sip:9@h')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 500 /)
  expect(await rig.record()).toMatchObject({ denialCode: 'fault' })
  expect(rig.faults.splice(0)).toMatchObject([{ message: 'a call failed' }])
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }])
})

test('a phone whose transfers fail again and again may not try again: each one leaves a record', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  rig.answers.authorize = denied('insufficient_funds')
  for (let tries = 0; tries < 20; tries++) {
    await refer(a, aLeg, 'sip:9@h')
    await finalNotify(a)
  }
  expect(await recordsOf(rig, 20)).toHaveLength(20)
  a.request('REFER', aLeg, { headers: ['Refer-To: <sip:9@h>'] })
  await a.next('403 REFER')
  b.request('REFER', bLeg, { headers: ['Refer-To: <sip:9@h>'] })
  await b.next('403 REFER')
  expect(rig.records).toEqual([])
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }])
})

test('the credit of either call ends both', async () => {
  rig.answers.authorize = () => Promise.resolve(granted(20))
  const { a, aLeg, b, c } = await answeredBy(await transferring(rig))
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  await rig.advance(20_100)
  await areHungUp(b, c)
  expect(await recordsOf(rig, 2)).toMatchObject([{ billsec: 20 }, { billsec: 20 }])
  await rig.idle()
})

// The new party of a transfer hears who transfers (RFC 3892).

/** A talks to B; C is the node that is called next. */
async function talking(): Promise<Pair & { readonly c: SipPeer }> {
  const pair = await establish(rig)
  const c = await nextNode(rig)
  return { ...pair, c }
}

test('the target sees the transferor as authenticated, not as claimed', async () => {
  const { a, aLeg, c } = await talking()
  const headers = ['Refer-To: <sip:15550100@h>', 'Referred-By: <sip:boss@bank.example>']
  a.request('REFER', aLeg, { headers })
  const toC = await c.next('INVITE')
  expect(toC.all('Referred-By')).toEqual(['"Phone 101" <sip:101@acme.example>'])
})

test.each([
  ['has asked for privacy', '101@acme.example', ['Privacy: id']],
  ['calls without a name', 'anonymous@anonymous.invalid', []],
])('the target does not see the transferor when it %s', async (_when, from, more) => {
  const { a, aLeg, c } = await talking()
  const leg = { ...aLeg, from: aLeg.from.replace(/sip:[^>]*/, `sip:${from}`) }
  a.request('REFER', leg, { headers: ['Refer-To: <sip:15550100@h>', ...more] })
  const toC = await c.next('INVITE')
  expect(toC.all('Referred-By')).toEqual([])
})

test('a carrier does not see the transferor', async () => {
  const { a, aLeg } = await establish(rig)
  const c = await carrierOf(rig)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  expect((await c.next('INVITE')).all('Referred-By')).toEqual([])
})

/** RFC 3264 §8: in a dialog the origin stays, and the version grows by one with each change. */
test('the versions of o= go on through hold, transfer and what comes after it', async () => {
  const { a, aLeg, b, bLeg, c } = await talking()
  const described = (who: string, version: number, direction = 'sendrecv'): string =>
    sdp(who)
      .replace('o=- 1 1 IN IP4 127.0.0.1', `o=${who} 7 ${version} IN IP4 192.0.2.7`)
      .replace('a=sendrecv', `a=${direction}`)
  const originOf = ({ body }: PeerMessage) => /^o=(\w+ 7 \d+)/m.exec(body)?.[1]
  const reoffered = async (
    from: SipPeer,
    leg: Leg,
    to: SipPeer,
    sent: readonly [string, string],
  ) => {
    const [offer, answer] = sent
    from.request('INVITE', leg, { body: offer })
    const reinvite = await to.next('INVITE')
    to.reply(reinvite, 200, { body: answer })
    return [originOf(reinvite), originOf(await acknowledge(from, leg, to))]
  }
  // Among two who were always together the descriptions pass as they are.
  const hold = [described('a', 11, 'sendonly'), described('b', 31, 'recvonly')] as const
  expect(await reoffered(a, aLeg, b, hold)).toEqual(['a 7 11', 'b 7 31'])

  await refer(a, aLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  expect(originOf(toC)).toBe('b 7 31')
  c.reply(toC, 200, { tag: 'c', body: described('c', 1) })
  await c.next('ACK')
  const toB = await b.next('INVITE')
  expect(originOf(toB)).toBe('a 7 12')
  b.reply(toB, 200, { body: described('b', 32) })
  await b.next('ACK')
  await finalNotify(a)

  const cLeg = c.calledLeg(toC, 'c')
  const again = [described('c', 2, 'sendonly'), described('b', 33, 'recvonly')] as const
  expect(await reoffered(c, cLeg, b, again)).toEqual(['a 7 13', 'b 7 32'])
  expect(await reoffered(c, cLeg, b, again), 'the same').toEqual(['a 7 13', 'b 7 32'])
  const back = [described('b', 34), described('c', 2, 'sendonly')] as const
  expect(await reoffered(b, bLeg, c, back)).toEqual(['b 7 33', 'a 7 13'])
})

const read = (referTo: string, more: Record<string, string> = {}) =>
  readRefer({ 'refer-to': referTo, cseq: '7 REFER', ...more })

test.each([
  ['<sip:102@Acme.example:5070;transport=udp>', '102', 'acme.example'],
  ['"Bob" <sip:102@acme.example>;x=y', '102', 'acme.example'],
  ['sip:102@acme.example', '102', 'acme.example'],
  ['<sips:%2B4930@h>', '+4930', 'h'],
  ['<tel:+49-30-1>', '+49301', ''],
  ['<sip:1-900.(555)%201@h;user=phone>', '19005551', 'h'],
  ['<sip:102@h;method=INVITE>', '102', 'h'],
])('%s asks for %s', (referTo, number, domain) => {
  expect(read(referTo)).toMatchObject({
    kind: 'refer',
    replaces: undefined,
    isSilent: false,
    id: '7',
    target: { number, domain },
  })
})

test('an embedded Replaces is unescaped', () => {
  const referTo = '<sip:c@h?Require=replaces&Replaces=a%40b%3Bto-tag%3D1%3Bfrom-tag%3D2>'
  expect(read(referTo)).toMatchObject({
    replaces: { callId: 'a@b', toTag: '1', fromTag: '2', isEarlyOnly: false },
  })
})

test.each([
  ['', 400],
  ['<>', 400],
  ['<102>', 400],
  ['<sip:1@h>, <sip:2@h>', 400],
  ['sip:1@h, sip:2@h', 400],
  ['<sip:h>', 400],
  ['<sip:1@h?Replaces=%>', 400],
  ['<sip:1@h?Replaces=a>', 400],
  ['<https://h/>', 416],
  ['<sip:1+900@h>', 484],
  ['<sip:(-)@h>', 484],
  ['<tel:1900FLOWERS>', 484],
  ['<sip:alice@h>', 404],
  ['<sip:1@h;method=SUBSCRIBE>', 603],
])('%s is refused with %i', (referTo, status) => {
  expect(read(referTo)).toMatchObject({ kind: 'refused', status })
})
