/**
 * Calls that an application makes: RFC 3261 §9.1, §12, §13.2, §17.1. An INVITE that several
 * branches answer has an early dialog for each.
 */
import { expect, test } from 'vitest'
import { answer, called, calleeSdp, dialogIdOf, invite } from '../../../../support/callee.ts'
import {
  VirtualServer,
  callee,
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
  targetAt,
  udp,
} from '../../../../support/sip-core.ts'

/** The application sends an INVITE, which it may cancel. */
function calling(server: VirtualServer) {
  server.command(`sip||\r\n${sip('INVITE sip:bob@192.0.2.20 SIP/2.0', ['from: sip:a@x'], sdp)}`)
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  const text = server.takeSent()[0]?.text ?? ''
  const reason = 'Reason: SIP;cause=200'
  const cancel = (): string =>
    server.command(`sip|${transactionId}|\r\n${sip('CANCEL sip:bob@192.0.2.20 SIP/2.0', [reason])}`)
  return { text, transactionId, cancel }
}

/** A request of the application in the dialog of its INVITE; returns it as it left. */
function ask(server: VirtualServer, request: string, method: string, lines: string[] = []) {
  const body = method === 'INVITE' ? sdp : ''
  server.command(`sip||${dialogIdOf(request)}\r\n${sip(`${method} sip:p SIP/2.0`, lines, body)}`)
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

const methodsOf = (server: VirtualServer): (string | undefined)[] =>
  server.takeStartLines().map((line) => line.split(' ')[0])

const finals = (server: VirtualServer): string[] =>
  server.takeDelivered().map(({ sip: text }) => text.split('\r\n', 1)[0] ?? '')

test('an INVITE of the application is completed: Via, tag, Call-ID, CSeq, Contact, Max-Forwards, type', () => {
  const text = invite(new VirtualServer())
  expect(header(text, 'Via')).toMatch(/^SIP\/2\.0\/UDP 198\.51\.100\.10:5060;rport;branch=z9hG4bK/)
  expect(header(text, 'From')).toMatch(/^<sip:alice@198\.51\.100\.10:5060>;tag=./)
  expect(header(text, 'Call-ID')).not.toBe('')
  const names = ['To', 'Contact', 'Max-Forwards', 'CSeq', 'Content-Type']
  expect(names.map((name) => header(text, name))).toEqual([
    '<sip:bob@192.0.2.20>',
    '<sip:alice@198.51.100.10:5060>',
    '70',
    '1 INVITE',
    'application/sdp',
  ])
})

// RFC 3261 §17.1.1.2, §17.1.2.2.
test.each([
  ['INVITE', [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500]],
  ['OPTIONS', [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]],
])('an unanswered %s is repeated at %j ms and ends as 408 after 64*T1', (method, times) => {
  const server = new VirtualServer()
  const start = server.now
  server.command(`sip||\r\n${sip(`${method} sip:bob@192.0.2.20 SIP/2.0`, [])}`)
  server.takeDelivered()
  server.advance(32_000)
  expect(server.takeSent().map(({ at }) => at - start)).toEqual(times)
  expect(finals(server)).toEqual(['SIP/2.0 408 Request Timeout'])
  expect(server.core.stats()['outboundRequests']).toBe(0)
})

// RFC 3261 §17.1.1.3, §22.1.
test('a failure is acknowledged by the stack on the same branch with the credentials of its INVITE, again for every copy', () => {
  const server = new VirtualServer()
  const text = invite(server, ['proxy-authorization: Digest a="b"'])
  answer(server, text, 486)
  answer(server, text, 486)
  const [ack, ...again] = server.takeSent().map((sent) => sent.text)
  expect(again).toEqual([ack])
  const names = ['Via', 'CSeq', 'Proxy-Authorization']
  const expected = [header(text, 'Via'), '1 ACK', 'Digest a="b"']
  expect(names.map((name) => header(ack ?? '', name))).toEqual(expected)
  expect(tagIn(header(ack ?? '', 'To'))).toBe('bt')
  expect(server.takeDelivered()).toHaveLength(1)
})

// RFC 3261 §13.2.2.4.
test('the ACK of a 200 goes by its route set to the Contact, and again for every copy of the 200', () => {
  const server = new VirtualServer()
  const text = invite(server)
  answer(server, text, 180, { lines: ['Record-Route: <sip:192.0.2.9;lr>'] })
  const lines = ['Record-Route: <sip:192.0.2.1;lr>, <sip:192.0.2.2;lr>']
  answer(server, text, 200, { lines, body: calleeSdp })
  server.command(`sip||${dialogIdOf(text)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  const [ack] = server.takeSent()
  expect(ack?.text.startsWith('ACK sip:bob@192.0.2.20:5060 SIP/2.0\r\n')).toBe(true)
  expect(ack?.text).toContain('Route: <sip:192.0.2.2;lr>\r\nRoute: <sip:192.0.2.1;lr>\r\n')
  expect(ack?.flow.address).toBe('192.0.2.2')
  expect(header(ack?.text ?? '', 'Via')).not.toBe(header(text, 'Via'))
  answer(server, text, 200, { lines, body: calleeSdp })
  expect(server.takeSent().map((sent) => sent.text)).toEqual([ack?.text])
})

test('CANCEL waits for a provisional, then goes with the branch of the INVITE', () => {
  const server = new VirtualServer()
  const { text, cancel } = calling(server)
  const id = cancel()
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'OK' })
  answer(server, text, 180)
  const sent = server.takeSent()[0]?.text ?? ''
  expect(sent.startsWith('CANCEL sip:bob@192.0.2.20 SIP/2.0\r\n')).toBe(true)
  expect(header(sent, 'Via')).toBe(header(text, 'Via'))
  expect(header(sent, 'Reason')).toBe('SIP;cause=200')
  answer(server, text, 487)
  expect(finals(server).at(-1)).toMatch(/^SIP\/2\.0 487/)
})

test('a cancelled INVITE that is never answered ends as 487 after 64*T1', () => {
  const server = new VirtualServer()
  const { text, cancel } = calling(server)
  answer(server, text, 180)
  cancel()
  server.takeDelivered()
  server.advance(32_000)
  expect(finals(server)).toEqual(['SIP/2.0 487 Request Terminated'])
  server.advance(40_000)
  const { applications: _, ...tables } = server.core.stats()
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

test('a 200 that crosses the CANCEL is passed on, and ended once the application acknowledges it', () => {
  const server = new VirtualServer()
  const { text, cancel } = calling(server)
  answer(server, text, 180)
  cancel()
  answer(server, text, 200, { body: calleeSdp })
  server.takeSent()
  server.takeDelivered()
  server.command(`sip||${dialogIdOf(text)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  expect(methodsOf(server)).toEqual(['ACK', 'BYE'])
  expect(server.takeDelivered().at(-1)?.transactionId).toBe('unsolicited')
  expect(server.core.stats()['dialogs']).toBe(0)
})

test('a 200 that the application never acknowledges is acknowledged and ended by the stack', () => {
  const server = new VirtualServer()
  answer(server, invite(server), 200)
  server.advance(32_000)
  expect(methodsOf(server)).toEqual(['ACK', 'BYE'])
  expect(server.core.stats()['dialogs']).toBe(0)
})

// RFC 3261 §16.6 step 11, as drachtio-server does it for its user agents.
test('an INVITE that rings for ever is cancelled by timer C', () => {
  const server = new VirtualServer({ timers: { cMs: 185_000 } })
  const text = invite(server)
  answer(server, text, 180)
  server.advance(100_000)
  answer(server, text, 180)
  server.advance(184_000)
  expect(server.takeSent()).toEqual([])
  server.advance(1_000)
  expect(methodsOf(server)).toEqual(['CANCEL'])
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

// RFC 3261 §12.2.1.2, RFC 5057.
test.each([
  ['INVITE', 481, true],
  ['INVITE', 408, true],
  ['UPDATE', 408, true],
  ['INFO', 481, true],
  ['INFO', 408, false],
  ['INFO', 500, false],
  ['INVITE', 488, false],
  ['NOTIFY', 481, false],
  ['REFER', 481, false],
])('%s in a call that is answered %i ends it: %s', (method, status, isEnd) => {
  const server = new VirtualServer()
  const request = called(server, [])
  answer(server, ask(server, request, method), status)
  expect(methodsOf(server).includes('BYE')).toBe(isEnd)
  const [response, bye] = server.takeDelivered()
  expect(response?.sip.startsWith(`SIP/2.0 ${status}`)).toBe(true)
  const told = { transactionId: 'unsolicited', dialogId: dialogIdOf(request) }
  if (isEnd) expect(bye).toMatchObject(told)
  expect(server.core.stats()['dialogs']).toBe(isEnd ? 0 : 1)
})

test('by TLS the new connection of a dialog whose one was lost is for the same name, whatever address its Contact shows', () => {
  const host = 'sip.carrier.example'
  const tls = { ...udp, protocol: 'tls', port: 5061, advertisedPort: 5061 } as const
  const server = new VirtualServer({ listeners: [udp, tls] })
  const uri = `sip:bob@${host};transport=tls`
  server.command(`sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost'], sdp)}`)
  server.resolved(host, [targetAt(callee.address, 'tls', 5061)])
  const [sent] = server.takeSent()
  if (sent === undefined) throw new Error('nothing was sent')
  expect(sent.flow).toMatchObject({ address: callee.address, port: 5061, hostName: host })
  expect(sent.text).toContain('Via: SIP/2.0/TLS 198.51.100.10:5061;alias;branch=')

  const connection = { ...sent.flow, connectionId: 5 }
  const extra = [`Contact: <sip:bob@${callee.address}:5061;transport=tls>`]
  server.receive(responseOf(sent.text, 200, { toTag: 'bt', extra, body: sdp }), connection)
  server.command(`sip||${dialogIdOf(sent.text)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  expect(server.takeSent().map(({ flow }) => flow)).toEqual([connection])
  server.connectionClosed(connection)
  server.command(`sip||${dialogIdOf(sent.text)}\r\n${sip('BYE sip:p SIP/2.0', [])}`)
  expect(server.takeSent()[0]?.flow).toEqual({ ...sent.flow, connectionId: 0 })
})

const toAndCseq = (text = ''): string => `${tagIn(header(text, 'To'))} ${header(text, 'CSeq')}`

/** Both branches say something reliably; returns the INVITE. */
function branched(server: VirtualServer): string {
  const request = invite(server)
  for (const [toTag, rseq] of Object.entries({ one: 100, two: 900 })) {
    const lines = ['Require: 100rel', `RSeq: ${rseq}`]
    answer(server, request, 183, { toTag, lines, body: calleeSdp })
  }
  return request
}

test('each branch gets the PRACK for what it said, with numbers of its own', () => {
  const server = new VirtualServer()
  const request = branched(server)
  expect(server.takeDelivered().map(({ dialogId }) => dialogId)).toEqual([
    dialogIdOf(request),
    dialogIdOf(request),
  ])
  expect(toAndCseq(ask(server, request, 'PRACK', ['RAck: 900 1 INVITE']))).toBe('two 2 PRACK')
  expect(toAndCseq(ask(server, request, 'PRACK', ['RAck: 100 1 INVITE']))).toBe('one 2 PRACK')
})

test('the branch that answers goes on with its own numbers, the other one is acknowledged and ended', () => {
  const server = new VirtualServer()
  const request = branched(server)
  for (const [toTag, rseq] of Object.entries({ one: 100, two: 900 }))
    answer(server, ask(server, request, 'PRACK', [`RAck: ${rseq} 1 INVITE`]), 200, { toTag })
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  ask(server, request, 'ACK')
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => toAndCseq(text))).toEqual(['one 1 ACK', 'one 3 BYE'])
  expect(toAndCseq(ask(server, request, 'BYE'))).toBe('two 3 BYE')
})

test('after the call a copy of its 200 still gets the ACK, and the 200 of another branch ACK and BYE', () => {
  const server = new VirtualServer()
  const request = invite(server)
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  const ack = ask(server, request, 'ACK')
  answer(server, ask(server, request, 'BYE'), 200, { toTag: 'one' })
  expect(server.core.stats()['dialogs']).toBe(0)
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => text)).toEqual([ack])
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  expect(methodsOf(server)).toEqual(['ACK', 'BYE'])
})

test('a peer that invents tags fills no memory, and leaves none', () => {
  const server = new VirtualServer()
  const request = invite(server)
  for (let tag = 0; tag < 100; tag++) answer(server, request, 180, { toTag: `t${tag}` })
  expect(server.core.stats()['dialogs']).toBe(1)
  // The last of them are not known apart.
  const named = ask(server, request, 'PRACK', ['RAck: 1 1 INVITE', 'To: <sip:b@c>;tag=t99'])
  expect(header(named, 'To')).toContain('tag=t0')
  answer(server, named, 481)
  answer(server, request, 486)
  server.advance(64_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})
