import { expect, test } from 'vitest'
import { checkRequest, checkResponse } from '../../../../engine/sip-server/message/parse.ts'
import type { Protocol } from '../../../../engine/sip-server/flow.ts'
import { invite, read } from './sample.ts'

const verdict = (text: string, protocol: Protocol = 'udp') => checkRequest(read(text), protocol)
const bad = (reason: string) => ({ status: 400, reason })
const request = (method: string, ...extra: readonly string[]) =>
  invite(extra).replaceAll('INVITE', method)

test.each(['Via', 'From', 'To', 'Call-ID', 'CSeq'])('%s is mandatory', (name) => {
  expect(verdict(invite().replace(`${name}:`, 'X-Was:'))).toEqual(bad(`Missing ${name} Header`))
})

test.each([
  'From: <sip:a@b>',
  'To: <sip:a@b>',
  'Call-ID: 2',
  'CSeq: 1 INVITE',
  'Max-Forwards: 70',
  'i: 3',
  'max-forwards: 1',
])('%s may not stand twice', (line) => {
  expect(verdict(invite([line]))?.reason).toMatch(/^Multiple [-\w]+ Headers$/)
})

test.each([
  ['Via', 'SIP/2.0/UDP'],
  ['Via', 'SIP/2.0/UDP h;branch=z9hG4bK'],
  ['Via', 'SIP/2.0/UDP h;;branch=z9hG4bKx'],
  ['Via', 'SIP/2.0/UDP h, nonsense'],
  ['Via', 'SIP/2.0/UDP h,, SIP/2.0/UDP i'],
  ['Via', ', SIP/2.0/UDP h'],
  ['From', '<sip:a@b>;tag=1;tag=2'],
  ['From', '<sip:a@b>;tag=1;'],
  ['From', '<sip:a@b@c>;tag=1'],
  ['From', '<sip:a@b>, <sip:c@d>'],
  ['To', 'bob'],
  ['To', '<sip:a@b>;;x'],
  ['To', '<sip:bob@>'],
  ['Call-ID', ''],
  ['Call-ID', 'a b'],
  ['CSeq', '2147483648 INVITE'],
  ['Max-Forwards', '256'],
  ['Max-Forwards', 'many'],
])('%s: %s is refused', (name, value) => {
  const text = invite().replace(new RegExp(`^${name}: .*`, 'm'), `${name}: ${value}`)
  expect(verdict(text)).toEqual(bad(`Bad ${name} Header`))
})

test.each([
  ['Contact', '*'],
  ['Contact', '<sip:a@b>, '],
  ['Contact', '<sip:a@b>, "x'],
  ['Contact', '<sip:>'],
  ['Contact', '<sip:a@b>;;q=1'],
  ['Route', 'sip'],
  ['Record-Route', '<sip:p;lr>, <>'],
])('%s: %s is refused', (name, value) => {
  expect(verdict(invite([`${name}: ${value}`]))).toEqual(bad(`Bad ${name} Header`))
})

test('empty parts inside quotes and brackets are content', () => {
  const text = invite(['Contact: "a;;b,," <sip:x;y@h>;q=1'])
  expect(verdict(text.replace('"Alice"', '"A;;,,"'))).toBeUndefined()
})

test('Contact: * removes bindings and stands in REGISTER only', () => {
  expect(verdict(request('REGISTER', 'Contact: *', 'Expires: 0'))).toBeUndefined()
})

test.each([
  ['sip:a b@c', undefined],
  ['bob', bad('Bad Request-URI')],
  ['sip:@c', bad('Bad Request-URI')],
  ['sip:a@b?Subject=x', bad('Bad Request-URI')],
  ['tel:', bad('Bad Request-URI')],
  ['tel:+1555', undefined],
  ['sips:a@[2001:db8::1];transport=tls', undefined],
  ['urn:service:sos.police', undefined],
  ['urn:service:', { status: 416, reason: 'Unsupported URI Scheme' }],
  ['urn:isbn:1', { status: 416, reason: 'Unsupported URI Scheme' }],
  ['mailto:a@b', { status: 416, reason: 'Unsupported URI Scheme' }],
])('a request for %s', (uri, expected) => {
  expect(verdict(invite().replace('sip:bob@example.com', uri.replace(' ', '%20')))).toEqual(
    expected,
  )
})

test('a version of SIP that is not 2.0 is told so before anything else', () => {
  const text = invite(['CSeq: 9 X']).replace('SIP/2.0', 'SIP/3.0')
  expect(verdict(text)).toEqual({ status: 505, reason: 'Version Not Supported' })
  expect(verdict(invite().replace('SIP/2.0', 'sip/2.0'))).toBeUndefined()
})

test('the method of CSeq is that of the request', () => {
  expect(verdict(invite().replace('1 INVITE', '1 invite'))).toEqual(bad('CSeq Method Mismatch'))
})

test('only datagrams and WebSocket frames may leave Content-Length out', () => {
  const missing = bad('Missing Content-Length Header')
  const protocols: readonly Protocol[] = ['udp', 'ws', 'wss', 'tcp', 'tls']
  expect(protocols.map((protocol) => verdict(invite(), protocol))).toEqual([
    undefined,
    undefined,
    undefined,
    missing,
    missing,
  ])
})

test.each(['4', '-1', '', 'x', '3, 3'])(
  'Content-Length %j does not fit a body of three bytes',
  (length) => {
    const text = invite(['Content-Type: text/plain', `Content-Length: ${length}`], 'abc')
    expect(verdict(text)).toEqual(bad('Bad Content-Length Header'))
  },
)

test('Content-Length counts bytes', () => {
  expect(verdict(invite(['c: text/plain', 'l: 2'], 'é'))).toBeUndefined()
})

test('a body needs a Content-Type', () => {
  expect(verdict(invite([], 'v=0'))).toEqual(bad('Missing Content-Type Header'))
})

test.each([
  ['PRACK', 'RAck', '1 1 INVITE'],
  ['REFER', 'Refer-To', '<sip:c@d>'],
  ['SUBSCRIBE', 'Event', 'presence'],
  ['NOTIFY', 'Event', 'presence'],
])('%s needs %s', (method, name, value) => {
  expect(verdict(request(method))).toEqual(bad(`Missing ${name} Header`))
  expect(
    verdict(request(method).replace('\r\n\r\n', `\r\n${name}: ${value}\r\n\r\n`)),
  ).toBeUndefined()
})

test('a RAck that cannot be read is refused', () => {
  expect(verdict(request('PRACK', 'RAck: 1 2'))).toEqual(bad('Bad RAck Header'))
})

const ok = invite(['Content-Length: 0']).replace(/^.*/, 'SIP/2.0 200 OK')

test.each([
  ['no Via', ok.replace('Via', 'X')],
  ['an unreadable Via', ok.replace('SIP/2.0/UDP', 'SIP/2.0')],
  ['two From', ok.replace('To:', 'From:')],
  ['no CSeq', ok.replace('CSeq', 'X')],
  ['an unreadable CSeq', ok.replace('1 INVITE', 'INVITE')],
  ['an empty Call-ID', ok.replace(/Call-ID: .*/, 'Call-ID:')],
  ['less body than announced', ok.replace('Content-Length: 0', 'Content-Length: 5')],
  ['another version', ok.replace('SIP/2.0 200', 'SIP/2.1 200')],
])('a response with %s is dropped', (_, text) => {
  expect(checkResponse(read(text))).toBe(false)
})
