/** Session timers of calls that an application makes: RFC 4028 §7. */
import { expect, test } from 'vitest'
import { answer, called, calleeSdp, dialogIdOf } from '../../../support/callee.ts'
import { VirtualServer, header, sdp, sip } from '../../../support/sip-core.ts'

const asked = ['Supported: timer', 'Session-Expires: 90']
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4)

test('an answer that says nothing leaves the refresh to the caller: the same offer at half the time', () => {
  const server = new VirtualServer()
  called(server, asked)
  server.advance(44_750)
  expect(server.takeSent()).toEqual([])
  server.advance(250)
  const refresh = server.takeSent()[0]?.text ?? ''
  expect(header(refresh, 'CSeq')).toBe('2 INVITE')
  expect(bodyOf(refresh)).toBe(sdp)
  answer(server, refresh, 200, { body: calleeSdp })
  expect(header(server.takeSent()[0]?.text ?? '', 'CSeq')).toBe('2 ACK')
  expect(server.takeDelivered()).toEqual([])
})

test.each([
  ['Session-Expires: 300;refresher=uac', 150_000, 'INVITE'],
  ['Session-Expires: 300', 150_000, 'INVITE'],
  ['Session-Expires: 300;refresher=uas', 268_000, 'BYE'],
])('an answer with %s is obeyed', (line, ms, method) => {
  const server = new VirtualServer()
  called(server, asked, [line])
  server.advance(ms - 250)
  expect(server.takeSent()).toEqual([])
  server.advance(250)
  expect(header(server.takeSent()[0]?.text ?? '', 'CSeq')).toBe(`2 ${method}`)
})

test('an offer that was answered in the ACK is what a refresh repeats', () => {
  const server = new VirtualServer()
  server.command(
    `sip||\r\n${sip('INVITE sip:bob@192.0.2.20 SIP/2.0', ['from: sip:a@localhost', ...asked])}`,
  )
  const invite = server.takeSent()[0]?.text ?? ''
  answer(server, invite, 200, { body: calleeSdp })
  const ack = sip('ACK sip:bob@192.0.2.20 SIP/2.0', [], sdp)
  server.command(`sip||${dialogIdOf(invite)}\r\n${ack}`)
  server.takeSent()
  server.advance(45_000)
  expect(bodyOf(server.takeSent()[0]?.text ?? '')).toBe(sdp)
})

test('a re-INVITE of the application asks for the session and makes its time start again', () => {
  const server = new VirtualServer()
  const invite = called(server, asked, ['Session-Expires: 90;refresher=uac'])
  const newSdp = sdp.replace('1 1', '1 2')
  server.advance(40_000)
  server.command(`sip||${dialogIdOf(invite)}\r\n${sip('INVITE sip:p SIP/2.0', [], newSdp)}`)
  const change = server.takeSent()[0]?.text ?? ''
  expect([header(change, 'Session-Expires'), header(change, 'Supported')]).toEqual([
    '90;refresher=uac',
    'timer',
  ])
  answer(server, change, 200, { lines: ['Session-Expires: 90;refresher=uac'], body: calleeSdp })
  server.command(`sip||${dialogIdOf(invite)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  server.takeSent()
  server.advance(44_000)
  expect(server.takeSent()).toEqual([])
  server.advance(1_000)
  expect(bodyOf(server.takeSent()[0]?.text ?? '')).toBe(newSdp)
})

// RFC 3261 §14.1: we made the Call-ID, so we wait longer than the peer can.
test('a refresh that meets a request of the peer is tried again after 2.1 to 4 seconds', () => {
  const server = new VirtualServer()
  called(server, asked)
  server.advance(45_000)
  answer(server, server.takeSent()[0]?.text ?? '', 491)
  server.takeSent()
  server.advance(1_850)
  expect(server.takeSent()).toEqual([])
  server.advance(2_400)
  expect(header(server.takeSent()[0]?.text ?? '', 'CSeq')).toBe('3 INVITE')
})

test('a re-INVITE of the application waits for a refresh that it cannot know of', () => {
  const server = new VirtualServer()
  const invite = called(server, asked)
  server.advance(45_000)
  const refresh = server.takeSent()[0]?.text ?? ''
  const id = server.command(`sip||${dialogIdOf(invite)}\r\n${sip('INVITE sip:p SIP/2.0', [], sdp)}`)
  expect([server.takeSent(), server.takeDelivered()]).toEqual([[], []])
  answer(server, refresh, 200, { body: calleeSdp })
  expect(server.takeSent().map(({ text }) => header(text, 'CSeq'))).toEqual(['2 ACK', '3 INVITE'])
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'OK' })
})

const agreed = ['Session-Expires: 1800;refresher=uac']

/** Methods of what was sent, with their numbers. */
const methods = (server: VirtualServer): string[] =>
  server.takeSent().map(({ text }) => header(text, 'CSeq'))

/** An agreed session whose refresh, after 900 s, was refused. */
function refusedRefresh(status: number): { server: VirtualServer; invite: string } {
  const server = new VirtualServer()
  const invite = called(server, asked, agreed)
  server.advance(900_000)
  answer(server, server.takeSent()[0]?.text ?? '', status)
  expect(methods(server)).toEqual(['2 ACK'])
  return { server, invite }
}

// RFC 4028 §10: the same request would get the same answer.
test.each([401, 407])(
  'a refresh that is challenged with %i is not repeated, and a BYE in time ends the call',
  (status) => {
    const { server } = refusedRefresh(status)
    server.advance(867_750)
    expect(methods(server)).toEqual([])
    expect(server.takeDelivered()).toEqual([])
    server.advance(250)
    const [bye] = server.takeSent()
    expect(header(bye?.text ?? '', 'CSeq')).toBe('3 BYE')
    expect(header(bye?.text ?? '', 'Reason')).toContain('Session timer expired')
    const [told] = server.takeDelivered()
    expect(told?.transactionId).toBe('unsolicited')
    expect(told?.sip).toBe(bye?.text)
  },
)

test('another refusal may pass, and is tried once more; the same one again is final', () => {
  const { server } = refusedRefresh(500)
  server.advance(16_000)
  answer(server, server.takeSent()[0]?.text ?? '', 500)
  expect(methods(server)).toEqual(['3 ACK'])
  server.advance(851_750)
  expect(methods(server)).toEqual([])
  server.advance(250)
  expect(methods(server)).toEqual(['4 BYE'])
})
