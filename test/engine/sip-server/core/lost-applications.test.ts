import { expect, test } from 'vitest'
import { acknowledge, answered, invited } from '../../../support/caller.ts'
import {
  VirtualServer,
  callee,
  header,
  requestOf,
  responseOf,
  sdp,
} from '../../../support/sip-core.ts'

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
