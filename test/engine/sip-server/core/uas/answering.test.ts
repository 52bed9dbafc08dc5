/**
 * Calls that come in: RFC 3261 §9.2, §12, §13.3, §15, §17.2. Requests in their dialogs that others
 * send.
 */
import { expect, test } from 'vitest'
import type { DialogOfPeer } from '../../../../../engine/sip-server/index.ts'
import { acknowledge, answered, invited, respond } from '../../../../support/caller.ts'
import {
  VirtualServer,
  callee,
  caller,
  header,
  requestOf,
  sdp,
  sip,
  tagIn,
  tcpCaller,
} from '../../../../support/sip-core.ts'

const dialogId = 'c1@203.0.113.7;from-tag=f1'
const ended = ['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated']
const unknown = ['SIP/2.0 481 Call/Transaction Does Not Exist']

/** An answered and acknowledged call; our tag. */
function established(server = new VirtualServer(), invite?: string) {
  const toTag = answered(server, invite)
  acknowledge(server, toTag)
  server.takeSent()
  server.takeDelivered()
  return { server, toTag }
}

const bye = (server: VirtualServer) => {
  server.command(`sip||${dialogId}\r\n${sip('BYE sip:p SIP/2.0', [])}`)
  const [sent] = server.takeSent()
  return { flow: sent?.flow, uri: sent?.text.split(' ', 2)[1], text: sent?.text ?? '' }
}

test('an INVITE gets 100 Trying at once and goes to the application with its source', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  const [event] = server.takeDelivered()
  const from = { source: 'network', protocol: 'udp', address: '203.0.113.7', port: '5060' }
  const at = { localAddress: '198.51.100.10', localPort: '5060' }
  expect(event).toMatchObject({ ...from, ...at, dialogId: '' })
  expect(event?.sip).toContain(sdp)
})

test('a repeated INVITE is answered with the last provisional and reaches no application twice', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 180)
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 180 Any'])
  expect(server.takeDelivered()).toEqual([])
})

// RFC 3261 §17.2.4
test('a refusal that could not be sent is not repeated; of other answers nobody asks whether they left', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.takeSent()
  for (const status of [180, 486]) respond(server, transactionId, status)
  const [ringing, refusal] = server.takeSent()
  expect(ringing?.reference).toBe('')
  server.sendFailed(refusal?.reference ?? '')
  server.advance(40_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()['serverTransactions']).toBe(0)
})

// RFC 3261 §12.1.1: the caller's requests in an early dialog (UPDATE, BYE) go there.
test.each([180, 183])('a %i to an INVITE says where its early dialog is reached', (status) => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 100)
  respond(server, transactionId, status)
  const contact = '<sip:18005551212@198.51.100.10:5060>'
  expect(server.takeSent().map(({ text }) => header(text, 'Contact'))).toEqual(['', contact])
})

// RFC 3261 §13.3.1.4, on every transport.
test.each([caller, tcpCaller])(
  'a 200 is repeated at T1, doubling to T2, until its ACK (connection $connectionId)',
  (flow) => {
    const server = new VirtualServer()
    const place = `SIP/2.0/${flow.listener.protocol.toUpperCase()} 203.0.113.7:5060`
    const invite = requestOf('INVITE', { via: `${place};branch=z9hG4bK-t`, body: sdp })
    respond(server, invited(server, invite, flow), 200)
    const start = server.now
    const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
    server.advance(8_000)
    expect(server.takeSent().map(({ at }) => at - start)).toEqual([500, 1_500, 3_500, 7_500])
    server.receive(requestOf('ACK', { toTag, via: `${place};branch=z9hG4bK-ack` }), flow)
    server.advance(32_000)
    expect(server.takeSent()).toEqual([])
  },
)

test('the ACK of a 200 reaches the application once, with the dialog id and its body', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  for (const branch of ['z9hG4bK-ack', 'z9hG4bK-ack2'])
    server.receive(requestOf('ACK', { toTag, branch, body: sdp }))
  const [event, ...others] = server.takeDelivered()
  expect([event?.dialogId, others]).toEqual([dialogId, []])
  expect(event?.sip).toContain(sdp)
})

test('an answer without its ACK ends with BYE after 64*T1, and the application learns it', () => {
  const server = new VirtualServer()
  answered(server)
  server.advance(32_000)
  expect(server.takeStartLines().at(-1)).toBe('BYE sip:alice@203.0.113.7:5060 SIP/2.0')
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({ transactionId: 'unsolicited', dialogId })
  expect(header(event?.sip ?? '', 'Reason')).toBe('SIP ;cause=200 ;text="ACK timeout"')
  expect(server.core.stats()['dialogs']).toBe(0)
})

// RFC 3261 §17.2.1.
test('an unacknowledged 486 is repeated with doubling back-off, then given up at 64*T1', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486)
  const start = server.now
  server.advance(40_000)
  expect(server.takeSent().map(({ at }) => at - start)).toEqual([
    0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500,
  ])
})

test('CANCEL is answered 200, the INVITE 487, and the application is told', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(ended)
  const [event] = server.takeDelivered()
  expect(event?.sip).toMatch(/^CANCEL /)
  expect(event).toMatchObject({ transactionId, dialogId: '', localAddress: '' })
  const id = respond(server, transactionId, 487)
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'NOK' })
})

// RFC 5031.
test('who asks for help in an emergency by a URN reaches the application', () => {
  const server = new VirtualServer()
  const invite = requestOf('INVITE', { uri: 'urn:service:sos', body: sdp })
  respond(server, invited(server, invite), 200)
  expect(header(server.takeSent()[0]?.text ?? '', 'Contact')).toBe('<sip:198.51.100.10:5060>')
})

// RFC 3261 §12.2.2.
test('a request with a lower sequence number than the last one gets 500', () => {
  const { server, toTag } = established()
  server.receive(requestOf('INFO', { toTag, cseq: 5, branch: 'z9hG4bK-i5' }))
  server.takeDelivered()
  server.receive(requestOf('INFO', { toTag, cseq: 4, branch: 'z9hG4bK-i4' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 500 Server Internal Error'])
  expect(server.takeDelivered()).toEqual([])
})

test('a re-INVITE moves the remote target: the BYE of ours goes to the new Contact', () => {
  const { server, toTag } = established()
  const reinvite = requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-r2' })
  const moved = reinvite.replace(/^Contact: .*$/m, 'Contact: <sip:alice@203.0.113.9:5070>')
  respond(server, invited(server, moved), 200)
  acknowledge(server, toTag)
  server.takeSent()
  const { flow, uri } = bye(server)
  expect(uri).toBe('sip:alice@203.0.113.9:5070')
  expect(flow).toMatchObject({ address: '203.0.113.9', port: 5070 })
})

// RFC 3261 §12.1.1 and §16.12.1.
test.each([
  ['<sip:192.0.2.1;lr>', 'sip:alice@203.0.113.7:5060', '<sip:192.0.2.1;lr>'],
  ['<sip:192.0.2.1>', 'sip:192.0.2.1', '<sip:alice@203.0.113.7:5060>'],
])('a dialog goes back by the recorded route %s to %s by %s', (recorded, target, route) => {
  const invite = requestOf('INVITE', { extra: [`Record-Route: ${recorded}`], body: sdp })
  const { flow, uri, text } = bye(established(undefined, invite).server)
  expect([uri, header(text, 'Route'), flow?.address]).toEqual([target, route, '192.0.2.1'])
})

// RFC 3261 §15.1.2; the application has no dialog yet in which it could hear of a BYE.
test('a BYE before the answer ends the INVITE, and its application hears of it as of a CANCEL', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 183)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  server.takeDelivered()
  server.receive(requestOf('BYE', { toTag, cseq: 2 }))
  expect(server.takeStartLines()).toEqual(ended)
  const [told, ...others] = server.takeDelivered()
  expect([told?.transactionId, told?.sip.split(' ', 1)[0]]).toEqual([transactionId, 'CANCEL'])
  expect(others).toEqual([])
  respond(server, transactionId, 200)
  expect(server.takeDelivered()[0]?.verdict).toBe('NOK')
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-INVITE-1' }))
  server.advance(64_000)
  const { applications: _, ...tables } = server.core.stats()
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

// RFC 3261 §9.1, RFC 3581: the Via may show the public address meanwhile.
const fromOutside = 'SIP/2.0/UDP 203.0.113.7:31000;rport;branch=z9hG4bK-one'
test.each([
  ['the same of all', { via: fromOutside }, caller, ended],
  ['another branch', { via: `${fromOutside}s` }, caller, unknown],
  ['another tag', { via: fromOutside, fromTag: 'mallory' }, caller, unknown],
  ['another number', { via: fromOutside, cseq: 2 }, caller, unknown],
  ['another port', { via: fromOutside }, { ...caller, port: 61_000 }, ended],
  // §9, §22.1: it cannot be challenged.
  ['another address', { via: fromOutside }, callee, unknown],
])('a CANCEL finds its INVITE by branch, Call-ID, tag, number and address: %s', (...row) => {
  const [, options, flow, lines] = row
  const server = new VirtualServer()
  const via = 'SIP/2.0/UDP 10.0.0.7:5060;rport;branch=z9hG4bK-one'
  invited(server, requestOf('INVITE', { via, body: sdp }))
  server.receive(requestOf('CANCEL', options), flow)
  expect(server.takeStartLines()).toEqual(lines)
  expect(server.takeDelivered()).toHaveLength(lines === ended ? 1 : 0)
})

const stranger = callee

/** A server that lets no stranger into a dialog. */
function guarded() {
  const asked: (DialogOfPeer & { readonly method: string; readonly from: string })[] = []
  const server = new VirtualServer({
    more: {
      admitInDialog: ({ method, sourceAddress: from }, dialog) => {
        asked.push({ ...dialog, method, from })
        return { status: 403, reason: 'Forbidden', lines: 'X-Why: address\r\n' }
      },
    },
  })
  return { server, asked }
}

test.each(['BYE', 'INVITE', 'UPDATE', 'REFER', 'INFO', 'NOTIFY', 'MESSAGE'])(
  '%s from a stranger is refused, and changes nothing in the dialog',
  (method) => {
    const { server, asked } = guarded()
    const { toTag } = established(server)
    const extra = ['Refer-To: <sip:1900@x>', 'Event: refer', 'Subscription-State: active']
    server.receive(requestOf(method, { toTag, cseq: 90, branch: 'z9hG4bK-x', extra }), stranger)
    expect(server.sent[0]?.text).toContain('X-Why: address')
    expect(server.takeStartLines()).toEqual(['SIP/2.0 403 Forbidden'])
    const dialog = { callId: 'c1@203.0.113.7', localTag: toTag, remoteTag: 'f1' }
    const peer = { address: '203.0.113.7', port: 5060 }
    expect(asked).toEqual([{ ...dialog, ...peer, method, from: stranger.address }])
    expect(server.takeDelivered()).toEqual([])
    server.receive(requestOf('INFO', { toTag, cseq: 2, branch: 'z9hG4bK-i' }))
    expect(server.takeDelivered()).toHaveLength(1)
  },
)

test('an ACK with a session description from a stranger is none: the 2xx is repeated', () => {
  const { server } = guarded()
  const toTag = answered(server)
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-a', body: sdp }), stranger)
  expect(server.takeDelivered()).toEqual([])
  server.advance(600)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any'])
})

test.each([
  [/^Contact: .*$/m, `Contact: <sip:a@${stranger.address}>`],
  [/^Max-Forwards: 70/m, `Max-Forwards: 70\r\nRecord-Route: <sip:${stranger.address};lr>`],
])('the peer may send from where its INVITE says that it is: %s', (from, to) => {
  const { server, asked } = guarded()
  const { toTag } = established(server, requestOf('INVITE', { body: sdp }).replace(from, to))
  server.receive(requestOf('BYE', { toTag, cseq: 2, branch: 'z9hG4bK-b' }), stranger)
  expect(asked).toEqual([])
  expect(server.takeDelivered()).toHaveLength(1)
})
