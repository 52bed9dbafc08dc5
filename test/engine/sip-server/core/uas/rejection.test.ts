import { expect, test } from 'vitest'
import { acknowledge, answered } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp } from '../../../../support/sip-core.ts'

/** The one response to a request, which no application sees. */
function refusal(
  extra: readonly string[],
  options: { body?: string; method?: string } = {},
): string {
  const server = new VirtualServer()
  server.receive(requestOf(options.method ?? 'INVITE', { extra, body: options.body ?? '' }))
  expect(server.takeDelivered()).toEqual([])
  const [sent] = server.takeSent()
  return sent?.text ?? ''
}

// RFC 3261 §8.2.2.3.
test('an unknown extension is named in Unsupported, the known ones are not', () => {
  const extra = ['Require: timer, nothingSIPplays', 'Require: 100rel']
  const text = refusal(extra, { method: 'OPTIONS' })
  expect(text.startsWith('SIP/2.0 420 Bad Extension\r\n')).toBe(true)
  expect(header(text, 'Unsupported')).toBe('nothingsipplays')
})

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

// RFC 3261 §8.2.3.
test('an encoded body is refused with the encoding that would do', () => {
  const text = refusal(['Content-Encoding: gzip'], { body: sdp })
  expect(text.startsWith('SIP/2.0 415 Unsupported Media Type\r\n')).toBe(true)
  expect(header(text, 'Accept-Encoding')).toBe('identity')
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
