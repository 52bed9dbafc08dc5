/** INVITE with Replaces (RFC 3891): the caller replaces a party of a call. */
import { expect, test } from 'vitest'
import { sdp, type Leg } from '../../../support/sip-peer.ts'
import { asVersion, establish, recordsOf, replacing } from '../../../support/transfer-rig.ts'
import {
  acknowledge,
  hangUp,
  infoPasses,
  carrierOrigin,
  extensionRecord,
  rig,
  rigForEachTest,
} from '../steps.ts'

rigForEachTest()

const replaces = (leg: Leg, more = ''): string => `Replaces: ${replacing(leg, more)}`

test('the new party replaces the old one, which gets BYE; each INVITE has its record', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  const x = await rig.caller()
  const xLeg = x.leg(rig.uri('x').replace('x@', ''))
  const headers = [replaces(aLeg), 'Require: replaces']
  x.request('INVITE', xLeg, { headers, body: sdp('offer of x') })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe(asVersion(2, sdp('offer of x')))
  b.reply(toB, 200, { body: sdp('answer to x') })
  const answer = await acknowledge(x, xLeg)
  expect(answer.body).toBe(sdp('answer to x'))
  a.reply(await a.next('BYE'), 200)
  // No other wallet is asked.
  expect(rig.asked).toHaveLength(1)
  await infoPasses(x, xLeg, b)
  await hangUp(b, bLeg, x)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { disposition: 'ANSWERED', hangupBy: 'callee', customerId: 7 },
    { disposition: 'ANSWERED', hangupBy: 'callee', customerId: null, isFree: true },
  ])
  await rig.idle()
})

test('the called side can be replaced, too', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  const x = await rig.caller()
  const xLeg = x.leg(rig.uri('x'))
  x.request('INVITE', xLeg, { headers: [replaces(bLeg)], body: sdp('offer of x') })
  a.reply(await a.next('INVITE'), 200, { body: sdp('answer of a') })
  await acknowledge(x, xLeg)
  b.reply(await b.next('BYE'), 200)
  expect(rig.calls.countByNode(1)).toBe(0)
  await hangUp(x, xLeg, a)
  expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'callee' }, { hangupBy: 'caller' }])
  expect(aLeg.callId).not.toBe(xLeg.callId)
  await rig.idle()
})

test('the remaining party refuses the media: the new party is refused, and the call goes on', async () => {
  const { a, aLeg, b } = await establish(rig)
  const x = await rig.caller()
  x.request('INVITE', x.leg(rig.uri('x')), { headers: [replaces(aLeg)], body: sdp('offer of x') })
  b.reply(await b.next('INVITE'), 488)
  await x.next('488 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'replaces_refused' })
  await rig.seen(a)
  expect(a.inbox.filter(({ method }) => method === 'BYE')).toEqual([])
  expect(rig.calls.list()).toMatchObject([{ callUuid: 'uuid-1', state: 'ACTIVE' }])
})

test('the new party cancels meanwhile: the remaining party gets its old media back', async () => {
  const { aLeg, b } = await establish(rig)
  const x = await rig.caller()
  const xLeg = x.leg(rig.uri('x'))
  x.request('INVITE', xLeg, { headers: [replaces(aLeg)], body: sdp('offer of x') })
  const toB = await b.next('INVITE')
  x.request('CANCEL', xLeg)
  await x.next('487 INVITE')
  b.reply(toB, 200, { body: sdp('answer of b') })
  const back = await b.next(({ body }) => body === asVersion(3, sdp('offer of a')))
  b.reply(back, 200, { body: sdp('answer of b') })
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED' })
  expect(rig.calls.list()).toMatchObject([{ callUuid: 'uuid-1', state: 'ACTIVE' }])
})

test('a new party without offer gets that of the remaining party, and answers it in its ACK', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  const x = await rig.caller()
  const xLeg = x.leg(rig.uri('x'))
  x.request('INVITE', xLeg, { headers: [replaces(aLeg)] })
  const toB = await b.next('INVITE')
  expect(toB.body).toBe('')
  b.reply(toB, 200, { body: sdp('offer of b') })
  const answer = await x.next('200 INVITE')
  expect(answer.body).toBe(sdp('offer of b'))
  expect(b.inbox.filter(({ method }) => method === 'ACK')).toEqual([])
  x.learn(xLeg, answer)
  x.request('ACK', xLeg, { body: sdp('answer of x') })
  expect((await b.next('ACK')).body).toBe(asVersion(2, sdp('answer of x')))
  a.reply(await a.next('BYE'), 200)
  b.request('INVITE', bLeg, { body: sdp('b again') })
  const toX = await x.next('INVITE')
  expect(toX.body).toBe(asVersion(2, sdp('b again')))
  x.reply(toX, 200, { body: sdp('answer of x') })
  await b.next('200 INVITE')
  b.request('ACK', bLeg)
  await x.next('ACK')
  await hangUp(x, xLeg, b)
  expect(await recordsOf(rig, 2)).toMatchObject([{ hangupBy: 'caller' }, { hangupBy: 'caller' }])
  await rig.idle()
})

test.each([
  ['is unknown', 'Replaces: unknown;to-tag=1;from-tag=2', 481, 'replaces_unknown_call'],
  ['cannot be read', 'Replaces: unknown;to-tag=1', 400, 'bad_request'],
])('a call that %s is refused', async (_what, header, status, denialCode) => {
  await establish(rig)
  const x = await rig.caller()
  x.request('INVITE', x.leg(rig.uri('x')), { headers: [header], body: sdp('offer of x') })
  await x.next(`${status} INVITE`)
  expect(await rig.record()).toMatchObject({ sipCode: status, denialCode })
})

test('an answered call cannot be replaced as one that rings; an ended one not at all', async () => {
  const { a, aLeg, b } = await establish(rig)
  const x = await rig.caller()
  const early = [replaces(aLeg, ';early-only')]
  x.request('INVITE', x.leg(rig.uri('x')), { headers: early, body: sdp('offer of x') })
  await x.next('486 INVITE')
  await rig.record()
  await hangUp(a, aLeg, b)
  await rig.record()
  x.request('INVITE', x.leg(rig.uri('x')), { headers: [replaces(aLeg)], body: sdp('offer') })
  await x.next('603 INVITE')
})

test('a carrier, or a phone of another tenant, replaces no party', async () => {
  const { aLeg } = await establish(rig)
  const x = await rig.caller()
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = carrierOrigin()
  const request = () =>
    x.request('INVITE', x.leg(rig.uri('x')), { headers: [replaces(aLeg)], body: sdp('offer of x') })
  request()
  await x.next('403 INVITE')
  const extension = extensionRecord('101', { tenantId: 4 })
  rig.answers.caller = { kind: 'extension', extension }
  request()
  await x.next('403 INVITE')
  expect(await recordsOf(rig, 2)).toMatchObject([
    { denialCode: 'replaces_not_allowed' },
    { denialCode: 'replaces_not_allowed' },
  ])
})
