import { expect, test } from 'vitest'
import {
  callee,
  caller,
  header,
  requestOf,
  responseOf,
  sip,
  type SentMessage,
  tcpCaller,
  VirtualServer,
} from '../../../../support/sip-core.ts'

interface Call {
  readonly server: VirtualServer
  /** The INVITE as the callee got it. */
  readonly invite: string
  /** Record-Route values, the nearest to the callee first. */
  readonly entries: readonly string[]
}

/** A call that was forwarded and answered, in which the server stays. */
function forwardedCall(from = caller): Call {
  const server = new VirtualServer()
  const via =
    from === tcpCaller ? { via: 'SIP/2.0/TCP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1' } : {}
  server.receive(requestOf('INVITE', via), from)
  server.takeSent()
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(
    `proxy|${transactionId}|remainInDialog|fullResponse||serial|||sip:192.0.2.20\r\n` +
      'INVITE sip:x SIP/2.0\r\n\r\n',
  )
  const invite = server.takeSent()[0]?.text ?? ''
  const entries = [...invite.matchAll(/^Record-Route: (.*)$/gm)].map(
    ([, value]) => value?.trim() ?? '',
  )
  const extra = [
    'Contact: <sip:bob@192.0.2.20>',
    ...entries.map((entry) => `Record-Route: ${entry}`),
  ]
  server.receive(responseOf(invite, 200, { toTag: 'b1', extra }), callee)
  server.takeSent()
  return { server, invite, entries }
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

const startLines = (messages: readonly SentMessage[]): string[] =>
  messages.map(({ text, flow }) => `${text.slice(0, text.indexOf('\r\n'))} > ${flow.address}`)

test('who stays in the dialog puts one loose, sealed route of its own into the request', () => {
  const { entries } = forwardedCall()
  expect(entries).toEqual([
    expect.stringMatching(/^<sip:198\.51\.100\.10:5060;lr;seal=[\da-f]{32}>$/),
  ])
})

test("the caller's ACK follows the route to the callee, without an answer", () => {
  const { server, entries } = forwardedCall()
  server.receive(fromCaller('ACK', entries))
  const sent = server.takeSent()
  expect(startLines(sent)).toEqual(['ACK sip:bob@192.0.2.20 SIP/2.0 > 192.0.2.20'])
  expect(header(sent[0]?.text ?? '', 'Route')).toBe('')
  expect(header(sent[0]?.text ?? '', 'Max-Forwards')).toBe('69')
})

test('a BYE of either side reaches the other, and its answer comes back', () => {
  const { server, entries } = forwardedCall()
  server.receive(fromCallee('BYE', entries), callee)
  const [bye] = server.takeSent()
  expect(startLines(bye ? [bye] : [])).toEqual([
    'BYE sip:alice@203.0.113.7:5060 SIP/2.0 > 203.0.113.7',
  ])
  server.receive(responseOf(bye?.text ?? '', 200), caller)
  const back = server.takeSent()
  expect(startLines(back)).toEqual(['SIP/2.0 200 Reason > 192.0.2.20'])
  expect(back[0]?.text.match(/^Via: .*$/gm)).toEqual([
    'Via: SIP/2.0/UDP 192.0.2.20:5060;branch=z9hG4bK-BYE-b',
  ])
  expect(server.takeDelivered().filter(({ sip: text }) => text.startsWith('BYE'))).toEqual([])
})

test.each(['INVITE', 'UPDATE', 'OPTIONS', 'WHATEVER'])(
  '%s in the dialog is forwarded',
  (method) => {
    const { server, entries } = forwardedCall()
    server.receive(fromCaller(method, entries))
    expect(startLines(server.takeSent())).toContain(
      `${method} sip:bob@192.0.2.20 SIP/2.0 > 192.0.2.20`,
    )
  },
)

test('a Route with our address but without our seal opens no relay: 481', () => {
  const { server } = forwardedCall()
  server.receive(fromCaller('BYE', ['<sip:198.51.100.10:5060;lr>']))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
})

test('the seal of one call does not open another', () => {
  const { server, entries } = forwardedCall()
  server.receive(fromCaller('BYE', entries, { callId: 'another@203.0.113.7' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  server.receive(fromCaller('ACK', entries, { callId: 'another@203.0.113.7' }))
  expect(server.takeSent()).toEqual([])
})

test('a strict router before us has our entry in the Request-URI: the target is the last Route', () => {
  const { server, entries } = forwardedCall()
  const own = (entries[0] ?? '').slice(1, -1)
  server.receive(fromCaller('INFO', ['<sip:bob@192.0.2.20>'], { uri: own }))
  const sent = server.takeSent()
  expect(startLines(sent)).toEqual(['INFO sip:bob@192.0.2.20 SIP/2.0 > 192.0.2.20'])
  expect(header(sent[0]?.text ?? '', 'Route')).toBe('')
})

test('a strict router after us gets its own URI in the Request-URI', () => {
  const { server, entries } = forwardedCall()
  server.receive(fromCaller('INFO', [...entries, '<sip:192.0.2.77>']))
  const sent = server.takeSent()
  expect(startLines(sent)).toEqual(['INFO sip:192.0.2.77 SIP/2.0 > 192.0.2.77'])
  expect(header(sent[0]?.text ?? '', 'Route')).toBe('<sip:bob@192.0.2.20>')
})

test('between two transports there are two entries, and a caller on a stream is reached on its own connection', () => {
  const { server, entries } = forwardedCall(tcpCaller)
  expect(entries).toEqual([
    expect.stringMatching(/^<sip:198\.51\.100\.10:5060;lr;seal=[\da-f]{32}>$/),
    expect.stringMatching(/^<sip:c7@198\.51\.100\.10:5060;transport=tcp;lr;seal=[\da-f]{32}>$/),
  ])
  server.receive(fromCallee('BYE', entries), callee)
  const [bye] = server.takeSent()
  expect(bye?.flow.listener.protocol).toBe('tcp')
  expect(bye?.flow.connectionId).toBe(7)
})

test('a registration that is forwarded leaves its way back in Path', () => {
  const server = new VirtualServer()
  server.command('route|register')
  server.receive(requestOf('REGISTER', { uri: 'sip:198.51.100.10' }))
  const transactionId = server.takeDelivered().at(-1)?.transactionId ?? ''
  server.command(
    `proxy|${transactionId}|remainInDialog|fullResponse||serial|||sip:192.0.2.20\r\n` +
      'REGISTER sip:x SIP/2.0\r\n\r\n',
  )
  const register = server.takeSent().at(-1)?.text ?? ''
  expect(header(register, 'Path')).toMatch(/^<sip:198\.51\.100\.10:5060;lr;seal=/)
  expect(header(register, 'Require')).toBe('path')
  expect(header(register, 'Record-Route')).toBe('')
})
