import { expect, test } from 'vitest'
import {
  isToken,
  knownName,
  parseParams,
  splitList,
  unquote,
} from '../../../../engine/sip-server/message/headers.ts'

test.each([
  ['v', 'Via'],
  ['f', 'From'],
  ['t', 'To'],
  ['i', 'Call-ID'],
  ['m', 'Contact'],
  ['l', 'Content-Length'],
  ['c', 'Content-Type'],
  ['e', 'Content-Encoding'],
  ['s', 'Subject'],
  ['k', 'Supported'],
  ['o', 'Event'],
  ['r', 'Refer-To'],
  ['b', 'Referred-By'],
  ['u', 'Allow-Events'],
  ['x', 'Session-Expires'],
  ['d', 'Request-Disposition'],
  ['j', 'Reject-Contact'],
  ['a', 'Accept-Contact'],
  ['y', 'Identity'],
  ['n', 'Identity-Info'],
  ['V', 'Via'],
  ['cseq', 'CSeq'],
  ['CALL-ID', 'Call-ID'],
  ['rack', 'RAck'],
  ['www-AUTHENTICATE', 'WWW-Authenticate'],
  ['x-thing', 'x-thing'],
  ['q', 'q'],
  ['__proto__', '__proto__'],
])('%s is called %s', (name, canonical) => {
  expect(knownName(name) ?? name).toBe(canonical)
})

test('a list is divided at commas outside quotes and brackets', () => {
  expect(splitList('a, "b,\\",c" , <d,e>,,f')).toEqual(['a', '"b,\\",c"', '<d,e>', 'f'])
  expect([splitList(''), splitList('one'), splitList(' , '), splitList(' one ')]).toEqual([
    [],
    ['one'],
    [],
    ['one'],
  ])
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
