/**
 * Calls that the last process has left: their parties may have hung up while no process was there.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { type CallRig, granted, startCallRig, type Talk, talk } from '../../support/call-rig.ts'
import { sdp, type SipPeer } from '../../support/sip-peer.ts'
import { recordsOf, replacing } from '../../support/transfer-rig.ts'
import { acknowledge, areHungUp, hangUp, stillThere } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

/** The record of a call that talked for three seconds at the crash; nothing is charged beyond. */
const lastSeen = { disposition: 'ANSWERED', billsec: 3 }
const unseen = {
  ...lastSeen,
  hangupBy: 'system',
  hangupCause: 'PROCESS_RESTART',
  isRecovered: true,
}

const isQuestion = (method: string) => (message: { method: string; get(name: string): string }) =>
  message.method === method && message.get('To').includes(';tag=')

/** Two talk for three seconds; `kill -9`; the next process is there after `downMs`. */
async function talkAndCrash(downMs: number, answers?: Partial<CallRig['answers']>): Promise<Talk> {
  rig = await startCallRig()
  rig.answers.authorize = () => Promise.resolve(granted(3_600))
  const talking = await talk(rig)
  await rig.advance(3_000)
  await restart(downMs, answers)
  return talking
}

async function restart(downMs: number, answers: Partial<CallRig['answers']> = {}): Promise<void> {
  rig.crash()
  const { time, world, server, saved, opened, peers } = rig
  const aliveAt = rig.aliveAt
  await rig.advance(downMs)
  rig = await startCallRig({ after: { time, world, server, opened, saved, aliveAt } })
  Object.assign(rig.answers, answers)
  rig.peers.push(...peers)
  for (const peer of peers) peer.inbox.splice(0)
  await rig.settle()
}

async function refuses(peer: SipPeer, status: number): Promise<void> {
  peer.reply(await peer.next(isQuestion('INVITE')), status)
  await peer.next('ACK')
}

describe.each([5_000, 40_000, 200_000])('after %i ms without a process', (downMs) => {
  test('a call whose parties do not know it any more ended when it was seen last', async () => {
    const { caller, node } = await talkAndCrash(downMs)
    expect(rig.calls.list()).toHaveLength(1)
    await rig.advance(200)
    await refuses(caller, 481)
    await refuses(node, 481)
    await areHungUp(caller, node)
    expect(await rig.record()).toMatchObject(unseen)
    await rig.idle()
  })

  test('one party is enough: the other one, who waits, gets BYE', async () => {
    const { caller, node } = await talkAndCrash(downMs)
    await rig.advance(200)
    caller.reply(await caller.next('INVITE'), 200, { body: sdp('here') })
    await caller.next('ACK')
    await refuses(node, 481)
    await areHungUp(caller, node)
    expect(await rig.record()).toMatchObject(unseen)
    await rig.idle()
  })

  test('a party that is silent has gone', async () => {
    const { caller, node } = await talkAndCrash(downMs)
    await rig.advance(200)
    node.reply(await node.next('INVITE'), 200, { body: sdp('here') })
    await rig.advance(33_000)
    await areHungUp(caller, node)
    expect(await rig.record()).toMatchObject(unseen)
  })

  test('a BYE that was sent to nobody, and comes again, ends it when it was seen last', async () => {
    const { caller, leg, node } = await talkAndCrash(downMs)
    await rig.advance(3_000)
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({
      ...lastSeen,
      hangupBy: 'caller',
      isRecovered: false,
    })
  })

  test('a call whose parties are there goes on, and is paid for whole', async () => {
    const { caller, leg, node } = await talkAndCrash(downMs)
    await stillThere(rig, caller, node)
    await rig.advance(1_000)
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({
      disposition: 'ANSWERED',
      billsec: Math.ceil((3_000 + downMs + 1_200) / 1_000),
      isRecovered: false,
    })
    await rig.idle()
  })
})

test('the question changes nothing: a re-INVITE with the last description and its version', async () => {
  const { caller, node } = await talkAndCrash(1_000)
  await rig.advance(200)
  expect((await caller.next('INVITE')).body).toBe(sdp('answer'))
  expect((await node.next('INVITE')).body).toBe(sdp('offer'))
  caller.inbox.splice(0)
  rig.calls.hangUp('uuid-1', 16)
  await rig.record()
})

test('whoever takes UPDATE gets one, without a description', async () => {
  rig = await startCallRig()
  const headers = ['Allow: INVITE, ACK, BYE, UPDATE']
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer'), headers })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await rig.advance(3_000)
  await restart(40_000)
  await rig.advance(200)
  for (const peer of [caller, node]) {
    const question = await peer.next('UPDATE')
    expect(question.body).toBe('')
    peer.reply(question, 200)
  }
  await rig.advance(1_000)
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ billsec: 45 })
})

test.each([401, 405, 407, 415, 420, 422, 488, 491, 501, 603])(
  'a refusal with %i shows that the party is there',
  async (status) => {
    const { caller, leg, node } = await talkAndCrash(40_000)
    await rig.advance(200)
    for (const peer of [caller, node]) await refuses(peer, status)
    await rig.advance(1_000)
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({ billsec: 45 })
  },
)

test.each([404, 410, 481, 604])('a refusal with %i says that the party is gone', async (status) => {
  const { caller, node } = await talkAndCrash(40_000)
  await rig.advance(200)
  await refuses(node, status)
  await areHungUp(caller, node)
  expect(await rig.record()).toMatchObject(unseen)
})

describe.each([403, 430, 480, 483, 500, 502, 503, 504])(
  'a refusal with %i, which may be that of a proxy, says nothing',
  (status) => {
    test('who is asked again and is there talks on', async () => {
      const { caller, leg, node } = await talkAndCrash(40_000)
      await rig.advance(200)
      caller.reply(await caller.next('INVITE'), 200, { body: sdp('here') })
      await refuses(node, status)
      await rig.advance(4_000)
      node.reply(await node.next(isQuestion('INVITE')), 200, { body: sdp('here') })
      await rig.advance(1_000)
      await hangUp(caller, leg, node)
      expect(await rig.record()).toMatchObject({ billsec: 49, isRecovered: false })
    })
  },
)

test('a party that no proxy reaches for a minute is gone', async () => {
  const { caller, node } = await talkAndCrash(40_000)
  await rig.advance(200)
  caller.reply(await caller.next('INVITE'), 200, { body: sdp('here') })
  for (let question = 0; question < 17; question += 1) {
    await refuses(node, 480)
    expect(rig.calls.list()).toHaveLength(1)
    if (question < 16) await rig.advance(4_000)
  }
  await areHungUp(caller, node)
  expect(await rig.record()).toMatchObject(unseen)
})

test('a request of the other party that is refused on the way does not end the questions', async () => {
  const { caller, node, nodeLeg } = await talkAndCrash(40_000)
  await rig.advance(200)
  node.reply(await node.next('INVITE'), 200, { body: sdp('here') })
  await refuses(caller, 503)
  await rig.advance(3_000)
  node.request('INFO', nodeLeg)
  const info = await caller.next('INFO')
  await rig.advance(2_000)
  caller.reply(info, 503)
  await rig.advance(4_000)
  await refuses(caller, 481)
  await areHungUp(caller, node)
  expect(await rig.record()).toMatchObject(unseen)
})

test('a request that stays under way keeps no call in doubt for ever', async () => {
  const { caller, node, nodeLeg } = await talkAndCrash(40_000)
  await rig.advance(200)
  node.reply(await node.next('INVITE'), 200, { body: sdp('here') })
  await refuses(caller, 503)
  node.request('INVITE', nodeLeg, { body: sdp('hold') })
  caller.reply(await caller.next('INVITE'), 100)
  await rig.advance(95_000)
  expect(rig.calls.list()).toHaveLength(1)
  await rig.advance(5_000)
  expect(rig.calls.list()).toHaveLength(0)
  expect(await rig.record()).toMatchObject(unseen)
})

test('a party that was never heard, and is replaced, leaves no call in doubt', async () => {
  let asked = 0
  rig = await startCallRig()
  rig.answers.authorize = () => Promise.resolve(granted(60))
  const { caller, node, leg, nodeLeg } = await talk(rig)
  await rig.advance(3_000)
  await restart(10_000, {
    extend: () => {
      asked += 1
      return Promise.resolve({ kind: 'granted', grantedSeconds: 600 })
    },
  })
  await rig.advance(200)
  await refuses(caller, 503)
  const question = await node.next('INVITE')
  node.reply(question, 200, { body: sdp('here') })
  await node.next('ACK')
  const other = await rig.caller()
  const otherLeg = other.leg(rig.uri('x'))
  const headers = [`Replaces: ${replacing(leg)}`]
  other.request('INVITE', otherLeg, { headers, body: sdp('offer of x') })
  node.reply(await node.next('INVITE'), 200, { body: sdp('answer to x') })
  await acknowledge(other, otherLeg)
  caller.reply(await caller.next('BYE'), 200)
  await rig.advance(60_000)
  expect(asked).toBe(1)
  await hangUp(node, nodeLeg, other)
  const [record] = await recordsOf(rig, 2)
  expect(record).toMatchObject({ isRecovered: false })
  expect(record?.billsec).toBeGreaterThan(70)
})

test('a party that puts the call on hold is there, and is not asked before its own re-INVITE has ended', async () => {
  const { caller, leg, node } = await talkAndCrash(40_000)
  caller.request('INVITE', leg, { body: sdp('hold') })
  node.reply(await node.next('INVITE'), 200, { body: sdp('held') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  await node.next('ACK')
  await rig.advance(1_000)
  for (const { inbox } of [caller, node]) expect(inbox.filter(({ method }) => method)).toEqual([])
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ billsec: 44 })
})

test('a second crash before they were asked does not make the call longer', async () => {
  await talkAndCrash(40_000)
  const aliveAt = rig.aliveAt
  rig.crash()
  const { time, world, server, saved, opened, peers } = rig
  // The journal has no sign of life of this call from the second process.
  rig = await startCallRig({
    after: { time, world, server, opened, saved, aliveAt: aliveAt - 40_000 },
  })
  rig.peers.push(...peers)
  expect(rig.alive).toEqual([])
  await rig.advance(6_000)
  expect(rig.alive.flat()).toEqual([])
  for (const peer of peers) peer.inbox.splice(0)
  rig.calls.hangUp('uuid-1', 16)
  expect(await rig.record()).toMatchObject({ billsec: 3 })
})

test('nobody is asked for money for a call whose parties were not heard', async () => {
  rig = await startCallRig()
  const { caller, node } = await talk(rig)
  await rig.advance(3_000)
  let asked = 0
  await restart(200_000, {
    extend: () => {
      asked += 1
      return Promise.resolve({ kind: 'granted', grantedSeconds: 600 })
    },
  })
  await rig.advance(200)
  await refuses(caller, 481)
  await areHungUp(caller, node)
  expect(await rig.record()).toMatchObject(unseen)
  expect(asked).toBe(0)
})

test('a caller that is gone when its 200 comes after the crash pays for a second', async () => {
  rig = await startCallRig()
  rig.answers.journalled = () => new Promise(() => undefined)
  const [caller, node] = [await rig.caller(), await rig.node()]
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
  await restart(200_000)
  await rig.advance(100_000)
  node.inbox.splice(0)
  expect(await rig.record()).toMatchObject({ billsec: 1 })
})
