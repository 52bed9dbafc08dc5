/** The API hangs up: whatever the call is doing, both sides hear of it and why. */
import { expect, test } from 'vitest'
import { granted, talk } from '../../support/call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import { rig, rigForEachTest } from './steps.ts'

const reason = 'Q.850;cause=17;text="USER BUSY"'

rigForEachTest()

interface Called {
  readonly caller: SipPeer
  readonly leg: Leg
  readonly node: SipPeer
  readonly invite: PeerMessage
}

async function called(): Promise<Called> {
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, leg, node, invite: await node.next('INVITE') }
}

async function expectRefused({ caller, leg }: Pick<Called, 'caller' | 'leg'>): Promise<void> {
  const refusal = await caller.next('480 INVITE')
  expect(refusal.get('Reason')).toBe(reason)
  caller.learn(leg, refusal)
  expect(await rig.record()).toMatchObject({
    hangupBy: 'api',
    hangupCause: 'USER_BUSY',
    sipCode: 480,
    billsec: 0,
    answeredAt: null,
  })
  await rig.idle()
  expect(rig.records).toEqual([])
}

test('while the wallet is asked: no destination is called any more', async () => {
  let grant = (): void => undefined
  rig.answers.authorize = () =>
    new Promise((resolve) => {
      grant = () => resolve(granted(60))
    })
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  await rig.until(() => rig.asked.length === 1)
  expect(rig.calls.hangUp('uuid-1', 17)).toBe('ending')
  grant()
  await expectRefused({ caller, leg })
  expect(node.inbox).toEqual([])
})

test.each([
  ['DIALING', 100, undefined],
  ['RINGING', 180, undefined],
  ['EARLY', 183, sdp('early')],
] as const)('while it is %s: CANCEL and 480 say why', async (state, status, body) => {
  const call = await called()
  const { node, invite } = call
  node.reply(invite, status, { tag: 'b', ...(body === undefined ? {} : { body }) })
  await rig.seen(node)
  await rig.until(() => rig.calls.find('uuid-1')?.state === state)
  expect(rig.calls.hangUp('uuid-1', 17)).toBe('ending')
  const cancel = await node.next('CANCEL')
  expect(cancel.get('Reason')).toBe(reason)
  node.reply(cancel, 200)
  node.reply(invite, 487, { tag: 'b' })
  await expectRefused(call)
})

test('while it is HELD: both sides get BYE with a Reason', async () => {
  const { caller, leg, node } = await talk(rig)
  const hold = sdp('hold').replace('sendrecv', 'sendonly')
  caller.request('INVITE', leg, { body: hold })
  node.reply(await node.next('INVITE'), 200, { body: sdp('held') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  await rig.until(() => rig.calls.find('uuid-1')?.state === 'HELD')
  expect(rig.calls.hangUp('uuid-1', 17)).toBe('ending')
  for (const peer of [caller, node]) {
    const bye = await peer.next('BYE')
    expect(bye.get('Reason')).toBe(reason)
    peer.reply(bye, 200)
  }
  expect(await rig.record()).toMatchObject({ hangupBy: 'api', disposition: 'ANSWERED' })
  await rig.idle()
})
