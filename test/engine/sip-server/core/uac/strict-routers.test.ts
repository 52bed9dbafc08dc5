/** Routers that take the Request-URI for their own address: RFC 3261 §8.1.2, §12.2.1.1. */
import { expect, test } from 'vitest'
import { called, dialogIdOf } from '../../../../support/callee.ts'
import { type SentMessage, sip, VirtualServer } from '../../../../support/sip-core.ts'

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

test('a call whose route set begins with one sends everything there', () => {
  const server = new VirtualServer()
  // The set of the calling side is the recorded one in reverse.
  const recorded = 'Record-Route: <sip:192.0.2.2;lr>, <sip:192.0.2.1>'
  const invite = called(server, [], [recorded])
  server.command(`sip||${dialogIdOf(invite)}\r\n${sip('INFO sip:p SIP/2.0', [])}`)
  expect(wayOf(server.takeSent()[0])).toEqual({
    to: '192.0.2.1',
    uri: 'sip:192.0.2.1',
    routes: ['<sip:192.0.2.2;lr>', '<sip:bob@192.0.2.20:5060>'],
  })
})
