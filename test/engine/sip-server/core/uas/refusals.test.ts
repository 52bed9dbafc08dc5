import { expect, test } from 'vitest'
import { acknowledge, answered, invited, respond } from '../../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tagIn,
  tcpCaller,
} from '../../../../support/sip-core.ts'

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

test('an INVITE that was refused may come again by another way, as serial forking does it', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486)
  server.takeDelivered()
  const again = requestOf('INVITE', { branch: 'z9hG4bK-next', body: sdp })
  respond(server, invited(server, again), 200)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any'])
  server.receive(requestOf('INVITE', { branch: 'z9hG4bK-too-late', body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 482 Loop Detected'])
})

test('a response to a request from a stream knows where to go when the connection is gone', () => {
  const server = new VirtualServer()
  const via = 'SIP/2.0/TCP 203.0.113.7:5070;branch=z9hG4bK-t'
  server.receive(requestOf('OPTIONS', { toTag: 'x', via }), tcpCaller)
  expect(server.takeSent()[0]?.flow).toMatchObject({ connectionId: 7, returnPort: 5070 })
})

// RFC 4475 §3.3.1: what cannot be copied is not made up.
test('a request without From, To and CSeq gets 400 that has no such header either', () => {
  const server = new VirtualServer()
  const crippled = requestOf('INVITE').replace(/^(From|To|CSeq):.*\r\n/gm, '')
  server.receive(crippled)
  const [refused] = server.takeSent()
  expect(refused?.text).toMatch(/^SIP\/2\.0 400 /)
  expect(refused?.text).toMatch(/^Call-ID: .+\r$/m)
  expect(refused?.text).not.toMatch(/^(From|To|CSeq):/m)
})

test('an application that never answers an INVITE costs the caller no more than the limit', () => {
  const server = new VirtualServer({ timers: { applicationMs: 64_000 } })
  invited(server)
  server.advance(64_000)
  expect(server.takeStartLines()[0]).toBe('SIP/2.0 480 Temporarily Unavailable')
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
    respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
  }
  server.advance(70_000)
  const { applications, ...tables } = server.core.stats()
  expect(applications).toBe(1)
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

test('a full server refuses what is new and lets the calls that it has end', () => {
  for (const limits of [{ maxUnanswered: 1 }, { maxDialogs: 1 }]) {
    const server = new VirtualServer({ limits })
    const toTag = answered(server)
    acknowledge(server, toTag)
    const others = { callId: 'c2', fromTag: 'f2' }
    server.receive(requestOf('INVITE', { ...others, branch: 'z9hG4bK-2', body: sdp }))
    server.receive(requestOf('OPTIONS', { ...others, branch: 'z9hG4bK-3' }))
    server.takeDelivered()
    const refused = server.takeSent().at(-1)?.text ?? ''
    expect(refused.startsWith('SIP/2.0 503 Service Unavailable\r\n')).toBe(true)
    expect(header(refused, 'Retry-After')).toBe('5')
    server.receive(requestOf('BYE', { toTag, cseq: 2 }))
    expect(server.takeDelivered()[0]?.sip.startsWith('BYE ')).toBe(true)
    expect(server.core.stats()['dialogs']).toBe(0)
  }
})
