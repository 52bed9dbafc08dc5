/** Calls when relays fail, parties give up, or the process is killed. */
import { expect, test } from 'vitest'
import { talk } from '../../../support/call-rig.ts'
import { placeIn, startMediaRig, type MediaRig } from '../../../support/media-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { hangUp, addExtensions, contactOf, extensionRecord, home } from '../../call/steps.ts'
import { MediaRelay } from '../../../support/media-relay.ts'

async function invited(rig: MediaRig) {
  const caller = await rig.caller()
  const node = await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer', 4_000) })
  return { caller, node, leg }
}

test('the other relay takes an offer that the first one does not answer', async () => {
  const rig = await startMediaRig()
  rig.relay.mode = 'not'
  const { caller, node } = await invited(rig)
  await rig.advance(400)
  const invite = await node.next('INVITE')
  expect(placeIn(invite.body)).toMatch(/^10\.99\.0\.2:/)
  // The time of the node has begun with its INVITE.
  await rig.advance(1_400)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('after a re-INVITE that is refused, the relay has what was agreed before', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg } = await talk(rig)
  caller.request('INVITE', leg, { body: sdp('moved', 4_444) })
  node.reply(await node.next('INVITE'), 488)
  await caller.next('488 INVITE')
  caller.request('ACK', leg)
  await rig.settle()
  const [session] = rig.relay.sessions.values()
  expect(session?.descriptions.get('uuid-1.0')).toBe(sdp('offer'))
})

test('where a relay is only preferred, descriptions pass unchanged without one', async () => {
  const rig = await startMediaRig({ policy: 'prefer' })
  for (const relay of rig.relays) relay.isAlive = false
  const { node } = await invited(rig)
  expect((await node.next('INVITE')).body).toBe(sdp('offer', 4_000))
})

test('sessions of calls that a crash has ended are deleted at the start', async () => {
  const before = await startMediaRig()
  const { node } = await invited(before)
  await node.next('INVITE')
  before.crash()
  const rig = await startMediaRig({ after: before, relays: before.relays })
  expect(rig.relay.sessions.size).toBe(1)
  rig.media?.deleteOrphans()
  await rig.settle()
  expect(rig.relay.sessions.size).toBe(0)
})

test.each([['with an error' as const], ['with garbage' as const]])(
  'a relay that answers %s is none: an anchored call is refused, and no session is left',
  async (mode) => {
    const rig = await startMediaRig()
    for (const relay of rig.relays) relay.mode = mode
    const { caller } = await invited(rig)
    const refusal = await caller.next('503 INVITE')
    expect(refusal.startLine).toBe('SIP/2.0 503 Media Relay Unavailable')
    const record = await rig.record()
    expect(record).toMatchObject({ sipCode: 503, denialCode: 'media_relay_unavailable' })
    expect(rig.outcomes, 'the node is not to blame').toEqual([])
    await rig.idle()
  },
)

test('a call that is cancelled while its offer is at the relay is never sent', async () => {
  const rig = await startMediaRig()
  rig.relay.mode = 'slowly'
  const { caller, leg } = await invited(rig)
  await rig.settle()
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  caller.request('ACK', leg)
  await rig.advance(1_000)
  await rig.idle()
  expect((await rig.record()).attempts, 'no response of any kind').toMatchObject([{ status: 0 }])
  expect(rig.calls.world.legs.size).toBe(0)
  expect(rig.relay.commands).toEqual(['offer', 'delete'])
})

test('a relay dies: the call goes on, and its next re-INVITE goes through the other one', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg } = await talk(rig)
  rig.relay.isAlive = false
  rig.relay.sessions.clear()
  caller.request('INVITE', leg, { body: sdp('offer') })
  const again = await node.next('INVITE')
  expect(placeIn(again.body)).toMatch(/^10\.99\.0\.2:/)
  expect(again.body, 'another place, another version').toContain('o=- 1 2 ')
  node.reply(again, 200, { body: sdp('answer') })
  expect(placeIn((await caller.next('200 INVITE')).body)).toMatch(/^10\.99\.0\.2:/)
  caller.request('ACK', leg)
  await node.next('ACK')
  rig.other.isAlive = false
  caller.request('INVITE', leg, { body: sdp('offer') })
  expect((await caller.next('503 INVITE')).startLine).toContain('Media Relay Unavailable')
  caller.request('ACK', leg)
  rig.other.isAlive = true
  rig.relay.isAlive = true
  await hangUp(caller, leg, node)
  await rig.advance(6_000)
  await rig.idle()
})

test('a call whose process is killed goes on with its session', async () => {
  const before = await startMediaRig()
  const { caller, node, leg } = await talk(before)
  await before.settle()
  before.crash()
  const rig = await startMediaRig({ after: before, relays: before.relays })
  expect(rig.restored).toEqual({ restored: 1, abandoned: 0 })
  expect(rig.media?.calls.sessionsOf('uuid-1')).toHaveLength(1)
  rig.media?.deleteOrphans()
  caller.request('INVITE', leg, { body: sdp('offer', 4_444) })
  const again = await node.next('INVITE')
  expect(placeIn(again.body)).toMatch(/^10\.99\.0\.1:/)
  expect(again.body).toContain('o=- 1 2 ')
  node.reply(again, 200, { body: sdp('answer') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  await node.next('ACK')
  expect(rig.relay.sessions.size).toBe(1)
  await hangUp(caller, leg, node)
  await rig.idle()
})

// Relays that say nothing hold an INVITE: neither the phone nor the instance that has its flow is
// blamed for that time.

/**
 * A call for a phone of instance b, which three relays hold for 1.8 s: longer than an instance may
 * be silent.
 */
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
  for (let waitedMs = 0; waitedMs < 1_800; waitedMs += 300) await rig.advance(300)
  await caller.next('100 INVITE')
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

test('where media must pass through one the caller hears why, and the instance is not called silent', async () => {
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
