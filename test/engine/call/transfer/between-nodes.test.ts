/** Attended transfers whose two calls are on different nodes (RFC 5589 §7.3), on two nodes in memory. */
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
} from '../../../support/transfer-rig.ts'
import { startTwoNodes, type TwoNodes } from '../../../support/two-nodes.ts'
import { infoPasses } from '../steps.ts'

let nodes: TwoNodes

beforeEach(async () => {
  nodes = await startTwoNodes()
})
afterEach(() => nodes.stop())

const referTo = (leg: Leg, more = ''): string =>
  `sip:1777@acme.example?Replaces=${encodeURIComponent(replacing(leg, more))}`

/** The transferor talks to X at node a, and to Y at node b. */
async function consulting(): Promise<{ first: Pair; second: Pair }> {
  return { first: await establish(nodes.a), second: await establish(nodes.b) }
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

test('the other two are connected across the nodes, and the transferor is out of both calls', async () => {
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
  'when the party of the %s call hangs up, all ends, and each call has been charged on its node',
  async (which) => {
    const both = await transferred()
    const other = which === 'first' ? both.second : both.first
    const { b, bLeg } = both[which]
    b.request('BYE', bLeg)
    other.b.reply(await other.b.next('BYE'), 200)
    await b.next('200 BYE')
    // What connects the nodes is free, and has a record on both.
    for (const rig of [nodes.a, nodes.b]) {
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
  const first = await establish(nodes.a)
  const second = await establish(nodes.b, {
    ...extension101,
    extensionId: 2,
  } as typeof extension101)
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  expect((await finalNotify(first.a)).body).toContain('481')
  for (const { a, aLeg, b } of [first, second]) {
    await infoPasses(a, aLeg, b)
  }
  expect(nodes.b.calls.size).toBe(1)
})

test('a stranger with a token of its own is refused, and replaces no party', async () => {
  const second = await establish(nodes.b)
  nodes.b.answers.caller = { kind: 'stranger' }
  nodes.b.answers.origin = { kind: 'unknown' }
  const thief = await nodes.b.caller()
  const leg = thief.leg(nodes.b.uri('1777'))
  const headers = [`Replaces: ${replacing(second.aLeg)}`, 'X-Tollgate-Transfer: AAAA']
  thief.request('INVITE', leg, { headers, body: sdp('thief') })
  await thief.next('403 INVITE')
  expect(nodes.refused).toHaveLength(1)
  expect(nodes.b.calls.size).toBe(1)
})

test('a phone whose media is no description gets 488, and no node is blamed for what could not leave', async () => {
  const { first, second } = await consulting()
  const { a, aLeg, b, bLeg } = first
  b.request('INVITE', bLeg, { body: `\r\n${asVersion(2, sdp('no description'))}` })
  a.reply(await a.next('INVITE'), 200, { body: sdp('answer of a') })
  await b.next('200 INVITE')
  b.request('ACK', bLeg)
  await a.next('ACK')
  a.request('REFER', aLeg, { headers: [`Refer-To: <${referTo({ ...second.aLeg, callId: 'x' })}>`] })
  await a.next('488 REFER')
  expect(nodes.a.silent).toEqual([])
})

test('the count of transfers passes between the nodes', async () => {
  const { first, second } = await consulting()
  Object.assign(nodes.a.calls.call('uuid-1') ?? {}, { transfersBefore: 8 })
  await refer(first.a, first.aLeg, referTo(second.aLeg))
  await accepts(second.b, sdp('answer of y'))
  await accepts(first.b, sdp('answer of x'))
  await finalNotify(first.a)
  expect(['uuid-1', 'uuid-2'].map((id) => nodes.b.calls.call(id)?.transfersBefore)).toContain(9)
})
