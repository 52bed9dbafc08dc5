import { expect, test } from 'vitest'
import { caller, sdp, sip, tcpCaller, VirtualServer } from '../../../support/sip-core.ts'
import type { Flow } from '../../../../engine/sip-server/flow.ts'

const contact = '<sip:alice@xyz.invalid;transport=tcp>'
const granted = (seconds: number): string => `Contact: ${contact};expires=${seconds}`

/** A phone registers over `flow`, and the application answers. */
function register(
  server: VirtualServer,
  answer: string,
  options: { flow?: Flow; contact?: string; status?: number; branch?: string } = {},
): void {
  const { flow = tcpCaller, status = 200 } = options
  server.command('route|register')
  server.takeDelivered()
  const request = sip('REGISTER sip:acme.example SIP/2.0', [
    `Via: SIP/2.0/${flow.listener.protocol.toUpperCase()} xyz.invalid;branch=z9hG4bK${options.branch ?? 'r1'};rport`,
    'Max-Forwards: 70',
    `From: <sip:alice@acme.example>;tag=${options.branch ?? 'f1'}`,
    'To: <sip:alice@acme.example>',
    'Call-ID: r1',
    'CSeq: 1 REGISTER',
    `Contact: ${options.contact ?? contact}`,
  ])
  server.receive(request, flow)
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`sip|${transactionId}|\r\n${sip(`SIP/2.0 ${status} OK`, [answer])}`)
  server.takeSent()
  server.takeDelivered()
}

/** Where an INVITE of the application goes. */
function flowOfInvite(
  server: VirtualServer,
  uri = 'sip:alice@xyz.invalid;transport=tcp',
  route = '',
): Flow | undefined {
  const words = route === '' ? 'sip||' : `sip|||${route}`
  server.command(`${words}\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:bob@localhost'], sdp)}`)
  return server.takeSent()[0]?.flow
}

test('a call to a phone that registered over a connection goes over that connection', () => {
  const server = new VirtualServer()
  register(server, granted(600))
  expect(flowOfInvite(server)).toEqual(tcpCaller)
  expect(flowOfInvite(server, 'sip:alice@XYZ.invalid')).toEqual(tcpCaller)
})

test('for the granted time, and at most 30 s longer', () => {
  const server = new VirtualServer()
  register(server, granted(600))
  server.advance(599_999)
  expect(server.core.stats()['registrationFlows']).toBe(1)
  server.advance(30_000)
  expect(server.core.stats()['registrationFlows']).toBe(0)
  expect(flowOfInvite(server)).toBeUndefined()
  expect(server.other).toMatchObject([{ kind: 'resolve', question: { host: 'xyz.invalid' } }])
})

test('of several listed Contacts of one user and host, the one that was sent counts', () => {
  const server = new VirtualServer()
  const other = '<sip:alice@xyz.invalid:5061;transport=tcp>;expires=60'
  register(server, `Contact: ${other}, ${contact};expires=600`)
  server.advance(599_999)
  expect(server.core.stats()['registrationFlows']).toBe(1)
})

test('a refused REGISTER, one by UDP, and one with an answer that names only others bind nothing', () => {
  const server = new VirtualServer()
  register(server, granted(600), { status: 403, branch: 'r1' })
  register(server, granted(600), { flow: caller, branch: 'r2' })
  register(server, 'Contact: <sip:alice@other.invalid>;expires=60', { branch: 'r3' })
  expect(server.core.stats()).toMatchObject({ registrationFlows: 0 })
})

test('a closed connection is forgotten with everything that hung on it', () => {
  const server = new VirtualServer()
  register(server, granted(600))
  register(server, 'Expires: 600', { contact: '<sip:carol@xyz.invalid>', branch: 'r2' })
  const before = server.core.stats()
  expect(before['registrationFlows']).toBe(2)
  server.core.connectionClosed(tcpCaller, server.now)
  expect(server.core.stats()).toMatchObject({ registrationFlows: 0 })
  server.advance(700_000)
  expect(server.core.stats()).toMatchObject({ deadlines: 0, serverTransactions: 0 })
})

const closed = (server: VirtualServer) =>
  server.other
    .splice(0)
    .flatMap((output) => (output.kind === 'registered-flow-closed' ? [output.flow] : []))

test('that a connection is closed over which a phone has registered is told, and of no other one', () => {
  const server = new VirtualServer()
  const stranger: Flow = { ...tcpCaller, port: 42_000, connectionId: 5 }
  register(server, granted(600))
  server.connectionClosed(stranger)
  expect(closed(server)).toEqual([])
  server.connectionClosed(tcpCaller)
  expect(closed(server)).toEqual([tcpCaller])
  server.connectionClosed(tcpCaller)
  expect(closed(server)).toEqual([])
})

test('it is told of a phone that has closed its connection before its REGISTER was answered', () => {
  const server = new VirtualServer({ more: { isConnected: () => false } })
  register(server, granted(600))
  expect(closed(server)).toMatchObject([{ address: tcpCaller.address, port: tcpCaller.port }])
  expect(server.core.stats()).toMatchObject({ registrationFlows: 0, deadlines: 0 })
})

test('a connection whose address and port a newer one has taken over is not told of', () => {
  const server = new VirtualServer()
  register(server, granted(600))
  const newer: Flow = { ...tcpCaller, connectionId: 8 }
  register(server, granted(600), { flow: newer, branch: 'r2' })
  server.connectionClosed(tcpCaller)
  expect(closed(server)).toEqual([])
  server.connectionClosed(newer)
  expect(closed(server)).toEqual([newer])
})

test.each([
  ['in one line', '<sip:old@xyz.invalid>;expires=0, <sip:alice@xyz.invalid;transport=tcp>'],
  [
    'with a comma in a name',
    '"A, B" <sip:old@xyz.invalid>;expires=0,<sip:alice@xyz.invalid;transport=tcp>',
  ],
  [
    'in two lines',
    '<sip:old@xyz.invalid>;expires=0\r\nContact: <sip:alice@xyz.invalid;transport=tcp>',
  ],
  [
    'in a compact line',
    '<sip:old@xyz.invalid>;expires=0\r\nm: <sip:alice@xyz.invalid;transport=tcp>',
  ],
])(
  'each Contact of a REGISTER is bound to its connection, not the first alone: %s',
  (_how, two) => {
    const server = new VirtualServer()
    register(server, granted(600), { contact: two })
    expect(server.core.stats()['registrationFlows']).toBe(1)
    expect(flowOfInvite(server)).toEqual(tcpCaller)
  },
)

test('a phone that comes back is called over its new connection, and the old one’s end changes nothing', () => {
  const server = new VirtualServer()
  register(server, granted(600))
  const again: Flow = { ...tcpCaller, port: 41_000, connectionId: 8 }
  register(server, granted(600), { flow: again, branch: 'r2' })
  server.core.connectionClosed(tcpCaller, server.now)
  expect(flowOfInvite(server)).toEqual(again)
})

test('the very connection of a registration can be asked for: two phones may show the same Contact', () => {
  const server = new VirtualServer()
  const other: Flow = { ...tcpCaller, port: 41_000, connectionId: 8 }
  register(server, granted(600))
  register(server, granted(600), { flow: other, branch: 'r2' })
  const nextHop = ({ address, port }: Flow) =>
    `sip:${address}:${port};transport=tcp;connection=registered`
  const uri = 'sip:alice@xyz.invalid;transport=tcp'
  expect(flowOfInvite(server, uri, nextHop(tcpCaller))).toEqual(tcpCaller)
  expect(flowOfInvite(server, uri, nextHop(other))).toEqual(other)

  server.core.connectionClosed(other, server.now)
  server.takeDelivered()
  expect(flowOfInvite(server, uri, nextHop(other))).toBeUndefined()
  expect(server.takeDelivered().at(-1)).toMatchObject({
    verdict: 'NOK',
    reason: 'the connection of the registration is closed',
  })
  expect(flowOfInvite(server, uri, nextHop(tcpCaller))).toEqual(tcpCaller)
})

// RFC 7118 §10.1: the Contact of a phone says ws, also when it came by wss.
test('a phone that registered by wss is called there, though its Contact says ws', () => {
  const listener = { ...tcpCaller.listener, protocol: 'wss' } as const
  const browser: Flow = { ...tcpCaller, listener, connectionId: 9 }
  const server = new VirtualServer({ listeners: [caller.listener, listener] })
  const shown = '<sip:x1@y2.invalid;transport=ws>'
  register(server, `Contact: ${shown};expires=600`, { flow: browser, contact: shown })
  expect(flowOfInvite(server, 'sip:x1@y2.invalid;transport=ws')).toEqual(browser)
})
