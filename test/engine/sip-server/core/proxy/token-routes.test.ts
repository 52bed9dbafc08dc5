import { expect, test } from 'vitest'
import type { Flow } from '../../../../../engine/sip-server/flow.ts'
import type { TokenRequest, TokenVerdict } from '../../../../../engine/sip-server/options.ts'
import {
  header,
  requestOf,
  responseOf,
  sdp,
  sip,
  type SentMessage,
  tcpCaller,
  VirtualServer,
} from '../../../../support/sip-core.ts'

/** A phone behind NAT whose Contact leads nowhere. */
const phoneUri = 'sip:bob@10.0.0.5:5060;transport=tcp'
const phone: Flow = { ...tcpCaller, address: '192.0.2.20', port: 41_000, connectionId: 9 }
const byConnection = 'sip:192.0.2.20:41000;transport=tcp;connection=registered'
const recordRoute = { toCallee: 'down', toCaller: 'up' }

const startLines = (messages: readonly SentMessage[]): string[] =>
  messages.map(
    ({ text, flow }) => `${text.slice(0, text.indexOf('\r\n'))} > ${flow.address}:${flow.port}`,
  )

const routeWith = (token: string): string => `Route: <sip:${token}@198.51.100.10:5060;lr>`

/**
 * A server that has a phone's connection, and knows two tokens: one leads to the phone, one to the
 * caller.
 */
function edge(verdictOf?: (request: TokenRequest) => TokenVerdict | undefined) {
  const asked: TokenRequest[] = []
  const known: Record<string, TokenVerdict> = {
    call: { kind: 'forwarded', nextHop: byConnection, recordRoute },
    down: { kind: 'forwarded', nextHop: byConnection },
    up: { kind: 'forwarded', nextHop: 'sip:203.0.113.7:5060' },
  }
  const readToken = (request: TokenRequest): TokenVerdict | undefined => {
    asked.push(request)
    return verdictOf ? verdictOf(request) : known[request.token]
  }
  const server = new VirtualServer({ more: { readToken } })
  server.command('route|register')
  server.takeDelivered()
  const register = sip('REGISTER sip:acme.example SIP/2.0', [
    'Via: SIP/2.0/TCP 10.0.0.5;branch=z9hG4bKr1;rport',
    'Max-Forwards: 70',
    'From: <sip:bob@acme.example>;tag=r1',
    'To: <sip:bob@acme.example>',
    'Call-ID: r1',
    'CSeq: 1 REGISTER',
    `Contact: <${phoneUri}>`,
  ])
  server.receive(register, phone)
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(
    `sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', [`Contact: <${phoneUri}>;expires=600`])}`,
  )
  server.takeSent()
  server.takeDelivered()
  return { server, asked }
}

const invite = (extra: readonly string[] = [routeWith('call')], changes: object = {}): string =>
  requestOf('INVITE', { uri: phoneUri, body: sdp, extra, ...changes })

/** A call by the token that the phone has answered. */
function answered() {
  const { server, asked } = edge()
  server.receive(invite())
  const toPhone = server.takeSent().find(({ text }) => text.startsWith('INVITE'))
  const entries = [...(toPhone?.text ?? '').matchAll(/^Record-Route: (.*)\r$/gm)].map(
    ([, value = '']) => value,
  )
  const extra = [`Contact: <${phoneUri}>`, ...entries.map((entry) => `Record-Route: ${entry}`)]
  server.receive(responseOf(toPhone?.text ?? '', 200, { toTag: 'b1', extra }), phone)
  server.takeSent()
  return { server, asked, toPhone, entries }
}

const fromPhone = (method: string, routes: readonly string[]): string =>
  sip(`${method} sip:alice@203.0.113.7:5060 SIP/2.0`, [
    `Via: SIP/2.0/TCP 10.0.0.5:5060;branch=z9hG4bK-${method}-b;rport`,
    'Max-Forwards: 70',
    'From: <sip:18005551212@198.51.100.10>;tag=b1',
    'To: <sip:alice@203.0.113.7>;tag=f1',
    'Call-ID: c1@203.0.113.7',
    `CSeq: 7 ${method}`,
    ...routes.map((route) => `Route: ${route}`),
  ])

test('an INVITE with a token goes over the connection of the phone, and no application hears of it', () => {
  const { server } = edge()
  server.receive(invite())
  const sent = server.takeSent()
  expect(startLines(sent)).toEqual([
    'SIP/2.0 100 Trying > 203.0.113.7:5060',
    `INVITE ${phoneUri} SIP/2.0 > 192.0.2.20:41000`,
  ])
  expect(sent[1]?.flow.connectionId).toBe(phone.connectionId)
  expect(header(sent[1]?.text ?? '', 'Route')).toBe('')
  expect(sent[1]?.text).not.toContain('call@')
  expect(server.takeDelivered()).toEqual([])
})

test('both sides get a route of their own: the phone by its transport, the caller by its one', () => {
  const { entries } = answered()
  expect(entries).toEqual([
    '<sip:up@198.51.100.10:5060;transport=tcp;lr>',
    '<sip:down@198.51.100.10:5060;lr>',
  ])
})

test('ACK, re-INVITE and BYE of the caller reach the phone over its connection', () => {
  const { server, entries } = answered()
  const extra = entries.toReversed().map((entry) => `Route: ${entry}`)
  for (const method of ['ACK', 'INVITE', 'BYE']) {
    const cseq = method === 'ACK' ? 1 : 2
    const branch = `z9hG4bK-${method}-2`
    server.receive(requestOf(method, { uri: phoneUri, toTag: 'b1', branch, cseq, extra }))
    const sent = server.takeSent().filter(({ text }) => text.startsWith(method))
    expect(startLines(sent)).toEqual([`${method} ${phoneUri} SIP/2.0 > 192.0.2.20:41000`])
    expect(sent[0]?.flow.connectionId).toBe(phone.connectionId)
    expect(header(sent[0]?.text ?? '', 'Route')).toBe('')
  }
})

test('Routes and Request-URIs of others do not lead elsewhere: the token alone says the next hop', () => {
  const { server, entries } = answered()
  const bye = fromPhone('BYE', [entries[0] ?? '', '<sip:gateway.example;lr>'])
  server.receive(bye.replace('sip:alice@203.0.113.7:5060', 'sip:900@192.0.2.99'), phone)
  const sent = server.takeSent()
  expect(startLines(sent)).toEqual(['BYE sip:900@192.0.2.99 SIP/2.0 > 203.0.113.7:5060'])
  expect(header(sent[0]?.text ?? '', 'Route')).toBe('')
})

test('a phone that registers the name of the next hop does not draw its requests', () => {
  const { server, entries } = answered()
  const thief = sip('REGISTER sip:acme.example SIP/2.0', [
    'Via: SIP/2.0/TCP 10.0.0.6;branch=z9hG4bKr2;rport',
    'Max-Forwards: 70',
    'From: <sip:eve@acme.example>;tag=r2',
    'To: <sip:eve@acme.example>',
    'Call-ID: r2',
    'CSeq: 1 REGISTER',
    'Contact: <sip:203.0.113.7>',
  ])
  server.receive(thief, { ...phone, port: 42_000, connectionId: 10 })
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(
    `sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', ['Contact: <sip:203.0.113.7>;expires=600'])}`,
  )
  server.takeSent()
  server.receive(fromPhone('BYE', entries), phone)
  expect(startLines(server.takeSent())).toEqual([
    'BYE sip:alice@203.0.113.7:5060 SIP/2.0 > 203.0.113.7:5060',
  ])
})

test('a phone whose connection is gone answers 430 at once', () => {
  const { server } = edge()
  server.connectionClosed(phone)
  server.receive(invite())
  expect(server.takeStartLines()).toEqual(['SIP/2.0 430 Flow Failed'])
})

test('a token that is refused gets that answer, and an ACK with it goes nowhere', () => {
  const refused = { kind: 'refused', status: 403, reason: 'Forbidden' } as const
  const { server } = edge(() => refused)
  server.receive(invite())
  expect(server.takeStartLines()).toEqual(['SIP/2.0 403 Forbidden'])
  server.receive(requestOf('ACK', { uri: phoneUri, toTag: 'b1', extra: [routeWith('down')] }))
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()).toEqual([])
})

test('a Route whose user part is no token means nothing: the application gets the request', () => {
  const { server } = edge(() => undefined)
  server.receive(invite())
  expect(server.takeDelivered()[0]?.sip).toContain(`INVITE ${phoneUri} SIP/2.0`)
})

test('requests by tokens count among those that wait for an answer: beyond the limit they get 503', () => {
  const limits = { maxUnanswered: 1, maxDialogs: 10 }
  const readToken = (): TokenVerdict => ({ kind: 'forwarded', nextHop: 'sip:192.0.2.20' })
  const server = new VirtualServer({ limits, more: { readToken } })
  server.receive(invite())
  server.takeSent()
  server.receive(invite(undefined, { callId: 'c2', branch: 'z9hG4bK-2' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 503 Service Unavailable'])
})

/** As long as two servers may send each other, and more. */
const longBody = `${sdp}a=x:${'y'.repeat(16_384)}\r\n`

test('what is too large to be sent on is refused with 513, in both directions, and goes nowhere', () => {
  const { server } = edge()
  server.receive(invite([routeWith('call')], { body: longBody }))
  expect(startLines(server.takeSent())).toEqual([
    'SIP/2.0 513 Message Too Large > 203.0.113.7:5060',
  ])
  const call = answered()
  const [up = ''] = call.entries
  const large = `Subject: ${'y'.repeat(16_384)}\r\nContent-Length`
  const request = fromPhone('INFO', [up]).replace('Content-Length', large)
  call.server.receive(request, phone)
  expect(startLines(call.server.takeSent())).toEqual([
    'SIP/2.0 513 Message Too Large > 192.0.2.20:41000',
  ])
})
