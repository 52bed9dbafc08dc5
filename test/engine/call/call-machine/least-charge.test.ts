/**
 * An answered call is never free, whichever party ends it and however soon. Time is frozen: it
 * lasts 0 ms.
 */
import { afterEach, expect, test } from 'vitest'
import {
  type CallRig,
  startCallRig,
  startedAt,
  talk,
  type Talk,
} from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { dial } from '../steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

type End = readonly [what: string, end: (talk: Talk) => unknown, hangupBy: string]

const ends: readonly End[] = [
  ['the caller', ({ caller, leg }) => caller.request('BYE', leg), 'caller'],
  ['the callee', ({ node, nodeLeg }) => node.request('BYE', nodeLeg), 'callee'],
  ['the API', () => rig.calls.hangUp('uuid-1', 16), 'api'],
  ['a drain', () => void rig.calls.drain(startedAt), 'system'],
  ['the loss of the SIP server', () => rig.calls.connectionLost(() => true), 'system'],
]

test.each(ends)(
  'a call that %s ends as soon as it is answered is charged a second',
  async (...row) => {
    const [, end, hangupBy] = row
    rig = await startCallRig()
    const parties = await talk(rig)
    end(parties)
    if (hangupBy === 'system') await rig.advance(100)
    expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy, billsec: 1 })
  },
)

test('a call whose caller sends BYE instead of ACK is charged a second', async () => {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('BYE', leg)
  expect(await rig.record()).toMatchObject({ hangupBy: 'caller', billsec: 1 })
})

test('a CANCEL that comes after the answer does not make the call free', async () => {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  const answer = await caller.next('200 INVITE')
  caller.request('CANCEL', leg)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  caller.request('BYE', leg)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', billsec: 1 })
})
