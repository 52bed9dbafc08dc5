import { expect, test } from 'vitest'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  sip,
  tagIn,
  tcpCaller,
} from '../../../support/sip-core.ts'

const contact = '<sip:18005551212@198.51.100.10:5060>'

/** A caller's INVITE is with the application; returns the transaction id that it quotes. */
function invited(
  server: VirtualServer,
  invite = requestOf('INVITE', { body: sdp }),
  flow = caller,
) {
  server.receive(invite, flow)
  const event = server.takeDelivered()[0]
  expect(event?.tokens[1]).toBe('sip')
  server.takeSent()
  return event?.tokens[8] ?? ''
}

function respond(
  server: VirtualServer,
  transactionId: string,
  status: number,
  lines: string[] = [],
) {
  return server.command(
    `sip|${transactionId}|\r\n${sip(`SIP/2.0 ${status} Any`, lines, status === 200 ? sdp : '')}`,
  )
}

/** An answered call; returns our tag. */
function answered(server: VirtualServer): string {
  respond(server, invited(server), 200)
  const sent = server.takeSent()
  server.takeDelivered()
  return tagIn(header(sent[0]?.text ?? '', 'To'))
}

const acknowledge = (server: VirtualServer, toTag: string): void =>
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack' }))

test('an INVITE gets 100 Trying at once and goes to the application with its source', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  const [event] = server.takeDelivered()
  expect(event?.tokens.slice(2, 7)).toEqual([
    'network',
    expect.any(String),
    'udp',
    '203.0.113.7',
    '5060',
  ])
  expect(event?.tokens.slice(9)).toEqual(['', '198.51.100.10', '5060', ''])
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

test('the answer to a response names transaction and dialog, and shows tag and Contact as sent', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  const id = respond(server, transactionId, 200)
  const [reply] = server.takeDelivered()
  expect(reply?.tokens.slice(1, 4)).toEqual(['response', id, 'OK'])
  expect(reply?.tokens.slice(10, 14)).toEqual([
    transactionId,
    'c1@203.0.113.7;from-tag=f1',
    '',
    'Msg sent:',
  ])
  expect(header(reply?.sip ?? '', 'Contact')).toBe(contact)
  expect(tagIn(header(reply?.sip ?? '', 'To'))).not.toBe('')
})

test('all responses to one INVITE carry the same tag, and 100 carries none', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  const transactionId = server.takeDelivered()[0]?.tokens[8] ?? ''
  for (const status of [180, 183, 200]) respond(server, transactionId, status)
  const tags = server.takeSent().map(({ text }) => tagIn(header(text, 'To')))
  expect(tags[0]).toBe('')
  expect(new Set(tags.slice(1)).size).toBe(1)
})

test('the application may choose our tag in its first response, and not later', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 180, ['To: <sip:x@y>;tag=chosen'])
  respond(server, transactionId, 200, ['To: <sip:x@y>;tag=other'])
  const tags = server.takeSent().map(({ text }) => tagIn(header(text, 'To')))
  expect(tags).toEqual(['chosen', 'chosen'])
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
  expect(events[0]?.tokens[9]).toBe('c1@203.0.113.7;from-tag=f1')
  expect(events[0]?.sip).toContain(sdp)
})

test('an answer that nobody acknowledges ends with BYE after 64*T1, and the application learns it', () => {
  const server = new VirtualServer()
  answered(server)
  server.advance(32_000)
  const lines = server.takeStartLines()
  expect(lines.at(-1)).toBe('BYE sip:alice@203.0.113.7:5060 SIP/2.0')
  const [event] = server.takeDelivered()
  expect(event?.tokens.slice(8, 10)).toEqual(['unsolicited', 'c1@203.0.113.7;from-tag=f1'])
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
  expect(event?.tokens.slice(8, 11)).toEqual([transactionId, '', ''])
  const id = respond(server, transactionId, 487)
  expect(server.takeDelivered()[0]?.tokens.slice(2, 4)).toEqual([id, 'NOK'])
})

test('a CANCEL that comes after the 200 changes nothing', () => {
  const server = new VirtualServer()
  answered(server)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK'])
  expect(server.takeDelivered()).toEqual([])
  expect(server.core.stats()['dialogs']).toBe(1)
})

test('a CANCEL that matches nothing gets 481', () => {
  const server = new VirtualServer()
  server.receive(requestOf('CANCEL'))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
})

test.each(['BYE', 'UPDATE', 'PRACK', 'INFO', 'INVITE'])(
  '%s with an unknown tag gets 481',
  (method) => {
    const server = new VirtualServer()
    server.receive(requestOf(method, { toTag: 'unknown', extra: ['RAck: 1 1 INVITE'] }))
    expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  },
)

test('an ACK that matches nothing is never answered', () => {
  const server = new VirtualServer()
  server.receive(requestOf('ACK', { toTag: 'unknown' }))
  expect(server.takeSent()).toEqual([])
})

// RFC 3261 §12.2.2.
test('a request with a lower sequence number than the last one gets 500', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.receive(requestOf('INFO', { toTag, cseq: 5, branch: 'z9hG4bK-i5' }))
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('INFO', { toTag, cseq: 4, branch: 'z9hG4bK-i4' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 500 Server Internal Error'])
  expect(server.takeDelivered()).toEqual([])
})

// RFC 3261 §14.2.
test('a second re-INVITE while one is open gets 500, one while ours is open gets 491', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.receive(requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-r2' }))
  server.receive(requestOf('INVITE', { toTag, cseq: 3, branch: 'z9hG4bK-r3' }))
  expect(server.takeStartLines()).toEqual([
    'SIP/2.0 100 Trying',
    'SIP/2.0 500 Server Internal Error',
  ])

  const other = new VirtualServer()
  const otherTag = answered(other)
  acknowledge(other, otherTag)
  other.command(
    `sip||c1@203.0.113.7;from-tag=f1\r\n${sip('INVITE sip:placeholder SIP/2.0', [], sdp)}`,
  )
  other.takeSent()
  other.receive(requestOf('INVITE', { toTag: otherTag, cseq: 2, branch: 'z9hG4bK-r2' }))
  expect(other.takeStartLines()).toEqual(['SIP/2.0 491 Request Pending'])
})

test('a re-INVITE moves the remote target: the BYE of ours goes to the new Contact', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(
    requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-r2' }).replace(
      'Contact: <sip:alice@203.0.113.7:5060>',
      'Contact: <sip:alice@203.0.113.9:5070>',
    ),
  )
  const transactionId = server.takeDelivered()[0]?.tokens[8] ?? ''
  respond(server, transactionId, 200)
  acknowledge(server, toTag)
  server.takeSent()
  server.command(`sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
  const [bye] = server.takeSent()
  expect(bye?.text.startsWith('BYE sip:alice@203.0.113.9:5070 SIP/2.0\r\n')).toBe(true)
  expect(bye?.flow).toMatchObject({ address: '203.0.113.9', port: 5070 })
})

// RFC 3261 §12.1.1 and §16.12.1.
test('a dialog goes back by the recorded route, loose or strict', () => {
  for (const [route, expected] of [
    ['<sip:192.0.2.1;lr>', ['BYE sip:alice@203.0.113.7:5060 SIP/2.0', '<sip:192.0.2.1;lr>']],
    ['<sip:192.0.2.1>', ['BYE sip:192.0.2.1 SIP/2.0', '<sip:alice@203.0.113.7:5060>']],
  ] as const) {
    const server = new VirtualServer()
    const invite = requestOf('INVITE', { extra: [`Record-Route: ${route}`], body: sdp })
    respond(server, invited(server, invite), 200)
    const [ok] = server.takeSent()
    expect(header(ok?.text ?? '', 'Record-Route')).toBe(route)
    acknowledge(server, tagIn(header(ok?.text ?? '', 'To')))
    server.command(`sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
    const [bye] = server.takeSent()
    expect([bye?.text.split('\r\n')[0], header(bye?.text ?? '', 'Route')]).toEqual(expected)
    if (route.includes('lr')) expect(bye?.flow.address).toBe('192.0.2.1')
  }
})

// RFC 3261 §18.2.1-2, RFC 3581 §4.
test('responses go to the source address, and to the source port only where rport asks for it', () => {
  const source = { ...caller, address: '203.0.113.99', port: 31_000 }
  const server = new VirtualServer()
  server.receive(requestOf('OPTIONS', { toTag: 'x' }), source)
  const [plain] = server.takeSent()
  expect(header(plain?.text ?? '', 'Via')).toContain(';received=203.0.113.99')
  expect(plain?.flow).toMatchObject({ address: '203.0.113.99', port: 5060 })

  server.receive(
    requestOf('OPTIONS', {
      toTag: 'x',
      via: 'SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK-o',
    }),
    source,
  )
  const [symmetric] = server.takeSent()
  expect(header(symmetric?.text ?? '', 'Via')).toBe(
    'SIP/2.0/UDP 203.0.113.7:5060;rport=31000;branch=z9hG4bK-o;received=203.0.113.99',
  )
  expect(symmetric?.flow).toMatchObject({ address: '203.0.113.99', port: 31_000 })
})

// RFC 3261 §8.2.2.2.
test('the same INVITE by another way gets 482, and the first one goes on', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.receive(requestOf('INVITE', { branch: 'z9hG4bK-other-way', body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 482 Loop Detected'])
  respond(server, transactionId, 200)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any'])
})

test('a BYE from the caller ends the dialog before the application has answered it', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(requestOf('BYE', { toTag, cseq: 2 }))
  const [event] = server.takeDelivered()
  expect(event?.tokens[9]).toBe('c1@203.0.113.7;from-tag=f1')
  expect(server.core.stats()['dialogs']).toBe(0)
  const id = server.command(
    `sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`,
  )
  expect(server.takeDelivered()[0]?.tokens.slice(2, 5)).toEqual([
    id,
    'NOK',
    'Server error: unable to find dialog for dialog id provided',
  ])
})

test('methods nobody asked for get 405 with Allow, unknown ones 501, and no application at all 503', () => {
  const server = new VirtualServer()
  server.receive(requestOf('REGISTER'))
  server.receive(requestOf('FROBNICATE'))
  const [notAllowed, unknown] = server.takeSent()
  expect(notAllowed?.text).toContain('SIP/2.0 405 Method Not Allowed\r\n')
  expect(header(notAllowed?.text ?? '', 'Allow')).toContain('INVITE')
  expect(unknown?.text).toContain('SIP/2.0 501 Not Implemented\r\n')
  server.disconnect(1)
  server.receive(requestOf('INVITE', { callId: 'c2' }))
  const [refused] = server.takeSent()
  expect(refused?.text).toContain('SIP/2.0 503 Service Unavailable\r\n')
  expect(header(refused?.text ?? '', 'Retry-After')).toBe('5')
})

test('an application that never answers an INVITE costs the caller no more than the limit', () => {
  const server = new VirtualServer({ timers: { applicationMs: 64_000 } })
  invited(server)
  server.advance(64_000)
  expect(server.takeStartLines()[0]).toBe('SIP/2.0 480 Temporarily Unavailable')
})

test('an application that goes away leaves no call behind: pending ones 503, answered ones BYE', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  invited(server, requestOf('INVITE', { callId: 'c2', fromTag: 'f2', branch: 'z9hG4bK-2' }))
  server.disconnect(1)
  const lines = server.takeStartLines()
  expect(lines).toContain('SIP/2.0 503 Service Unavailable')
  expect(lines).toContain('BYE sip:alice@203.0.113.7:5060 SIP/2.0')
})

test('after every call has ended and 64*T1 have passed, all tables are empty', () => {
  const server = new VirtualServer()
  for (let call = 0; call < 50; call++) {
    const names = { callId: `c${call}`, fromTag: `f${call}` }
    const invite = requestOf('INVITE', { ...names, branch: `z9hG4bK-i${call}`, body: sdp })
    server.takeDelivered()
    const transactionId = invited(server, invite)
    if (call % 3 === 0) respond(server, transactionId, 486)
    if (call % 3 === 1)
      server.receive(requestOf('CANCEL', { ...names, branch: `z9hG4bK-i${call}` }))
    if (call % 3 !== 2) continue
    respond(server, transactionId, 200)
    const toTag = tagIn(header(server.takeSent().at(-1)?.text ?? '', 'To'))
    server.receive(requestOf('ACK', { ...names, toTag, branch: `z9hG4bK-a${call}` }))
    server.takeDelivered()
    server.receive(requestOf('BYE', { ...names, toTag, cseq: 2, branch: `z9hG4bK-b${call}` }))
    respond(server, server.takeDelivered()[0]?.tokens[8] ?? '', 200)
  }
  server.advance(70_000)
  const { applications, ...tables } = server.core.stats()
  expect(applications).toBe(1)
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})
