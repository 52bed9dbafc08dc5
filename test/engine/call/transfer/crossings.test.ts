/** Events while a call is being transferred: one record per call, no call left, nothing kept. */
import { expect, test } from 'vitest'
import { sdp } from '../../../support/sip-peer.ts'
import {
  asVersion,
  answeredBy,
  establish,
  finalNotify,
  recordsOf,
  refer,
  transferring,
} from '../../../support/transfer-rig.ts'
import { acknowledge, areHungUp, hangUp, nextNode, rig, rigForEachTest } from '../steps.ts'

rigForEachTest()

test('the transferee hangs up while the target rings: the transferor gets 487, then BYE', async () => {
  const { a, b, bLeg, c, toC } = await transferring(rig)
  c.reply(toC, 180, { tag: 'c' })
  b.request('BYE', bLeg)
  await b.next('200 BYE')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 487 /)
  a.reply(await a.next('BYE'), 200)
  c.reply(await c.next('CANCEL'), 200)
  c.reply(toC, 487, { tag: 'c' })
  expect(await recordsOf(rig, 2)).toMatchObject([
    { hangupBy: 'callee', disposition: 'ANSWERED' },
    { disposition: 'CANCELED', sipCode: 487 },
  ])
  await rig.idle()
})

test('the transferor hangs up at once, and the new party refuses: the one that is left gets BYE', async () => {
  const { a, aLeg, b, c, toC } = await transferring(rig)
  a.request('BYE', aLeg)
  await a.next('200 BYE')
  c.reply(toC, 486, { tag: 'c' })
  b.reply(await b.next('BYE'), 200)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { hangupBy: 'caller', disposition: 'ANSWERED' },
    { disposition: 'BUSY' },
  ])
  await rig.idle()
})

test('the new party hangs up in the midst of the re-INVITE: the old two talk again', async () => {
  const { a, aLeg, b, c, toC } = await transferring(rig)
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  const toB = await b.next('INVITE')
  c.request('BYE', c.calledLeg(toC, 'c'))
  await c.next('200 BYE')
  b.reply(toB, 200, { body: sdp('answer of b') })
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 487 /)
  const back = await b.next((message) => message.body === asVersion(3, sdp('offer of a')))
  b.reply(back, 200, { body: sdp('answer of b') })
  expect(await rig.record()).toMatchObject({ callUuid: 'uuid-2', billsec: 0 })
  expect(rig.calls.list()).toMatchObject([{ callUuid: 'uuid-1', state: 'ACTIVE' }])
  await hangUp(a, aLeg, b)
  await rig.record()
  await rig.idle()
})

test('the transferee refuses the new media: the target gets BYE, the call goes on', async () => {
  const { a, aLeg, b, c, toC } = await transferring(rig)
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 488)
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 488 /)
  c.reply(await c.next('BYE'), 200)
  await rig.record()
  await hangUp(a, aLeg, b)
  await rig.record()
  await rig.idle()
})

// The transferee would make an offer that is not answered: its 200 would never get an ACK.
test('the new party answers without any description: it gets BYE, the old two are not disturbed', async () => {
  const { a, aLeg, b, c, toC } = await transferring(rig)
  c.reply(toC, 200, { tag: 'c' })
  await c.next('ACK')
  expect((await finalNotify(a)).body).toBe('SIP/2.0 488 Not Acceptable Here\r\n')
  c.reply(await c.next('BYE'), 200)
  await hangUp(a, aLeg, b)
  await recordsOf(rig, 2)
  expect(b.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  await rig.idle()
})

test('REFER in the midst of a re-INVITE: the new media wait until that is over', async () => {
  const { a, aLeg, b } = await establish(rig)
  const c = await nextNode(rig)
  a.request('INVITE', aLeg, { body: sdp('hold of a') })
  const hold = await b.next('INVITE')
  b.reply(hold, 180)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  await c.next('ACK')
  expect(b.inbox.some(({ body }) => body === asVersion(2, sdp('answer of c')))).toBe(false)
  b.reply(hold, 200, { body: sdp('answer of b') })
  await acknowledge(a, aLeg)
  const toB = await b.next(({ body }) => body === asVersion(2, sdp('answer of c')))
  b.reply(toB, 200, { body: sdp('answer of b') })
  expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
})

test('glare: the transferee makes an offer itself, and gets the re-INVITE again', async () => {
  const { a, b, c, toC } = await transferring(rig)
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 491)
  await b.next('ACK')
  await rig.seen(b)
  b.inbox.length = 0
  await rig.advance(2_200)
  b.reply(await b.next('INVITE'), 200, { body: sdp('answer of b') })
  expect((await finalNotify(a)).body).toBe('SIP/2.0 200 OK\r\n')
})

test.each(['uuid-1', 'uuid-2'])(
  '%s is hung up from the API after a transfer: both end',
  async (uuid) => {
    const { a, aLeg, b, c } = await answeredBy(await transferring(rig))
    a.request('BYE', aLeg)
    await a.next('200 BYE')
    expect(rig.calls.hangUp(uuid, 16)).toBe('ending')
    await areHungUp(b, c)
    expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'api' }, { hangupBy: 'api' }])
    await rig.idle()
  },
)

test('the call is hung up from the API while the new party rings: everything ends', async () => {
  const { a, b, c, toC } = await transferring(rig)
  c.reply(toC, 180, { tag: 'c' })
  await rig.until(() => rig.calls.find('uuid-2')?.state === 'RINGING')
  rig.calls.hangUp('uuid-1', 16)
  await finalNotify(a)
  await areHungUp(a, b)
  c.reply(await c.next('CANCEL'), 200)
  c.reply(toC, 487, { tag: 'c' })
  expect(await recordsOf(rig, 2)).toMatchObject([
    { hangupBy: 'api' },
    { disposition: 'CANCELED', billsec: 0 },
  ])
  await rig.idle()
})

test('REFER while draining: the transferor gets 503, and the call goes on', async () => {
  const { a, aLeg } = await establish(rig)
  void rig.calls.drain(rig.time.now() + 60_000)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  expect((await finalNotify(a)).body).toMatch(/^SIP\/2.0 503 /)
  expect(await rig.record()).toMatchObject({ denialCode: 'draining' })
  expect(rig.calls.size).toBe(1)
})
