/** Who may tell a phone to answer by itself (RFC 5373 §6; RFC 3261 §20.4, §20.9). */
import { expect, test } from 'vitest'
import type { Origin } from '../../../engine/routing/routing.ts'
import { sdp, type PeerMessage } from '../../support/sip-peer.ts'
import {
  acknowledge,
  addExtensions,
  carrierOf,
  carrierOrigin,
  extensionRecord,
  hangUp,
  home,
  phoneOf,
  rig,
  rigForEachTest,
} from './steps.ts'

rigForEachTest()

const callInfo = 'Call-Info: <sip:203.0.113.7>;answer-after=0'
const alertInfo = 'Alert-Info: <http://127.0.0.1>;info=alert-autoanswer;delay=0'

/** Spellings by which phones are told. */
const told: readonly (readonly string[])[] = [
  [callInfo, alertInfo],
  ['call-info:<sip:x>;answer-after=0'],
  ['CALL-INFO : \t<http://203.0.113.7/a.jpg>;purpose=icon,<sip:x>;answer-after=0'],
  ['Call-Info: <sip:x>;purpose=info', 'Call-Info: <sip:x>\r\n ;answer-after=0'],
  ['Call-Info: ;answer-after=0'],
  ['Alert-Info: Auto Answer'],
  ['Alert-Info: <http://www.notused.com>;info=alert-autoanswer;delay=0'],
  ['Alert-Info: <urn:alert:service:auto-callback>', 'Alert-Info: ;info=ring-answer'],
  ['alert-info: info=intercom', 'ALERT-INFO: <file://ring.wav>'],
  ['Answer-Mode: Auto', 'Priv-Answer-Mode: Auto;require'],
  ['Error-Info: <sip:answer@203.0.113.7>', alertInfo],
]

const commands = ['Call-Info', 'Alert-Info', 'Answer-Mode', 'Priv-Answer-Mode', 'Error-Info']
const commandsIn = (message: PeerMessage): readonly string[] =>
  commands.filter((name) => message.all(name).length > 0)

/** A caller of this kind calls phone 102 by whatever leads there. */
async function callPhone(origin: Origin, headers: readonly string[]): Promise<PeerMessage> {
  addExtensions(rig, extensionRecord('102'))
  const phone = await phoneOf(rig, '102')
  rig.answers.origin = origin
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const caller = await rig.caller()
  const leg = caller.leg(`sip:102@${home}`)
  caller.request('INVITE', leg, { headers, body: sdp('offer') })
  const invite = await phone.next('INVITE')
  phone.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, phone)
  await hangUp(caller, leg, phone)
  return invite
}

test.each(told)('a carrier cannot make a phone answer by %s', async (...headers) => {
  expect(commandsIn(await callPhone(carrierOrigin(), headers))).toEqual([])
})

test.each([
  ['another tenant', { tenantId: 9 }],
  ['another tenant by its domain', { tenantId: 9, domain: 'other.example' }],
])('an extension of %s cannot', async (_whose, parts) => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101', parts) }
  addExtensions(rig, extensionRecord('102'))
  const phone = await phoneOf(rig, '102')
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(`sip:102@${home}`), {
    headers: [callInfo, alertInfo],
    body: sdp('offer'),
  })
  // Perhaps it does not get there at all.
  await rig.settle()
  const invite = phone.inbox.find(({ method }) => method === 'INVITE')
  expect(invite ? commandsIn(invite) : []).toEqual([])
})

test('an extension of the tenant may, and so may its PBX', async () => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const both = ['Call-Info', 'Alert-Info']
  expect(commandsIn(await callPhone({ kind: 'unknown' }, [callInfo, alertInfo]))).toEqual(both)
  rig.answers.caller = { kind: 'stranger' }
  const node = { kind: 'node', nodeId: 1, setId: 1 } as const
  expect(commandsIn(await callPhone({ ...node, tenantId: 3 }, [callInfo, alertInfo]))).toEqual(both)
  expect(commandsIn(await callPhone(node, [callInfo, alertInfo]))).toEqual(both)
})

test('the PBX of another tenant cannot', async () => {
  const node = { kind: 'node', nodeId: 1, setId: 1, tenantId: 9 } as const
  expect(commandsIn(await callPhone(node, [callInfo, alertInfo]))).toEqual([])
})

test('what a carrier answers, and asks for in the call, does not reach the phone that calls', async () => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  rig.answers.origin = { kind: 'unknown' }
  const [phone, carrier] = [await rig.caller(), await carrierOf(rig)]
  const leg = phone.leg(rig.uri('1555'))
  phone.request('INVITE', leg, { body: sdp('offer') })
  const invite = await carrier.next('INVITE')
  const headers = [callInfo, alertInfo]
  carrier.reply(invite, 180, { tag: 'b', headers })
  expect(commandsIn(await phone.next('180 INVITE'))).toEqual([])
  carrier.reply(invite, 200, { tag: 'b', headers, body: sdp('answer') })
  const answer = await phone.next('200 INVITE')
  expect(commandsIn(answer)).toEqual([])
  phone.learn(leg, answer)
  phone.request('ACK', leg)
  await carrier.next('ACK')
  const back = carrier.calledLeg(invite, 'b')
  for (const method of ['INFO', 'INVITE']) {
    carrier.request(method, back, { headers, ...(method === 'INVITE' && { body: sdp('hold') }) })
    const request = await phone.next(method)
    expect(commandsIn(request)).toEqual([])
    phone.reply(request, 200, method === 'INVITE' ? { body: sdp('held') } : {})
    await carrier.next(`200 ${method}`)
  }
  carrier.request('ACK', back)
  phone.request('INFO', leg)
  const asked = await carrier.next('INFO')
  carrier.reply(asked, 200, { headers })
  expect(commandsIn(await phone.next('200 INFO'))).toEqual([])
  await hangUp(phone, leg, carrier)
})
