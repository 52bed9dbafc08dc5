/** What a drachtio-server keeps to itself: all answers to a request in a dialog but the first one. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { candidate, type CallRig, granted, startCallRig } from '../support/call-rig.ts'
import { DrachtioPeer, type Outgoing } from '../support/drachtio-peer.ts'
import { sdp } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

let server: DrachtioPeer
let rig: CallRig

beforeEach(async () => {
  server = await DrachtioPeer.open('udp/198.51.100.10:5060')
  rig = await startCallRig({ servers: [server.address] })
  await eventually(() => expect(server.welcomes).toBe(1))
  rig.answers.candidates.push(candidate(1, 5_070))
  rig.answers.authorize = () => Promise.resolve(granted(3_600))
})

afterEach(async () => {
  await rig.stop()
  await server.crash()
})

/** An answered call, and a re-INVITE of the caller that the node lets ring; returns the Call-ID. */
async function ringingChange(): Promise<{ readonly callId: string; readonly change: Outgoing }> {
  const callId = server.invite()
  server.answer(await server.nextOutgoing('INVITE'), 200, { body: sdp('answer') })
  await server.next(200)
  server.inDialog('ACK', callId)
  await rig.until(() => rig.calls.list().some(({ state }) => state === 'ACTIVE'))
  server.reinvite(callId, 're-1')
  const change = await server.nextOutgoing('INVITE')
  server.answer(change, 180)
  return { callId, change }
}

async function hangUp(callId: string): Promise<void> {
  server.inDialog('BYE', callId, 'bye-1')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller' })
  await rig.until(() => rig.calls.size === 0)
}

test('a re-INVITE whose answer the server loses because it rang does not hold the call', async () => {
  const { callId, change } = await ringingChange()
  server.answer(change, 200, { body: sdp('changed') })
  await server.seen()
  expect(server.commands.filter(({ subject }) => subject.startsWith('re-'))).toEqual([])
  await hangUp(callId)
})

test('a re-INVITE whose answer was lost is given up at last, and media may change again', async () => {
  const { callId, change } = await ringingChange()
  server.answer(change, 488)
  // The server must be able to answer our pings meanwhile.
  for (let waitedMs = 0; waitedMs < 205_000; waitedMs += 5_000) {
    await server.seen()
    await rig.advance(5_000)
  }
  expect((await server.next(500)).subject).toBe('re-1')
  server.reinvite(callId, 're-2')
  server.answer(await server.nextOutgoing('INVITE'), 200, { body: sdp('changed') })
  expect((await server.next(200)).subject).toBe('re-2')
  await hangUp(callId)
})
