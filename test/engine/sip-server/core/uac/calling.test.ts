/** Answers that end the dialog they came in: RFC 3261 §12.2.1.2, RFC 5057. */
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
  targetAt,
  udp,
} from '../../../../support/sip-core.ts'
import {
  answer,
  called,
  dialogIdOf,
  calleeSdp,
  invite as begin,
} from '../../../../support/callee.ts'

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

function reply(
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

// RFC 3261 §17.1.1.3.
test('a failure is acknowledged by the stack on the same branch, again for every copy', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  reply(server, text, 486)
  reply(server, text, 486)
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
  reply(server, text, 403)
  const [ack] = server.takeSent()
  expect(header(ack?.text ?? '', 'Proxy-Authorization')).toBe('Digest a="b"')
})

// RFC 3261 §13.2.2.4.
test('the ACK of a 200 goes to the Contact with a new branch, and again for every copy of the 200', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  reply(server, text, 200, 'bt', ['Contact: <sip:bob@192.0.2.77:5070>'])
  acknowledge(server, text)
  const [ack] = server.takeSent()
  expect(ack?.text.startsWith('ACK sip:bob@192.0.2.77:5070 SIP/2.0\r\n')).toBe(true)
  expect(ack?.flow).toMatchObject({ address: '192.0.2.77', port: 5070 })
  expect(header(ack?.text ?? '', 'Via')).not.toBe(header(text, 'Via'))
  reply(server, text, 200)
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
  reply(server, text, 180)
  const [cancel] = server.takeSent()
  expect(cancel?.text.startsWith('CANCEL sip:bob@192.0.2.20 SIP/2.0\r\n')).toBe(true)
  expect(header(cancel?.text ?? '', 'Via')).toBe(header(text, 'Via'))
  expect(header(cancel?.text ?? '', 'Reason')).toBe('SIP;cause=200')
  reply(server, text, 487)
  expect(server.takeDelivered().at(-1)?.sip).toContain('SIP/2.0 487')
})

test('a cancelled INVITE that is never answered ends as 487 after 64*T1', () => {
  const server = new VirtualServer()
  const { text, transactionId } = invite(server)
  reply(server, text, 180)
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

test('a 200 that crosses the CANCEL is passed on, and ended once the application acknowledges it', () => {
  const server = new VirtualServer()
  const { text, transactionId } = invite(server)
  reply(server, text, 180)
  server.command(`sip|${transactionId}|\r\n${sip('CANCEL sip:bob@192.0.2.20 SIP/2.0', [])}`)
  reply(server, text, 200)
  server.takeSent()
  server.takeDelivered()
  acknowledge(server, text)
  expect(server.takeStartLines()).toEqual([
    'ACK sip:bob@192.0.2.20:5060 SIP/2.0',
    'BYE sip:bob@192.0.2.20:5060 SIP/2.0',
  ])
  expect(server.takeDelivered().at(-1)?.transactionId).toBe('unsolicited')
  expect(server.core.stats()['dialogs']).toBe(0)
})

test('a 200 that the application never acknowledges is acknowledged and ended by the stack', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  reply(server, text, 200, 'bt', [])
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
  reply(server, text, 180)
  server.advance(100_000)
  reply(server, text, 180)
  server.advance(184_000)
  expect(server.takeSent()).toEqual([])
  server.advance(1_000)
  expect(server.takeStartLines()).toEqual(['CANCEL sip:bob@192.0.2.20 SIP/2.0'])
})

test('the route set of a UAC is the recorded route reversed, taken from the 200', () => {
  const server = new VirtualServer()
  const { text } = invite(server)
  reply(server, text, 180, 'bt', [contact, 'Record-Route: <sip:192.0.2.9;lr>'])
  reply(server, text, 200, 'bt', [contact, 'Record-Route: <sip:192.0.2.1;lr>, <sip:192.0.2.2;lr>'])
  acknowledge(server, text)
  const [ack] = server.takeSent()
  expect(ack?.text).toContain('Route: <sip:192.0.2.2;lr>\r\nRoute: <sip:192.0.2.1;lr>\r\n')
  expect(ack?.flow.address).toBe('192.0.2.2')
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

function ask(server: VirtualServer, invite: string, method: string): string {
  const body = method === 'INVITE' ? sdp : ''
  server.command(`sip||${dialogIdOf(invite)}\r\n${sip(`${method} sip:p SIP/2.0`, [], body)}`)
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

test.each([
  ['INVITE', 481],
  ['INVITE', 408],
  ['UPDATE', 408],
  ['INFO', 481],
])(
  '%s that is answered %i ends the call: BYE, and the application hears of both',
  (method, status) => {
    const server = new VirtualServer()
    const invite = called(server, [])
    answer(server, ask(server, invite, method), status)
    expect(server.takeStartLines().at(-1)).toBe('BYE sip:bob@192.0.2.20:5060 SIP/2.0')
    const [response, bye] = server.takeDelivered()
    expect(response?.sip.startsWith(`SIP/2.0 ${status}`)).toBe(true)
    expect(bye).toMatchObject({ transactionId: 'unsolicited', dialogId: dialogIdOf(invite) })
    expect(server.core.stats()['dialogs']).toBe(0)
  },
)

test.each([
  ['INFO', 408],
  ['INFO', 500],
  ['INVITE', 488],
  ['NOTIFY', 481],
  ['REFER', 481],
])('%s that is answered %i does not', (method, status) => {
  const server = new VirtualServer()
  const invite = called(server, [])
  answer(server, ask(server, invite, method), status)
  expect(server.takeStartLines().filter((line) => line.startsWith('BYE'))).toEqual([])
  expect(server.core.stats()['dialogs']).toBe(1)
})

const tls = { ...udp, protocol: 'tls', port: 5061, advertisedPort: 5061 } as const
const host = 'sip.carrier.example'

test('in a dialog whose connection was lost, the new one is for the same name', () => {
  const server = new VirtualServer({ listeners: [udp, tls] })
  const uri = `sip:bob@${host};transport=tls`
  server.command(`sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost'], sdp)}`)
  server.resolved(host, [targetAt(callee.address, 'tls', 5061)])
  const [invite] = server.takeSent()
  if (invite === undefined) throw new Error('nothing was sent')
  expect(invite.flow).toMatchObject({ address: callee.address, port: 5061, hostName: host })
  expect(invite.text).toContain('Via: SIP/2.0/TLS 198.51.100.10:5061;alias;branch=')

  const connection = { ...invite.flow, connectionId: 5 }
  const contact = `Contact: <sip:bob@${callee.address}:5061;transport=tls>`
  const content = { toTag: 'bt', extra: [contact], body: sdp }
  server.receive(responseOf(invite.text, 200, content), connection)
  const dialogId = server.takeDelivered().at(-1)?.dialogId ?? ''
  server.command(`sip||${dialogId}\r\n${sip('ACK sip:placeholder SIP/2.0', [])}`)
  expect(server.takeSent().map(({ flow }) => flow)).toEqual([connection])

  server.connectionClosed(connection)
  server.command(`sip||${dialogId}\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
  const [bye] = server.takeSent()
  expect(bye?.flow).toEqual({ ...invite.flow, connectionId: 0 })
})

const reliable = (rseq: number) => ['Require: 100rel', `RSeq: ${rseq}`]

const prack = (server: VirtualServer, request: string, rseq: number, lines: string[] = []) => {
  const rack = `RAck: ${rseq} 1 INVITE`
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('PRACK sip:p SIP/2.0', [rack, ...lines])}`)
  return server.takeSent()[0]?.text ?? ''
}

test('each branch gets the PRACK for what it said, with numbers of its own', () => {
  const server = new VirtualServer()
  const request = begin(server)
  answer(server, request, 183, { toTag: 'one', lines: reliable(100), body: calleeSdp })
  answer(server, request, 183, { toTag: 'two', lines: reliable(900), body: calleeSdp })
  const ids = server.takeDelivered().map(({ dialogId }) => dialogId)
  expect(ids).toEqual([dialogIdOf(request), dialogIdOf(request)])
  const second = prack(server, request, 900)
  const first = prack(server, request, 100)
  expect([header(first, 'To'), header(first, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=one',
    '2 PRACK',
  ])
  expect([header(second, 'To'), header(second, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=two',
    '2 PRACK',
  ])
})

test('the branch that answers goes on with its own numbers, the other one is acknowledged and ended', () => {
  const server = new VirtualServer()
  const request = begin(server)
  for (const [toTag, rseq] of [
    ['one', 1],
    ['two', 50],
  ] as const) {
    answer(server, request, 183, { toTag, lines: reliable(rseq), body: calleeSdp })
    answer(server, prack(server, request, rseq), 200, { toTag })
  }
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  server.takeSent()
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  const [ack, bye] = server.takeSent().map(({ text }) => text)
  expect([header(ack ?? '', 'To'), header(bye ?? '', 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=one',
    '3 BYE',
  ])
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('BYE sip:p SIP/2.0', [])}`)
  const ours = server.takeSent()[0]?.text ?? ''
  expect([header(ours, 'To'), header(ours, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=two',
    '3 BYE',
  ])
})

test('after the call a copy of its 200 still gets the ACK, and the 200 of another branch ACK and BYE', () => {
  const server = new VirtualServer()
  const request = begin(server)
  const inDialog = (method: string): string => {
    server.command(`sip||${dialogIdOf(request)}\r\n${sip(`${method} sip:p SIP/2.0`, [])}`)
    return server.takeSent()[0]?.text ?? ''
  }
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  const ack = inDialog('ACK')
  answer(server, inDialog('BYE'), 200, { toTag: 'one' })
  expect(server.core.stats()['dialogs']).toBe(0)
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => text)).toEqual([ack])
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => text.split(' ')[0])).toEqual(['ACK', 'BYE'])
})

test('a peer that invents tags fills no memory, and leaves none', () => {
  const server = new VirtualServer()
  const request = begin(server)
  for (let tag = 0; tag < 100; tag++) answer(server, request, 180, { toTag: `t${tag}` })
  expect(server.core.stats()['dialogs']).toBe(1)
  // The last of them are not known apart.
  const named = prack(server, request, 1, ['To: <sip:b@c>;tag=t99'])
  expect(header(named, 'To')).toContain('tag=t0')
  answer(server, named, 481)
  answer(server, request, 486)
  server.advance(64_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})
