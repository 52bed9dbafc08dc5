/** Callers that insist on reliable provisional responses (RFC 3262): each leg has its own. */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, startCallRig } from '../../../support/call-rig.ts'
import { type PeerMessage, sdp, type SipPeer } from '../../../support/sip-peer.ts'
import { acknowledge, dial, hangUp } from '../steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

const required = ['Require: 100rel']

async function ringing(body = sdp('offer')) {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig, { headers: required, body })
  return { caller, node, leg, invite }
}

function prack(caller: SipPeer, leg: ReturnType<SipPeer['leg']>, response: PeerMessage): void {
  caller.learn(leg, response)
  caller.request('PRACK', leg, { headers: [`RAck: ${response.get('RSeq')} 1 INVITE`] })
}

test('an unreliable provisional response reaches the caller reliably, with its description', async () => {
  const { caller, node, leg, invite } = await ringing()
  expect(invite.get('Require')).toBe('')
  node.reply(invite, 180, { tag: 'b' })
  const first = await caller.next('180 INVITE')
  expect([first.get('Require'), Number(first.get('RSeq')) > 0]).toEqual(['100rel', true])
  node.reply(invite, 183, { tag: 'b', body: sdp('answer') })
  prack(caller, leg, first)
  await caller.next('200 PRACK')
  const second = await caller.next('183 INVITE')
  expect(second.body).toBe(sdp('answer'))
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  prack(caller, leg, second)
  await caller.next('200 PRACK')
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  leg.cseq = 1
  caller.request('ACK', leg)
  await node.next('ACK')
  leg.cseq = 3
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED' })
})

test('a description is not given twice before the answer', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: sdp('answer') })
  const first = await caller.next('183 INVITE')
  prack(caller, leg, first)
  node.reply(invite, 183, { tag: 'b', body: sdp('another') })
  const second = await caller.next('183 INVITE')
  expect([first.body, second.body]).toEqual([sdp('answer'), ''])
  prack(caller, leg, second)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.record()
})

test('a caller without an offer gets no description before the answer', async () => {
  const { caller, node, leg, invite } = await ringing('')
  node.reply(invite, 183, { tag: 'b', body: sdp('offer') })
  node.reply(invite, 200, { tag: 'b', body: sdp('offer') })
  const ok = await caller.next('200 INVITE')
  expect(caller.inbox.map(({ status }) => status)).toEqual([])
  caller.learn(leg, ok)
  caller.request('ACK', leg, { body: sdp('answer') })
  await node.next('ACK')
  await hangUp(caller, leg, node)
  await rig.record()
})

test('reliable on the called side, too: each is acknowledged on its own leg', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, {
    tag: 'b',
    headers: ['Require: 100rel', 'RSeq: 77'],
    body: sdp('answer'),
  })
  const [early, ours] = await Promise.all([caller.next('183 INVITE'), node.next('PRACK')])
  expect(ours.get('RAck')).toMatch(/^77 1 INVITE$/)
  expect(early.get('RSeq')).not.toBe('77')
  node.reply(ours, 200)
  prack(caller, leg, early)
  await caller.next('200 PRACK')
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.record()
})

// RFC 3262 §5: a called side that has answered reliably leaves the description out of its 200;
// Sofia-SIP does.
test('a caller without 100rel gets the earlier description in the 200', async () => {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 183, {
    tag: 'b',
    headers: ['Require: 100rel', 'RSeq: 77'],
    body: sdp('answer'),
  })
  node.reply(await node.next('PRACK'), 200)
  expect((await caller.next('183 INVITE')).body).toBe(sdp('answer'))
  node.reply(invite, 200, { tag: 'b' })
  const ok = await acknowledge(caller, leg, node)
  expect([ok.body, ok.get('Content-Type')]).toEqual([sdp('answer'), 'application/sdp'])
  const [live] = rig.calls.list()
  const { callee = '' } = rig.calls.call(live?.callUuid ?? '')?.legs ?? {}
  expect(rig.calls.world.legs.get(callee)?.media).toBe(sdp('answer'))
  await hangUp(caller, leg, node)
  await rig.record()
})
