/**
 * Calls for phones that have registered at another instance, on two instances in memory: SIP from
 * end to end.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  home,
  recordAtA,
  startTwoInstances,
  talkAcross,
  type TwoInstances,
} from '../../../support/two-nodes.ts'
import { finalNotify, refer, asVersion } from '../../../support/transfer-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'

let instances: TwoInstances

beforeEach(async () => {
  instances = await startTwoInstances()
})
afterEach(() => instances.stop())

test('a re-INVITE of either side reaches the other, and its ACK', async () => {
  const { caller, leg, phone, phoneLeg } = await talkAcross(instances)
  caller.request('INVITE', leg, { body: asVersion(2, sdp('hold')) })
  const hold = await phone.next('INVITE')
  expect(hold.body).toContain('s=hold')
  phone.reply(hold, 200, { body: asVersion(2, sdp('held')) })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  await phone.next('ACK')
  phone.request('INVITE', phoneLeg, { body: asVersion(3, sdp('again')) })
  const again = await caller.next('INVITE')
  expect(again.body).toContain('s=again')
  caller.reply(again, 200, { body: asVersion(3, sdp('yes')) })
  expect((await phone.next('200 INVITE')).body).toContain('s=yes')
  phone.request('ACK', phoneLeg)
  await caller.next('ACK')
})

test('the phone transfers the call: REFER and its NOTIFYs pass', async () => {
  const { caller, phone, phoneLeg } = await talkAcross(instances)
  const target = await instances.a.caller()
  const source = { protocol: 'udp', address: '127.0.0.1', port: target.port }
  const nextHop = `sip:127.0.0.1:${target.port};transport=udp`
  instances.a.answers.contacts.set(`101@${home.domain}`, [
    { uri: 'sip:101@10.0.0.9', routes: [], nextHop, q: 1_000, source },
  ])
  await refer(phone, phoneLeg, `sip:101@${home.domain}`)
  const toTarget = await target.next('INVITE')
  target.reply(toTarget, 200, { tag: 'c', body: sdp('target') })
  await target.next('ACK')
  caller.reply(await caller.next('INVITE'), 200, { body: asVersion(2, sdp('caller')) })
  await caller.next('ACK')
  expect((await finalNotify(phone)).body).toContain('200')
  phone.request('BYE', phoneLeg)
  await phone.next('200 BYE')
})

test('a stranger that has seen the token of a call, or of a dialog, gains nothing', async () => {
  const { invite } = await talkAcross(instances)
  const stranger = await instances.b.caller()
  for (const route of invite.all('Record-Route')) {
    const leg = { ...stranger.leg('sip:900@gateway.example'), routes: [route] }
    stranger.request('INVITE', leg, { body: sdp('fraud') })
    await stranger.next('403 INVITE')
    stranger.request('INVITE', { ...leg, to: `${leg.to};tag=x` }, { body: sdp('fraud') })
    await stranger.next('403 INVITE')
  }
  expect(instances.refused).toHaveLength(4)
  expect(instances.b.asked).toEqual([])
})

test('an instance that says nothing to an INVITE is reported, and not waited for as long as a phone', async () => {
  await instances.phone()
  instances.b.crash()
  const { caller } = await instances.dial()
  await instances.a.advance(1_500)
  await caller.next('480 INVITE')
  expect(instances.a.silent).toEqual(['b'])
})

test('a phone that says nothing is given up in the time of a phone, and its instance is not blamed', async () => {
  const phone = await instances.phone()
  const { caller } = await instances.dial()
  await phone.next('INVITE')
  await instances.a.advance(3_900)
  expect(caller.inbox.map(({ status }) => status)).toEqual([100])
  await instances.a.advance(200)
  await caller.next('408 INVITE')
  expect(instances.a.silent).toEqual([])
})

test('an INVITE that is too large for another instance is 513, and its phone can be called again', async () => {
  const phone = await instances.phone()
  const large = `${sdp('offer')}a=x:${'y'.repeat(17_000)}\r\n`
  const { caller } = await instances.dial(large)
  await caller.next('513 INVITE')
  expect(phone.inbox).toEqual([])
  expect(instances.a.silent).toEqual([])
  expect(await recordAtA(instances)).toMatchObject({
    attempts: [{ reason: 'too large for another node' }],
    sipCode: 513,
  })
  const again = await instances.dial()
  phone.reply(await phone.next('INVITE'), 486, { tag: 'b' })
  await again.caller.next('486 INVITE')
})
