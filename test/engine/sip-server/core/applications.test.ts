/**
 * Which application gets a request, what becomes of one that none gets, and the calls of an
 * application that has gone.
 */
import { expect, test } from 'vitest'
import type { NewRequest, RequestRoute } from '../../../../engine/sip-server/index.ts'
import {
  VirtualServer,
  requestOf,
  sdp,
  header,
  callee,
  responseOf,
} from '../../../support/sip-core.ts'
import { acknowledge, answered, invited } from '../../../support/caller.ts'

const tagged = (server: VirtualServer, clientId: number, tag: string): void => {
  server.core.clientConnected(clientId, false)
  server.command(`authenticate|cymru|${tag}`, clientId)
  server.command('route|invite', clientId)
  server.takeDelivered()
}

const invite = (server: VirtualServer, callId: string, uri = 'sip:1@198.51.100.10'): void =>
  server.receive(requestOf('INVITE', { callId, uri, branch: `z9hG4bK-${callId}`, body: sdp }))

function start(routeRequest: (request: NewRequest) => RequestRoute | undefined) {
  const server = new VirtualServer({ routeRequest })
  tagged(server, 11, 'sales')
  tagged(server, 12, 'support,sales')
  return server
}

test('a request for a tag goes to those that authenticated with it, in turn', () => {
  const server = start(() => ({ tag: 'sales' }))
  for (const callId of ['a', 'b', 'c']) invite(server, callId)
  expect(server.deliveredTo).toEqual([11, 12, 11])
})

test('an application that is connected to gets its request once it has authenticated', () => {
  const server = start(() => ({ uri: 'tcp://192.0.2.9:9023' }))
  invite(server, 'a')
  const dialOut = server.other.find(({ kind }) => kind === 'dial-out')
  expect(dialOut).toMatchObject({ uri: 'tcp://192.0.2.9:9023' })
  expect(server.takeDelivered()).toEqual([])
  const clientId = dialOut?.kind === 'dial-out' ? dialOut.clientId : 0
  server.core.clientConnected(clientId, false)
  server.command('authenticate|cymru|', clientId)
  const [welcome, request] = server.takeDelivered()
  expect(welcome?.verdict).toBe('OK')
  expect(request?.sip).toMatch(/^INVITE /)
  server.takeSent()
  server.command(`sip|${request?.transactionId ?? ''}|\r\nSIP/2.0 486 Busy Here\r\n\r\n`, clientId)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 486 Busy Here'])
})

test.each(['before it connects', 'before it authenticates'])(
  'an application that goes %s leaves 480 behind',
  (when) => {
    const server = start(() => ({ uri: 'tcp://192.0.2.9:9023' }))
    invite(server, 'a')
    const dialOut = server.other.find(({ kind }) => kind === 'dial-out')
    const clientId = dialOut?.kind === 'dial-out' ? dialOut.clientId : 0
    server.takeSent()
    if (when === 'before it authenticates') {
      server.core.clientConnected(clientId, false)
      server.command('authenticate|wrong|', clientId)
      expect(server.takeDelivered().map(({ verdict }) => verdict)).toEqual(['NO'])
    }
    server.disconnect(clientId)
    expect(server.takeStartLines()).toEqual(['SIP/2.0 480 Temporarily Unavailable'])
    server.receive(requestOf('ACK', { callId: 'a', branch: 'z9hG4bK-a' }))
    server.advance(64_000)
    expect(server.core.stats()).toMatchObject({ inboundRequests: 0, serverTransactions: 0 })
  },
)

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

const graceMs = 5_000

/** An established call whose application has just gone. */
function orphaned() {
  const server = new VirtualServer({ graceMs })
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeSent()
  server.disconnect(server.clientId)
  return { server, toTag }
}

const startLine = (text: string | undefined): string => text?.split('\r\n', 1)[0] ?? ''

test('what the application had not answered is refused at once', () => {
  const server = new VirtualServer({ graceMs })
  invited(server)
  server.receive(requestOf('OPTIONS', { callId: 'o', branch: 'z9hG4bK-o' }))
  server.takeSent()
  server.disconnect(server.clientId)
  expect(server.takeStartLines()).toEqual([
    'SIP/2.0 503 Service Unavailable',
    'SIP/2.0 503 Service Unavailable',
  ])
})

test('its calls go on for the grace, and then end with BYE', () => {
  const { server } = orphaned()
  expect(server.takeSent()).toEqual([])
  server.advance(graceMs - 1)
  expect(server.takeSent()).toEqual([])
  server.advance(1)
  const [bye] = server.takeSent()
  expect(startLine(bye?.text)).toMatch(/^BYE /)
  expect(header(bye?.text ?? '', 'Reason')).toContain('Application gone')
  server.receive(responseOf(bye?.text ?? '', 200))
  server.advance(64_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, lostApplications: 0, deadlines: 0 })
})

test('meanwhile the peer can hang up, but change nothing', () => {
  const { server, toTag } = orphaned()
  server.receive(requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-re', body: sdp }))
  const [refused] = server.takeSent()
  expect(startLine(refused?.text)).toBe('SIP/2.0 503 Service Unavailable')
  expect(header(refused?.text ?? '', 'Retry-After')).toBe('5')
  server.receive(requestOf('BYE', { toTag, cseq: 3, branch: 'z9hG4bK-bye' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK'])
  server.advance(graceMs)
  expect(server.takeSent()).toEqual([])
})

test('an INVITE of its own is cancelled; one that was answered just now is acknowledged, then ended', () => {
  const server = new VirtualServer({ graceMs })
  const invite = (user: string) =>
    `sip|||sip:192.0.2.20\r\nINVITE sip:${user}@192.0.2.20 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n${sdp}`
  server.command(invite('ringing'))
  server.command(invite('answers'))
  const [ringing, answers] = server.takeSent()
  server.receive(responseOf(ringing?.text ?? '', 180, { toTag: 'r' }), callee)
  const contact = ['Contact: <sip:callee@192.0.2.20>']
  const ok = responseOf(answers?.text ?? '', 200, { toTag: 'a', body: sdp, extra: contact })
  server.receive(ok, callee)
  server.takeSent()
  server.disconnect(server.clientId)
  expect(server.takeStartLines().map((line) => line.split(' ', 1)[0])).toEqual(['CANCEL', 'ACK'])
  server.advance(graceMs)
  const later = server.takeStartLines().map((line) => line.split(' ', 1)[0])
  expect(later.filter((method) => method === 'BYE')).toHaveLength(1)
})
