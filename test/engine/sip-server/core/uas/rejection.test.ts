import { expect, test } from 'vitest'
import { acknowledge, answered } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp } from '../../../../support/sip-core.ts'

test('a request inside a dialog may insist on no more than one outside', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeSent()
  server.receive(requestOf('INFO', { toTag, cseq: 2, extra: ['Require: unheard-of'] }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 420 Bad Extension'])
})

test('known extensions pass, and so does whatever a new call, an ACK or a CANCEL says', () => {
  const server = new VirtualServer()
  const extra = ['Require: unheard-of']
  server.receive(requestOf('OPTIONS', { extra: ['Require: timer,  Replaces'] }))
  expect(server.takeDelivered()).toHaveLength(1)
  server.receive(requestOf('INVITE', { extra, body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1', extra }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
})

test('an INVITE describes its session in SDP, unless its body may be ignored', () => {
  const asText = requestOf('INVITE', { body: 'hello' }).replace('application/sdp', 'text/plain')
  const server = new VirtualServer()
  server.receive(asText)
  const [refused] = server.takeSent()
  expect(refused?.text.startsWith('SIP/2.0 415 Unsupported Media Type\r\n')).toBe(true)
  expect(header(refused?.text ?? '', 'Accept')).toBe('application/sdp, multipart/mixed')
  for (const [from, to] of [
    ['text/plain', 'multipart/mixed;boundary=b'],
    ['text/plain', 'text/plain\r\nContent-Disposition: render;handling=optional'],
  ] as const) {
    const other = new VirtualServer()
    other.receive(asText.replace(from, to))
    expect(other.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  }
})
