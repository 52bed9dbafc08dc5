/** Identity headers of a phone do not pass: its number is all that it may claim (RFC 3325 §5). */
import { expect, test } from 'vitest'
import { talk } from '../../../support/call-rig.ts'
import { type PeerMessage, sdp } from '../../../support/sip-peer.ts'
import { addExtensions, extensionRecord, home, phoneOf, rig, rigForEachTest } from '../steps.ts'

const claims = [
  'P-Asserted-Identity: "Police" <sip:110@evil.example>',
  'Remote-Party-ID: "Police" <sip:110@evil.example>',
  'Identity: forged',
  'Diversion: <sip:110@evil.example>',
]

rigForEachTest()

const expectNoClaim = (message: PeerMessage): void =>
  expect(message.text).not.toMatch(/Police|forged|evil/)

test('in mid-call a phone cannot claim another identity; a node can', async () => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const { caller, node, leg, nodeLeg } = await talk(rig)
  for (const method of ['INFO', 'UPDATE', 'INVITE']) {
    caller.request(method, leg, { headers: claims, body: sdp('hold') })
    const passed = await node.next(method)
    expectNoClaim(passed)
    node.reply(passed, 200, { body: sdp('ok') })
    await caller.next(`200 ${method}`)
  }
  caller.request('ACK', leg)

  node.request('UPDATE', nodeLeg, {
    headers: ['P-Asserted-Identity: "Bob" <sip:200@inner.example>'],
    body: sdp('update'),
  })
  const update = await caller.next('UPDATE')
  expect(update.get('P-Asserted-Identity')).toMatch(/^"Bob" <sip:200@/)
  caller.reply(update, 200, { headers: claims, body: sdp('ok') })
  expectNoClaim(await node.next('200 UPDATE'))
})

test('a called phone cannot claim another identity', async () => {
  addExtensions(rig, extensionRecord('102'))
  const [caller, phone] = [await rig.caller(), await phoneOf(rig, '102')]
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await phone.next('INVITE')
  phone.reply(invite, 180, { tag: 'b', headers: claims })
  expectNoClaim(await caller.next('180 INVITE'))
  phone.reply(invite, 200, { tag: 'b', headers: claims, body: sdp('answer') })
  const answer = await caller.next('200 INVITE')
  expectNoClaim(answer)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await phone.next('ACK')
})
