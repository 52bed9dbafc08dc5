/** RFC 3261 §18.1.1 for what is forwarded: §16.6 makes requests longer than they came. */
import { expect, test } from 'vitest'
import {
  callee,
  header,
  requestOf,
  responseOf,
  sdp,
  type SentMessage,
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
