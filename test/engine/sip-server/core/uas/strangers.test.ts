/** Answers to senders that may have written the address of another (RFC 3261 §26.3.2.4); `test/support/attacks` has the whole. */
import { expect, test } from 'vitest'
import { composeResponse } from '../../../../../engine/sip-server/message/index.ts'
import { invited, respond } from '../../../../support/caller.ts'
import {
  caller,
  requestOf,
  sdp,
  tcpCaller,
  VirtualServer,
  type SentMessage,
} from '../../../../support/sip-core.ts'

const challenge = { 'Proxy-Authenticate': 'Digest realm="a"', 'X-Long': 'x'.repeat(500) }

function challenged(server: VirtualServer, transactionId: string): readonly SentMessage[] {
  const message = composeResponse(407, '', challenge, '')
  const sip = { kind: 'sip', transactionId, dialogId: '', routeUrl: '', message } as const
  const command = { ...sip, toStranger: true }
  server.drive((core, now) => core.command(server.clientId, { id: 'x', command }, now))
  server.takeDelivered()
  return server.takeSent()
}

const handled = (server: VirtualServer, transactionId: string): void =>
  server.drive((core, now) => core.handled(server.clientId, transactionId, now))

const invite = requestOf('INVITE', { body: sdp })

test('a challenge to a stranger is sent once, and each copy of its INVITE is a new one', () => {
  const server = new VirtualServer({ isInProcess: true })
  const [first] = challenged(server, invited(server, invite))
  server.advance(64_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()).toMatchObject({ serverTransactions: 0, merged: 0, deadlines: 0 })
  const [again] = challenged(server, invited(server, invite))
  expect(again?.text).toBe(first?.text)
})

test('by UDP it is at most twice as long as the request: its last header lines are left out', () => {
  const server = new VirtualServer({ isInProcess: true })
  const [answer] = challenged(server, invited(server, invite))
  expect(answer?.text).toContain('Proxy-Authenticate: Digest realm="a"')
  expect(answer?.text).not.toContain('X-Long')
  const [whole] = challenged(server, invited(server, requestOf('INVITE', { body: sdp }), tcpCaller))
  expect(whole?.text).toContain('X-Long')
})

test('a request that is too short for any answer gets none', () => {
  const server = new VirtualServer()
  server.receive('X s:x SIP/2.0\r\nv:SIP/2.0/UDP a;branch=z9hG4bK1\r\n\r\n')
  expect(server.takeSent()).toEqual([])
})

// RFC 3261 §17.2.1.
test('100 waits until an application of this process has seen the INVITE, and is not sent after its answer', () => {
  const server = new VirtualServer({ isInProcess: true })
  server.receive(invite, caller)
  expect(server.takeSent()).toEqual([])
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  handled(server, transactionId)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  handled(server, transactionId)
  expect(server.takeSent()).toEqual([])

  const other = new VirtualServer({ isInProcess: true })
  const id = invited(other, invite)
  respond(other, id, 180)
  other.takeSent()
  handled(other, id)
  expect(other.takeSent()).toEqual([])
})
