/**
 * Attended transfer: REFER with Replaces connects the other parties of the transferor's two calls.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CallRig, startCallRig } from '../../../support/call-rig.ts'
import { sdp, type Leg, type SipPeer, type PeerMessage } from '../../../support/sip-peer.ts'
import {
  asVersion,
  call,
  establish,
  extension101,
  finalNotify,
  notified,
  recordsOf,
  replacing,
  type Pair,
} from '../../../support/transfer-rig.ts'
import { hangUp, infoPasses, nextNode } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

interface Consulting extends Pair {
  /** The second leg of A, to C. */
  readonly a2Leg: Leg
  readonly c: SipPeer
  readonly cLeg: Leg
}

/** A talks to B, and to C in a second call. */
async function consulting(): Promise<Consulting> {
  const first = await establish(rig)
  const c = await nextNode(rig)
  const { aLeg: a2Leg, bLeg: cLeg } = await call(rig, first.a, c, extension101, ' to c')
  return { ...first, c, a2Leg, cLeg }
}

async function join({ a, aLeg, a2Leg }: Consulting, more = ''): Promise<void> {
  const replaces = encodeURIComponent(replacing(a2Leg, more))
  a.request('REFER', aLeg, { headers: [`Refer-To: <sip:c@h?Replaces=${replaces}>`] })
  await a.next('202 REFER')
}

test('the other parties are connected, and the transferor is out of both calls', async () => {
  const calls = await consulting()
  const { a, aLeg, b, bLeg, c, cLeg } = calls
  await join(calls)
  const toC = await c.next('INVITE')
  expect(toC.body).toBe(asVersion(2, sdp('answer of b')))
  c.reply(toC, 200, { body: sdp('answer of c') })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(asVersion(2, sdp('answer of c')))
  b.reply(toB, 200, { body: sdp('answer of b') })
  expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
  a.reply(await a.next('BYE'), 200)
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  expect(rig.calls.list()).toMatchObject([
    { state: 'ACTIVE', transfer: { state: 'transferred', callUuid: 'uuid-2' } },
    { state: 'ACTIVE', transfer: { state: 'transferred', callUuid: 'uuid-1' } },
  ])

  await infoPasses(b, bLeg, c)
  await rig.advance(5_000)
  await hangUp(c, cLeg, b)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { disposition: 'ANSWERED', billsec: 5, hangupBy: 'caller' },
    { disposition: 'ANSWERED', billsec: 5, hangupBy: 'callee' },
  ])
  await rig.idle()
  expect(rig.records).toEqual([])
})

test('the target refuses the media: both calls go on, and the transferee gets no re-INVITE', async () => {
  const calls = await consulting()
  const { a, b, c } = calls
  await join(calls)
  c.reply(await c.next('INVITE'), 488)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 488 /)
  expect(b.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }, { state: 'ACTIVE' }])
})

test('the first party does not take the media: the second one gets its old ones back', async () => {
  const calls = await consulting()
  const { a, b, c } = calls
  await join(calls)
  c.reply(await c.next('INVITE'), 200, { body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 488)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 488 /)
  const back = await c.next(({ body }) => body === asVersion(3, sdp('offer of a to c')))
  c.reply(back, 200, { body: sdp('answer of c') })
  await c.next('ACK')
})

test('one of the two hangs up meanwhile: the other call goes on', async () => {
  const calls = await consulting()
  const { a, a2Leg, b, bLeg, c } = calls
  await join(calls)
  const toC = await c.next('INVITE')
  b.request('BYE', bLeg)
  await b.next('200 BYE')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 487 /)
  a.reply(await a.next('BYE'), 200)
  c.reply(toC, 200, { body: sdp('answer of c') })
  const back = await c.next(({ body }) => body === asVersion(3, sdp('offer of a to c')))
  c.reply(back, 200, { body: sdp('answer of c') })
  await c.next('ACK')
  expect(await rig.record()).toMatchObject({ callUuid: 'uuid-1', hangupBy: 'callee' })
  expect(rig.calls.list()).toMatchObject([{ callUuid: 'uuid-2', state: 'ACTIVE' }])
  await hangUp(a, a2Leg, c)
  await rig.record()
  await rig.idle()
})

test('the transferor may hang up both calls at once', async () => {
  const calls = await consulting()
  const { a, aLeg, a2Leg, b, bLeg, c } = calls
  await join(calls)
  await notified(a)
  a.request('BYE', aLeg)
  a.request('BYE', a2Leg)
  c.reply(await c.next('INVITE'), 200, { body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 200, { body: sdp('answer of b') })
  await b.next('ACK')
  await rig.until(() => rig.calls.find('uuid-1')?.transfer?.state === 'transferred')
  await hangUp(b, bLeg, c)
  await recordsOf(rig, 2)
  await rig.idle()
})

test.each([
  ['is unknown', () => 'unknown;to-tag=1;from-tag=2', 481],
  ['is the first call itself', ({ aLeg }: Consulting) => replacing(aLeg), 481],
  ['is the leg of another party', ({ cLeg }: Consulting) => replacing(cLeg), 481],
  ['must still ring', ({ a2Leg }: Consulting) => replacing(a2Leg, ';early-only'), 486],
])(
  'a Replaces that names a call that %s is told, and changes nothing',
  async (_what, value, status) => {
    const calls = await consulting()
    const replaces = encodeURIComponent(value(calls))
    calls.a.request('REFER', calls.aLeg, { headers: [`Refer-To: <sip:c@h?Replaces=${replaces}>`] })
    await calls.a.next('202 REFER')
    expect((await finalNotify(calls.a)).body).toMatch(new RegExp(`^SIP/2.0 ${status} `))
    expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }, { state: 'ACTIVE' }])
  },
)

test('a call of another party cannot be joined', async () => {
  const first = await establish(rig)
  const stranger = await rig.caller()
  const c = await nextNode(rig)
  const other = { ...extension101, extensionId: 2, extension: '102' } as typeof extension101
  const { aLeg: otherLeg, bLeg: cLeg } = await call(rig, stranger, c, other, ' to c')
  await join({ ...first, c, cLeg, a2Leg: otherLeg })
  await notified(first.a)
  expect((await finalNotify(first.a)).body).toMatch(/^SIP\/2.0 481 /)
})

// Semi-attended transfer: REFER with Replaces names a second call that still rings.

interface Ringing extends Pair {
  /** The second leg of A, to C, who is called. */
  readonly a2Leg: Leg
  readonly c: SipPeer
  readonly toC: PeerMessage
}

/** A talks to B, and a second call of A rings at C. */
async function ringing(): Promise<Ringing> {
  const first = await establish(rig)
  const { a } = first
  const c = await nextNode(rig)
  const a2Leg = a.leg(rig.uri('1666'))
  a.request('INVITE', a2Leg, { body: sdp('offer of a to c') })
  const toC = await c.next('INVITE')
  c.reply(toC, 180, { tag: 'c' })
  a2Leg.to = (await a.next('180 INVITE')).get('To')
  a.inbox.length = 0
  return { ...first, c, toC, a2Leg }
}

async function referTo({ a, aLeg, a2Leg }: Ringing, more = ''): Promise<void> {
  const replaces = encodeURIComponent(replacing(a2Leg, more))
  const target = `<sip:1666@acme.example?Replaces=${replaces}>`
  a.request('REFER', aLeg, { headers: [`Refer-To: ${target}`] })
  await a.next('202 REFER')
}

/** C answers, and is told its peer; so is B. */
async function answer({ b, c, toC }: Ringing): Promise<Leg> {
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  await c.next('ACK')
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(asVersion(2, sdp('answer of c')))
  b.reply(toB, 200, { body: sdp('answer of b', 4_002) })
  await b.next('ACK')
  const again = await c.next('INVITE')
  expect(again.body).toBe(asVersion(2, sdp('answer of b', 4_002)))
  c.reply(again, 200, { body: sdp('answer of c') })
  await c.next('ACK')
  return c.calledLeg(toC, 'c')
}

test.each(['', ';early-only'])(
  'who stays is connected when the other one answers, and who transfers is out of both (%s)',
  async (more) => {
    await rig.stop()
    // Fast timers: in the end nothing may be left in the server's tables, either.
    rig = await startCallRig({ withSipTimers: true })
    const calls = await ringing()
    const { a, a2Leg, b, bLeg, c } = calls
    await referTo(calls, more)
    expect((await notified(a)).body).toBe('SIP/2.0 100 Trying\r\n')
    expect((await notified(a)).body).toBe('SIP/2.0 180 Ringing\r\n')
    expect(rig.calls.list()).toMatchObject([
      { state: 'ACTIVE', transfer: { state: 'transferring', callUuid: 'uuid-2' } },
      { state: 'RINGING', transfer: { state: 'transferring', callUuid: 'uuid-1' } },
    ])
    await answer(calls)
    expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
    await a.next('487 INVITE')
    a.request('ACK', a2Leg)

    await infoPasses(b, bLeg, c)
    await rig.advance(5_000)
    a.reply(await a.next('BYE'), 200)
    await hangUp(b, bLeg, c)
    expect(await recordsOf(rig, 2)).toMatchObject([
      { callUuid: 'uuid-1', disposition: 'ANSWERED', billsec: 5, hangupBy: 'callee' },
      { calledNumber: '1666', customerId: 7, disposition: 'ANSWERED', billsec: 5 },
    ])
    await rig.idle()
    expect(rig.records).toEqual([])
  },
)

test('the transferor may hang up both calls at once: the target goes on ringing', async () => {
  const calls = await ringing()
  const { a, aLeg, a2Leg, b, bLeg, c } = calls
  await referTo(calls)
  await notified(a)
  await notified(a)
  const { to } = a2Leg
  a2Leg.to = to.replace(/;tag=.*$/, '')
  a.request('CANCEL', a2Leg)
  await a.next('487 INVITE')
  a2Leg.to = to
  a.request('ACK', a2Leg)
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  expect(c.inbox.filter(({ method }) => method === 'CANCEL')).toEqual([])
  await answer(calls)
  await hangUp(b, bLeg, c)
  await recordsOf(rig, 2)
  await rig.idle()
})

test('refused by the target: the transferor gets the status in both calls, and the first goes on', async () => {
  const calls = await ringing()
  const { a, aLeg, a2Leg, b, bLeg, c, toC } = calls
  await referTo(calls)
  await notified(a)
  c.reply(toC, 486, { tag: 'c' })
  await c.next('ACK')
  await a.next('486 INVITE')
  a.request('ACK', a2Leg)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 486 /)
  expect(await rig.record()).toMatchObject({ callUuid: 'uuid-2', disposition: 'BUSY' })
  a.request('INVITE', aLeg, { body: sdp('back') })
  b.reply(await b.next(({ body }) => body === sdp('back')), 200, { body: sdp('back too') })
  await a.next(({ body }) => body === sdp('back too'))
  a.request('ACK', aLeg)
  await b.next('ACK')
  await hangUp(b, bLeg, a)
  await rig.record()
  await rig.idle()
})

test('the transferee hangs up: no phone goes on ringing', async () => {
  const calls = await ringing()
  const { a, a2Leg, b, bLeg, c, toC } = calls
  await referTo(calls)
  await notified(a)
  b.request('BYE', bLeg)
  await b.next('200 BYE')
  c.reply(await c.next('CANCEL'), 200)
  c.reply(toC, 487, { tag: 'c' })
  await a.next('487 INVITE')
  a.request('ACK', a2Leg)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 487 /)
  a.reply(await a.next('BYE'), 200)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { disposition: 'ANSWERED', hangupBy: 'callee' },
    { disposition: 'CANCELED' },
  ])
  await rig.idle()
})

test('the transferee refuses the media: it stays with the transferor, the target gets BYE', async () => {
  const calls = await ringing()
  const { a, a2Leg, b, bLeg, c, toC } = calls
  await referTo(calls)
  await notified(a)
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  await c.next('ACK')
  b.reply(await b.next('INVITE'), 488)
  c.reply(await c.next('BYE'), 200)
  await a.next('487 INVITE')
  a.request('ACK', a2Leg)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 488 /)
  await infoPasses(b, bLeg, a)
  await hangUp(b, bLeg, a)
  await recordsOf(rig, 2)
  await rig.idle()
})

test('a ringing call of another party cannot be taken', async () => {
  const first = await establish(rig)
  const stranger = await rig.caller()
  const c = await nextNode(rig)
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = { kind: 'trusted' }
  const a2Leg = stranger.leg(rig.uri('1666'))
  stranger.request('INVITE', a2Leg, { body: sdp('offer') })
  const toC = await c.next('INVITE')
  c.reply(toC, 180, { tag: 'c' })
  a2Leg.to = (await stranger.next('180 INVITE')).get('To')
  await referTo({ ...first, c, toC, a2Leg })
  await notified(first.a)
  expect((await finalNotify(first.a)).body).toMatch(/^SIP\/2.0 481 /)
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }, { state: 'RINGING' }])
})
