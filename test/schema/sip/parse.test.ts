import { expect, test } from 'vitest'
import { decodeMessage, encodeMessage, type Protocol } from '../../../schema/sip/message.ts'
import {
  parseAppMessage,
  parseMessage,
  checkRequest,
  checkResponse,
} from '../../../schema/sip/parse.ts'
import { invite, read } from './sample.ts'

const latin1 = (text: string): string => decodeMessage(Buffer.from(text, 'latin1'))

const malformed = (text: string) => {
  const message = parseMessage(text)
  return message.kind === 'malformed' ? message : undefined
}

test('line breaks before a message mean nothing', () => {
  expect(read('\r\n\r\n' + invite()).text).toBe(invite())
})

test('octets after the announced body are cut off, also inside a character', () => {
  expect(read(invite(['Content-Length: 3'], 'abcdef')).body).toBe('abc')
  expect(read(invite(['Content-Length: 4'], 'aéé')).body).toBe('aé\udcc3')
  expect(read(invite(['Content-Length: 5'], 'aéé')).body).toBe('aéé')
})

test.each([
  ['INVITE sip:a@b SIP/2.0\rVia: x\r\n\r\n', 'Bad Request Line'],
  ['INVITE sip:a@b SIP/2.0', 'No Blank Line After Headers'],
  ['INVITE sip:a@b SIP/2.0\nVia: x\r\n\r\n', 'Bad Line Break'],
  ['INVITE sip:a@b HTTP/1.1\r\nVia: x\r\n\r\n', 'Bad Request Line'],
  ['IN<VITE sip:a@b SIP/2.0\r\nVia: x\r\n\r\n', 'Bad Request Line'],
  ['INVITE SIP/2.0\r\nVia: x\r\n\r\n', 'Bad Request Line'],
  [invite().replace('Max-Forwards: 70', 'Max-Forwards 70'), 'Bad Header Line'],
  [invite().replace('Max-Forwards', 'Max Forwards'), 'Bad Header Line'],
  [invite().replace('Max-Forwards', ''), 'Bad Header Line'],
  [invite().replace('Via', ' Via'), 'Bad Header Line'],
  [invite().replace('70\r\n', '70\n'), 'Bad Line Break'],
  [invite().replace('70', '7\r0'), 'Bad Line Break'],
  [invite().slice(0, -2), 'No Blank Line After Headers'],
  [invite().slice(0, -20), 'No Blank Line After Headers'],
  [latin1(invite().replace('z9hG4bK', 'z9hG4bK\xe9')), 'Header Is Not UTF-8'],
  [latin1(invite().replace('INVITE sip:', 'INVITE sip:\xe9')), 'Header Is Not UTF-8'],
])('case %#: what cannot be read is refused with 400 and a reason', (text, reason) => {
  expect(malformed(text)).toMatchObject({ status: 400, reason })
})

// RFC 3261 §8.2.2: refused, a PBX that calls itself "Server: Müller" would count as dead.
test('headers in Latin-1 are read as such, and the body keeps its bytes', () => {
  const text = invite(['Subject: M\xfcller\x80', 'Content-Length: 3'], 'a=\xe9')
  const message = read(latin1(text.replace('Alice', 'Ren\xe9')))
  expect(message.from?.displayName).toBe('René')
  expect(message.get('Subject')).toBe('Müller\ufffd')
  expect(encodeMessage(message.body)).toEqual(Buffer.from('a=\xe9', 'latin1'))
})

test('a malformed request can be answered by the headers that could be read', () => {
  const message = malformed(invite(['no colon here']))?.message
  expect([message?.via?.branch, message?.callId, message?.fromTag]).toEqual([
    'z9hG4bKa1',
    'c1@192.0.2.1',
    'f1',
  ])
  expect(message?.entries()).toHaveLength(6)
})

test('nothing is answered that is a response, an ACK, or has no Via', () => {
  const broken = invite(['no colon here'])
  expect(malformed(broken.replaceAll('INVITE', 'ACK'))?.message).toBeUndefined()
  expect(malformed(broken.replace(/^.*/, 'SIP/2.0 200 OK'))?.message).toBeUndefined()
  expect(malformed(broken.replace('Via:', 'X:'))?.message).toBeUndefined()
  expect(malformed('')?.message).toBeUndefined()
})

test('a message whose lines all end with bare line feeds is read as if they ended rightly', () => {
  const strict = read(invite(['Subject: a', ' b', 'Content-Length: 5'], 'v=0\r\n'))
  const bare = read(`\n${strict.text.slice(0, strict.bodyStart).replaceAll('\r', '')}v=0\r\n`)
  expect(bare.text).toBe(strict.text)
  expect(bare.get('Subject')).toBe('a b')
  expect(bare.entries()).toEqual(strict.entries())
  expect(bare.text.slice(0, bare.bodyStart)).not.toMatch(/[^\r]\n/)
})

test('a message that ends only some lines with bare line feeds is refused', () => {
  const strict = invite(['Subject: a', 'Content-Length: 0'])
  const breaks = [...strict.matchAll(/\r\n/g)].map(({ index }) => index)
  for (const at of breaks) {
    expect(malformed(strict.slice(0, at) + strict.slice(at + 1))?.status).toBe(400)
    const others = strict.replaceAll('\r', (found, index: number) => (index === at ? found : ''))
    expect(malformed(others)?.status).toBe(400)
  }
})

test('a line break cannot be smuggled into a value', () => {
  const smuggled = malformed(invite(['X-A: 1\nVia: SIP/2.0/UDP evil']))
  expect(smuggled?.reason).toBe('Bad Line Break')
  const values = smuggled?.message?.entries().map(([, value]) => value) ?? []
  expect(values.some((value) => /[\r\n]/.test(value))).toBe(false)
})

test('an application may write lower case names, line feeds and no blank line', () => {
  const message = parseAppMessage(
    'INVITE sip:bob@example.com SIP/2.0\nfrom: sip:alice@localhost\ncseq: 7 INVITE',
  )
  expect([message?.get('From'), message?.cseq?.number, message?.body]).toEqual([
    'sip:alice@localhost',
    7,
    '',
  ])
})

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
