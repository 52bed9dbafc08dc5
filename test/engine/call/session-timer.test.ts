/** Session timers of both legs (RFC 4028): a party that vanishes in mid-call is noticed. */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, granted, startCallRig, talk } from '../../support/call-rig.ts'
import { type PeerMessage, sdp, type SipPeer } from '../../support/sip-peer.ts'
import { hangUp } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

/** Sessions of 90 s, refreshed after 45; money is no matter. */
async function start(): Promise<void> {
  rig = await startCallRig({ withSipTimers: true, sessionSeconds: 90 })
  rig.answers.authorize = () => Promise.resolve(granted(3_600))
}

/** Not a copy of the INVITE that began the call. */
const refreshOf = (peer: SipPeer): Promise<PeerMessage> =>
  peer.next((message) => message.method === 'INVITE' && message.get('To').includes(';tag='))

const timedOut = {
  disposition: 'ANSWERED',
  hangupBy: 'system',
  hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
}

test('a called phone that vanishes in mid-call: the caller gets BYE, and there is one record', async () => {
  await start()
  const { caller, node } = await talk(rig)
  await rig.advance(45_000)
  // Both are asked; the node hears it, and says nothing.
  const [refresh, unanswered] = await Promise.all([refreshOf(caller), refreshOf(node)])
  caller.reply(refresh, 200, { body: sdp('offer') })
  expect(unanswered.get('Session-Expires')).toBe('90;refresher=uac')
  await rig.advance(45_000)
  const bye = await caller.next('BYE')
  expect(bye.get('Reason')).toBe('Q.850;cause=102;text="RECOVERY ON TIMER EXPIRE"')
  caller.reply(bye, 200)
  expect(await rig.record()).toMatchObject(timedOut)
  await node.next('BYE')
  await rig.idle()
  expect(rig.records).toEqual([])
})

test('parties that answer the refreshes talk on', async () => {
  await start()
  const { caller, node, leg } = await talk(rig)
  const answer = async (peer: SipPeer, body: string): Promise<void> => {
    peer.reply(await refreshOf(peer), 200, { body })
    await peer.next('ACK')
  }
  for (let round = 0; round < 2; round++) {
    await rig.advance(45_000)
    await Promise.all([answer(caller, sdp('offer')), answer(node, sdp('answer'))])
  }
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ hangupBy: 'caller' })
})

test('a node that wants a longer session is asked once more, and not a second time', async () => {
  rig = await startCallRig()
  const caller = await rig.caller()
  const node = await rig.node()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  const first = await node.next('INVITE')
  node.reply(first, 422, { headers: ['Min-SE: 3600'] })
  await node.next('ACK')
  const again = await node.next('INVITE')
  // RFC 4028 §7.4: the same call, not another one.
  for (const name of ['Call-ID', 'From', 'To']) expect(again.get(name)).toBe(first.get(name))
  expect(again.get('CSeq')).toBe(`${Number.parseInt(first.get('CSeq'), 10) + 1} INVITE`)
  expect([again.get('Session-Expires'), again.get('Min-SE')]).toEqual(['3600', '3600'])
  node.reply(again, 422, { headers: ['Min-SE: 7200'] })
  await node.next('ACK')
  await caller.next('422 INVITE')
  await rig.record()
  expect(node.inbox).toEqual([])
})

test('a refresh without a body is answered here: the other side need not know UPDATE', async () => {
  rig = await startCallRig()
  const { caller, node, leg } = await talk(rig)
  caller.request('UPDATE', leg, {
    headers: ['Supported: timer', 'Session-Expires: 600;refresher=uac'],
  })
  const ok = await caller.next('200 UPDATE')
  expect([ok.get('Session-Expires'), ok.get('Require')]).toEqual(['600;refresher=uac', 'timer'])
  expect(node.inbox).toEqual([])
})

test.each(['4294967295', '99999999999', '86401;x=y', ' 31536000'])(
  'a caller with a Min-SE of %s gets a session of a day, which ends when nobody is there any more',
  async (least) => {
    await start()
    const [caller, node] = [await rig.caller(), await rig.node()]
    const leg = caller.leg(rig.uri('1555'))
    const headers = ['Supported: timer', `Session-Expires: ${least.trim()}`, `Min-SE:${least}`]
    caller.request('INVITE', leg, { headers, body: sdp('offer') })
    node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
    const answer = await caller.next('200 INVITE')
    expect(answer.get('Session-Expires')).toMatch(/^86400;/)
    caller.learn(leg, answer)
    caller.request('ACK', leg)
    await node.next('ACK')
    await hangUp(caller, leg, node)
    await rig.record()
  },
)

test.each(['4294967295', '99999999999'])(
  'a node that wants a Min-SE of %s is asked once more, for a day',
  async (least) => {
    await start()
    const [caller, node] = [await rig.caller(), await rig.node()]
    caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
    node.reply(await node.next('INVITE'), 422, { headers: [`Min-SE: ${least}`] })
    const again = await node.next('INVITE')
    expect([again.get('Session-Expires'), again.get('Min-SE')]).toEqual(['86400', '86400'])
    node.reply(again, 422, { headers: [`Min-SE: ${least}`] })
    await caller.next(({ status }) => status >= 400)
    await rig.record()
  },
)
