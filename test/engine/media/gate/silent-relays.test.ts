/** Relays that say nothing hold an INVITE: neither the phone nor the node that has its flow is blamed for that time. */
import { expect, test } from 'vitest'
import { MediaRelay } from '../../../support/media-relay.ts'
import { startMediaRig } from '../../../support/media-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { addExtensions, contactOf, extensionRecord, home } from '../../call/steps.ts'

/** A call for a phone of node b, which three relays hold for 1.8 s: longer than a node may be silent. */
async function heldCall(policy: 'anchor' | 'prefer') {
  let later: (act: () => void, ms: number) => unknown = () => undefined
  const relays = [1, 2, 3].map(
    (n) => new MediaRelay(`relay-${n}:22222`, `10.99.0.${n}`, (act, ms) => later(act, ms * 1.5)),
  )
  for (const relay of relays) relay.isAnswering = false
  const rig = await startMediaRig({ relays, policy })
  later = rig.time.schedule
  const [caller, phone] = [await rig.caller(), await rig.caller()]
  const { answers } = rig
  answers.inbound = { kind: 'extension', extension: '102', domain: home, tenantId: 3 }
  addExtensions(rig, extensionRecord('102'))
  const contact = { ...contactOf(phone, 'sip:102@10.0.0.9'), holder: 'b' }
  answers.contacts.set(`102@${home}`, [contact])
  const leg = caller.leg(rig.uri('102'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  await caller.next('100 INVITE')
  for (let waitedMs = 0; waitedMs < 1_800; waitedMs += 300) await rig.advance(300)
  return { rig, caller, phone, leg }
}

test('where media may pass without a relay the phone is called then, and has its whole time', async () => {
  const { rig, caller, phone } = await heldCall('prefer')
  const invite = await phone.next('INVITE')
  await rig.advance(1_400)
  phone.reply(invite, 180, { tag: 'b' })
  await caller.next('180 INVITE')
  expect(rig.silent).toEqual([])
})

test('where media must pass through one the caller hears why, and the node is not called silent', async () => {
  const { rig, caller, phone } = await heldCall('anchor')
  expect((await caller.next(503)).text).toMatch(/^SIP\/2.0 503 Media Relay Unavailable\r\n/)
  expect(await rig.record()).toMatchObject({
    sipCode: 503,
    denialCode: 'media_relay_unavailable',
    attempts: [{ reason: 'no media relay' }],
  })
  expect(phone.inbox).toEqual([])
  expect(rig.silent).toEqual([])
})
