// Calls that end nowhere are answered before a wallet is asked; sips: goes by TLS or not at all.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { candidate, startCallRig, type CallRig } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { finalNotify } from '../../support/transfer-rig.ts'
import { sdp, type Leg, type PeerMessage } from '../../support/sip-peer.ts'
import {
  acknowledge,
  denied,
  hangUp,
  addExtensions,
  carrierOf,
  extensionRecord,
  home,
  phoneOf,
} from './steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, extensionRecord('102'))
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
})
afterEach(() => rig.stop())

async function dial(uri: string): Promise<{ answer: PeerMessage; leg: Leg }> {
  const caller = await rig.caller()
  const leg = caller.leg(uri)
  caller.request('INVITE', leg, { body: sdp('offer') })
  const answer = await caller.next((message) => message.status >= 200)
  caller.request('ACK', leg)
  return { answer, leg }
}

const phone = () => phoneOf(rig, '102')

test('an unknown extension is 404 and an unregistered one 480, before a wallet is asked', async () => {
  rig.answers.inbound = { kind: 'extension', extension: '199', tenantId: 3, domain: home }
  expect((await dial(`sip:199@${home}`)).answer.status).toBe(404)
  expect(await rig.record()).toMatchObject({ sipCode: 404, denialCode: 'unknown_extension' })
  expect((await dial(`sip:102@${home}`)).answer.status).toBe(480)
  expect(await rig.record()).toMatchObject({
    sipCode: 480,
    isFree: true,
    denialCode: 'extension_unregistered',
  })
  // The same from a trunk.
  rig.answers.caller = { kind: 'stranger' }
  expect((await dial(rig.uri('15550199'))).answer.status).toBe(404)
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  expect((await dial(rig.uri('15550102'))).answer.status).toBe(480)
  expect((await rig.record()).denialCode).toBe('unknown_extension')
  expect(await rig.record()).toMatchObject({
    denialCode: 'extension_unregistered',
  })
  expect(rig.asked).toEqual([])
})

test('a number of a phone that no route and no price knows is 404, not a lack of funds', async () => {
  rig.answers.authorize = denied('no_rate')
  expect((await dial(`sip:199@${home}`)).answer.status).toBe(404)
  rig.answers.knowsNumber = true
  expect((await dial(`sip:199@${home}`)).answer.startLine).toContain('402 Payment Required')
})

const forbidden = '380 tollgate "SIPS Not Allowed"'

test('sips: goes to no phone by UDP: 480 with a Warning', async () => {
  const peer = await phone()
  const { answer } = await dial(`sips:102@${home}`)
  expect([answer.status, answer.get('Warning')]).toEqual([480, forbidden])
  expect(await rig.record()).toMatchObject({ sipCode: 480, denialCode: 'sips_needs_tls' })
  // Nor does a Contact with sips: of a phone that has registered by UDP.
  rig.answers.contacts.clear()
  const other = await phoneOf(rig, '102', { uri: `sips:102@${home}` })
  expect((await dial(`sip:102@${home}`)).answer.status).toBe(480)
  expect([peer.inbox, other.inbox]).toEqual([[], []])
})

test('sips: goes to no node and no gateway by UDP, but on to the next one by TLS', async () => {
  rig.answers.caller = { kind: 'stranger' }
  const node = await rig.node()
  const { answer } = await dial(rig.uri('1555').replace('sip:', 'sips:'))
  expect([answer.status, answer.get('Warning')]).toEqual([480, forbidden])
  expect(await rig.record()).toMatchObject({ sipCode: 480, denialCode: 'sips_needs_tls' })
  const tls = {
    ...candidate(2, 9),
    uri: 'sip:127.0.0.1:9;transport=tls',
    transport: 'tls',
  } as const
  rig.answers.candidates.push(tls)
  await dial(rig.uri('1555').replace('sip:', 'sips:'))
  const { attempts } = await rig.record()
  expect(attempts.map(({ destination, reason }) => [destination, reason])).toEqual([
    [rig.answers.candidates[0]?.uri, 'sips needs TLS'],
    [tls.uri, expect.not.stringContaining('sips')],
  ])
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const uri = `sip:127.0.0.1:${node.port};transport=udp`
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways: [gateway({ uri })] }
  rig.answers.knowsNumber = true
  expect((await dial(`sips:1555@${home}`)).answer.status).toBe(480)
  expect(node.inbox).toEqual([])
})

test('a forward or a transfer to a foreign domain, or by sips: to a phone on UDP, rings no phone', async () => {
  rig.answers.foreign = ['elsewhere.example']
  addExtensions(rig, extensionRecord('103'))
  const forwarding = await phone()
  const target = await phoneOf(rig, '103', { uri: 'sip:103@192.0.2.1' })
  for (const to of ['sip:103@elsewhere.example', `sips:103@${home}`]) {
    const answered = dial(`sip:102@${home}`)
    const invite = await forwarding.next('INVITE')
    forwarding.contact = to
    forwarding.reply(invite, 302, { tag: 'f' })
    forwarding.contact = undefined
    expect((await answered).answer.status).toBe(480)
  }
  const caller = await rig.caller()
  const leg = caller.leg(`sip:102@${home}`)
  caller.request('INVITE', leg, { body: sdp('offer') })
  forwarding.reply(await forwarding.next('INVITE'), 200, { tag: 'a', body: sdp('answer') })
  await acknowledge(caller, leg, forwarding)
  for (const [to, status] of [
    ['sip:103@elsewhere.example', 404],
    [`sips:103@${home}`, 480],
  ] as const) {
    caller.request('REFER', leg, { headers: [`Refer-To: <${to}>`] })
    await caller.next('202 REFER')
    expect((await finalNotify(caller)).body).toContain(`SIP/2.0 ${status}`)
  }
  await hangUp(caller, leg, forwarding)
  await rig.idle()
  expect(target.inbox).toEqual([])
})

test('an emergency goes out by any way there is', async () => {
  const carrier = await carrierOf(rig, {}, true)
  rig.answers.foreign = ['elsewhere.example']
  const caller = await rig.caller()
  const leg = caller.leg('sips:112@elsewhere.example')
  caller.request('INVITE', leg, { body: sdp('offer') })
  carrier.reply(await carrier.next('INVITE'), 486, { tag: 'e' })
  await caller.next('486 INVITE')
})

test('a candidate that leads to a gateway without a price is skipped, and 403 when none remains', async () => {
  rig.answers.caller = { kind: 'stranger' }
  const [wrong, right] = [await rig.node(), await rig.node()]
  rig.answers.gatewayBehind = (uri) => (uri.includes(`:${wrong.port};`) ? 'north' : undefined)
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  right.reply(await right.next('INVITE'), 486, { tag: 'n' })
  await caller.next('486 INVITE')
  expect((await rig.record()).attempts).toMatchObject([
    { status: 0, reason: "leads to a carrier's gateway" },
    { status: 486 },
  ])
  rig.answers.candidates.pop()
  expect((await dial(rig.uri('1555'))).answer.status).toBe(403)
  // It says nothing about the node.
  expect(rig.outcomes).toEqual([[2, 'answered']])
  expect(wrong.inbox).toEqual([])
})
