/** Restored dialogs whose stream has ended with the process before. */
import { expect, test } from 'vitest'
import { acknowledge, invited, respond } from '../../../support/caller.ts'
import {
  answeredCall,
  command,
  next,
  restored,
  savedDialog,
  startLine,
  tcpInvite,
  uasId,
} from '../../../support/restarted-core.ts'
import {
  header,
  requestOf,
  sip,
  tagIn,
  targetAt,
  tcpCaller,
  udp,
  VirtualServer,
} from '../../../support/sip-core.ts'

test('a dialog over TCP is asked for by a new connection, and goes on when its peer answers', () => {
  const { server: before } = answeredCall(tcpInvite, tcpCaller)
  const server = restored(savedDialog(before, uasId))
  server.advance(10_250)
  const [asking] = server.takeSent()
  expect(startLine(asking?.text)).toBe('OPTIONS sip:alice@203.0.113.7:5060 SIP/2.0')
  expect(asking?.flow).toMatchObject({ address: '203.0.113.7', connectionId: 0 })
  server.receive(sip('SIP/2.0 200 OK', headersOf(asking?.text ?? '')), asking?.flow)
  server.advance(600_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()).toMatchObject({ dialogs: 1, clientTransactions: 0, deadlines: 0 })
})

const headersOf = (request: string): string[] =>
  request.split('\r\n').filter((line) => /^(Via|From|To|Call-ID|CSeq):/.test(line))

test('a dialog over TCP whose peer sends a request in it is bound to that connection', () => {
  const { server: before, toTag } = answeredCall(tcpInvite, tcpCaller)
  const server = restored(savedDialog(before, uasId))
  const again = { ...tcpCaller, port: 41_000, connectionId: 3 }
  server.receive(requestOf('INFO', { toTag, cseq: 2 }), again)
  respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
  server.takeSent()
  server.advance(120_000)
  expect(server.takeSent()).toEqual([])
  command(server, uasId, 'BYE')
  expect(server.takeSent()[0]?.flow).toMatchObject({ port: 41_000, connectionId: 3 })
})

test('a phone that registers again over a new connection is found by it', () => {
  const { server: before } = answeredCall(tcpInvite, tcpCaller)
  const server = next()
  server.command('route|register')
  server.takeDelivered()
  restored(savedDialog(before, uasId), server)
  const again = { ...tcpCaller, port: 41_000, connectionId: 3 }
  server.receive(requestOf('REGISTER', { callId: 'r', extra: ['Expires: 600'] }), again)
  respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
  server.takeSent()
  server.advance(120_000)
  expect(server.takeSent()).toEqual([])
  command(server, uasId, 'BYE')
  expect(server.takeSent()[0]?.flow).toMatchObject({ port: 41_000, connectionId: 3 })
})

test('a dialog over TCP that cannot be reached for a minute ends as an expired session does', () => {
  const { server: before } = answeredCall(tcpInvite, tcpCaller)
  const server = restored(savedDialog(before, uasId))
  for (let second = 0; second < 59; second++) {
    server.advance(1_000)
    for (const { reference } of server.takeSent()) server.sendFailed(reference)
  }
  expect(server.takeDelivered()).toEqual([])
  server.advance(2_000)
  const [bye] = server.takeSent()
  expect(header(bye?.text ?? '', 'Reason')).toContain('Session timer expired')
  expect(server.takeDelivered()[0]?.sip).toMatch(/^BYE /)
  expect(server.core.stats()).toMatchObject({ dialogs: 0 })
})

test('a dialog over TCP whose peer knows nothing of it ends at once', () => {
  const { server: before } = answeredCall(tcpInvite, tcpCaller)
  const server = restored(savedDialog(before, uasId))
  server.advance(10_250)
  const [asking] = server.takeSent()
  const gone = 'SIP/2.0 481 Call/Transaction Does Not Exist'
  server.receive(sip(gone, headersOf(asking?.text ?? '')), asking?.flow)
  expect(server.takeDelivered()[0]?.sip).toMatch(/^BYE /)
})

test('a peer that is named in its Contact is looked up, and its refreshes go there', () => {
  const named = tcpInvite.replace(
    '<sip:alice@203.0.113.7:5060>',
    '<sip:a@pbx.example;transport=tcp>',
  )
  const lines = ['Session-Expires: 1800;refresher=uas', 'Supported: timer']
  const asked = named.replace('Max-Forwards', `${lines.join('\r\n')}\r\nMax-Forwards`)
  const { server: before } = answeredCall(asked, tcpCaller)
  const server = restored(savedDialog(before, uasId))
  server.advance(10_250)
  expect(server.takeSent()).toEqual([])
  server.resolved('pbx.example', [targetAt('192.0.2.44', 'tcp')])
  const [asking] = server.takeSent()
  expect(asking?.flow).toMatchObject({ address: '192.0.2.44', connectionId: 0 })
  server.receive(sip('SIP/2.0 200 OK', headersOf(asking?.text ?? '')), asking?.flow)
  server.advance(225_000)
  const [refresh] = server.takeSent()
  expect([header(refresh?.text ?? '', 'CSeq'), refresh?.flow.address]).toEqual([
    '10002 INVITE',
    '192.0.2.44',
  ])
})

test('a phone by WebSocket is waited for, because only it can connect', () => {
  const ws = { ...tcpCaller.listener, protocol: 'ws' } as const
  const before = new VirtualServer({ listeners: [udp, ws] })
  const flow = { ...tcpCaller, listener: ws }
  respond(before, invited(before, tcpInvite.replace('/TCP', '/WS'), flow), 200)
  acknowledge(before, tagIn(header(before.takeSent()[0]?.text ?? '', 'To')))
  const server = new VirtualServer({ listeners: [udp, ws] })
  restored(savedDialog(before, uasId), server)
  server.advance(59_000)
  expect([server.takeSent(), server.takeDelivered()]).toEqual([[], []])
  server.advance(2_000)
  expect(server.takeDelivered()[0]?.sip).toMatch(/^BYE /)
})
