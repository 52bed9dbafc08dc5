/** What `sips` asks for stays secure: RFC 3261 §8.1.1.8, §12.1.1, §16.6 step 4. */
import { expect, test } from 'vitest'
import { invited, respond } from '../../../support/caller.ts'
import { header, requestOf, sdp, sip, udp, VirtualServer } from '../../../support/sip-core.ts'

const tls = { ...udp, protocol: 'tls', port: 5_061, advertisedPort: 5_061 } as const
const tlsCaller = { listener: tls, address: '203.0.113.7', port: 40_000, connectionId: 3 }
const place = '198.51.100.10:5061'

const start = () => new VirtualServer({ listeners: [udp, tls] })

test.each([
  ['sips:bob@192.0.2.20', [], `<sips:a@${place}>`],
  ['sips:bob@192.0.2.20', ['Contact: <sip:me@localhost>'], `<sips:me@${place}>`],
  ['sip:bob@192.0.2.20;transport=tls', [], `<sip:a@${place};transport=tls>`],
  ['sips:bob@192.0.2.20', ['Contact: <sip:me@198.51.100.99>'], '<sip:me@198.51.100.99>'],
])('a call to %s with %j shows %s as its Contact', (uri, lines, contact) => {
  const server = start()
  const headers = ['from: sip:a@localhost', ...lines]
  server.command(`sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, headers, sdp)}`)
  expect(header(server.takeSent()[0]?.text ?? '', 'Contact')).toBe(contact)
})

const incoming = (uri: string, extra: readonly string[] = []): string =>
  requestOf('INVITE', {
    uri,
    extra,
    body: sdp,
    via: 'SIP/2.0/TLS 203.0.113.7:5061;branch=z9hG4bK-tls',
  })

test.each([
  ['sips:x@198.51.100.10', [], `<sips:x@${place}>`],
  ['sip:x@198.51.100.10', ['Record-Route: <sips:192.0.2.1;lr>'], `<sips:x@${place}>`],
  ['sip:x@198.51.100.10', [], `<sip:x@${place};transport=tls>`],
])('an answer to %s with %j shows %s as its Contact', (uri, extra, contact) => {
  const server = start()
  respond(server, invited(server, incoming(uri, extra), tlsCaller), 200)
  expect(header(server.takeSent()[0]?.text ?? '', 'Contact')).toBe(contact)
})

test('a request that is forwarded to sips comes back by a sips route, which is known again', () => {
  const server = start()
  const transactionId = invited(server, incoming('sips:x@elsewhere.example'), tlsCaller)
  const words = 'remainInDialog|||serial||'
  server.command(`proxy|${transactionId}|${words}|sips:192.0.2.20\r\n`)
  const route = header(server.takeSent()[0]?.text ?? '', 'Record-Route')
  expect(route).toMatch(/^<sips:198\.51\.100\.10:5061;lr;seal=/)
  const bye = requestOf('BYE', {
    uri: 'sips:bob@192.0.2.20',
    toTag: 'b',
    cseq: 2,
    extra: [`Route: ${route}`],
    via: 'SIP/2.0/TLS 203.0.113.7:5061;branch=z9hG4bK-bye',
  })
  server.receive(bye, tlsCaller)
  expect(server.takeStartLines()).toEqual(['BYE sips:bob@192.0.2.20 SIP/2.0'])
})
