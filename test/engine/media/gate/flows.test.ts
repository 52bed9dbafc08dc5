/**
 * Every way in which two parties come to talk: what each sends to the place that it was told of
 * reaches the other.
 */
import { beforeEach, expect, test } from 'vitest'
import { talk } from '../../../support/call-rig.ts'
import { startMediaRig, type MediaRig } from '../../../support/media-rig.ts'
import { sdp, type Leg, type SipPeer } from '../../../support/sip-peer.ts'
import {
  call,
  establish,
  extension101,
  finalNotify,
  replacing,
} from '../../../support/transfer-rig.ts'
import {
  acknowledge,
  nextNode,
  addExtensions,
  extensionRecord,
  home,
  originateRequest,
  phoneOf,
} from '../../call/steps.ts'

let rig: MediaRig

beforeEach(async () => {
  rig = await startMediaRig()
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
})

async function dial(number: string): Promise<{ readonly caller: SipPeer; readonly leg: Leg }> {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const caller = await rig.caller()
  const leg = caller.leg(`sip:${number}@${home}`)
  caller.request('INVITE', leg, { body: sdp('offer', 4_000) })
  return { caller, leg }
}

/** A party: its leg, what it was told last, and what it has said last. */
interface Heard {
  readonly leg: string
  readonly sent: string
  readonly own: string
}

/** Each reaches the other through the relay, in the only session. */
async function expectMedia(one: Heard, other: Heard): Promise<void> {
  // Relays are told of ended sessions at the next tick.
  await rig.advance(100)
  expect(rig.relay.sessions.size).toBe(1)
  expect(rig.relay.leadsTo(one.sent, one.leg, other.leg, other.own)).toBe(true)
  expect(rig.relay.leadsTo(other.sent, other.leg, one.leg, one.own)).toBe(true)
}

/** The first of them hangs up. */
async function hangUp(one: SipPeer, leg: Leg, other: SipPeer): Promise<void> {
  one.request('BYE', leg)
  other.reply(await other.next('BYE'), 200)
  await one.next('200 BYE')
  await rig.idle()
}

const [first, second] = ['uuid-1.0', 'uuid-1.1']

test('an INVITE without offer: the callee offers, and the ACK answers', async () => {
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg)
  const invite = await node.next('INVITE')
  expect(invite.body).toBe('')
  node.reply(invite, 200, { tag: 'b', body: sdp('offer', 5_000) })
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  caller.request('ACK', leg, { body: sdp('answer', 4_000) })
  const ack = await node.next('ACK')
  await expectMedia(
    { leg: first, sent: ok.body, own: sdp('answer', 4_000) },
    { leg: second, sent: ack.body, own: sdp('offer', 5_000) },
  )
  await hangUp(caller, leg, node)
})

test('early media, and an answer with another place', async () => {
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer', 4_000) })
  const invite = await node.next('INVITE')
  const sent = { leg: second, sent: invite.body }
  node.reply(invite, 183, { tag: 'b', body: sdp('announcement', 5_000) })
  const progress = await caller.next('183 INVITE')
  const caller4000 = { leg: first, own: sdp('offer', 4_000) }
  await expectMedia(
    { ...caller4000, sent: progress.body },
    { ...sent, own: sdp('announcement', 5_000) },
  )
  node.reply(invite, 200, { tag: 'b', body: sdp('answer', 6_000) })
  const ok = await acknowledge(caller, leg, node)
  await expectMedia({ ...caller4000, sent: ok.body }, { ...sent, own: sdp('answer', 6_000) })
  await hangUp(caller, leg, node)
})

test('phones that ring in parallel: the one that answers keeps its session, the other loses it', async () => {
  const [desk, mobile] = [await phoneOf(rig, '102'), await phoneOf(rig, '102')]
  const { caller, leg } = await dial('102')
  const [toDesk, toMobile] = [await desk.next('INVITE'), await mobile.next('INVITE')]
  desk.reply(toDesk, 183, { tag: 'd', body: sdp('desk', 5_000) })
  // The caller is told that phones in parallel ring.
  await caller.next('180 INVITE')
  mobile.reply(toMobile, 180, { tag: 'm' })
  expect(rig.relay.sessions.size).toBe(2)
  mobile.reply(toMobile, 200, { tag: 'm', body: sdp('mobile', 6_000) })
  const ok = await acknowledge(caller, leg, mobile)
  desk.reply(await desk.next('CANCEL'), 200)
  desk.reply(toDesk, 487, { tag: 'd' })
  await expectMedia(
    { leg: first, sent: ok.body, own: sdp('offer', 4_000) },
    { leg: 'uuid-1.2', sent: toMobile.body, own: sdp('mobile', 6_000) },
  )
  await hangUp(caller, leg, mobile)
})

test('UPDATE with an offer, from either side', async () => {
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('UPDATE', leg, { body: sdp('moved', 4_400) })
  const update = await node.next('UPDATE')
  node.reply(update, 200, { body: sdp('answer') })
  const ok = await caller.next('200 UPDATE')
  await expectMedia(
    { leg: first, sent: ok.body, own: sdp('moved', 4_400) },
    { leg: second, sent: update.body, own: sdp('answer') },
  )
  node.request('UPDATE', nodeLeg, { body: sdp('moved, too', 5_500) })
  const back = await caller.next('UPDATE')
  caller.reply(back, 200, { body: sdp('moved', 4_400) })
  await expectMedia(
    { leg: first, sent: back.body, own: sdp('moved', 4_400) },
    { leg: second, sent: (await node.next('200 UPDATE')).body, own: sdp('moved, too', 5_500) },
  )
  await hangUp(caller, leg, node)
})

test('re-INVITEs that cross: both get 491, and the next one succeeds', async () => {
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('INVITE', leg, { body: sdp('moved', 4_400) })
  const passed = await node.next('INVITE')
  node.request('INVITE', nodeLeg, { body: sdp('moved, too', 5_500) })
  await node.next('491 INVITE')
  node.request('ACK', nodeLeg)
  node.reply(passed, 491)
  await caller.next('491 INVITE')
  caller.request('ACK', leg)
  await rig.settle()
  const [session] = rig.relay.sessions.values()
  expect(session?.descriptions.get(first)).toBe(sdp('offer'))
  expect(session?.descriptions.get(second)).toBe(sdp('answer'))

  node.request('INVITE', nodeLeg, { body: sdp('moved, too', 5_500) })
  const again = await caller.next('INVITE')
  caller.reply(again, 200, { body: sdp('offer') })
  const ok = await node.next('200 INVITE')
  node.request('ACK', nodeLeg)
  await caller.next('ACK')
  await expectMedia(
    { leg: first, sent: again.body, own: sdp('offer') },
    { leg: second, sent: ok.body, own: sdp('moved, too', 5_500) },
  )
  await hangUp(caller, leg, node)
})

test('attended transfer: the two that stay have one session, and the old ones are gone', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  const c = await nextNode(rig)
  const { aLeg: a2Leg } = await call(rig, a, c, extension101, ' to c')
  expect(rig.relay.sessions.size).toBe(2)
  const replaces = encodeURIComponent(replacing(a2Leg))
  a.request('REFER', aLeg, { headers: [`Refer-To: <sip:c@h?Replaces=${replaces}>`] })
  await a.next('202 REFER')
  const toC = await c.next('INVITE')
  c.reply(toC, 200, { body: sdp('answer of c', 6_000) })
  const toB = await b.next('INVITE')
  b.reply(toB, 200, { body: sdp('b again', 5_500) })
  await Promise.all([b.next('ACK'), c.next('ACK')])
  expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
  a.reply(await a.next('BYE'), 200)
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  await rig.settle()
  const moved = c.inbox.find(({ method }) => method === 'INVITE')
  if (moved) {
    c.reply(moved, 200, { body: sdp('answer of c', 6_000) })
    await c.next('ACK')
  }
  await expectMedia(
    { leg: second, sent: toB.body, own: sdp('b again', 5_500) },
    { leg: 'uuid-2.1', sent: (moved ?? toC).body, own: sdp('answer of c', 6_000) },
  )
  await hangUp(b, bLeg, c)
})

test.each([
  ['stays', 5_000],
  ['moves, and the destination is sent', 5_500],
])(
  'click-to-call: our re-INVITE tells the source of the destination, and it %s',
  async (_, port) => {
    const [a, b] = [await phoneOf(rig, '101'), await rig.node()]
    await rig.control.originate(originateRequest)
    const toA = await a.next('INVITE')
    a.reply(toA, 200, { tag: 'a', body: sdp('a', 5_000) })
    const toB = await b.next('INVITE')
    b.reply(toB, 183, { tag: 'b', body: sdp('announcement', 6_000) })
    await a.next('ACK')
    b.reply(toB, 200, { tag: 'b', body: sdp('b', 6_600) })
    await b.next('ACK')
    const again = await a.next('INVITE')
    a.reply(again, 200, { body: sdp('a', port) })
    await a.next('ACK')
    const lastSent = port === 5_000 ? toB : await b.next('INVITE')
    if (lastSent !== toB) {
      b.reply(lastSent, 200, { body: sdp('b', 6_600) })
      await b.next('ACK')
    }
    await rig.settle()
    await expectMedia(
      { leg: first, sent: again.body, own: sdp('a', port) },
      { leg: second, sent: lastSent.body, own: sdp('b', 6_600) },
    )
    await hangUp(a, a.calledLeg(toA, 'a'), b)
  },
)
