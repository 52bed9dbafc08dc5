/**
 * Where requests of the application go: peers behind NAT, an outbound proxy, strict routers (RFC
 * 3261 §8.1.2), copied Routes.
 */
import { expect, test } from 'vitest'
import type { Flow } from '../../../../../engine/sip-server/flow.ts'
import {
  callee,
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
  targetAt,
  VirtualServer,
  type SentMessage,
} from '../../../../support/sip-core.ts'

/** The phone as a NAT shows it: its Contact says something else. */
const nat: Flow = { ...callee, port: 40_123 }

/**
 * Where ACK and BYE go after an INVITE to `uri`, sent to `nextHop` ('': where the URI says), was
 * answered from `source` with this Contact; and the host that they name.
 */
function settled(
  { uri, nextHop = '', lines = [] }: { uri: string; nextHop?: string; lines?: string[] },
  source: Flow,
  answerLines: string[],
) {
  const server = new VirtualServer()
  server.command(
    `sip|||${nextHop}\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost', ...lines], sdp)}`,
  )
  const invite = server.takeSent()[0]?.text ?? ''
  server.receive(responseOf(invite, 200, { toTag: 'bt', extra: answerLines, body: sdp }), source)
  const dialogId = `${header(invite, 'Call-ID')};from-tag=${tagIn(header(invite, 'From'))}`
  server.command(`sip||${dialogId}\r\n${sip(`ACK ${uri} SIP/2.0`, [])}`)
  server.command(`sip||${dialogId}\r\n${sip(`BYE ${uri} SIP/2.0`, [])}`)
  return server.takeSent().map(({ text, flow }) => ({
    line: text.slice(0, text.indexOf('\r\n')).replace(' SIP/2.0', ''),
    to: `${flow.address}:${flow.port}`,
  }))
}

const both = (uri: string, to: string) => [
  { line: `ACK ${uri}`, to },
  { line: `BYE ${uri}`, to },
]

test.each([
  ['the same private address', 'sip:101@192.168.1.5:5062', 'sip:101@192.168.1.5:5062'],
  ['a name that cannot be looked up', 'sip:101@phone.invalid', 'sip:101@phone.invalid'],
  [
    'its private address, registered by a public one',
    'sip:101@203.0.113.9:5060',
    'sip:101@10.1.1.1',
  ],
  [
    'the address of its NAT with a port of its own',
    'sip:101@10.1.1.1:5060',
    'sip:101@192.0.2.20:5060',
  ],
])(
  'a phone behind NAT that answers with %s is acknowledged and hung up where it answered',
  (_, uri, contact) => {
    const nextHop = 'sip:192.0.2.20:40123;transport=udp'
    expect(settled({ uri, nextHop }, nat, [`Contact: <${contact}>`])).toEqual(
      both(contact, '192.0.2.20:40123'),
    )
  },
)

test('a private Contact from a public address leads nowhere, whatever was called', () => {
  const sent = settled({ uri: 'sip:b@192.0.2.20' }, callee, ['Contact: <sip:b@10.1.1.1>'])
  expect(sent).toEqual(both('sip:b@10.1.1.1', '192.0.2.20:5060'))
})

test('a peer that was called at its own address may move the dialog elsewhere', () => {
  const sent = settled({ uri: 'sip:b@192.0.2.20' }, callee, ['Contact: <sip:b@192.0.2.99:5070>'])
  expect(sent).toEqual(both('sip:b@192.0.2.99:5070', '192.0.2.99:5070'))
})

test('a proxy that records itself is the way, not the source of the answer', () => {
  const uri = 'sip:101@192.168.1.5:5062'
  const lines = ['Record-Route: <sip:192.0.2.77;lr>', `Contact: <${uri}>`]
  const sent = settled({ uri, nextHop: 'sip:192.0.2.20:40123' }, nat, lines)
  expect(sent).toEqual(both(uri, '192.0.2.77:5060'))
})

const to203 = (lines: string[] = []) =>
  sip('INVITE sip:1@203.0.113.50 SIP/2.0', ['To: <sip:x@y>', ...lines], sdp)

test.each([
  ['a request goes to the outbound proxy', `sip|||\r\n${to203()}`, '192.0.2.99'],
  ['a next hop of its own wins', `sip|||sip:192.0.2.1\r\n${to203()}`, '192.0.2.1'],
  ['so does a Route', `sip|||\r\n${to203(['Route: <sip:192.0.2.2;lr>'])}`, '192.0.2.2'],
])('%s, its Request-URI stays', (_what, command, address) => {
  const server = new VirtualServer({ more: { outboundProxy: 'sip:192.0.2.99' } })
  server.command(command)
  const [sent] = server.takeSent()
  expect(sent?.flow.address).toBe(address)
  expect(sent?.text).toMatch(/^INVITE sip:1@203\.0\.113\.50 SIP/)
})

const wayOf = (sent: SentMessage | undefined) => ({
  to: sent?.flow.address,
  uri: sent?.text.split(' ', 2)[1],
  routes: [...(sent?.text ?? '').matchAll(/^Route: (.*)\r$/gm)].map(([, value]) => value),
})

test.each([
  ['', { to: '192.0.2.1', uri: 'sip:192.0.2.1', routes: ['<sip:192.0.2.2;lr>', '<sip:b@x>'] }],
  // A next hop that the application names is one outside of the route.
  ['sip:192.0.2.9', { to: '192.0.2.9', uri: 'sip:b@x', routes: ['<sip:192.0.2.1>'] }],
])('a Route of the application that begins with one, by the next hop "%s"', (nextHop, way) => {
  const server = new VirtualServer()
  const more = nextHop === '' ? ', <sip:192.0.2.2;lr>' : ''
  const options = sip('OPTIONS sip:b@x SIP/2.0', [`Route: <sip:192.0.2.1>${more}`])
  server.command(`sip|||${nextHop}\r\n${options}`)
  expect(wayOf(server.takeSent()[0])).toEqual(way)
})

function copied(server: VirtualServer, lines: readonly string[], nextHop = '') {
  const text = sip(
    'INVITE sip:bob@192.0.2.20 SIP/2.0',
    ['from: sip:alice@localhost', ...lines],
    sdp,
  )
  server.command(`sip|||${nextHop}\r\n${text}`)
  const [sent] = server.takeSent()
  const [reply] = server.takeDelivered()
  return { text: sent?.text ?? '', to: sent?.flow.address, reply }
}

const own = '<sip:198.51.100.10:5060;lr>'

test.each([
  ['alone', [`route: ${own}`]],
  ['by another transport', ['Route: <sip:pbx@198.51.100.10;transport=tcp;lr>']],
  ['several times', [`route: ${own}, <sip:198.51.100.10;lr>`, `Route: ${own}`]],
])('a Route that led the caller to this server is used up: %s', (_, lines) => {
  const { text, to, reply } = copied(new VirtualServer(), lines)
  expect([to, reply?.verdict]).toEqual(['192.0.2.20', 'OK'])
  expect(text).not.toContain('Route:')
})

test('what follows it is the next hop, and goes along', () => {
  const next = '<sip:192.0.2.77;lr>'
  const { text, to } = copied(new VirtualServer(), [`route: ${own}, ${next}`, 'route: <sip:x;lr>'])
  expect([to, header(text, 'Route')]).toEqual(['192.0.2.77', next])
  expect(text.match(/^Route: .*/gm)).toEqual([`Route: ${next}`, 'Route: <sip:x;lr>'])
})

test.each(['224.0.1.75', '255.255.255.255', '0.0.0.0', '[ff02::1]', '192.0.2.1;maddr=239.1.2.3'])(
  'nothing is sent to %s, which is no single host, nor to a name that leads there',
  (host) => {
    const server = new VirtualServer()
    server.command(`sip||\r\n${sip(`OPTIONS sip:a@${host} SIP/2.0`, ['from: sip:a@localhost'])}`)
    expect(server.takeSent()).toEqual([])
    server.command(
      `sip||\r\n${sip('OPTIONS sip:a@group.example SIP/2.0', ['from: sip:a@localhost'])}`,
    )
    server.resolved('group.example', [targetAt('224.0.1.75'), targetAt('192.0.2.20')])
    expect(server.takeSent().map(({ flow }) => flow.address)).toEqual(['192.0.2.20'])
  },
)

test('a Request-URI with localhost, such as the Contact of a phone, is sent as it is', () => {
  const server = new VirtualServer()
  const uri = 'sip:101@localhost:5062'
  server.command(
    `sip|||sip:192.0.2.20\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost'])}`,
  )
  const [sent] = server.takeSent()
  expect(sent?.text).toContain(`INVITE ${uri} SIP/2.0`)
})
