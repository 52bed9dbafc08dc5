import { expect, test } from 'vitest'
import { decodeMessage, encodeMessage } from '../../../../engine/sip-server/message/message.ts'
import { parseAppMessage, parseMessage } from '../../../../engine/sip-server/message/parse.ts'
import { invite, lines, read } from './sample.ts'

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

test('the body of an application reaches to the end whatever its Content-Length says', () => {
  const text = lines(
    'SIP/2.0 200 OK',
    'cseq: 1 INVITE',
    'Content-Length: 2',
    '',
    'héllo\r\n\r\nmore',
  )
  const message = parseAppMessage(text)
  expect([message?.body, message?.method, message?.status]).toEqual([
    'héllo\r\n\r\nmore',
    'INVITE',
    200,
  ])
})
