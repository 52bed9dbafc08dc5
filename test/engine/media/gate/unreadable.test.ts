/** Bodies that no relay can read: they do not pass where media must go through one. */
import { expect, test } from 'vitest'
import { type CallRig, talk } from '../../../support/call-rig.ts'
import { startMediaRig } from '../../../support/media-rig.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'
import { acknowledge, dial, hangUp, carrierOf, extensionRecord } from '../../call/steps.ts'

/** Phones may read it as a description. */
const headless = (text: string, port?: number): string => sdp(text, port).replace('v=0\r\n', '')

/** One that says that it is a description. */
const multipart = ['--b', 'Content-Type: application/sdp', '', sdp('offer'), '--b--', ''].join(
  '\r\n',
)

test.each([
  ['said to be a description, and has several parts', multipart, 'application/sdp'],
  ['a description without its first line', headless('offer'), 'application/sdp'],
  ['of several parts, with another boundary', multipart, 'multipart/mixed;boundary=c'],
  ['of several parts, and signed', multipart, 'multipart/signed;boundary=b'],
])('an offer that is %s is refused, and the relay is not blamed', async (_, body, contentType) => {
  const rig = await startMediaRig()
  const caller = await rig.caller()
  await rig.node()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body, contentType })
  expect((await caller.next('488 INVITE')).get('Warning')).toContain('unreadable_description')
  expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'unreadable_description' })
  await rig.idle()
  expect(rig.relay.commands).toEqual([])
})

/** A call to `number` whose offer and answer arrive as they were sent. */
async function passes(
  rig: CallRig,
  called: SipPeer,
  number: string,
  answer: string,
): Promise<void> {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri(number))
  caller.request('INVITE', leg, { body: multipart })
  const invite = await called.next('INVITE')
  expect(invite.body).toBe(multipart)
  called.reply(invite, 200, { tag: 'b', body: answer })
  const ok = await acknowledge(caller, leg, called)
  expect(ok.body).toBe(answer)
  await hangUp(caller, leg, called)
  await rig.idle()
}

test('in an emergency call it passes: the location of the caller is beside the description', async () => {
  const rig = await startMediaRig()
  const node = await carrierOf(rig, {}, true)
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  await passes(rig, node, '112', sdp('answer'))
})

test('an answer in a 200 is not told, and ends the call; early media is left out', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 183, { tag: 'b', body: headless('answer') })
  expect((await caller.next('183 INVITE')).body).toBe('')
  node.reply(invite, 200, { tag: 'b', body: headless('answer') })
  await node.next('ACK')
  expect((await caller.next('488 INVITE')).body).toBe('')
  caller.request('ACK', leg)
  node.reply(await node.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'unreadable_description' })
  await rig.idle()
})

test('a re-INVITE is refused, and so is its answer; the call goes on', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg } = await talk(rig)
  caller.request('INVITE', leg, { body: headless('offer', 4_444) })
  expect((await caller.next('488 INVITE')).startLine).toContain('Not Acceptable Here')
  caller.request('ACK', leg)
  caller.request('INVITE', leg, { body: sdp('moved', 4_444) })
  node.reply(await node.next('INVITE'), 200, { body: headless('answer', 5_555) })
  await node.next('ACK')
  expect((await caller.next('488 INVITE')).body).toBe('')
  caller.request('ACK', leg)
  caller.request('INVITE', leg, { body: sdp('moved', 4_445) })
  node.reply(await node.next('INVITE'), 200, { body: sdp('answer') })
  expect((await caller.next('200 INVITE')).body).toContain('c=IN IP4 10.99.0.1')
  caller.request('ACK', leg)
  await node.next('ACK')
  await hangUp(caller, leg, node)
  await rig.idle()
})
