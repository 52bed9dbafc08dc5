/**
 * Call control connected as an application on another machine would be: by TCP, with the library's
 * own framing.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { traceOf } from '../../engine/call/trace/trace.ts'
import { type CallRig, startCallRig, talk } from '../support/call-rig.ts'
import { sdp } from '../support/sip-peer.ts'
import { acknowledge, dial, hangUp } from '../engine/call/steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig({ app: 'tcp' })
})
afterEach(() => rig.stop())

test('a trace has every message of both legs as it went out', async () => {
  const { caller, node, leg, invite } = await talk(rig)
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  const answer = await caller.next('200 BYE')
  await rig.record()
  await rig.idle()
  const { calls, messages } = rig
  const story = await traceOf('uuid-1', { calls, messages, pause: () => Promise.resolve() })
  const texts = story?.entries.map((entry) => (entry.kind === 'message' ? entry.text : ''))
  expect(texts).toContain(invite.text)
  expect(texts).toContain(answer.text)
  expect(story).toMatchObject({ tenantId: 3, isComplete: true })
})

test('when the SIP server goes away every call ends, ringing or answered, and nothing is kept', async () => {
  const { caller } = await talk(rig)
  const node = await rig.node()
  rig.answers.candidates.shift()
  caller.request('INVITE', caller.leg(rig.uri('1666')), { body: sdp('offer') })
  await node.next('INVITE')
  await rig.server.stop()
  const ended = [await rig.record(), await rig.record()]
  expect(ended.map(({ disposition }) => disposition).toSorted()).toEqual(['ANSWERED', 'FAILED'])
  expect(ended.map(({ denialCode }) => denialCode)).toEqual(['connection_lost', 'connection_lost'])
  await rig.idle()
})

test('early dialogs: a fork that moves by UPDATE, and another one that answers', async () => {
  const headers = ['Supported: 100rel', 'Allow: INVITE, ACK, BYE, CANCEL, PRACK, UPDATE']
  const { caller, node, leg, invite } = await dial(rig, { headers })
  const reliably = ['Require: 100rel', 'RSeq: 77', ...headers.slice(1)]
  node.reply(invite, 183, { tag: 'a', headers: reliably, body: sdp('answer', 49_300) })
  node.reply(await node.next('PRACK'), 200)
  node.request('UPDATE', node.calledLeg(invite, 'a'), { body: sdp('moved', 49_400) })
  expect((await node.next('200 UPDATE')).body).toContain('m=audio 4000 ')
  node.reply(invite, 200, { tag: 'c', body: sdp('answer', 40_020) })
  expect((await acknowledge(caller, leg, node)).body).toContain('m=audio 49300 ')
  const again = await caller.next('INVITE')
  expect(again.body).toContain('m=audio 40020 ')
  caller.reply(again, 200, { body: sdp('offer') })
  await caller.next('ACK')
  await hangUp(caller, leg, node)
  await rig.idle()
})

test('a description beside other parts passes with them, and a required unknown part gets 415', async () => {
  const parts = (handling: string): string =>
    ['--b', 'Content-Type: application/isup', `Content-Disposition: signal;handling=${handling}`]
      .concat(
        '',
        '\u0001\u0000`',
        '--b',
        'Content-Type: application/sdp',
        '',
        sdp('offer'),
        '--b--',
        '',
      )
      .join('\r\n')
  const contentType = 'multipart/mixed;boundary=b'
  const { caller, node, invite } = await dial(rig, { contentType, body: parts('optional') })
  expect([invite.get('Content-Type'), invite.body]).toEqual([contentType, parts('optional')])
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.record()
  const other = caller.leg(rig.uri('1555'))
  caller.request('INVITE', other, { contentType, body: parts('required') })
  expect((await caller.next('415 INVITE')).get('Accept')).toContain('application/sdp')
  expect(await rig.record()).toMatchObject({ denialCode: 'unsupported_body' })
})
