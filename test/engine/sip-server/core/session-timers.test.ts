/**
 * Session timers of calls that an application answers, and of those that it makes: RFC 4028 §7, §9,
 * §10.
 */
import { expect, test } from 'vitest'
import { acknowledge, invited, respond } from '../../../support/caller.ts'
import {
  VirtualServer,
  header,
  requestOf,
  responseOf,
  sdp,
  tagIn,
  sip,
} from '../../../support/sip-core.ts'
import { answer, called, calleeSdp, dialogIdOf } from '../../../support/callee.ts'

/** An answered and acknowledged call; returns our 200 and our tag. */
function answered(server: VirtualServer, offered: string[], given: string[]) {
  const invite = requestOf('INVITE', { body: sdp, extra: offered })
  respond(server, invited(server, invite), 200, given)
  const ok = server.takeSent()[0]?.text ?? ''
  const toTag = tagIn(header(ok, 'To'))
  acknowledge(server, toTag)
  server.takeDelivered()
  return { ok, toTag }
}

const supported = 'Supported: timer'

test.each([
  // The caller's INVITE, the application's 200, and the answer to the caller.
  [[], [], ['', '']],
  [[supported], [], ['', '']],
  [[supported, 'Session-Expires: 600'], [], ['', '']],
  [[supported, 'Session-Expires: 600;refresher=uac'], [], ['600;refresher=uac', 'timer']],
  [[supported, 'Session-Expires: 600;refresher=uas'], [], ['600;refresher=uas', '']],
  [[], ['Session-Expires: 1800'], ['1800;refresher=uas', '']],
  [[supported], ['Session-Expires: 1800'], ['1800;refresher=uac', 'timer']],
  [[supported], ['Session-Expires: 1800;refresher=uas'], ['1800;refresher=uas', '']],
  [[supported], ['Session-Expires: 30'], ['90;refresher=uac', 'timer']],
  [[supported, 'Session-Expires: 600'], ['Session-Expires: 1800'], ['600;refresher=uac', 'timer']],
  [
    [supported, 'Session-Expires: 600;refresher=uac'],
    ['Session-Expires: 300;refresher=uas'],
    ['300;refresher=uac', 'timer'],
  ],
  [[supported, 'Min-SE: 400'], ['Session-Expires: 300'], ['400;refresher=uac', 'timer']],
  // A proxy added it for a caller that knows nothing of it.
  [['Session-Expires: 600;refresher=uac'], [], ['600;refresher=uas', '']],
])('an INVITE with %j, answered with %j, gets %j', (offered, given, expected) => {
  const { ok } = answered(new VirtualServer(), offered, given)
  expect([header(ok, 'Session-Expires'), header(ok, 'Require')]).toEqual(expected)
})

// §10: 32 s or a third of the interval before its end, whichever is less.
test.each([
  [90, 60_000],
  [1_800, 1_768_000],
])('a caller that does not refresh within %i s gets BYE after %i ms', (seconds, ms) => {
  const server = new VirtualServer()
  answered(server, [supported], [`Session-Expires: ${seconds};refresher=uac`])
  server.advance(ms - 300)
  expect(server.takeSent()).toEqual([])
  server.advance(300)
  const [bye] = server.takeSent()
  expect(bye?.text).toMatch(/^BYE sip:alice@203\.0\.113\.7:5060 SIP/)
  expect(header(bye?.text ?? '', 'Reason')).toBe('SIP ;cause=200 ;text="Session timer expired"')
  const [told] = server.takeDelivered()
  expect(told).toMatchObject({
    transactionId: 'unsolicited',
    dialogId: 'c1@203.0.113.7;from-tag=f1',
  })
  expect(server.core.stats()['dialogs']).toBe(0)
})

// §7.4: the offer as it was, or none at all.
test('our part: after half the interval UPDATE for a caller that takes it, else the same offer again', () => {
  for (const [allow, method, body] of [
    ['Allow: INVITE, ACK, BYE, UPDATE', 'UPDATE', ''],
    ['Allow: INVITE, ACK, BYE', 'INVITE', sdp],
  ] as const) {
    const server = new VirtualServer()
    const { toTag } = answered(server, [supported, allow], ['Session-Expires: 90;refresher=uas'])
    server.advance(45_000)
    const text = server.takeSent()[0]?.text ?? ''
    expect(header(text, 'CSeq')).toBe(`1 ${method}`)
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(body)
    expect(header(text, 'Session-Expires')).toBe('90;refresher=uac')
    expect(header(text, 'Min-SE')).toBe('90')
    expect(header(text, 'Supported')).toBe('timer')
    expect(header(text, 'Contact')).toBe('<sip:18005551212@198.51.100.10:5060>')
    const extra = ['Contact: <sip:alice@203.0.113.7:5060>', 'Session-Expires: 90;refresher=uac']
    const ok = responseOf(text, 200, { toTag, extra, body: method === 'INVITE' ? sdp : '' })
    server.receive(ok)
    server.receive(ok)
    // A copy of the 200 is acknowledged again, and no other party hears of anything.
    expect(server.takeSent().map((sent) => sent.text.slice(0, 3))).toEqual(
      method === 'INVITE' ? ['ACK', 'ACK'] : [],
    )
    expect(server.takeDelivered()).toEqual([])
    server.advance(44_000)
    expect(server.takeSent()).toEqual([])
    server.advance(1_000)
    expect(header(server.takeSent()[0]?.text ?? '', 'CSeq')).toBe(`2 ${method}`)
  }
})

test.each([
  [
    'with the location of the caller before it',
    (text: string) => `${xml}${session}${text}\r\n--b--\r\n`,
  ],
  [
    'with the location of the caller after it',
    (text: string) => `${session}${text}\r\n${xml}--b--`,
  ],
  ['whose last line ends with the delimiter', (text: string) => `${session}${text}--b--\r\n`],
])('a description %s goes again without it', (_where, around) => {
  const server = new VirtualServer()
  const lines = ['from: sip:alice@localhost', ...asksTimer]
  const body = around(sdp)
  const text = sip('INVITE sip:bob@192.0.2.20 SIP/2.0', lines, body)
  server.command(`sip||\r\n${text.replace('application/sdp', 'multipart/mixed;boundary=b')}`)
  const request = server.takeSent()[0]?.text ?? ''
  expect(request.endsWith(body)).toBe(true)
  answer(server, request, 200, {
    lines: ['Session-Expires: 90;refresher=uac'],
    body: calleeSdp,
  })
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('ACK sip:bob@192.0.2.20 SIP/2.0', [])}`)
  server.takeSent()
  server.advance(45_000)
  const refresh = server.takeSent()[0]?.text ?? ''
  expect(header(refresh, 'CSeq')).toMatch(/ INVITE$/)
  expect(header(refresh, 'Content-Type')).toBe('application/sdp')
  expect(refresh.slice(refresh.indexOf('\r\n\r\n') + 4)).toBe(sdp)
})

const asksTimer = [supported, 'Session-Expires: 90']
const session = '--b\r\nContent-Type: application/sdp\r\n\r\n'
const xml =
  '--b\r\nContent-Type: application/pidf+xml\r\n\r\n<?xml version="1.0"?>\r\n<presence/>\r\n\r\n'

test('a caller that has vanished is noticed by the refresh: BYE, and the application is told', () => {
  const server = new VirtualServer()
  answered(server, [], ['Session-Expires: 90'])
  server.advance(45_000)
  expect(server.takeStartLines()).toEqual(['INVITE sip:alice@203.0.113.7:5060 SIP/2.0'])
  server.advance(15_000)
  expect(server.takeStartLines().filter((line) => line.startsWith('BYE'))).toHaveLength(1)
  // The INVITE is not needed any more.
  server.advance(20_000)
  expect(server.takeStartLines().filter((line) => !line.startsWith('BYE'))).toEqual([])
  expect(server.takeDelivered()[0]?.transactionId).toBe('unsolicited')
  server.advance(64_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})

test.each([408, 481])('a refresh that is answered %i ends the dialog', (status) => {
  const server = new VirtualServer()
  answered(server, [], ['Session-Expires: 90'])
  server.advance(45_000)
  server.receive(responseOf(server.takeSent()[0]?.text ?? '', status))
  expect(server.takeStartLines().map((line) => line.split(' ')[0])).toEqual(['ACK', 'BYE'])
  expect(server.takeDelivered()[0]?.transactionId).toBe('unsolicited')
})

test.each(['INVITE', 'UPDATE'])('%s in a dialog below the shortest interval gets 422', (method) => {
  const server = new VirtualServer()
  const { toTag } = answered(server, [supported], ['Session-Expires: 90'])
  const extra = [supported, 'Session-Expires: 60']
  server.receive(requestOf(method, { toTag, cseq: 2, branch: 'z9hG4bK-r2', extra }))
  const [refusal] = server.takeSent()
  expect(refusal?.text).toMatch(/^SIP\/2\.0 422 Session Interval Too Small/)
  expect(header(refusal?.text ?? '', 'Min-SE')).toBe('90')
  expect(server.takeDelivered()).toEqual([])
})

test('so does an INVITE that begins a call, unless its sender knows nothing of it, or the server is told otherwise', () => {
  const short = (lines: string[], minSessionSeconds = 90) => {
    const server = new VirtualServer({ minSessionSeconds })
    server.receive(requestOf('INVITE', { body: sdp, extra: ['Session-Expires: 60', ...lines] }))
    return server.takeStartLines()[0]
  }
  expect(short([supported])).toBe('SIP/2.0 422 Session Interval Too Small')
  expect(short([])).toBe('SIP/2.0 100 Trying')
  expect(short([supported], 60)).toBe('SIP/2.0 100 Trying')
})

test.each([
  ['uac', '', '600;refresher=uac', 'timer'],
  ['uas', '', '600;refresher=uas', ''],
  ['none', '', '', ''],
  ['uas', ';refresher=uac', '600;refresher=uac', 'timer'],
] as const)(
  'by default refresher %s: who asks for 600%s is told "%s"',
  (by, wish, expires, required) => {
    const server = new VirtualServer({ more: { defaultRefresher: by } })
    const { ok } = answered(server, [supported, `Session-Expires: 600${wish}`], [])
    expect([header(ok, 'Session-Expires'), header(ok, 'Require')]).toEqual([expires, required])
  },
)

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

test.each([
  ['422, with the longer interval that the peer insists on', 422, ['Min-SE: 300'], '300'],
  ['501 to UPDATE, as a re-INVITE', 501, [], '90'],
])('a refresh that is answered %s, is sent again', (_what, status, extra, seconds) => {
  const server = new VirtualServer()
  const allow = status === 501 ? 'INVITE, UPDATE' : 'INVITE'
  answered(server, [supported, `Allow: ${allow}`], ['Session-Expires: 90;refresher=uas'])
  server.advance(45_000)
  server.receive(responseOf(server.takeSent()[0]?.text ?? '', status, { extra }))
  server.advance(250)
  const again = server.takeSent().at(-1)?.text ?? ''
  const said = ['CSeq', 'Session-Expires', 'Min-SE'].map((name) => header(again, name))
  expect(said).toEqual(['2 INVITE', `${seconds};refresher=uac`, seconds])
})

test.each(['INVITE', 'UPDATE'])('a refresh by %s of the peer starts its time again', (method) => {
  const server = new VirtualServer()
  const { toTag } = answered(server, [supported], ['Session-Expires: 90;refresher=uac'])
  server.advance(45_000)
  const extra = [supported, 'Session-Expires: 90;refresher=uac']
  const body = method === 'INVITE' ? sdp : ''
  server.receive(requestOf(method, { toTag, cseq: 2, branch: 'z9hG4bK-r', body, extra }))
  respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
  expect(header(server.takeSent().at(-1)?.text ?? '', 'Session-Expires')).toBe('90;refresher=uac')
  if (method === 'INVITE') server.receive(requestOf('ACK', { toTag, cseq: 2 }))
  server.advance(59_000)
  expect(server.takeSent()).toEqual([])
  server.advance(1_000)
  expect(server.takeStartLines()).toEqual(['BYE sip:alice@203.0.113.7:5060 SIP/2.0'])
})

// RFC 4028 §10: the same request would get the same answer.
test.each([401, 407])(
  'a refresh that is challenged with %i is not repeated, and a BYE in time ends the call',
  (status) => {
    const server = new VirtualServer()
    const methods = (): string[] => server.takeSent().map(({ text }) => header(text, 'CSeq'))
    called(server, asked, ['Session-Expires: 1800;refresher=uac'])
    server.advance(900_000)
    answer(server, server.takeSent()[0]?.text ?? '', status)
    expect(methods()).toEqual(['2 ACK'])
    server.advance(867_750)
    expect([methods(), server.takeDelivered()]).toEqual([[], []])
    server.advance(250)
    expect(methods()).toEqual(['3 BYE'])
    expect(server.takeDelivered()[0]?.transactionId).toBe('unsolicited')
  },
)
