import { expect, test } from 'vitest'
import { acknowledge, answered, invited, respond } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp, sip, tagIn } from '../../../../support/sip-core.ts'

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
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
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
    expect(bye?.flow.address).toBe('192.0.2.1')
  }
})

test('a BYE from the caller ends the dialog before the application has answered it', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(requestOf('BYE', { toTag, cseq: 2 }))
  const [event] = server.takeDelivered()
  expect(event?.dialogId).toBe('c1@203.0.113.7;from-tag=f1')
  expect(server.core.stats()['dialogs']).toBe(0)
  const id = server.command(
    `sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`,
  )
  expect(server.takeDelivered()[0]).toMatchObject({
    commandId: id,
    verdict: 'NOK',
    reason: 'Server error: unable to find dialog for dialog id provided',
  })
})

// RFC 3261 §15.1.2; the application has no dialog yet in which it could hear of a BYE.
test('a BYE before the answer ends the INVITE, and its application hears of it as of a CANCEL', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 183)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  server.takeDelivered()
  const bye = requestOf('BYE', { toTag, cseq: 2 })
  server.receive(bye)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  const [told, ...others] = server.takeDelivered()
  expect([told?.transactionId, told?.sip.split(' ', 1)[0], others]).toEqual([
    transactionId,
    'CANCEL',
    [],
  ])
  server.receive(bye)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK'])
  respond(server, transactionId, 200)
  expect(server.takeDelivered()[0]?.verdict).toBe('NOK')
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-INVITE-1' }))
  server.advance(64_000)
  const { applications: _, ...tables } = server.core.stats()
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

test('a BYE ends a re-INVITE that waits for the application', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  const again = requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-again', body: sdp })
  const transactionId = invited(server, again)
  server.receive(requestOf('BYE', { toTag, cseq: 3 }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 487 Request Terminated'])
  expect(server.takeDelivered().map(({ sip: text }) => text.split(' ', 1)[0])).toEqual(['BYE'])
  respond(server, transactionId, 200)
  expect(server.takeDelivered()[0]?.verdict).toBe('NOK')
  expect(server.takeStartLines()).toEqual([])
})
