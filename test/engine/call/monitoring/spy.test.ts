import { afterEach, beforeEach, expect, test } from 'vitest'
import type { SpyRequest } from '../../../../schema/contracts/calls.ts'
import { startCallRig, talk, type CallRig, type Talk } from '../../../support/call-rig.ts'
import type { CallRigOptions } from '../../../support/call-rig-options.ts'
import { sdp, type PeerMessage, type SipPeer } from '../../../support/sip-peer.ts'
import { replacing } from '../../../support/transfer-rig.ts'
import {
  acknowledge,
  dial,
  hangUp,
  addExtensions,
  extensionRecord,
  home,
  phoneOf,
} from '../steps.ts'

let rig: CallRig

async function start(app: NonNullable<CallRigOptions['app']>): Promise<void> {
  rig = await startCallRig({ app })
  rig.answers.spyUri = 'sip:spy-{mode}-{side}-{call_uuid}@{node}'
  addExtensions(rig, extensionRecord('900', { displayName: 'Supervisor' }))
}

beforeEach(() => start('in process'))
afterEach(() => rig.stop())

const supervisor = () => phoneOf(rig, '900')

const spy = (change: Partial<SpyRequest> = {}) =>
  rig.control.spy({
    callUuid: 'uuid-1',
    domain: home,
    extension: '900',
    mode: 'listen',
    side: 'both',
    ...change,
  })

interface Spied extends Talk {
  readonly phone: SipPeer
  readonly toPhone: PeerMessage
  readonly toNode: PeerMessage
}

/** A supervisor has picked up and is let in by the node of the call. */
async function spying(): Promise<Spied> {
  const call = await talk(rig)
  const phone = await supervisor()
  expect(spy({ mode: 'whisper', side: 'callee' })).toEqual({
    kind: 'originating',
    callUuid: 'uuid-2',
  })
  const toPhone = await phone.next('INVITE')
  phone.reply(toPhone, 200, { tag: 's', body: sdp('offer of s') })
  const toNode = await call.node.next('INVITE')
  call.node.reply(toNode, 200, { tag: 'mix', body: sdp('mix') })
  expect((await phone.next('ACK')).body).toBe(sdp('mix'))
  await call.node.next('ACK')
  await rig.until(() => rig.calls.find('uuid-2')?.state === 'ACTIVE')
  return { ...call, phone, toPhone, toNode }
}

/** The node gets BYE of both calls at the same time. */
async function endAtNode(node: SipPeer, toNode: PeerMessage): Promise<void> {
  const isOfSpy = (bye: PeerMessage) => bye.get('Call-ID') === toNode.get('Call-ID')
  node.reply(await node.next((message) => message.method === 'BYE' && isOfSpy(message)), 200)
}

test('the supervisor is rung, then let into the call by the node that has it', async () => {
  const { node, phone, toPhone, toNode, leg, caller } = await spying()
  expect(toPhone.get('From')).toContain(' - 1555"')
  expect(toNode.uri).toBe(`sip:spy-whisper-callee-uuid-1@127.0.0.1:${node.port}`)
  expect(toNode.body).toBe(sdp('offer of s'))
  expect(toNode.get('From')).toMatch(/^"?Supervisor"? <sip:900@/)
  expect(toNode.get('X-Call-UUID')).toBe('uuid-2')
  expect(rig.calls.find('uuid-2')).toMatchObject({
    direction: 'internal',
    callerNumber: '900',
    calledNumber: 'spy:uuid-1',
    setId: 1,
    tenantId: 3,
    customerId: null,
  })
  phone.request('BYE', phone.calledLeg(toPhone, 's'))
  await phone.next('200 BYE')
  await endAtNode(node, toNode)
  expect(await rig.record()).toMatchObject({
    callUuid: 'uuid-2',
    disposition: 'ANSWERED',
    isFree: true,
    direction: 'internal',
    hangupBy: 'caller',
    attempts: [{ status: 200 }],
  })
  // The wallet was asked for the call that was spied on, and that goes on.
  expect(rig.asked).toHaveLength(1)
  expect(rig.calls.find('uuid-1')?.state).toBe('ACTIVE')
  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
})

test('a supervisor can neither transfer what it hears, nor be replaced in it', async () => {
  const { phone, toPhone, node } = await spying()
  const leg = phone.calledLeg(toPhone, 's')
  phone.request('REFER', leg, { headers: [`Refer-To: <sip:15550100@${home}>`] })
  await phone.next('403 REFER')
  const moved = { callUuid: 'uuid-2', destination: '15550100', moved: 'callee' } as const
  expect(await rig.control.transfer(moved)).toEqual({ kind: 'not_transferable' })
  const other = await rig.caller()
  const headers = [`Replaces: ${replacing(leg)}`]
  other.request('INVITE', other.leg(rig.uri('x')), { headers, body: sdp('other') })
  await other.next('403 INVITE')
  await rig.seen(node)
  expect(rig.calls.find('uuid-2')?.state).toBe('ACTIVE')
})

test.each(['in process', 'late', 'without Trying'] as const)(
  'the supervisor’s call ends with the call that it is about (%s)',
  async (app) => {
    await rig.stop()
    await start(app)
    const { caller, leg, node, phone } = await spying()
    await hangUp(caller, leg, phone)
    for (const _call of ['the call', 'the spy']) node.reply(await node.next('BYE'), 200)
    const records = [await rig.record(), await rig.record()]
    const byUuid = Object.fromEntries(records.map((record) => [record.callUuid, record]))
    expect(byUuid).toMatchObject({
      'uuid-1': { hangupBy: 'caller' },
      'uuid-2': { hangupBy: 'system', denialCode: 'spied_call_ended' },
    })
    await rig.idle()
  },
)

test('no phone rings where no supervisor can join', async () => {
  expect(spy()).toEqual({ kind: 'unknown_call' })
  const { caller, node, leg, invite } = await dial(rig)
  expect(spy()).toEqual({ kind: 'call_not_answered' })
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  expect(spy()).toEqual({ kind: 'extension_unregistered' })
  expect(spy({ extension: '901' })).toEqual({ kind: 'unknown_extension' })
  rig.answers.spyUri = 'sip:{call_uuid}@{node}'
  expect(spy({ mode: 'barge' })).toEqual({ kind: 'spy_mode_unavailable' })
  rig.answers.spyUri = null
  expect(spy()).toEqual({ kind: 'spy_mode_unavailable' })
  expect(rig.calls.size).toBe(1)
})
