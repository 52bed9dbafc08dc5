import { expect, test } from 'vitest'
import { answered, invited, respond } from '../../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tagIn,
  tcpCaller,
} from '../../../../support/sip-core.ts'

const contact = '<sip:18005551212@198.51.100.10:5060>'

test('an INVITE gets 100 Trying at once and goes to the application with its source', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({
    source: 'network',
    protocol: 'udp',
    address: '203.0.113.7',
    port: '5060',
    dialogId: '',
    localAddress: '198.51.100.10',
    localPort: '5060',
  })
  expect(event?.sip).toContain(sdp)
})

test('a repeated INVITE is answered with the last provisional and reaches no application twice', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 180)
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 180 Any'])
  expect(server.takeDelivered()).toEqual([])
})

// RFC 3261 §12.1.1: the caller's requests in an early dialog (UPDATE, BYE) go there.
test.each([180, 183])('a %i to an INVITE says where its early dialog is reached', (status) => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  respond(server, transactionId, 100)
  respond(server, transactionId, status)
  const sent = server.takeSent().map(({ text }) => header(text, 'Contact'))
  expect(sent.at(-1)).toBe(contact)
  expect(new Set(sent.slice(0, -1))).toEqual(new Set(['']))
})

// RFC 3261 §13.3.1.4, on every transport.
test.each([caller, tcpCaller])(
  'a 200 is repeated at T1, doubling to T2, until its ACK (connection $connectionId)',
  (flow) => {
    const server = new VirtualServer()
    const invite =
      flow === caller
        ? requestOf('INVITE', { body: sdp })
        : requestOf('INVITE', { via: 'SIP/2.0/TCP 203.0.113.7:5060;branch=z9hG4bK-t', body: sdp })
    respond(server, invited(server, invite, flow), 200)
    const start = server.now
    const [first] = server.takeSent()
    server.advance(8_000)
    expect(server.takeSent().map(({ at }) => at - start)).toEqual([500, 1_500, 3_500, 7_500])
    server.receive(
      requestOf('ACK', {
        toTag: tagIn(header(first?.text ?? '', 'To')),
        branch: 'z9hG4bK-ack',
        via: `SIP/2.0/${flow.listener.protocol.toUpperCase()} 203.0.113.7:5060;branch=z9hG4bK-ack`,
      }),
      flow,
    )
    server.advance(32_000)
    expect(server.takeSent()).toEqual([])
  },
)

test('the ACK of a 200 reaches the application once, with the dialog id and its body', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack', body: sdp }))
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack2', body: sdp }))
  const events = server.takeDelivered()
  expect(events).toHaveLength(1)
  expect(events[0]?.dialogId).toBe('c1@203.0.113.7;from-tag=f1')
  expect(events[0]?.sip).toContain(sdp)
})

test('an answer without its ACK ends with BYE after 64*T1, and the application learns it', () => {
  const server = new VirtualServer()
  answered(server)
  server.advance(32_000)
  const lines = server.takeStartLines()
  expect(lines.at(-1)).toBe('BYE sip:alice@203.0.113.7:5060 SIP/2.0')
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({
    transactionId: 'unsolicited',
    dialogId: 'c1@203.0.113.7;from-tag=f1',
  })
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

test('the ACK of a failure stays with the stack', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486)
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('ACK', { toTag: 'any', branch: 'z9hG4bK-INVITE-1' }))
  server.advance(32_000)
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()).toEqual([])
})

test('CANCEL is answered 200, the INVITE 487, and the application is told', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  const [event] = server.takeDelivered()
  expect(event?.sip.startsWith('CANCEL ')).toBe(true)
  expect(event).toMatchObject({ transactionId, dialogId: '', localAddress: '' })
  const id = respond(server, transactionId, 487)
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'NOK' })
})

test('a CANCEL that comes after the 200 changes nothing', () => {
  const server = new VirtualServer()
  answered(server)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK'])
  expect(server.takeDelivered()).toEqual([])
  expect(server.core.stats()['dialogs']).toBe(1)
})

test('what drachtio-srf wrote in small letters leaves in the usual spelling', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486, ['p-charge-info: <sip:x@y>', 'retry-after: 5', 'X-Own: 1'])
  expect(server.takeSent()[0]?.text).toMatch(/^P-Charge-Info: .*\r\nRetry-After: 5\r\nX-Own: 1\r$/m)
})

// RFC 5031.
test('who asks for help in an emergency by a URN reaches the application', () => {
  const server = new VirtualServer()
  const invite = requestOf('INVITE', { uri: 'urn:service:sos', body: sdp })
  respond(server, invited(server, invite), 200)
  const answer = server.takeSent()[0]?.text ?? ''
  expect([answer.split('\r\n', 1)[0], header(answer, 'Contact')]).toEqual([
    'SIP/2.0 200 Any',
    '<sip:198.51.100.10:5060>',
  ])
})
