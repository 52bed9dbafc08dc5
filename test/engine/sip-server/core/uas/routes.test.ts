/** What becomes of a new request where `routeRequest` says more than which application takes it, or says it later. */
import { expect, test } from 'vitest'
import type { RequestRoute } from '../../../../../engine/sip-server/options.ts'
import { VirtualServer, header, requestOf, sdp } from '../../../../support/sip-core.ts'

const pending = new Promise<undefined>(() => undefined)

/** Now, or when it has been found out. */
const ways: [string, (route: RequestRoute) => VirtualServer][] = [
  [
    'at once',
    (route) => {
      const server = new VirtualServer({ routeRequest: () => route })
      server.receive(requestOf('INVITE', { body: sdp }))
      return server
    },
  ],
  [
    'later',
    (route) => {
      const server = new VirtualServer({ routeRequest: () => pending })
      server.receive(requestOf('INVITE', { body: sdp }))
      expect(server.core.stats()).toMatchObject({ unrouted: 1, inboundRequests: 1 })
      server.routed(route)
      return server
    },
  ],
]

const forwarding = {
  remainInDialog: true,
  followRedirects: true,
  simultaneous: false,
  provisionalTimeoutMs: 5_000,
  finalTimeoutMs: 60_000,
}

test.each(ways)('%s: refused with a reason of its own, or the usual one', (_when, meet) => {
  const server = meet({ reject: { status: 486, reason: 'Not Now' } })
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 486 Not Now'])
  const usual = meet({ reject: { status: 404 } })
  expect(usual.takeStartLines().at(-1)).toBe('SIP/2.0 404 Not Found')
  expect(usual.delivered).toEqual([])
})

test.each(ways)('%s: redirected to each contact', (_when, meet) => {
  const server = meet({ redirect: ['<sip:a@192.0.2.1>', '<sip:b@192.0.2.2>'] })
  const text = server.takeSent().at(-1)?.text
  expect(text).toContain('SIP/2.0 302 Moved Temporarily\r\n')
  expect(text).toContain('Contact: <sip:a@192.0.2.1>\r\nContact: <sip:b@192.0.2.2>\r\n')
})

test.each(ways)('%s: forwarded without an application', (_when, meet) => {
  const server = meet({ proxy: { ...forwarding, destinations: ['sip:192.0.2.20'] } })
  const [, sent] = server.takeSent()
  expect(sent?.flow.address).toBe('192.0.2.20')
  expect(header(sent?.text ?? '', 'Record-Route')).toContain('198.51.100.10')
  expect(server.delivered).toEqual([])
})

test('later: to an application with a tag, that answers it; 480 where there is none', () => {
  const server = new VirtualServer({ routeRequest: () => pending })
  server.core.clientConnected(9, false)
  server.command('authenticate|cymru|sales', 9)
  server.command('route|invite', 9)
  server.takeDelivered()
  server.receive(requestOf('INVITE', { body: sdp }))
  server.routed({ tag: 'sales' })
  const [told] = server.takeDelivered()
  expect(told?.clientId).toBe(9)
  server.command(`sip|${told?.transactionId}|\r\nSIP/2.0 486 Busy Here\r\n\r\n`, 9)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 486 Busy Here'])

  server.receive(requestOf('INVITE', { body: sdp, callId: 'other', branch: 'z9hG4bK-o' }))
  server.routed({ tag: 'absent' })
  expect(server.takeStartLines().at(-1)).toBe('SIP/2.0 480 Temporarily Unavailable')
})

test('later: nothing more is done for a caller that has given up', () => {
  const server = new VirtualServer({ routeRequest: () => pending })
  const before = server.core.stats()
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual([
    'SIP/2.0 100 Trying',
    'SIP/2.0 200 OK',
    'SIP/2.0 487 Request Terminated',
  ])
  server.routed({ uri: 'tcp://127.0.0.1:1' })
  expect(server.delivered).toEqual([])
  server.receive(requestOf('ACK', { branch: 'z9hG4bK-INVITE-1' }))
  server.advance(64_000)
  expect(server.core.stats()).toEqual(before)
})
