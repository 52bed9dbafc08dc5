import { expect, test } from 'vitest'
import fc from 'fast-check'
import { isToken, knownName, parseParams, unquote } from '../../../schema/sip/headers.ts'
import {
  decodeMessage,
  hasEscapedBytes,
  escapeUser,
  formatNameAddr,
  replaceHosts,
  replaceUsers,
} from '../../../schema/sip/message.ts'
import { readAddress, parseNameAddr, parseUri, unescapeText } from '../../../schema/sip/fields.ts'
import { invite, lines, read } from './sample.ts'

test('compact and lower case names are found by the canonical one', () => {
  const head = ['BYE sip:a@b SIP/2.0', 'v: SIP/2.0/TCP h', 'f: sip:a@b;tag=1', 'i: id', 'X: 90']
  const message = read(lines(...head, 'CSEQ: 2 BYE', '', ''))
  expect([message.callId, message.fromTag, message.via?.protocol]).toEqual(['id', '1', 'TCP'])
  expect([message.get('session-expires'), message.cseq?.number]).toEqual(['90', 2])
})

test('a list runs over all lines of a header, and commas in quotes and brackets divide nothing', () => {
  const message = read(
    invite([
      'Contact: "A, B" <sip:a@b;x=1,2>, <sip:c@d>',
      'Contact: sip:e@f',
      'Supported: 100rel,,timer ,',
    ]),
  )
  expect(message.list('Contact')).toEqual(['"A, B" <sip:a@b;x=1,2>', '<sip:c@d>', 'sip:e@f'])
  expect(message.all('Contact')).toHaveLength(2)
  expect(message.list('Supported')).toEqual(['100rel', 'timer'])
  expect([message.list('Route'), message.contact?.displayName]).toEqual([[], 'A, B'])
})

test('folded lines read as one, blanks around a value are no part of it', () => {
  const message = read(
    invite(['Subject:', '  \t one', '\t two  ', ' ', '   three\t', ' ', 'X-Empty:  ']),
  )
  expect([message.get('Subject'), message.get('X-Empty')]).toEqual(['one two three', ''])
})

test.each([
  ['v', 'Via'],
  ['f', 'From'],
  ['t', 'To'],
  ['i', 'Call-ID'],
  ['m', 'Contact'],
  ['l', 'Content-Length'],
  ['c', 'Content-Type'],
  ['o', 'Event'],
  ['r', 'Refer-To'],
  ['x', 'Session-Expires'],
  ['cseq', 'CSeq'],
  ['CALL-ID', 'Call-ID'],
  ['www-AUTHENTICATE', 'WWW-Authenticate'],
  ['x-thing', 'x-thing'],
  ['q', 'q'],
  ['__proto__', '__proto__'],
])('%s is called %s', (name, canonical) => {
  expect(knownName(name) ?? name).toBe(canonical)
})

test('parameters have lower case names, resolved quotes, and blanks around their separators', () => {
  const params = (text: string) => [...(parseParams(text, 0) ?? [])]
  expect(params(' ; TAG = a ;lr; text="x;\\"y\\"" ;h=[2001:db8::1]')).toEqual([
    ['tag', 'a'],
    ['lr', ''],
    ['text', 'x;"y"'],
    ['h', '[2001:db8::1]'],
  ])
  expect(params(';;a=1;')).toEqual([['a', '1']])
})

test.each(['x', ';a b', ';a=1 2', ';a="x', ';=1', ';a=1;A=2', ';a,b', ';a=<x>', ';a=1=2'])(
  '%s is no parameter list',
  (text) => {
    expect(parseParams(text, 0)).toBeUndefined()
  },
)

test('a token has no separators, and a quoted pair is the character behind its backslash', () => {
  expect(["a-z.!%*_+`'~9", '', 'a b', 'a:b', 'é'].map(isToken)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ])
  expect(unquote('"a\\\\b\\"c"')).toBe('a\\b"c')
})

test.each([
  ['a lone lead byte', [0x61, 0xc3], 'a\udcc3'],
  ['an overlong slash', [0xc0, 0xaf], '\udcc0\udcaf'],
  ['an encoded surrogate', [0xed, 0xb2, 0x80], '\udced\udcb2\udc80'],
  ['valid text around a wrong byte', [0xc3, 0xa9, 0xff, 0xc3, 0xa9], 'é\udcffé'],
  ['a sequence cut by the end', [0xf0, 0x9f, 0x99], '\udcf0\udc9f\udc99'],
  ['beyond Unicode', [0xf5, 0x80, 0x80, 0x80], '\udcf5\udc80\udc80\udc80'],
])('%s keeps its bytes one by one', (_, bytes, text) => {
  expect(decodeMessage(Buffer.from(bytes))).toBe(text)
  expect(hasEscapedBytes(text)).toBe(true)
})

test('a name and a user part are read back as they were written', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(text, text, (name, user) => {
      const uri = `sip:${escapeUser(user.replaceAll('%', ''))}@h`
      const written = formatNameAddr(name, uri)
      expect(readAddress(written)).toEqual({ displayName: name, uri })
      expect(parseNameAddr(written)).toMatchObject({ displayName: name, uri })
    }),
  )
})

test('what may not stand in a user part is escaped, escapes stay', () => {
  expect(['+1555', '#100', '%23100', 'a b', 'a@b', 'é'].map(escapeUser)).toEqual([
    '+1555',
    '%23100',
    '%23100',
    'a%20b',
    'a%40b',
    '%C3%A9',
  ])
  expect(escapeUser('1\ud83d')).toBe('1%EF%BF%BD')
  expect(parseUri(`sip:${escapeUser('a:b<c>')}@h`)?.user).toBe('a%3Ab%3Cc%3E')
})

test('escapes are resolved, and none that would break a header line', () => {
  expect(['a', 'a%20b', '%23', '%', '%zz', '%ff', '%0d%0a', '%00'].map(unescapeText)).toEqual([
    'a',
    'a b',
    '#',
    ...Array<undefined>(5).fill(undefined),
  ])
})

test('users and hosts are replaced in every URI of a list, and not in names', () => {
  const value = '"1@x <sip:" <sip:1:pw@a:5060;x=1>, <tel:2;isub=3>, <sip:h>'
  expect(replaceUsers(value, (user) => `[${user}]`)).toBe(
    '"1@x <sip:" <sip:[1:pw]@a:5060;x=1>, <tel:[2];isub=3>, <sip:h>',
  )
  expect(replaceHosts(value, 'us')).toBe('"1@x <sip:" <sip:1:pw@us;x=1>, <tel:2;isub=3>, <sip:h>')
  const quoted = '"q\\"@z" <sip:1@[::1]:5>;reason=x, <sip:2@a?Reason=x>'
  expect(replaceHosts(quoted, 'us')).toBe('"q\\"@z" <sip:1@us>;reason=x, <sip:2@us?Reason=x>')
})
