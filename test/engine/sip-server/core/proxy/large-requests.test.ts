/** RFC 3261 §18.1.1 for what is forwarded: §16.6 makes requests longer than they came. */
import { expect, test } from 'vitest'
import {
  callee,
  header,
  requestOf,
  responseOf,
  sdp,
  type SentMessage,
  targetAt,
  udp,
  VirtualServer,
} from '../../../../support/sip-core.ts'

/** A request that is forwarded; alone it fits into a datagram. */
function forward(
  server: VirtualServer,
  destination: string,
  { bytes = 1_280, words = '|||serial||', method = 'INVITE' } = {},
): SentMessage | undefined {
  const bare = requestOf(method, { body: sdp, extra: ['X-Filling: '] })
  const filling = `X-Filling: ${'x'.repeat(bytes - bare.length)}`
  server.receive(requestOf(method, { body: sdp, extra: [filling] }))
  server.takeSent()
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`proxy|${transactionId}|${words}|${destination}\r\n`)
  return server.takeSent()[0]
}

const protocolOf = (sent: SentMessage | undefined) => sent?.flow.listener.protocol
const next = (server: VirtualServer): SentMessage | undefined => server.takeSent()[0]

test('what our Via makes larger than 1300 bytes goes by TCP, and says so', () => {
  const sent = forward(new VirtualServer(), 'sip:192.0.2.20', {
    words: 'remainInDialog|||serial||',
  })
  expect(sent?.flow).toMatchObject({ address: '192.0.2.20', port: 5060, connectMs: 1_000 })
  expect(header(sent?.text ?? '', 'Via')).toMatch(/^SIP\/2\.0\/TCP 198\.51\.100\.10:5060;branch=/)
  expect(header(sent?.text ?? '', 'Record-Route')).toContain(';transport=tcp;lr')
})

test('what stays small enough goes by UDP', () => {
  expect(protocolOf(forward(new VirtualServer(), 'sip:192.0.2.20', { bytes: 900 }))).toBe('udp')
})

test('a destination without TCP gets it by UDP at once, and the next ones without the detour', () => {
  const server = new VirtualServer()
  const first = forward(server, 'sip:192.0.2.20')
  server.sendFailed(first?.reference ?? '')
  const again = next(server)
  expect([protocolOf(first), protocolOf(again)]).toEqual(['tcp', 'udp'])
  expect(header(again?.text ?? '', 'Via')).toMatch(/^SIP\/2\.0\/UDP .*;rport;branch=/)
  expect(again?.reference).not.toBe(first?.reference)
  server.receive(responseOf(again?.text ?? '', 200, { toTag: 'b', body: sdp }), callee)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Reason'])

  const other = new VirtualServer()
  server.advance(64_000)
  server.takeDelivered()
  expect(protocolOf(forward(server, 'sip:192.0.2.20'))).toBe('udp')
  expect(protocolOf(forward(other, 'sip:192.0.2.20'))).toBe('tcp')
})

test.each(['sip:192.0.2.20;transport=udp', 'sip:192.0.2.20:5070;transport=UDP'])(
  '%s asks for UDP and gets it',
  (destination) => {
    expect(protocolOf(forward(new VirtualServer(), destination))).toBe('udp')
  },
)

test('without a TCP listener everything stays on UDP', () => {
  const server = new VirtualServer({ listeners: [udp] })
  expect(protocolOf(forward(server, 'sip:192.0.2.20'))).toBe('udp')
})

test('a destination that refuses or is silent by TCP is not asked again by UDP', () => {
  const server = new VirtualServer()
  const refused = forward(server, 'sip:192.0.2.20')
  server.receive(responseOf(refused?.text ?? '', 503), refused?.flow)
  expect(server.takeStartLines()).toEqual([
    expect.stringMatching(/^ACK /),
    'SIP/2.0 500 Server Internal Error',
  ])
  const other = new VirtualServer()
  expect(protocolOf(forward(other, 'sip:192.0.2.20'))).toBe('tcp')
  other.advance(32_000)
  expect(other.takeStartLines()).toEqual(['SIP/2.0 408 Request Timeout'])
})

test('every target of a host name is tried by TCP, then by UDP', () => {
  const server = new VirtualServer()
  forward(server, 'sip:pbx.example')
  server.resolved('pbx.example', [targetAt('192.0.2.1'), targetAt('192.0.2.2')])
  const ways: string[] = []
  for (let sent = next(server); sent?.text.startsWith('INVITE'); sent = next(server)) {
    ways.push(`${sent.flow.listener.protocol} ${sent.flow.address}`)
    server.sendFailed(sent.reference)
  }
  expect(ways).toEqual(['tcp 192.0.2.1', 'udp 192.0.2.1', 'tcp 192.0.2.2', 'udp 192.0.2.2'])
  expect(server.core.stats()).toMatchObject({ clientTransactions: 0, forwarding: 0 })
})

test('other methods move, too', () => {
  const server = new VirtualServer()
  expect(protocolOf(forward(server, 'sip:192.0.2.20', { method: 'MESSAGE' }))).toBe('tcp')
})
