import { expect, test } from 'vitest'
import {
  callee,
  caller,
  header,
  requestOf,
  responseOf,
  sdp,
  type SentMessage,
  VirtualServer,
} from '../../../../support/sip-core.ts'

interface Proxied {
  readonly server: VirtualServer
  /** Id of the `proxy` command. */
  readonly id: string
  /** Requests that went to destinations, so far. */
  readonly sent: readonly SentMessage[]
}

/** A caller's request that the application hands on. */
function proxied(
  options: {
    method?: string
    request?: Parameters<typeof requestOf>[1]
    destinations?: readonly string[]
    words?: string
    headers?: readonly string[]
  } = {},
): Proxied {
  const server = new VirtualServer()
  const { method = 'INVITE', request, words = '|fullResponse||serial||' } = options
  const { destinations = ['sip:192.0.2.20'], headers = [] } = options
  server.receive(requestOf(method, { extra: ['Supported: 100rel', 'X-Kept: yes'], ...request }))
  server.takeSent()
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  const message = ['INVITE sip:ignored SIP/2.0', ...headers, 'Content-Length: 0', '', ''].join(
    '\r\n',
  )
  const id = server.command(
    `proxy|${transactionId}|${words}|${destinations.join('|')}\r\n${message}`,
  )
  return { server, id, sent: server.takeSent() }
}

/** The answer of a destination, by the request that it got. */
function answerFrom(
  server: VirtualServer,
  request: SentMessage | undefined,
  status: number,
  options: Parameters<typeof responseOf>[2] = {},
): void {
  server.receive(responseOf(request?.text ?? '', status, options), request?.flow ?? callee)
}

const startLines = (messages: readonly SentMessage[]): string[] =>
  messages.map(({ text, flow }) => `${text.slice(0, text.indexOf('\r\n'))} > ${flow.address}`)

const repliesTo = (server: VirtualServer): string[] =>
  server
    .takeDelivered()
    .map(({ verdict, reason, sip }) =>
      `${verdict} ${reason} ${sip.slice(0, sip.indexOf('\r\n'))}`.trim(),
    )

test('a forwarded request has our Via on top of the completed ones, one hop less and nothing lost', () => {
  const { sent } = proxied({ request: { body: sdp, extra: ['Supported: 100rel', 'X-Kept: yes'] } })
  const [invite] = sent
  expect(startLines(sent)).toEqual(['INVITE sip:192.0.2.20 SIP/2.0 > 192.0.2.20'])
  const text = invite?.text ?? ''
  expect(text.match(/^Via: .*$/gm)).toEqual([
    expect.stringMatching(/^Via: SIP\/2\.0\/UDP 198\.51\.100\.10:5060;rport;branch=z9hG4bK/),
    'Via: SIP/2.0/UDP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1',
  ])
  expect(header(text, 'Max-Forwards')).toBe('69')
  expect(header(text, 'From')).toBe('<sip:alice@203.0.113.7>;tag=f1')
  expect(header(text, 'To')).toBe('<sip:18005551212@198.51.100.10>')
  expect(header(text, 'Contact')).toBe('<sip:alice@203.0.113.7:5060>')
  expect(header(text, 'X-Kept')).toBe('yes')
  expect(header(text, 'Record-Route')).toBe('')
  expect(text.endsWith(`\r\n\r\n${sdp}`)).toBe(true)
})

test('a Request-URI of another domain stays, and the destination is only the next hop', () => {
  const { sent } = proxied({ request: { uri: 'sip:bob@elsewhere.example' } })
  expect(startLines(sent)).toEqual(['INVITE sip:bob@elsewhere.example SIP/2.0 > 192.0.2.20'])
})

test("headers of the application take the place of those of the same name; the dialog's are not its to set", () => {
  const { sent } = proxied({ headers: ['x-kept: no', 'X-New: 1', 'From: <sip:mallory@x>;tag=9'] })
  const text = sent[0]?.text ?? ''
  expect(text.match(/^x-kept: .*$/gim)).toEqual(['x-kept: no'])
  expect(header(text, 'X-New')).toBe('1')
  expect(header(text, 'From')).toBe('<sip:alice@203.0.113.7>;tag=f1')
})

test('provisional answers go back at once without our Via, Trying does not; 2xx ends the matter', () => {
  const { server, sent } = proxied()
  answerFrom(server, sent[0], 100)
  expect(server.takeSent()).toEqual([])
  answerFrom(server, sent[0], 180, { toTag: 'b1' })
  answerFrom(server, sent[0], 200, {
    toTag: 'b1',
    body: sdp,
    extra: ['Contact: <sip:b@192.0.2.20>'],
  })
  const back = server.takeSent()
  expect(startLines(back)).toEqual([
    'SIP/2.0 180 Reason > 203.0.113.7',
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
  const { server, sent } = proxied({ destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'] })
  answerFrom(server, sent[0], 480, { toTag: 'b1' })
  const next = server.takeSent()
  expect(startLines(next)).toEqual([
    'ACK sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
    'INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answerFrom(server, next[1], 200, { toTag: 'b2' })
  expect(startLines(server.takeSent())).toEqual(['SIP/2.0 200 Reason > 203.0.113.7'])
  expect(repliesTo(server)).toEqual([
    'OK continue SIP/2.0 480 Reason',
    'OK continue SIP/2.0 200 Reason',
    'OK done',
  ])
})

test.each([
  { answers: [486, 603], best: 603 },
  { answers: [404, 484], best: 484 },
  { answers: [500, 404], best: 404 },
  { answers: [302, 500], best: 302 },
])('of the refusals $answers the caller gets $best', ({ answers, best }) => {
  const { server, sent } = proxied({
    destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
    words: '|fullResponse||simultaneous||',
  })
  expect(startLines(sent)).toEqual([
    'INVITE sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
    'INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answers.forEach((status, index) =>
    answerFrom(server, sent[index], status, { toTag: `b${index}` }),
  )
  const back = server.takeSent().filter(({ text }) => text.startsWith('SIP/2.0'))
  expect(startLines(back)).toEqual([`SIP/2.0 ${best} Reason > 203.0.113.7`])
})

test('a 503 of the only destination becomes 500: it says nothing about this server', () => {
  const { server, sent } = proxied()
  answerFrom(server, sent[0], 503, { toTag: 'b1' })
  expect(startLines(server.takeSent())).toContain('SIP/2.0 500 Server Internal Error > 203.0.113.7')
})

test('the first 2xx cancels the destinations that still ring, and their 487 goes nowhere', () => {
  const { server, sent } = proxied({
    destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
    words: '|fullResponse||simultaneous||',
  })
  answerFrom(server, sent[1], 180, { toTag: 'b2' })
  server.takeSent()
  answerFrom(server, sent[0], 200, { toTag: 'b1' })
  const next = server.takeSent()
  expect(startLines(next)).toEqual([
    'SIP/2.0 200 Reason > 203.0.113.7',
    'CANCEL sip:192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answerFrom(server, sent[1], 487, { toTag: 'b2' })
  expect(startLines(server.takeSent())).toEqual(['ACK sip:192.0.2.21 SIP/2.0 > 192.0.2.21'])
})

test('a challenge ends the search, and those of all destinations reach the caller', () => {
  const { server, sent } = proxied({
    destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
    words: '|fullResponse||simultaneous||',
  })
  const challenge = (realm: string) => ({ extra: [`Proxy-Authenticate: Digest realm="${realm}"`] })
  answerFrom(server, sent[0], 407, { toTag: 'b1', ...challenge('a') })
  answerFrom(server, sent[1], 407, { toTag: 'b2', ...challenge('b') })
  const back = server.takeSent().find(({ text }) => text.startsWith('SIP/2.0 407'))
  expect(back?.text.match(/realm="."/g)).toEqual(['realm="a"', 'realm="b"'])
})

test('the caller hangs up: the ringing destination is cancelled and its 487 goes back', () => {
  const { server, sent } = proxied({ destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'] })
  answerFrom(server, sent[0], 180, { toTag: 'b1' })
  server.takeSent()
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }), caller)
  expect(startLines(server.takeSent())).toEqual([
    'SIP/2.0 200 OK > 203.0.113.7',
    'CANCEL sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
  ])
  answerFrom(server, sent[0], 487, { toTag: 'b1' })
  expect(startLines(server.takeSent())).toEqual([
    'ACK sip:192.0.2.20 SIP/2.0 > 192.0.2.20',
    'SIP/2.0 487 Reason > 203.0.113.7',
  ])
})

test('a silent destination is given up after the provisional timeout; silence everywhere is 408', () => {
  const { server } = proxied({
    destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
    words: '|fullResponse||serial|2s|',
  })
  server.advance(1_999)
  expect(startLines(server.takeSent()).filter((line) => line.includes('192.0.2.21'))).toEqual([])
  server.advance(1)
  expect(startLines(server.takeSent())).toContain('INVITE sip:192.0.2.21 SIP/2.0 > 192.0.2.21')
  server.advance(2_000)
  expect(startLines(server.takeSent())).toContain('SIP/2.0 408 Request Timeout > 203.0.113.7')
  expect(repliesTo(server)).toEqual(['OK done'])
})

test('an INVITE that rings for ever is cancelled after timer C', () => {
  const { server, sent } = proxied()
  answerFrom(server, sent[0], 180, { toTag: 'b1' })
  server.takeSent()
  server.advance(185_000)
  expect(startLines(server.takeSent())).toContain('CANCEL sip:192.0.2.20 SIP/2.0 > 192.0.2.20')
  server.advance(32_000)
  expect(startLines(server.takeSent())).toContain('SIP/2.0 408 Request Timeout > 203.0.113.7')
})

test('redirections are followed by descending q and never in circles', () => {
  const { server, sent } = proxied({ words: '|fullResponse|followRedirects|serial||' })
  const extra = ['Contact: <sip:low@192.0.2.22>;q=0.1, <sip:high@192.0.2.21>;q=0.9']
  answerFrom(server, sent[0], 302, { toTag: 'b1', extra })
  const [, next] = server.takeSent()
  expect(startLines(next ? [next] : [])).toEqual([
    'INVITE sip:high@192.0.2.21 SIP/2.0 > 192.0.2.21',
  ])
  answerFrom(server, next, 302, { toTag: 'b2', extra: ['Contact: <sip:high@192.0.2.21>'] })
  expect(startLines(server.takeSent())).toContain('INVITE sip:low@192.0.2.22 SIP/2.0 > 192.0.2.22')
})

test('a request that may go no further is refused with 483, and the application is told', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE').replace('Max-Forwards: 70', 'Max-Forwards: 0'))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(
    `proxy|${transactionId}||fullResponse||serial|||sip:192.0.2.20\r\nINVITE sip:x SIP/2.0\r\n\r\n`,
  )
  expect(server.takeStartLines()).toContain('SIP/2.0 483 Too Many Hops')
  expect(server.takeDelivered()[0]).toMatchObject({
    verdict: 'NOK',
    reason: 'Rejected with 483 Too Many Hops',
  })
})

test('a timeout of a request that is no INVITE is not answered with 408 (RFC 4320)', () => {
  const { server } = proxied({ method: 'MESSAGE' })
  server.advance(40_000)
  expect(server.takeStartLines().filter((line) => line.startsWith('SIP/2.0'))).toEqual([])
  expect(server.core.stats()).toMatchObject({
    forwarding: 0,
    serverTransactions: 0,
    clientTransactions: 0,
  })
})

test('nothing is left of a forwarded call when all its transactions have ended', () => {
  const { server, sent } = proxied({
    destinations: ['sip:192.0.2.20', 'sip:192.0.2.21', 'sip:192.0.2.22'],
    words: 'remainInDialog|fullResponse||simultaneous|1s|9s',
  })
  answerFrom(server, sent[1], 180, { toTag: 'b2' })
  answerFrom(server, sent[0], 200, { toTag: 'b1' })
  answerFrom(server, sent[1], 487, { toTag: 'b2' })
  server.advance(300_000)
  const { applications, ...tables } = server.core.stats()
  expect(applications).toBe(1)
  expect(Object.entries(tables).filter(([, size]) => size !== 0)).toEqual([])
})
