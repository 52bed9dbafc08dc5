import { afterEach, beforeEach, expect, test } from 'vitest'
import type { OriginateRequest } from '../../../schema/contracts/calls.ts'
import type { OutboundDecision } from '../../../engine/routing/routing.ts'
import { granted, startCallRig, type CallRig } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { sdp, type SipPeer } from '../../support/sip-peer.ts'
import { addExtensions, extensionRecord, originateRequest, phoneOf, stillThere } from './steps.ts'

const [TESTED, OTHER] = [9, 10]

let rig: CallRig
let [phone, tested, other]: SipPeer[] = []

const at = (carrierId: number, peer: SipPeer | undefined) =>
  gateway({
    carrierId,
    gatewayId: carrierId,
    host: '127.0.0.1',
    port: peer?.port ?? 0,
    uri: `sip:127.0.0.1:${peer?.port ?? 0};transport=udp`,
  })

const gateways = (isEmergency = false): OutboundDecision => ({
  kind: 'gateways',
  gateways: [at(OTHER, other), at(TESTED, tested)],
  isEmergency,
})

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  phone = await phoneOf(rig, '101')
  ;[tested, other] = await Promise.all([rig.caller(), rig.caller()])
  rig.answers.outbound = gateways()
  rig.answers.knowsNumber = true
})
afterEach(() => rig.stop())

const request = { ...originateRequest, testedCarrierId: TESTED }

const start = (change: Partial<OriginateRequest> = {}) =>
  rig.control.originate({ ...request, ...change })

/** The phone and the gateway of the tested carrier talk. */
async function talking(): Promise<readonly SipPeer[]> {
  if (!phone || !tested) throw new Error('no peers')
  expect((await start()).kind).toBe('originating')
  phone.reply(await phone.next('INVITE'), 200, { tag: 'a', body: sdp('offer') })
  tested.reply(await tested.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await Promise.all([phone.next('ACK'), tested.next('ACK')])
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  return [phone, tested]
}

async function ended(peers: readonly SipPeer[]) {
  for (const peer of peers) {
    const bye = await peer.next('BYE')
    expect(bye.get('Reason')).toContain('NORMAL CLEARING')
    peer.reply(bye, 200)
  }
  return rig.record()
}

test.each([600, Infinity, 60])(
  'of a grant of %s s a test call takes 30: no more is asked for, and its record is charged',
  async (seconds) => {
    rig.answers.authorize = () => Promise.resolve(granted(seconds))
    let extensions = 0
    rig.answers.extend = () => {
      extensions += 1
      return Promise.resolve({ kind: 'granted', grantedSeconds: 3_600 })
    }
    const peers = await talking()
    await rig.advance(29_500)
    expect(rig.calls.size).toBe(1)
    await rig.advance(600)
    expect(await ended(peers)).toMatchObject({
      disposition: 'ANSWERED',
      billsec: 30,
      customerId: 7,
      denialCode: 'time_limit',
      hangupBy: 'system',
      carrier: 'north',
      direction: 'outbound',
    })
    expect([extensions, other?.inbox]).toEqual([0, []])
    expect(rig.asked).toMatchObject([{ caller: '101', callee: '15550100', customerId: 7 }])
    await rig.idle()
  },
)

test('the limit of a test call survives kill -9', async () => {
  rig.answers.authorize = () => Promise.resolve(granted(600))
  const peers = await talking()
  await rig.advance(10_000)
  rig.crash()
  const { time, world, server, opened, saved } = rig
  rig = await startCallRig({ after: { time, world, server, opened, saved } })
  rig.answers.extend = () => Promise.resolve({ kind: 'granted', grantedSeconds: 3_600 })
  await stillThere(rig, ...peers)
  await rig.advance(20_300)
  expect((await ended(peers)).billsec).toBe(30)
})

test('a tested carrier that refuses ends the call: no other is tried', async () => {
  if (!phone || !tested) throw new Error('no peers')
  await start()
  phone.reply(await phone.next('INVITE'), 200, { tag: 'a', body: sdp('offer') })
  tested.reply(await tested.next('INVITE'), 503, { tag: 'b' })
  await phone.next('ACK')
  phone.reply(await phone.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'CONGESTION', billsec: 0 })
  expect(other?.inbox).toEqual([])
})

test.each([
  ['its number is an emergency’s', { outbound: () => gateways(true) }, 'emergency_number'],
  ['its number is blocked', { outbound: () => blocked }, 'destination_blocked'],
  ['the carrier is full', { outbound: () => ({ kind: 'limited' }) }, 'carrier_limit'],
  ['the carrier is out', { outbound: () => ({ kind: 'unavailable' }) }, 'no_gateway'],
  ['no route leads there', { outbound: () => ({ kind: 'none' }) }, 'no_route'],
  ['the routes lead to another carrier', { change: { testedCarrierId: 77 } }, 'no_route'],
  ['its number is an extension', { change: { destination: '102' } }, 'internal_number'],
] satisfies [string, { outbound?: () => OutboundDecision; change?: object }, string][])(
  'no phone rings and no wallet is asked where %s',
  async (
    _why,
    { outbound, change }: { outbound?: () => OutboundDecision; change?: object },
    code,
  ) => {
    if (outbound) rig.answers.outbound = outbound()
    expect(await start(change)).toEqual({ kind: 'denied', code })
    await rig.settle()
    expect([phone?.inbox, rig.asked, rig.records, rig.calls.size]).toEqual([[], [], [], 0])
  },
)

const blocked: OutboundDecision = { kind: 'blocked', routeName: 'premium' }

test.each([undefined, TESTED])(
  'a destination that is dialled with an exit code is the number with +, whether it is a test or not',
  async (testedCarrierId) => {
    await rig.control.originate({
      ...originateRequest,
      destination: '0015550100',
      ...(testedCarrierId !== undefined && { testedCarrierId }),
    })
    await phone?.next('INVITE')
    expect(rig.asked.at(-1)).toMatchObject({ caller: '101', callee: '+15550100' })
  },
)
