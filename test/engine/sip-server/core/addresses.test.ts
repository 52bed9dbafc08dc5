/**
 * The address that a peer is shown: behind NAT, and with `sips` (RFC 3261 §8.1.1.8, §12.1.1, §16.6
 * step 4).
 */
import { expect, test } from 'vitest'
import type { Listener } from '../../../../engine/sip-server/flow.ts'
import { boundListener } from '../../../../engine/sip-server/transport/transport.ts'
import { VirtualServer, header, sdp, sip, requestOf, udp } from '../../../support/sip-core.ts'
import { invited, respond } from '../../../support/caller.ts'

const bound = (
  address: string,
  advertised: string | undefined,
  more: Pick<Listener, 'names'> & { localNets?: string[] },
) => boundListener('udp', { address, port: 5060 }, advertised, more)

const nat = bound('10.0.0.5', '52.0.0.1', {
  localNets: ['10.0.0.0/16'],
  names: ['sbc.example.com'],
})
const lan = bound('192.168.7.1', undefined, { localNets: ['172.20.0.0/24'] })

function call(uri: string, listeners = [nat, lan]): { via: string; contact: string; from: string } {
  const server = new VirtualServer({ listeners })
  server.command(`sip|||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['To: <sip:x@y>'], sdp)}`)
  const [sent] = server.takeSent()
  const text = sent?.text ?? ''
  const { address = '' } = sent?.flow.listener ?? {}
  return { via: header(text, 'Via'), contact: header(text, 'Contact'), from: address }
}

test.each([
  ['sip:1@10.0.9.9', '10.0.0.5', '10.0.0.5'],
  ['sip:1@198.51.100.1', '10.0.0.5', '52.0.0.1'],
  ['sip:1@172.20.0.8', '192.168.7.1', '192.168.7.1'],
  ['sip:1@192.168.7.9', '192.168.7.1', '192.168.7.1'],
])('a call to %s leaves from %s and shows %s', (uri, from, shown) => {
  const made = call(uri)
  expect(made.from).toBe(from)
  expect(made.via).toContain(`SIP/2.0/UDP ${shown}:5060;`)
  expect(made.contact).toContain(`${shown}:5060`)
})

test.each(['sip:1@52.0.0.1', 'sip:1@10.0.0.5', 'sip:1@sbc.example.com'])(
  'nothing is sent to %s, which is this server',
  (uri) => {
    const server = new VirtualServer({ listeners: [nat] })
    server.command(`sip|||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['To: <sip:x@y>'], sdp)}`)
    expect(server.takeSent()).toEqual([])
    expect(server.takeDelivered()[0]?.payload).toContain('can not send request to myself')
  },
)

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
