/**
 * Requests that the application hands on to destinations, and the dialogs in which the server
 * stays: RFC 3261 §16.
 */
import { expect, test } from 'vitest'
import { invited } from '../../../../support/caller.ts'
import {
  callee,
  caller,
  header,
  requestOf,
  responseOf,
  sdp,
  sip,
  type SentMessage,
  tcpCaller,
  VirtualServer,
} from '../../../../support/sip-core.ts'

const two = ['sip:192.0.2.20', 'sip:192.0.2.21']
const simultaneous = '|fullResponse||simultaneous||'

/** A caller's request that the application hands on; `sent` went to destinations at once. */
function proxied(
  options: {
    readonly method?: string
    readonly request?: Parameters<typeof requestOf>[1]
    readonly destinations?: readonly string[]
    readonly words?: string
  } = {},
) {
  const { method = 'INVITE', request, words = '|fullResponse||serial||' } = options
  const { destinations = ['sip:192.0.2.20'] } = options
  const server = new VirtualServer()
  server.receive(requestOf(method, request))
  server.takeSent()
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`proxy|${transactionId}|${words}|${destinations.join('|')}\r\n`)
  return { server, sent: server.takeSent() }
}

/** The answer of a destination, by the request that it got. */
function answerFrom(
  server: VirtualServer,
  request: SentMessage | undefined,
  status: number,
  options: Parameters<typeof responseOf>[2] = { toTag: 'b1' },
): void {
  server.receive(responseOf(request?.text ?? '', status, options), request?.flow ?? callee)
}

const startLines = (messages: readonly SentMessage[]): string[] =>
  messages.map(({ text, flow }) => `${text.slice(0, text.indexOf('\r\n'))} > ${flow.address}`)

const repliesTo = (server: VirtualServer): string[] =>
  server
    .takeDelivered()
    .map(({ verdict, reason, sip: text }) =>
      `${verdict} ${reason} ${text.slice(0, text.indexOf('\r\n'))}`.trim(),
    )

test('a forwarded request has our Via on top of the completed ones, one hop less and nothing lost', () => {
  const { sent } = proxied({ request: { body: sdp, extra: ['Supported: 100rel', 'X-Kept: yes'] } })
  expect(startLines(sent)).toEqual(['INVITE sip:192.0.2.20 SIP/2.0 > 192.0.2.20'])
  const text = sent[0]?.text ?? ''
  expect(text.match(/^Via: .*$/gm)).toEqual([
    expect.stringMatching(/^Via: SIP\/2\.0\/UDP 198\.51\.100\.10:5060;rport;branch=z9hG4bK/),
    'Via: SIP/2.0/UDP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1',
  ])
  const before = requestOf('INVITE')
  for (const name of ['From', 'To', 'Contact'])
    expect(header(text, name)).toBe(header(before, name))
  expect([header(text, 'Max-Forwards'), header(text, 'X-Kept')]).toEqual(['69', 'yes'])
  expect(header(text, 'Record-Route')).toBe('')
  expect(text.endsWith(`\r\n\r\n${sdp}`)).toBe(true)
})

test('provisional answers go back at once without our Via, Trying does not; 2xx ends the matter', () => {
  const { server, sent } = proxied()
  answerFrom(server, sent[0], 100)
  expect(server.takeSent()).toEqual([])
  answerFrom(server, sent[0], 180)
  for (let copy = 0; copy < 2; copy += 1)
    answerFrom(server, sent[0], 200, { toTag: 'b1', body: sdp })
  const back = server.takeSent()
  expect(startLines(back)).toEqual([
    'SIP/2.0 180 Reason > 203.0.113.7',
    'SIP/2.0 200 Reason > 203.0.113.7',
    // Only the caller can acknowledge it, so every copy goes back.
    'SIP/2.0 200 Reason > 203.0.113.7',
  ])
  const text = back[1]?.text ?? ''
  expect(text.match(/^Via: .*$/gm)).toEqual([
    'Via: SIP/2.0/UDP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1',
  ])
  expect(header(text, 'To')).toBe('<sip:18005551212@198.51.100.10>;tag=b1')
  expect(text.endsWith(sdp)).toBe(true)
  expect(repliesTo(server)).toEqual(['OK continue SIP/2.0 200 Reason', 'OK done'])
})

test('a failure is acknowledged hop by hop, and the next destination is tried', () => {
  const { server, sent } = proxied({ destinations: two })
  answerFrom(server, sent[0], 480)
  const next = server.takeSent()
  expect(startLines(next)).toEqual([
    'ACK sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
    'INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answerFrom(server, next[1], 200)
  expect(startLines(server.takeSent())).toEqual(['SIP/2.0 200 Reason > 203.0.113.7'])
  expect(repliesTo(server)).toEqual([
    'OK continue SIP/2.0 480 Reason',
    'OK continue SIP/2.0 200 Reason',
    'OK done',
  ])
})

test.each([
  { answers: [486, 603], best: '603 Reason' },
  { answers: [404, 484], best: '484 Reason' },
  { answers: [500, 404], best: '404 Reason' },
  { answers: [302, 500], best: '302 Reason' },
  // It says nothing about this server.
  { answers: [503, 503], best: '500 Server Internal Error' },
])('of the refusals $answers the caller gets $best', ({ answers, best }) => {
  const { server, sent } = proxied({ destinations: two, words: simultaneous })
  answers.forEach((status, index) => answerFrom(server, sent[index], status))
  const back = server.takeSent().filter(({ text }) => text.startsWith('SIP/2.0'))
  expect(startLines(back)).toEqual([`SIP/2.0 ${best} > 203.0.113.7`])
})

test('the first 2xx cancels the destinations that still ring, and their 487 goes nowhere', () => {
  const { server, sent } = proxied({ destinations: two, words: simultaneous })
  answerFrom(server, sent[1], 180)
  server.takeSent()
  answerFrom(server, sent[0], 200)
  expect(startLines(server.takeSent())).toEqual([
    'SIP/2.0 200 Reason > 203.0.113.7',
    'CANCEL sip:192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answerFrom(server, sent[1], 487)
  expect(startLines(server.takeSent())).toEqual(['ACK sip:192.0.2.21 SIP/2.0 > 192.0.2.21'])
})

test('the challenges of all destinations reach the caller', () => {
  const { server, sent } = proxied({ destinations: two, words: simultaneous })
  for (const [index, realm] of ['a', 'b'].entries())
    answerFrom(server, sent[index], 407, { extra: [`Proxy-Authenticate: Digest realm="${realm}"`] })
  const back = server.takeSent().find(({ text }) => text.startsWith('SIP/2.0 407'))
  expect(back?.text.match(/realm="."/g)).toEqual(['realm="a"', 'realm="b"'])
})

test('the caller hangs up: the ringing destination is cancelled and its 487 goes back', () => {
  const { server, sent } = proxied({ destinations: two })
  answerFrom(server, sent[0], 180)
  server.takeSent()
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }), caller)
  expect(startLines(server.takeSent())).toEqual([
    'SIP/2.0 200 OK > 203.0.113.7',
    'CANCEL sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
  ])
  answerFrom(server, sent[0], 487)
  expect(startLines(server.takeSent())).toEqual([
    'ACK sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
    'SIP/2.0 487 Reason > 203.0.113.7',
  ])
})

test('a silent destination is given up after the provisional timeout; silence everywhere is 408', () => {
  const { server } = proxied({ destinations: two, words: '|fullResponse||serial|2s|' })
  const next = 'INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21'
  server.advance(1_999)
  expect(startLines(server.takeSent())).not.toContain(next)
  server.advance(1)
  expect(startLines(server.takeSent())).toContain(next)
  server.advance(2_000)
  expect(startLines(server.takeSent())).toContain('SIP/2.0 408 Request Timeout > 203.0.113.7')
  expect(repliesTo(server)).toEqual(['OK done'])
})

test.each([
  ['the final timeout', '|fullResponse||serial|2s|5s', 5_000],
  ['timer C', '|fullResponse||serial||', 185_000],
])('a destination that rings longer than %s is cancelled for the next one', (_what, words, ms) => {
  const { server, sent } = proxied({ destinations: two, words })
  answerFrom(server, sent[0], 180)
  server.advance(ms)
  answerFrom(server, sent[0], 487)
  const lines = startLines(server.takeSent())
  expect(lines).toContain('CANCEL sip:192.0.2.20 SIP/2.0 > 192.0.2.20')
  expect(lines).toContain('INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21')
})

test('redirections are followed by descending q and never in circles', () => {
  const { server, sent } = proxied({ words: '|fullResponse|followRedirects|serial||' })
  const extra = ['Contact: <sip:low@192.0.2.22>;q=0.1, <sip:high@192.0.2.21>;q=0.9']
  answerFrom(server, sent[0], 302, { extra })
  const [, next] = server.takeSent()
  expect(next?.text).toMatch(/^INVITE sip:high@192\.0\.2\.21 /)
  answerFrom(server, next, 302, { extra: ['Contact: <sip:high@192.0.2.21>'] })
  expect(startLines(server.takeSent())).toContain('INVITE sip:low@192.0.2.22 SIP/2.0 > 192.0.2.22')
})

test('a request that may go no further is refused with 483, and the application is told', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE').replace('Max-Forwards: 70', 'Max-Forwards: 0'))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`proxy|${transactionId}||fullResponse||serial|||sip:192.0.2.20\r\n`)
  expect(server.takeStartLines()).toContain('SIP/2.0 483 Too Many Hops')
  expect(repliesTo(server)).toEqual(['NOK Rejected with 483 Too Many Hops'])
})

test('an extension that a proxy would have to know is refused with 420', () => {
  const { server, sent } = proxied({ request: { extra: ['Proxy-Require: nothing-we-know'] } })
  expect(header(sent[0]?.text ?? '', 'Unsupported')).toBe('nothing-we-know')
  expect(repliesTo(server)).toEqual(['NOK Rejected with 420 Bad Extension'])
})

test('a destination that cannot be read, or for which no listener has the transport, is 500', () => {
  for (const destination of ['sip:[nonsense', 'sip:192.0.2.20;transport=tls']) {
    const { sent } = proxied({ destinations: [destination] })
    expect(startLines(sent)).toEqual(['SIP/2.0 500 Server Internal Error > 203.0.113.7'])
  }
})

test('a timeout of a request that is no INVITE is not answered with 408 (RFC 4320)', () => {
  const { server } = proxied({ method: 'MESSAGE' })
  server.advance(40_000)
  expect(server.takeStartLines().filter((line) => line.startsWith('SIP/2.0'))).toEqual([])
  const none = { forwarding: 0, serverTransactions: 0, clientTransactions: 0 }
  expect(server.core.stats()).toMatchObject(none)
})

test('nothing is left of a forwarded call when all its transactions have ended', () => {
  const destinations = [...two, 'sip:192.0.2.22']
  const words = 'remainInDialog|fullResponse||simultaneous|1s|9s'
  const { server, sent } = proxied({ destinations, words })
  answerFrom(server, sent[1], 180)
  answerFrom(server, sent[0], 200)
  answerFrom(server, sent[1], 487)
  server.advance(300_000)
  const { applications: _, ...tables } = server.core.stats()
  expect(Object.entries(tables).filter(([, size]) => size !== 0)).toEqual([])
})

// RFC 3261 §6 (spiral), §16.3 step 4 (loop).
test('a request that comes back for another URI is a new one; for the same it went in a circle', () => {
  const server = new VirtualServer()
  server.command(`proxy|${invited(server)}||||serial|||sip:192.0.2.20\r\n`)
  const sent = server.takeSent()[0]?.text ?? ''
  server.takeDelivered()
  const sentBack = (uri: string, branch: string): readonly string[] => {
    const via = `\r\nVia: SIP/2.0/UDP 192.0.2.20;branch=z9hG4bK-${branch}\r\nVia:`
    server.receive(sent.replace(/^INVITE \S+/, `INVITE ${uri}`).replace('\r\nVia:', via), callee)
    return server.takeStartLines()
  }
  const loop = 'SIP/2.0 482 Loop Detected'
  const same = 'sip:18005551212@198.51.100.10'
  expect(sentBack('sip:other@198.51.100.10', 'spiral')).toEqual(['SIP/2.0 100 Trying'])
  expect(server.takeDelivered()[0]?.sip).toMatch(/^INVITE sip:other@/)
  expect(sentBack(same, 'loop')).toEqual([loop])
  server.receive(responseOf(sent, 200, { toTag: 'b1' }), callee)
  server.takeSent()
  expect(sentBack(same, 'late')).toEqual([loop])
})

/**
 * A call that was forwarded and answered, in which the server stays; its Record-Route values, the
 * nearest to the callee first.
 */
function forwardedCall(from = caller) {
  const server = new VirtualServer()
  const via = `SIP/2.0/${from === tcpCaller ? 'TCP' : 'UDP'} 203.0.113.7:5060;branch=z9hG4bK-INVITE-1`
  const transactionId = invited(server, requestOf('INVITE', { via }), from)
  server.command(`proxy|${transactionId}|remainInDialog|fullResponse||serial|||sip:192.0.2.20\r\n`)
  const invite = server.takeSent()[0]?.text ?? ''
  const entries = [...invite.matchAll(/^Record-Route: (.*)\r$/gm)].map(([, value = '']) => value)
  const routes = entries.map((entry) => `Record-Route: ${entry}`)
  const extra = ['Contact: <sip:bob@192.0.2.20>', ...routes]
  server.receive(responseOf(invite, 200, { toTag: 'b1', extra }), callee)
  server.takeSent()
  return { server, entries }
}

/** A request of the caller in that call. */
const fromCaller = (method: string, routes: readonly string[], changes: object = {}): string =>
  requestOf(method, {
    uri: 'sip:bob@192.0.2.20',
    toTag: 'b1',
    branch: `z9hG4bK-${method}-2`,
    cseq: method === 'ACK' ? 1 : 2,
    extra: routes.map((route) => `Route: ${route}`),
    ...changes,
  })

/** A request of the callee in that call. */
const fromCallee = (method: string, routes: readonly string[]): string =>
  sip(`${method} sip:alice@203.0.113.7:5060 SIP/2.0`, [
    `Via: SIP/2.0/UDP 192.0.2.20:5060;branch=z9hG4bK-${method}-b`,
    'Max-Forwards: 70',
    'From: <sip:18005551212@198.51.100.10>;tag=b1',
    'To: <sip:alice@203.0.113.7>;tag=f1',
    'Call-ID: c1@203.0.113.7',
    `CSeq: 7 ${method}`,
    ...routes.map((route) => `Route: ${route}`),
  ])

test('a request of either side follows the sealed route to the other, and its answer comes back', () => {
  const { server, entries } = forwardedCall()
  expect(entries).toEqual([
    expect.stringMatching(/^<sip:198\.51\.100\.10:5060;lr;seal=[\da-f]{32}>$/),
  ])
  server.receive(fromCaller('ACK', entries))
  const [ack, ...others] = server.takeSent()
  expect(startLines(ack ? [ack] : [])).toEqual(['ACK sip:bob@192.0.2.20 SIP/2.0 > 192.0.2.20'])
  expect([header(ack?.text ?? '', 'Route'), others]).toEqual(['', []])

  server.receive(fromCallee('BYE', entries), callee)
  const [bye] = server.takeSent()
  const line = 'BYE sip:alice@203.0.113.7:5060 SIP/2.0 > 203.0.113.7'
  expect(startLines(bye ? [bye] : [])).toEqual([line])
  server.receive(responseOf(bye?.text ?? '', 200), caller)
  expect(startLines(server.takeSent())).toEqual(['SIP/2.0 200 Reason > 192.0.2.20'])
  expect(server.takeDelivered().filter(({ sip: text }) => text.startsWith('BYE'))).toEqual([])
})

test('a Route without our seal, or with that of another call, opens no relay: 481', () => {
  const { server, entries } = forwardedCall()
  const gone = ['SIP/2.0 481 Call/Transaction Does Not Exist']
  server.receive(fromCaller('BYE', ['<sip:198.51.100.10:5060;lr>']))
  expect(server.takeStartLines()).toEqual(gone)
  server.receive(fromCaller('BYE', entries, { callId: 'another@203.0.113.7' }))
  expect(server.takeStartLines()).toEqual(gone)
  server.receive(fromCaller('ACK', entries, { callId: 'another@203.0.113.7' }))
  expect(server.takeSent()).toEqual([])
})

test('a strict router before us has our entry in the Request-URI, one after us gets its own there', () => {
  const { server, entries } = forwardedCall()
  const own = (entries[0] ?? '').slice(1, -1)
  server.receive(fromCaller('INFO', ['<sip:bob@192.0.2.20>'], { uri: own }))
  const before = server.takeSent()
  expect(startLines(before)).toEqual(['INFO sip:bob@192.0.2.20 SIP/2.0 > 192.0.2.20'])
  expect(header(before[0]?.text ?? '', 'Route')).toBe('')
  const other = forwardedCall()
  other.server.receive(fromCaller('INFO', [...other.entries, '<sip:192.0.2.77>']))
  const after = other.server.takeSent()
  expect(startLines(after)).toEqual(['INFO sip:192.0.2.77 SIP/2.0 > 192.0.2.77'])
  expect(header(after[0]?.text ?? '', 'Route')).toBe('<sip:bob@192.0.2.20>')
})

test('between two transports there are two entries, and a caller on a stream is reached on its own connection', () => {
  const { server, entries } = forwardedCall(tcpCaller)
  expect(entries).toEqual([
    expect.stringMatching(/^<sip:198\.51\.100\.10:5060;lr;seal=[\da-f]{32}>$/),
    expect.stringMatching(/^<sip:c7@198\.51\.100\.10:5060;transport=tcp;lr;seal=[\da-f]{32}>$/),
  ])
  server.receive(fromCallee('BYE', entries), callee)
  const [bye] = server.takeSent()
  expect([bye?.flow.listener.protocol, bye?.flow.connectionId]).toEqual(['tcp', 7])
})

test('a registration that is forwarded leaves its way back in Path', () => {
  const server = new VirtualServer()
  server.command('route|register')
  server.receive(requestOf('REGISTER', { uri: 'sip:198.51.100.10' }))
  const transactionId = server.takeDelivered().at(-1)?.transactionId ?? ''
  server.command(`proxy|${transactionId}|remainInDialog|||serial|||sip:192.0.2.20\r\n`)
  const register = server.takeSent().at(-1)?.text ?? ''
  expect(header(register, 'Path')).toMatch(/^<sip:198\.51\.100\.10:5060;lr;seal=/)
  expect([header(register, 'Require'), header(register, 'Record-Route')]).toEqual(['path', ''])
})
