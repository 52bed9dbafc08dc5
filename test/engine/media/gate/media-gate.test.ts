/**
 * A plain call through a relay: what each side is told, and what is left when something goes wrong.
 */
import { expect, test } from 'vitest'
import { placeIn, startMediaRig } from '../../../support/media-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { acknowledge, dial, hangUp } from '../../call/steps.ts'

test('each side is told of the relay, and the session ends with the call', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig, { body: sdp('offer', 4_000) })
  expect(placeIn(invite.body)).toBe('10.99.0.1:30002')
  node.reply(invite, 200, { tag: 'b', body: sdp('answer', 5_000) })
  const ok = await acknowledge(caller, leg, node)
  expect(placeIn(ok.body)).toBe('10.99.0.1:30004')
  await rig.settle()
  const [session] = rig.media?.calls.sessionsOf('uuid-1') ?? []
  expect(session).toMatchObject({
    legs: ['uuid-1.0', 'uuid-1.1'],
    callUuids: ['uuid-1'],
    isConnected: true,
  })
  await hangUp(caller, leg, node)
  await rig.idle()
  expect(rig.relay.commands).toEqual(['offer', 'answer', 'delete'])
})

/** A description that says who its party is. */
const named = (name: string, format = '0'): string =>
  sdp(`call of ${name}`)
    .replace('o=- ', `o=${name} `)
    .replace('c=IN', `i=${name}\r\nu=http://${name}.example\r\ne=${name}@example.com\r\nc=IN`)
    .replace('RTP/AVP 0', `RTP/AVP ${format}`)

test('a relayed description does not say who its party is: no user name, subject, page or address', async () => {
  const rig = await startMediaRig()
  const { caller, node, invite } = await dial(rig, { body: named('alice') })
  node.reply(invite, 200, { tag: 'b', body: named('bob') })
  const ok = await caller.next('200 INVITE')
  expect(invite.body).not.toContain('alice')
  expect(ok.body).not.toContain('bob')
  for (const { body } of [invite, ok]) {
    expect(body).toMatch(/^o=- \d+ \d+ IN IP4 \S+\r\ns=-\r\nc=/m)
    expect(body).toMatch(/^m=audio \d+ RTP\/AVP 0\r$/m)
  }
})

test('a codec that was never offered, and that the relay leaves as it is, ends the call with 488', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig, { body: named('alice', '8') })
  node.reply(invite, 183, { tag: 'b', body: named('bob', '0') })
  expect((await caller.next('183 INVITE')).body).toBe('')
  node.reply(invite, 200, { tag: 'b', body: named('bob', '0') })
  await node.next('ACK')
  expect((await caller.next('488 INVITE')).body).toBe('')
  caller.request('ACK', leg)
  node.reply(await node.next('BYE'), 200)
  await rig.idle()
})
