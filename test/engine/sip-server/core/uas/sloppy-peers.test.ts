/** Peers that are not quite right, and understood all the same, as drachtio-server understands them. */
import { expect, test } from 'vitest'
import { invited } from '../../../../support/caller.ts'
import {
  VirtualServer,
  callee,
  header,
  requestOf,
  responseOf,
  sdp,
  sip,
} from '../../../../support/sip-core.ts'

const branch = 'z9hG4bK-one'
const fromInside = `SIP/2.0/UDP 10.0.0.7:5060;rport;branch=${branch}`
const fromOutside = `SIP/2.0/UDP 203.0.113.7:31000;rport;branch=${branch}`

// RFC 3261 §9.1, RFC 3581.
test('a CANCEL whose Via shows the public address meanwhile finds its INVITE by branch, Call-ID, tag and number', () => {
  const server = new VirtualServer()
  invited(server, requestOf('INVITE', { via: fromInside, body: sdp }))
  server.receive(requestOf('CANCEL', { via: fromOutside }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  expect(server.takeDelivered()[0]?.sip).toMatch(/^CANCEL /)
})

test.each([
  ['branch', { via: fromOutside.replace(branch, 'z9hG4bK-on') }],
  ['tag', { via: fromOutside, fromTag: 'mallory' }],
  ['number', { via: fromOutside, cseq: 2 }],
])('with another %s it finds nothing', (_, options) => {
  const server = new VirtualServer()
  invited(server, requestOf('INVITE', { via: fromInside, body: sdp }))
  server.receive(requestOf('CANCEL', options))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  expect(server.takeDelivered()).toEqual([])
})

// RFC 3261 §15: only the caller may.
test('a BYE of the called side before its answer gets 481, and the answer still counts', () => {
  const server = new VirtualServer()
  const from = 'from: sip:alice@localhost'
  server.command(`sip||\r\n${sip('INVITE sip:bob@192.0.2.20 SIP/2.0', [from], sdp)}`)
  const invite = server.takeSent()[0]?.text ?? ''
  const extra = ['Contact: <sip:bob@192.0.2.20>']
  server.receive(responseOf(invite, 180, { toTag: 'bt', extra }), callee)
  server.takeDelivered()
  const early = sip('BYE sip:alice@198.51.100.10 SIP/2.0', [
    'Via: SIP/2.0/UDP 192.0.2.20;branch=z9hG4bK-bye',
    `From: ${header(invite, 'To')};tag=bt`,
    `To: ${header(invite, 'From')}`,
    `Call-ID: ${header(invite, 'Call-ID')}`,
    'CSeq: 1 BYE',
  ])
  server.receive(early, callee)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  server.receive(responseOf(invite, 200, { toTag: 'bt', extra, body: sdp }), callee)
  const told = server.takeDelivered().map((event) => event.sip.split('\r\n')[0])
  expect([told, server.core.stats()['dialogs']]).toEqual([['SIP/2.0 200 Reason'], 1])
})
