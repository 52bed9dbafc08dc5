import { expect, test } from 'vitest'
import {
  VirtualServer,
  callee,
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
  type SentMessage,
} from '../../../../support/sip-core.ts'

const contact = 'Contact: <sip:bob@192.0.2.20:5060>'

/** The application sends an INVITE; returns what left and the transaction id of its responses. */
function invite(
  server: VirtualServer,
  lines: string[] = ['from: sip:alice@localhost'],
  uri = 'sip:bob@192.0.2.20',
) {
  server.command(`sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, lines, sdp)}`)
  const [sent] = server.takeSent()
  const [reply] = server.takeDelivered()
  const transactionId = reply?.transactionId ?? ''
  return { sent: sent as SentMessage, text: sent?.text ?? '', transactionId, reply }
}

const dialogIdOf = (text: string): string =>
  `${header(text, 'Call-ID')};from-tag=${tagIn(header(text, 'From'))}`

function answer(
  server: VirtualServer,
  request: string,
  status: number,
  toTag = 'bt',
  lines = [contact],
) {
  server.receive(
    responseOf(request, status, { toTag, extra: lines, body: status === 200 ? sdp : '' }),
    callee,
  )
}

const acknowledge = (server: VirtualServer, text: string): string =>
  server.command(`sip||${dialogIdOf(text)}\r\n${sip('ACK sip:bob@192.0.2.20 SIP/2.0', [])}`)

test('an INVITE of the application is completed: Via, tag, Call-ID, CSeq, Contact, Max-Forwards, type', () => {
  const { text, sent, reply } = invite(new VirtualServer())
  expect(header(text, 'Via')).toMatch(/^SIP\/2\.0\/UDP 198\.51\.100\.10:5060;rport;branch=z9hG4bK/)
  expect(header(text, 'From')).toMatch(/^<sip:alice@198\.51\.100\.10:5060>;tag=./)
  expect(header(text, 'To')).toBe('<sip:bob@192.0.2.20>')
  expect(header(text, 'Contact')).toBe('<sip:alice@198.51.100.10:5060>')
  expect(header(text, 'Max-Forwards')).toBe('70')
  expect(header(text, 'CSeq')).toBe('1 INVITE')
  expect(header(text, 'Content-Type')).toBe('application/sdp')
  expect(header(text, 'Call-ID')).not.toBe('')
  expect(sent.flow).toMatchObject({ address: '192.0.2.20', port: 5060 })
  expect(reply?.sip).toBe(text)
})

// RFC 3261 §17.1.1.2.
test('an unanswered INVITE is repeated with doubling back-off and ends as 408 after 64*T1', () => {
  const server = new VirtualServer()
  const start = server.now
  const { transactionId } = invite(server)
  server.advance(32_000)
  expect(server.takeSent().map(({ at }) => at - start)).toEqual([
    500, 1_500, 3_500, 7_500, 15_500, 31_500,
  ])
  const events = server.takeDelivered()
  expect(events.map(({ sip: text }) => text.split('\r\n')[0])).toEqual([
    'SIP/2.0 408 Request Timeout',
  ])
  expect(events[0]?.transactionId).toBe(transactionId)
  expect(server.core.stats()['outboundRequests']).toBe(0)
})

test('a transport error ends an INVITE as 503 at once', () => {
  const server = new VirtualServer()
  const { sent } = invite(server)
  server.sendFailed(sent.reference)
  expect(server.takeDelivered()[0]?.sip).toContain('SIP/2.0 503 Service Unavailable')
})

test('every provisional carries transaction and dialog id; 100 is for an application in this process', () => {
  const server = new VirtualServer()
  const { text, transactionId } = invite(server)
  answer(server, text, 100)
  expect(server.takeDelivered()).toEqual([])
  answer(server, text, 180)
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({ transactionId, dialogId: dialogIdOf(text) })
  server.advance(10_000)
  expect(server.takeSent()).toEqual([])

  const near = new VirtualServer({ isInProcess: true })
  const { text: sent, transactionId: id } = invite(near)
  answer(near, sent, 100)
  const expected = { transactionId: id, dialogId: dialogIdOf(sent) }
  expect(near.takeDelivered()[0]).toMatchObject(expected)
})

// RFC 3261 §17.1.1.3.
test('a failure is acknowledged by the stack on the same branch, again for every copy', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 486)
  answer(server, text, 486)
  const acks = server.takeSent()
  expect(acks).toHaveLength(2)
  expect(header(acks[0]?.text ?? '', 'Via')).toBe(header(text, 'Via'))
  expect(header(acks[0]?.text ?? '', 'CSeq')).toBe('1 ACK')
  expect(tagIn(header(acks[0]?.text ?? '', 'To'))).toBe('bt')
  expect(server.takeDelivered()).toHaveLength(1)
})

// RFC 3261 §22.1.
test('the ACK of a failure repeats the credentials of its INVITE', () => {
  const server = new VirtualServer()
  const { text } = invite(server, [
    'from: sip:alice@localhost',
    'proxy-authorization: Digest a="b"',
  ])
  answer(server, text, 403)
  const [ack] = server.takeSent()
  expect(header(ack?.text ?? '', 'Proxy-Authorization')).toBe('Digest a="b"')
})

// RFC 3261 §13.2.2.4.
test('the ACK of a 200 goes to the Contact with a new branch, and again for every copy of the 200', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 200, 'bt', ['Contact: <sip:bob@192.0.2.77:5070>'])
  acknowledge(server, text)
  const [ack] = server.takeSent()
  expect(ack?.text.startsWith('ACK sip:bob@192.0.2.77:5070 SIP/2.0\r\n')).toBe(true)
  expect(ack?.flow).toMatchObject({ address: '192.0.2.77', port: 5070 })
  expect(header(ack?.text ?? '', 'Via')).not.toBe(header(text, 'Via'))
  answer(server, text, 200)
  expect(server.takeSent().map((sent) => sent.text)).toEqual([ack?.text])
})

test('CANCEL waits for a provisional, then goes with the branch of the INVITE', () => {
  const server = new VirtualServer()
  const { text, transactionId } = invite(server)
  const id = server.command(
    `sip|${transactionId}|\r\n${sip('CANCEL sip:bob@192.0.2.20 SIP/2.0', ['Reason: SIP;cause=200'])}`,
  )
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'OK' })
  answer(server, text, 180)
  const [cancel] = server.takeSent()
  expect(cancel?.text.startsWith('CANCEL sip:bob@192.0.2.20 SIP/2.0\r\n')).toBe(true)
  expect(header(cancel?.text ?? '', 'Via')).toBe(header(text, 'Via'))
  expect(header(cancel?.text ?? '', 'Reason')).toBe('SIP;cause=200')
  answer(server, text, 487)
  expect(server.takeDelivered().at(-1)?.sip).toContain('SIP/2.0 487')
})

test('a cancelled INVITE that is never answered ends as 487 after 64*T1', () => {
  const server = new VirtualServer()
  const { text, transactionId } = invite(server)
  answer(server, text, 180)
  server.command(`sip|${transactionId}|\r\n${sip('CANCEL sip:bob@192.0.2.20 SIP/2.0', [])}`)
  server.takeDelivered()
  server.advance(32_000)
  expect(server.takeDelivered().map((event) => event.sip.split('\r\n')[0])).toEqual([
    'SIP/2.0 487 Request Terminated',
  ])
  server.advance(40_000)
  const { applications, ...tables } = server.core.stats()
  expect(applications).toBe(1)
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

test('a 200 that the application never acknowledges is acknowledged and ended by the stack', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 200, 'bt', [])
  server.advance(32_000)
  expect(server.takeStartLines()).toEqual([
    'ACK sip:bob@192.0.2.20 SIP/2.0',
    'BYE sip:bob@192.0.2.20 SIP/2.0',
  ])
  expect(server.core.stats()['dialogs']).toBe(0)
})

// RFC 3261 §16.6 step 11, as drachtio-server does it for its user agents.
test('an INVITE that rings for ever is cancelled by timer C', () => {
  const server = new VirtualServer({ timers: { cMs: 185_000 } })
  const { text } = invite(server)
  answer(server, text, 180)
  server.advance(100_000)
  answer(server, text, 180)
  server.advance(184_000)
  expect(server.takeSent()).toEqual([])
  server.advance(1_000)
  expect(server.takeStartLines()).toEqual(['CANCEL sip:bob@192.0.2.20 SIP/2.0'])
})

test('sequence numbers rise by one in the dialog, and a re-INVITE is acknowledged with its own', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 200)
  acknowledge(server, text)
  const dialogId = dialogIdOf(text)
  server.takeSent()
  server.command(`sip||${dialogId}\r\n${sip('INVITE sip:placeholder SIP/2.0', [], sdp)}`)
  const [reinvite] = server.takeSent()
  answer(server, reinvite?.text ?? '', 200, 'bt')
  server.command(`sip||${dialogId}\r\n${sip('INFO sip:placeholder SIP/2.0', [])}`)
  acknowledge(server, text)
  const rest = server.takeSent()
  expect([reinvite, ...rest].map((sent) => header(sent?.text ?? '', 'CSeq'))).toEqual([
    '2 INVITE',
    '3 INFO',
    '2 ACK',
  ])
})

test('the route set of a UAC is the recorded route reversed, taken from the 200', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 180, 'bt', [contact, 'Record-Route: <sip:192.0.2.9;lr>'])
  answer(server, text, 200, 'bt', [contact, 'Record-Route: <sip:192.0.2.1;lr>, <sip:192.0.2.2;lr>'])
  acknowledge(server, text)
  const [ack] = server.takeSent()
  expect(ack?.text).toContain('Route: <sip:192.0.2.2;lr>\r\nRoute: <sip:192.0.2.1;lr>\r\n')
  expect(ack?.flow.address).toBe('192.0.2.2')
})

test('a BYE of the application ends the dialog with its answer, not with a challenge', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  answer(server, text, 200)
  acknowledge(server, text)
  server.takeSent()
  const bye = `sip||${dialogIdOf(text)}\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`
  server.command(bye)
  answer(server, server.takeSent()[0]?.text ?? '', 407)
  expect(server.core.stats()['dialogs']).toBe(1)
  server.command(bye)
  answer(server, server.takeSent()[0]?.text ?? '', 200)
  expect(server.core.stats()['dialogs']).toBe(0)
})

test.each([
  ['sip:bob@198.51.100.10', 'can not send request to myself'],
  ['sip:bob@192.0.2.20;transport=tls', 'requested protocol/transport not available'],
])('a request to %s is refused: %s', (uri, reason) => {
  const server = new VirtualServer()
  const id = server.command(`sip||\r\n${sip(`OPTIONS ${uri} SIP/2.0`, [])}`)
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'NOK', reason })
  expect(server.takeSent()).toEqual([])
})

test('a body of unknown type is refused, and SDP is recognized', () => {
  const server = new VirtualServer()
  server.command('sip||\r\nMESSAGE sip:bob@192.0.2.20 SIP/2.0\r\n\r\nhello')
  const refusal = { verdict: 'NOK', reason: 'missing content-type' }
  expect(server.takeDelivered()[0]).toMatchObject(refusal)
})

// RFC 3261 §17.1.2.2, RFC 4320 is about the other side.
test('a non-INVITE request is repeated at T1 doubling to T2 and ends as 408 after 64*T1', () => {
  const server = new VirtualServer()
  const start = server.now
  server.command(`sip||\r\n${sip('OPTIONS sip:bob@192.0.2.20 SIP/2.0', [])}`)
  server.takeDelivered()
  server.advance(33_000)
  expect(server.takeSent().map(({ at }) => at - start)).toEqual([
    0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500,
  ])
  expect(server.takeDelivered()[0]?.sip).toContain('SIP/2.0 408')
})
