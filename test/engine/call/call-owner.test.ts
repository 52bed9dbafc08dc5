// A tenant sees the calls of its phones, whoever pays them.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { granted, startCallRig, talk, type CallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { addExtensions, extensionRecord, home, phoneOf } from './steps.ts'

let rig: CallRig

/** A customer of the platform. */
const platforms = {
  ...granted(60),
  account: {
    ...{ customerId: 9, tenantId: null, ratePrefix: '1', currency: 'USD' },
    isUnauthorizedByOcs: false,
  },
} as const

beforeEach(async () => {
  rig = await startCallRig()
  rig.answers.authorize = () => Promise.resolve(platforms)
})
afterEach(() => rig.stop())

const { tenantId } = extensionRecord('101')

test('a call of a phone that a customer of the platform pays is its tenant’s, live and recorded', async () => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const { caller, node, nodeLeg } = await talk(rig)
  const [live] = rig.calls.list()
  expect(live).toMatchObject({ tenantId, customerId: 9, isPaidByPlatform: true })
  node.request('BYE', nodeLeg)
  caller.reply(await caller.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ tenantId, customerId: 9, isPaidByPlatform: true })
})

test('so is a call to a phone of the tenant, from a trunk of the platform', async () => {
  addExtensions(rig, extensionRecord('102'))
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId, domain: home }
  const phone = await phoneOf(rig, '102')
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('15550102'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await phone.next('INVITE')
  expect(rig.calls.list()).toMatchObject([{ tenantId, isPaidByPlatform: true }])
  phone.reply(invite, 486, { tag: 'b' })
  await phone.next('ACK')
  caller.learn(leg, await caller.next('486 INVITE'))
  caller.request('ACK', leg)
  expect(await rig.record()).toMatchObject({ tenantId, isPaidByPlatform: true })
})

test('a call between a trunk and a node of the platform is nobody’s, and a customer’s is its tenant’s', async () => {
  const { caller, node, nodeLeg } = await talk(rig)
  node.request('BYE', nodeLeg)
  caller.reply(await caller.next('BYE'), 200)
  const record = await rig.record()
  expect([record.tenantId, record.isPaidByPlatform]).toEqual([null, undefined])
})
