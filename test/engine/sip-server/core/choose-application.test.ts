import { expect, test } from 'vitest'
import type { NewRequest, RequestRoute } from '../../../../engine/sip-server/index.ts'
import { VirtualServer, requestOf, sdp } from '../../../support/sip-core.ts'

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
