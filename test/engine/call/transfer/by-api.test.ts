/** Blind transfer from the API, over the real server. */
import { expect, test } from 'vitest'
import { sdp } from '../../../support/sip-peer.ts'
import { call, establish, recordsOf, transferring } from '../../../support/transfer-rig.ts'
import {
  denied,
  dial,
  hangUp,
  nextNode,
  addExtensions,
  carrierOrigin,
  extensionRecord,
  phoneOf,
  rig,
  rigForEachTest,
} from '../steps.ts'

rigForEachTest()

const carrier = carrierOrigin()

const transfer = (moved: 'caller' | 'callee' = 'caller', callUuid = 'uuid-1') =>
  rig.control.transfer({ callUuid, destination: '15550100', moved })

test('the transferee is connected to the destination, on the account of the transferor', async () => {
  const { a, b, bLeg } = await establish(rig)
  const c = await nextNode(rig)
  expect(await transfer('callee')).toEqual({ kind: 'transferring', callUuid: 'uuid-2' })
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', callee: '15550100', customerId: 7 })
  const toC = await c.next('INVITE')
  expect(toC.body).toBe(sdp('answer of b'))
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  b.reply(await b.next('INVITE'), 200, { body: sdp('answer of b') })
  a.reply(await a.next('BYE'), 200)
  expect(rig.calls.list()).toMatchObject([
    { transfer: { state: 'transferred', callUuid: 'uuid-2' } },
    {
      transfer: { state: 'transferred', callUuid: 'uuid-1' },
      peers: { caller: `127.0.0.1:${b.port}`, callee: `127.0.0.1:${c.port}` },
    },
  ])
  expect(rig.events.map(({ type }) => type)).toEqual([
    'call.started',
    'call.answered',
    'call.transferring',
    'call.started',
    'call.transferred',
    'call.answered',
  ])
  await hangUp(b, bLeg, c)
  expect(await recordsOf(rig, 2)).toMatchObject([
    { sourceAddress: expect.stringContaining('127.0.0.1') as string },
    { sourceAddress: 'transfer', callerNumber: '101', disposition: 'ANSWERED' },
  ])
  await rig.idle()
})

test('a caller from a carrier cannot pay: then the transferee does', async () => {
  await establish(rig, carrier)
  const c = await nextNode(rig)
  expect(await transfer('callee')).toMatchObject({ kind: 'transferring' })
  // The node serves the number that was called.
  expect(rig.asked.at(-1)).toMatchObject({ caller: '1555', callee: '15550100' })
  c.reply(await c.next('INVITE'), 486, { tag: 'c' })
  await rig.record()
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE', transfer: { state: 'failed' } }])
})

test('a call that cannot be transferred is refused with the reason', async () => {
  expect(await transfer()).toEqual({ kind: 'not_found' })
  const { node, invite } = await dial(rig)
  expect(await transfer()).toEqual({ kind: 'not_answered' })
  node.reply(invite, 486, { tag: 'b' })
  await rig.record()
})

test('one transfer at a time, by REFER or API', async () => {
  await transferring(rig)
  expect(await transfer()).toEqual({ kind: 'transfer_in_progress' })
})

test('where a node would leave, the payer of the call goes on paying', async () => {
  await establish(rig, { kind: 'trusted' })
  const c = await nextNode(rig)
  expect(await transfer('caller')).toMatchObject({ kind: 'transferring' })
  expect(rig.asked.map(({ caller }) => caller)).toEqual(['101', '101'])
  c.reply(await c.next('INVITE'), 486, { tag: 'c' })
  await rig.record()
})

test('the number of another tenant does not pay for what an API key asks', async () => {
  await establish(rig, carrier)
  expect(rig.asked.at(-1)).toMatchObject({ payerTenantId: 3 })
  // Charging is told before it reserves anything.
  rig.answers.authorize = denied('payer_of_other_tenant')
  expect(await transfer()).toEqual({ kind: 'denied', code: 'payer_of_other_tenant' })
  expect(rig.asked.at(-1)).toMatchObject({ callee: '15550100', payerTenantId: 3 })
  expect(await rig.record()).toMatchObject({ sipCode: 403, denialCode: 'payer_of_other_tenant' })
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE', transfer: { state: 'failed' } }])
})

test('nor does another tenant take a call that an API key asks for', async () => {
  await establish(rig, { kind: 'node', nodeId: 9, setId: 1 })
  const there = { domain: '', tenantId: 4, customerId: 8 }
  addExtensions(rig, extensionRecord('15550100', there))
  const asked = rig.asked.length
  expect(await transfer()).toEqual({ kind: 'denied', code: 'payer_of_other_tenant' })
  expect(rig.asked).toHaveLength(asked)
})

test('a phone of another tenant does not pay: the phone of the call itself does', async () => {
  const home = 'other.example'
  const phone = await phoneOf(rig, '201', { domain: home })
  addExtensions(rig, extensionRecord('201', { domain: home, tenantId: 4, customerId: 8 }))
  rig.answers.inbound = { kind: 'extension', tenantId: 4, extension: '201', domain: home }
  await call(rig, await rig.caller(), phone)
  expect(await transfer('caller')).toMatchObject({ kind: 'transferring' })
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', callee: '15550100', customerId: 7 })
})

test('a destination that is dialled with an exit code is the number with +', async () => {
  await establish(rig)
  const c = await nextNode(rig)
  const destination = '0015550100'
  await rig.control.transfer({ callUuid: 'uuid-1', destination, moved: 'callee' })
  await c.next('INVITE')
  expect(rig.asked.at(-1)).toMatchObject({ callee: '+15550100' })
})
