/**
 * Attended transfers whose two calls are on different instances (RFC 5589 §7.3), on two instances
 * in memory.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../../support/sip-peer.ts'
import {
  asVersion,
  establish,
  extension101,
  finalNotify,
  recordsOf,
  refer,
  replacing,
  type Pair,
  notified,
} from '../../../support/transfer-rig.ts'
import { startTwoInstances, type TwoInstances } from '../../../support/two-nodes.ts'
import { infoPasses, hangUp, extensionRecord } from '../steps.ts'

let instances: TwoInstances

beforeEach(async () => {
  instances = await startTwoInstances()
})
afterEach(() => instances.stop())

const referTo = (leg: Leg, more = ''): string =>
  `sip:1777@acme.example?Replaces=${encodeURIComponent(replacing(leg, more))}`

/** The transferor talks to X at instance a, and to Y at instance b. */
async function consulting(): Promise<{ first: Pair; second: Pair }> {
  return { first: await establish(instances.a), second: await establish(instances.b) }
}

async function accepts(peer: SipPeer, described: string): Promise<PeerMessage> {
  const invite = await peer.next('INVITE')
  peer.reply(invite, 200, { body: described })
  await peer.next('ACK')
  return invite
}

/** X and Y talk to each other; the transferor has left both calls. */
async function transferred() {
  const { first, second } = await consulting()
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  const toY = await accepts(second.b, sdp('answer of y'))
  const toX = await accepts(first.b, sdp('answer of x'))
  const notify = await finalNotify(first.a)
  second.a.reply(await second.a.next('BYE'), 200)
  first.a.request('BYE', first.aLeg)
  await first.a.next('200 BYE')
  return { first, second, toY, toX, notify }
}

test('the other two are connected across the instances, and the transferor is out of both calls', async () => {
  const { first, second, toY, toX, notify } = await transferred()
  expect(toY.body).toContain('s=answer of b')
  expect(toX.body).toContain('s=answer of y')
  expect(notify.body).toContain('200')
  const { b: x, bLeg: xLeg } = first
  const { b: y, bLeg: yLeg } = second
  await infoPasses(x, xLeg, y)
  y.request('INVITE', yLeg, { body: asVersion(7, sdp('hold of y')) })
  expect((await accepts(x, asVersion(7, sdp('held')))).body).toContain('s=hold of y')
  await y.next('200 INVITE')
  y.request('ACK', yLeg)
})

test.each(['first', 'second'] as const)(
  'when the party of the %s call hangs up, all ends, and each call has been charged on its instance',
  async (which) => {
    const both = await transferred()
    const other = which === 'first' ? both.second : both.first
    const { b, bLeg } = both[which]
    b.request('BYE', bLeg)
    other.b.reply(await other.b.next('BYE'), 200)
    await b.next('200 BYE')
    // The call that connects the instances is free, and has a record on both.
    for (const rig of [instances.a, instances.b]) {
      expect(await recordsOf(rig, 2)).toMatchObject([
        { disposition: 'ANSWERED', customerId: 7, callerNumber: '101' },
        { disposition: 'ANSWERED', customerId: null, isFree: true, direction: 'internal' },
      ])
      expect(rig.asked).toHaveLength(1)
      await rig.idle()
    }
  },
)

test('the party of a call that another one has cannot be had: 481, and both calls go on', async () => {
  const first = await establish(instances.a)
  const second = await establish(instances.b, {
    ...extension101,
    extensionId: 2,
  } as typeof extension101)
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  expect((await finalNotify(first.a)).body).toContain('481')
  for (const { a, aLeg, b } of [first, second]) {
    await infoPasses(a, aLeg, b)
  }
  expect(instances.b.calls.size).toBe(1)
})

test.each([
  ['that no node has', 481, ({ aLeg }: Pair) => referTo({ ...aLeg, callId: 'unknown' })],
  ['that must ring, and does not', 486, ({ aLeg }: Pair) => referTo(aLeg, ';early-only')],
])('a dialog %s is %i, and both calls go on', async (_what, status, target) => {
  const { first, second } = await consulting()
  await refer(first.a, first.aLeg, target(second))
  expect((await finalNotify(first.a)).body).toContain(`${status}`)
  for (const { a, aLeg, b } of [first, second]) await infoPasses(a, aLeg, b)
})

test('when the target refuses the media, the transferor is told 488, and each is connected as before', async () => {
  const { first, second } = await consulting()
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  second.b.reply(await second.b.next('INVITE'), 488)
  expect((await finalNotify(first.a)).body).toContain('488')
  for (const { a, aLeg, b } of [first, second]) await infoPasses(a, aLeg, b)
})

test('without another instance that is there, the dialog is unknown: 481', async () => {
  const { first, second } = await consulting()
  instances.isAlive = false
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  expect((await finalNotify(first.a)).body).toContain('481')
})

test('ten transfers, one after the other, are the most across all instances', async () => {
  const { first, second } = await consulting()
  Object.assign(instances.a.calls.call('uuid-1') ?? {}, { transfersBefore: 10 })
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  expect((await finalNotify(first.a)).body).toContain('483')
})

test('a stranger with a token of its own is refused, and replaces no party', async () => {
  const second = await establish(instances.b)
  instances.b.answers.caller = { kind: 'stranger' }
  instances.b.answers.origin = { kind: 'unknown' }
  const thief = await instances.b.caller()
  const leg = thief.leg(instances.b.uri('1777'))
  const headers = [`Replaces: ${replacing(second.aLeg)}`, 'X-Tollgate-Transfer: AAAA']
  thief.request('INVITE', leg, { headers, body: sdp('thief') })
  await thief.next('403 INVITE')
  expect(instances.refused).toHaveLength(1)
  expect(instances.b.calls.size).toBe(1)
})

test('the count of transfers passes between the instances', async () => {
  const { first, second } = await consulting()
  Object.assign(instances.a.calls.call('uuid-1') ?? {}, { transfersBefore: 8 })
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  await accepts(second.b, sdp('answer of y'))
  await accepts(first.b, sdp('answer of x'))
  await finalNotify(first.a)
  expect(['uuid-1', 'uuid-2'].map((id) => instances.b.calls.call(id)?.transfersBefore)).toContain(9)
})

// Semi-attended transfers whose two calls are on different instances: the second one still rings,
// at instance b.

interface Ringing {
  /** The transferor talks to X at instance a. */
  readonly first: Pair
  /** It calls Y at instance b, which rings. */
  readonly phone: SipPeer
  readonly leg: Leg
  readonly y: SipPeer
  readonly toY: PeerMessage
}

async function ringing(body = sdp('offer to y')): Promise<Ringing> {
  const first = await establish(instances.a)
  const { b: rig } = instances
  const extension = extensionRecord('101', { extensionId: 1 })
  rig.answers.caller = { kind: 'extension', extension }
  const [phone, y] = [await rig.caller(), await rig.node()]
  const leg = phone.leg(rig.uri('1666'))
  phone.request('INVITE', leg, { body })
  const toY = await y.next('INVITE')
  y.reply(toY, 180, { tag: 'y' })
  leg.to = (await phone.next('180 INVITE')).get('To')
  phone.inbox.length = 0
  return { first, phone, leg, y, toY }
}

async function referRinging({ first: { a, aLeg }, leg }: Ringing, more = ''): Promise<void> {
  const replaces = encodeURIComponent(replacing(leg, more))
  a.request('REFER', aLeg, { headers: [`Refer-To: <sip:1666@acme.example?Replaces=${replaces}>`] })
  await a.next('202 REFER')
  expect((await notified(a)).body).toBe('SIP/2.0 100 Trying\r\n')
}

/** Y answers, and is told its peer; so is X. */
async function answer({ first: { b: x }, y, toY }: Ringing): Promise<Leg> {
  y.reply(toY, 200, { tag: 'y', body: sdp('answer of y') })
  await y.next('ACK')
  const again = await y.next('INVITE')
  expect(again.body).toContain('s=answer of b')
  y.reply(again, 200, { body: asVersion(2, sdp('second answer of y')) })
  await y.next('ACK')
  const toX = await x.next('INVITE')
  expect(toX.body).toContain('s=second answer of y')
  x.reply(toX, 200, { body: sdp('answer of x', 4_002) })
  await x.next('ACK')
  return y.calledLeg(toY, 'y')
}

/** A new description of X reaches Y. */
async function reconciled(y: SipPeer): Promise<void> {
  const again = await y.next('INVITE')
  expect(again.body).toContain('s=answer of x')
  y.reply(again, 200, { body: asVersion(3, sdp('third answer of y')) })
  await y.next('ACK')
}

test.each(['', ';early-only'])(
  'the party that stays is connected when the other one answers, and the transferor is out of both calls (%s)',
  async (more) => {
    const calls = await ringing()
    const { first, phone, leg, y } = calls
    await referRinging(calls, more)
    expect((await notified(first.a)).body).toBe('SIP/2.0 180 Ringing\r\n')
    const yLeg = await answer(calls)
    expect((await finalNotify(first.a)).body).toBe('SIP/2.0 200 OK\r\n')
    await phone.next('487 INVITE')
    phone.request('ACK', leg)
    await reconciled(y)
    const { b: x, bLeg: xLeg } = first
    await infoPasses(x, xLeg, y)
    await instances.a.advance(5_000)
    first.a.reply(await first.a.next('BYE'), 200)
    await hangUp(y, yLeg, x)
    // Who has called pays for both calls; what connects the instances is free, and has a record on
    // each.
    for (const rig of [instances.a, instances.b]) {
      expect(await recordsOf(rig, 2)).toMatchObject([
        { disposition: 'ANSWERED', customerId: 7 },
        { disposition: 'ANSWERED', customerId: null, isFree: true, direction: 'internal' },
      ])
      expect(rig.asked).toHaveLength(1)
      await rig.idle()
    }
  },
)

test('a ringing call of another party cannot be taken: 481', async () => {
  const calls = await ringing()
  const { first } = calls
  Object.assign(instances.b.calls.call('uuid-1') ?? {}, {
    origin: { ...extension101, extensionId: 2 },
  })
  await referRinging(calls)
  expect((await finalNotify(first.a)).body).toMatch(/^SIP\/2.0 481 /)
  expect(instances.b.calls.list()).toMatchObject([{ state: 'RINGING' }])
})

test('a ringing call that began without an offer cannot be taken: 488', async () => {
  const calls = await ringing('')
  await referRinging(calls)
  expect((await finalNotify(calls.first.a)).body).toMatch(/^SIP\/2.0 488 /)
  expect(instances.b.calls.list()).toMatchObject([{ state: 'RINGING' }])
  expect(calls.y.inbox).toEqual([])
})

test.each<[string, number, number, (calls: Ringing) => unknown]>([
  ['the target', 486, 486, ({ y, toY }) => y.reply(toY, 486, { tag: 'y' })],
  [
    'the target, of the media of the other party,',
    488,
    487,
    async ({ y, toY }) => {
      y.reply(toY, 200, { tag: 'y', body: sdp('answer of y') })
      y.reply(await y.next('INVITE'), 488)
      y.reply(await y.next('BYE'), 200)
    },
  ],
  [
    'the target by hanging up',
    487,
    487,
    async ({ y, toY }) => {
      y.reply(toY, 200, { tag: 'y', body: sdp('answer of y') })
      const again = await y.next('INVITE')
      y.request('BYE', y.calledLeg(toY, 'y'))
      y.reply(again, 487)
    },
  ],
])(
  'refused by %s the transferor is told %i, its second call ends with %i, and the first goes on',
  async (_who, status, atPhone, refuse) => {
    const calls = await ringing()
    const { first, phone, leg } = calls
    await referRinging(calls)
    await notified(first.a)
    await refuse(calls)
    await phone.next(`${atPhone} INVITE`)
    phone.request('ACK', leg)
    expect((await finalNotify(first.a)).body).toMatch(new RegExp(`^SIP/2.0 ${status} `))
    await infoPasses(first.b, first.bLeg, first.a)
    expect((await recordsOf(instances.b, 2))[1]).toMatchObject({ isFree: true, customerId: null })
    await instances.b.idle()
  },
)

test('the transferee hangs up: no phone goes on ringing', async () => {
  const calls = await ringing()
  const { first, phone, leg, y, toY } = calls
  await referRinging(calls)
  await notified(first.a)
  first.b.request('BYE', first.bLeg)
  await first.b.next('200 BYE')
  y.reply(await y.next('CANCEL'), 200)
  y.reply(toY, 487, { tag: 'y' })
  await phone.next('487 INVITE')
  phone.request('ACK', leg)
  await recordsOf(instances.b, 2)
  await instances.b.idle()
})
