/**
 * RFC 3261 §18.1.1: what is larger than 1300 bytes goes by TCP where the peer has it, forwarded
 * requests, too.
 */
import { expect, test } from 'vitest'
import {
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
  targetAt,
  udp,
  VirtualServer,
  requestOf,
  type SentMessage,
} from '../../../support/sip-core.ts'

const large = `X-Filling: ${'x'.repeat(1_300)}`

function send(
  server: VirtualServer,
  uri = 'sip:bob@192.0.2.20',
  lines: readonly string[] = [large],
) {
  server.command(
    `sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost', ...lines], sdp)}`,
  )
  const [sent] = server.takeSent()
  const [reply] = server.takeDelivered()
  return { sent, reply, text: sent?.text ?? '', protocol: sent?.flow.listener.protocol }
}

/** Fills a request up to `bytes`, some of them in letters of more than one byte. */
function filled(bytes: number): readonly string[] {
  const empty = new VirtualServer()
  const missing = bytes - Buffer.byteLength(send(empty, undefined, ['X-Filling: é']).text)
  return [`X-Filling: é${'x'.repeat(missing)}`]
}

test('up to 1300 bytes it is UDP, from the next byte on TCP', () => {
  const server = new VirtualServer()
  const fits = send(server, undefined, filled(1_300))
  expect(Buffer.byteLength(fits.text)).toBe(1_300)
  expect(fits.protocol).toBe('udp')
  expect(send(server, undefined, filled(1_301)).protocol).toBe('tcp')
})

test('Via and Contact say TCP, the application hears what was sent, and connecting must be quick', () => {
  const { sent, reply, text } = send(new VirtualServer())
  expect(sent?.flow).toMatchObject({ address: '192.0.2.20', port: 5060, connectMs: 1_000 })
  expect(header(text, 'Via')).toMatch(/^SIP\/2\.0\/TCP /)
  expect(header(text, 'Contact')).toBe('<sip:a@198.51.100.10:5060;transport=tcp>')
  expect(reply?.sip).toBe(text)
  expect(reply?.protocol).toBe('tcp')
})

test('a peer without TCP gets it by UDP at once, and the next ones without the detour', () => {
  const server = new VirtualServer()
  const { sent } = send(server)
  server.sendFailed(sent?.reference ?? '')
  const [again] = server.takeSent()
  expect(again?.flow.listener.protocol).toBe('udp')
  expect(header(again?.text ?? '', 'Via')).toMatch(/^SIP\/2\.0\/UDP .*;rport;branch=/)
  expect(header(again?.text ?? '', 'Contact')).toBe('<sip:a@198.51.100.10:5060>')
  expect(again?.reference).not.toBe(sent?.reference)
  expect(server.takeDelivered()).toEqual([])

  expect(send(server).protocol).toBe('udp')
  expect(send(server, 'sip:bob@192.0.2.21').protocol).toBe('tcp')
  server.advance(600_000)
  server.takeSent()
  expect(send(server).protocol).toBe('tcp')
})

test.each(['sip:bob@192.0.2.20;transport=udp', 'sip:bob@192.0.2.20:5070;transport=UDP'])(
  '%s asks for UDP and gets it',
  (uri) => {
    expect(send(new VirtualServer(), uri).protocol).toBe('udp')
  },
)

test('a large request inside a dialog goes by TCP too; one bound to a flow stays on it', () => {
  const server = new VirtualServer()
  const reinvite = (contact: string): string | undefined => {
    const { sent, text } = send(server, 'sip:bob@192.0.2.20', [])
    if (sent)
      server.receive(responseOf(text, 200, { toTag: 'bt', extra: [contact], body: sdp }), sent.flow)
    const id = `${header(text, 'Call-ID')};from-tag=${tagIn(header(text, 'From'))}`
    server.command(`sip||${id}\r\n${sip('ACK sip:x SIP/2.0', [])}`)
    server.takeSent()
    server.command(`sip||${id}\r\n${sip('INVITE sip:x SIP/2.0', [large], sdp)}`)
    return server.takeSent()[0]?.flow.listener.protocol
  }
  expect(reinvite('Contact: <sip:bob@192.0.2.20>')).toBe('tcp')
  expect(reinvite('Contact: <sip:bob@192.0.2.20;transport=udp>')).toBe('udp')
  // A private Contact from a public address: a phone behind NAT, reached only where it came from.
  expect(reinvite('Contact: <sip:bob@10.0.0.9>')).toBe('udp')
})

/** A request that is forwarded; alone it fits into a datagram. */
function forward(server: VirtualServer, destination: string): SentMessage | undefined {
  const bare = requestOf('INVITE', { body: sdp, extra: ['X-Filling: '] })
  const filling = `X-Filling: ${'x'.repeat(1_280 - bare.length)}`
  server.receive(requestOf('INVITE', { body: sdp, extra: [filling] }))
  server.takeSent()
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`proxy|${transactionId}|remainInDialog|||serial|||${destination}\r\n`)
  return server.takeSent()[0]
}

test('what our Via makes larger than 1300 bytes goes by TCP, and says so', () => {
  const sent = forward(new VirtualServer(), 'sip:192.0.2.20')
  expect(sent?.flow).toMatchObject({ address: '192.0.2.20', port: 5060, connectMs: 1_000 })
  expect(header(sent?.text ?? '', 'Via')).toMatch(/^SIP\/2\.0\/TCP 198\.51\.100\.10:5060;branch=/)
  expect(header(sent?.text ?? '', 'Record-Route')).toContain(';transport=tcp;lr')
})

test('every target of a host name is tried by TCP, then by UDP', () => {
  const server = new VirtualServer()
  forward(server, 'sip:pbx.example')
  server.resolved('pbx.example', [targetAt('192.0.2.1'), targetAt('192.0.2.2')])
  const ways: string[] = []
  for (
    let [sent] = server.takeSent();
    sent?.text.startsWith('INVITE');
    [sent] = server.takeSent()
  ) {
    ways.push(`${sent.flow.listener.protocol} ${sent.flow.address}`)
    server.sendFailed(sent.reference)
  }
  expect(ways).toEqual(['tcp 192.0.2.1', 'udp 192.0.2.1', 'tcp 192.0.2.2', 'udp 192.0.2.2'])
})

test('a destination that refuses by TCP, or a server without TCP, stays on its transport', () => {
  const server = new VirtualServer()
  const sent = forward(server, 'sip:192.0.2.20')
  server.receive(responseOf(sent?.text ?? '', 503), sent?.flow)
  expect(server.takeStartLines().filter((line) => line.startsWith('INVITE'))).toEqual([])
  const byUdp = forward(new VirtualServer({ listeners: [udp] }), 'sip:192.0.2.20')
  expect(byUdp?.flow.listener.protocol).toBe('udp')
})
