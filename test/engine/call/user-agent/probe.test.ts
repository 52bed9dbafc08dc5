import { afterEach, expect, test } from 'vitest'
import { probeThrough } from '../../../../engine/call/user-agent/probe.ts'
import type { CallRig } from '../../../support/call-rig.ts'
import { startCallRig } from '../../../support/call-rig.ts'
import { ManualTime } from '../../../support/manual-time.ts'

let rig: CallRig

afterEach(() => rig.stop())

test('a probe is one OPTIONS, and resolves with the response of the node', async () => {
  rig = await startCallRig()
  const node = await rig.caller()
  const time = new ManualTime(0)
  const send = probeThrough(rig.client, time.schedule)
  const probe = send(`sip:127.0.0.1:${node.port};transport=udp`, 400)
  const options = await node.next('OPTIONS')
  expect(options.uri).toBe(`sip:127.0.0.1:${node.port};transport=udp`)
  // RFC 3261 §19.1.1: how it is reached does not belong in a To.
  expect(options.get('To')).toBe(`<sip:127.0.0.1:${node.port}>`)
  node.reply(options, 486)
  expect(await probe).toEqual({ kind: 'answered', status: 486, reason: 'Test' })
  expect(time.waiting).toBe(0)
})

test('no answer in time is silence, and a late one changes nothing', async () => {
  rig = await startCallRig()
  const node = await rig.caller()
  const send = probeThrough(rig.client, rig.time.schedule)
  const probe = send(`sip:127.0.0.1:${node.port}`, 400)
  const options = await node.next('OPTIONS')
  await rig.advance(400)
  expect(await probe).toEqual({ kind: 'silence' })
  node.reply(options, 200)
  await rig.idle()
})

test('what cannot be sent is a transport error', async () => {
  rig = await startCallRig()
  const send = probeThrough(rig.client, rig.time.schedule)
  expect(await send('sip:127.0.0.1:5060;transport=tls', 400)).toMatchObject({
    kind: 'transport-error',
  })
  const lost = new Promise<void>((resolve) => rig.client.onLost(() => resolve()))
  await rig.server.stop()
  await lost
  // Which says nothing about the node.
  expect(await send('sip:127.0.0.1:5060', 400)).toEqual({ kind: 'unsent' })
})

test('an answer that waits to be read while we are busy still counts, for as long as that may be', async () => {
  rig = await startCallRig()
  const node = await rig.caller()
  const send = probeThrough(rig.client, rig.time.schedule)
  const probe = send(`sip:127.0.0.1:${node.port}`, 400)
  const options = await node.next('OPTIONS')
  rig.answers.lagMs = 700
  await rig.advance(1_000)
  node.reply(options, 200)
  expect(await probe).toMatchObject({ kind: 'answered', status: 200 })

  const silent = send(`sip:127.0.0.1:${node.port}`, 400)
  await node.next('OPTIONS')
  await rig.advance(1_100)
  expect(await silent).toEqual({ kind: 'silence' })
})
