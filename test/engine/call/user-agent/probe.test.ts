import { afterEach, expect, test } from 'vitest'
import { type CallRig, startCallRig } from '../../../support/call-rig.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { promisedProbe } from '../../../support/promised-probe.ts'

let rig: CallRig

afterEach(() => rig.stop())

test('a probe is one OPTIONS, and resolves with the response of the node', async () => {
  rig = await startCallRig()
  const node = await rig.caller()
  const time = new ManualTime(0)
  const send = promisedProbe(rig.client, time.schedule)
  const probe = send(`sip:127.0.0.1:${node.port};transport=udp`, 400)
  const options = await node.next('OPTIONS')
  expect(options.uri).toBe(`sip:127.0.0.1:${node.port};transport=udp`)
  // RFC 3261 §19.1.1: how it is reached does not belong in a To.
  expect(options.get('To')).toBe(`<sip:127.0.0.1:${node.port}>`)
  // RFC 3261 §11.1: our address, as in any request of ours.
  const [own] = rig.server.listeners
  expect(options.all('Contact')).toEqual([`<sip:127.0.0.1:${own?.port}>`])
  node.reply(options, 486)
  expect(await probe).toEqual({ kind: 'answered', status: 486, reason: 'Test' })
  expect(time.waiting).toBe(0)
})

test('what cannot be sent is a transport error', async () => {
  rig = await startCallRig()
  const send = promisedProbe(rig.client, rig.time.schedule)
  expect(await send('sip:127.0.0.1:5060;transport=tls', 400)).toMatchObject({
    kind: 'transport-error',
  })
  const lost = new Promise<void>((resolve) => rig.client.onLost(() => resolve()))
  await rig.server.stop()
  await lost
  // Which says nothing about the node.
  expect(await send('sip:127.0.0.1:5060', 400)).toEqual({ kind: 'unsent' })
})
