import { expect, test } from 'vitest'
import fc from 'fast-check'
import {
  parseUri,
  sameUri,
  parseAnsweredTo,
  parseNameAddr,
  qValueOf,
  parseVia,
  parseCSeq,
  parseExpires,
  parseMinSE,
  parseRAck,
  parseReason,
  parseReplaces,
  parseRetryAfter,
  parseSessionExpires,
  readAddress,
  readSoleUri,
  readUri,
  tagOf,
} from '../../../schema/sip/fields.ts'
import { paramsOf } from './sample.ts'

test.each([
  ['<sip:a@b.example>;tag=t1', 't1'],
  ['sip:a@b.example;Tag = t1;x=1', 't1'],
  ['"a;tag=no" <sip:a;tag=no@b.example;tag=no>;x=1;tag=t1', 't1'],
  ['"a;tag=no" <sip:a@b.example>', ''],
  [undefined, ''],
])('the tag of %s', (value, tag) => expect(tagOf(value)).toBe(tag))

test('a SIP URI has user, password, host, port, parameters and headers', () => {
  expect(
    parseUri('SIPS:al%69ce;x=1:pa:ss@Host.example.com:5061;Transport=tcp;lr?a=%3Cb%3E&c='),
  ).toEqual({
    scheme: 'sips',
    user: 'al%69ce;x=1',
    password: 'pa:ss',
    host: 'Host.example.com',
    port: 5061,
    params: paramsOf([
      ['transport', 'tcp'],
      ['lr', ''],
    ]),
    headers: [
      ['a', '<b>'],
      ['c', ''],
    ],
  })
})

test('host alone, IPv6 and a dialled # are read', () => {
  expect(parseUri('sip:192.0.2.1')).toMatchObject({ user: '', host: '192.0.2.1', port: 0 })
  expect(parseUri('sip:a@[2001:db8::1]:5070;lr')).toMatchObject({ host: '2001:db8::1', port: 5070 })
  expect(parseUri('sip:*72#@h')).toMatchObject({ user: '*72#' })
})

test.each([
  '',
  'sip:',
  'sip::p@h',
  'sip:a@h:',
  'sip:a@h:0',
  'sip:a b@h',
  'sip:a@b@c',
  'sip:a%4@h',
  'sip:a@h;;lr',
  'sip:a@h;x=1;X=2',
  'sip:a@h?a=1%0D%0AVia:x',
  'sip:a@h?a=%ff',
  'sip:a@[::1',
  'sip:a@h;x="1"',
  'tel:',
  'mailto:a@b',
  '<sip:a@b>',
  'sip:a@h?a=b?c=d;e',
])('%s is no URI that can be called', (text) => {
  expect(parseUri(text)).toBeUndefined()
})

// RFC 3261 §19.1.4 gives these pairs.
test.each([
  ['sip:%61lice@atlanta.com;transport=TCP', 'sip:alice@AtlanTa.CoM;Transport=tcp'],
  ['sip:carol@chicago.com', 'sip:carol@chicago.com;newparam=5'],
  ['sip:carol@chicago.com;newparam=5', 'sip:carol@chicago.com;security=on'],
  [
    'sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com',
    'sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com',
  ],
  [
    'sip:alice@atlanta.com?subject=project%20x&priority=urgent',
    'sip:alice@atlanta.com?priority=urgent&subject=project%20x',
  ],
  ['tel:+1-201-555-0123', 'tel:+12015550123'],
  ['not a uri', 'not a uri'],
])('%s equals %s', (a, b) => {
  expect([sameUri(a, b), sameUri(b, a)]).toEqual([true, true])
})

test.each([
  ['SIP:ALICE@AtLanTa.CoM;Transport=udp', 'sip:alice@AtLanTa.CoM;Transport=UDP'],
  ['sip:bob@biloxi.com', 'sip:bob@biloxi.com:5060'],
  ['sip:bob@biloxi.com', 'sip:bob@biloxi.com;transport=udp'],
  ['sip:bob@biloxi.com', 'sip:bob@biloxi.com:6000;transport=tcp'],
  ['sip:carol@chicago.com', 'sip:carol@chicago.com?Subject=next%20meeting'],
  ['sip:bob@phone21.boxesbybob.com', 'sip:bob@192.0.2.4'],
  ['sip:carol@chicago.com;security=on', 'sip:carol@chicago.com;security=off'],
  ['sip:a@h', 'sips:a@h'],
  ['sip:a:x@h', 'sip:a:y@h'],
  ['sip:a%2Fb@h', 'sip:a/b@h'],
  ['tel:+1', 'tel:+1;isub=2'],
  ['sip:a@h', 'no uri'],
])('%s differs from %s', (a, b) => {
  expect([sameUri(a, b), sameUri(b, a)]).toEqual([false, false])
})

test.each([
  ['"A, <B>; \\"C\\"" <sip:a@b;x=1?h=2>;tag=t', 'A, <B>; "C"', 'sip:a@b;x=1?h=2', 't'],
  ['Bob Smith <sip:b@c>;tag=t', 'Bob Smith', 'sip:b@c', 't'],
  ['"" <sip:a@b>', '', 'sip:a@b', undefined],
  ['<tel:+1-555>;tag=t', '', 'tel:+1-555', 't'],
  ['Bob<sips:b@c> ; TAG = t', 'Bob', 'sips:b@c', 't'],
  ['"Bob"<sip:b@c>', 'Bob', 'sip:b@c', undefined],
  ['  sip:b@c ;tag=t', '', 'sip:b@c', 't'],
  ['Zoë (work) <sip:b@c>', 'Zoë (work)', 'sip:b@c', undefined],
  ['urn:service:sos', '', 'urn:service:sos', undefined],
])('%s', (value, displayName, uri, tag) => {
  const address = parseNameAddr(value)
  expect(address).toMatchObject({ displayName, uri })
  expect(address?.params.get('tag')).toBe(tag)
})

// RFC 4475 §3.1.2.6: the one address in the value is what is meant.
test.each([
  '""unknown"" <sip:+12025550123@203.0.113.7>;tag=a',
  '"unterminated <sip:+12025550123@203.0.113.7>;tag=a',
  '"a\\" <sip:+12025550123@203.0.113.7>;tag=a',
  '" <sip:+12025550123@203.0.113.7>;tag=a',
  '"""<sip:+12025550123@203.0.113.7>;tag=a',
  '"A" Smith <sip:+12025550123@203.0.113.7>;tag=a',
  'Doe, Jane <sip:+12025550123@203.0.113.7>;tag=a',
  'jane@home <sip:+12025550123@203.0.113.7>;tag=a',
  'Sales: Jane; Ext. 4 <sip:+12025550123@203.0.113.7> ; tag = a',
  'J. "Jay" Doe\t<sip:+12025550123@203.0.113.7>;tag=a',
  'C:\\gateway <sip:+12025550123@203.0.113.7>;x="y";tag=a',
  '"a;tag=b <sip:+12025550123@203.0.113.7>;tag=a',
])('a display name that breaks the grammar is dropped: %s', (value) => {
  const address = parseNameAddr(value)
  expect(address).toMatchObject({ displayName: '', uri: 'sip:+12025550123@203.0.113.7' })
  expect([address?.params.get('tag'), tagOf(value)]).toEqual(['a', 'a'])
  expect(readAddress(value).uri).toBe('sip:+12025550123@203.0.113.7')
})

test.each([
  '',
  '*',
  '<>',
  '<sip:a@b',
  '"x <sip:a@b',
  '"x <sip:a@b> <sip:c@d>',
  '"x" sip:a@b',
  '"x <a>',
  '<sip:a b@c>',
  'sip:a@b?h=1',
  'sip:a@b,sip:c@d',
  '<sip:a@b>;tag=1;tag=2',
  'bob',
  '<<sip:a@b>',
])('%s is no address', (value) => {
  expect(parseNameAddr(value)).toBeUndefined()
})

test('of two tags in the To of a response the first counts', () => {
  const to = '"Bob;tag=0" <sip:b@c;tag=9>'
  expect(parseAnsweredTo(`${to};tag=1 ;Tag = 2;x`)).toEqual(parseNameAddr(`${to};tag=1 `))
  expect(parseAnsweredTo('sip:b@c;tag=1;tag=2')?.params.get('tag')).toBe('1')
  expect(parseAnsweredTo(`${to};x;tag=1`)?.params.get('x')).toBe('')
  expect([`${to};tag=1;x=1;x=2`, `${to};tag=1;"`, '<>;tag=1;tag=2'].map(parseAnsweredTo)).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

test.each([
  ['<sip:a@b>', 1_000],
  ['<sip:a@b>;q=0.25', 250],
  ['<sip:a@b>;Q=0', 0],
  ['<sip:a@b>;q=1.000', 1_000],
  ['<sip:a@b>;q=0.2555', 1_000],
  ['<sip:a@b>;q=high', 1_000],
])('%s is preferred by %d thousandths', (value, q) => {
  const address = parseNameAddr(value)
  expect(address && qValueOf(address)).toBe(q)
})

test('a Via has transport, sent-by, branch and parameters', () => {
  expect(
    parseVia(
      'SIP/2.0/udp Host.example.com:5070;rport=1;received=192.0.2.7;maddr=224.0.1.75;ttl=1;branch=z9hG4bKx',
    ),
  ).toEqual({
    protocol: 'UDP',
    host: 'Host.example.com',
    port: 5070,
    branch: 'z9hG4bKx',
    params: paramsOf([
      ['rport', '1'],
      ['received', '192.0.2.7'],
      ['maddr', '224.0.1.75'],
      ['ttl', '1'],
      ['branch', 'z9hG4bKx'],
    ]),
  })
})

test.each([
  '',
  'SIP/2.0',
  'SIP/2.0/UDP',
  'HTTP/2.0/UDP h',
  'SIP/x/UDP h',
  'SIP/2.0/UDP h:65536',
  'SIP/2.0/UDP h:5x',
  'SIP/2.0/UDP h i',
  'SIP/2.0/UDP 2001:db8::1',
  'SIP/2.0/UDP h;branch=a;branch=b',
  'SIP/2.0/UDP :5060',
])('%s is no Via', (value) => {
  expect(parseVia(value)).toBeUndefined()
})

test('CSeq is a number below 2^31 and a method', () => {
  expect(parseCSeq('0009 \t INVITE')).toEqual({ number: 9, method: 'INVITE' })
  expect(parseCSeq('2147483647 BYE')?.number).toBe(2147483647)
  expect(
    ['2147483648 BYE', '1', '1 ', 'BYE', '1BYE', '-1 BYE', '1 B YE', '1.5 BYE', ''].map(parseCSeq),
  ).toEqual(Array(9).fill(undefined))
})

test('Expires beyond 2^32-1 counts as that', () => {
  expect(['3600', '0', '99999999999999', 'soon', ''].map(parseExpires)).toEqual([
    3600,
    0,
    4294967295,
    undefined,
    undefined,
  ])
})

test('RAck names the response and its request', () => {
  expect(parseRAck('776656 1 INVITE')).toEqual({
    rseq: 776656,
    cseq: { number: 1, method: 'INVITE' },
  })
  expect(parseRAck('776656 1 INVITE INVITE')).toEqual(parseRAck('776656 1 INVITE'))
  expect(['1 INVITE', '1 1', '1 1 I{V', '4294967296 1 INVITE', ''].map(parseRAck)).toEqual(
    Array(5).fill(undefined),
  )
})

test('Session-Expires has seconds and a refresher', () => {
  expect(parseSessionExpires('1800;refresher=UAS;x')).toEqual({ seconds: 1800, refresher: 'uas' })
  expect(parseSessionExpires('90 ; refresher = uac')).toEqual({ seconds: 90, refresher: 'uac' })
  expect(parseSessionExpires('90;refresher=me')).toEqual({ seconds: 90, refresher: undefined })
  expect(['', 'x', '90 x', '-90', '1e9'].map(parseSessionExpires)).toEqual(Array(5).fill(undefined))
  expect([parseMinSE('90;lr'), parseMinSE('x')]).toEqual([90, undefined])
})

test.each(['86401', '31536000', '4294967295', '4294967296', '99999999999', '9'.repeat(400)])(
  'a session of %s seconds, or a Min-SE, is one of a day',
  (seconds) => {
    expect(parseSessionExpires(`${seconds} ;refresher=uac`)).toEqual({
      seconds: 86_400,
      refresher: 'uac',
    })
    expect(parseMinSE(`${seconds};x`)).toBe(86_400)
  },
)

test('Reason has protocol, cause and text', () => {
  expect(parseReason('Q.850 ;cause=16 ;text="Normal, call; clearing"')).toEqual({
    protocol: 'q.850',
    cause: 16,
    text: 'Normal, call; clearing',
  })
  expect(parseReason('SIP')).toEqual({ protocol: 'sip', cause: undefined, text: '' })
  expect(['', ';cause=1', 'SIP cause', 'SIP;text="x'].map(parseReason)).toEqual(
    Array(4).fill(undefined),
  )
})

test('Retry-After is seconds, whatever comment and parameters follow', () => {
  expect(
    ['120', '18000;duration=3600', '120 (I am (in) a meeting)', ' 7\t(x)', '5(x)'].map(
      parseRetryAfter,
    ),
  ).toEqual([120, 18_000, 120, 7, 5])
  expect(['', 'soon', '-1', '1.5', '1x', '99999999999', '(1)'].map(parseRetryAfter)).toEqual(
    Array(7).fill(undefined),
  )
})

test('Replaces names a dialog by its Call-ID and both tags', () => {
  expect(parseReplaces('98732@h ; from-tag=r33 ;to-tag=f14;Early-Only;x=y')).toEqual({
    callId: '98732@h',
    toTag: 'f14',
    fromTag: 'r33',
    isEarlyOnly: true,
  })
  expect(parseReplaces('1;to-tag=a;from-tag=b')?.isEarlyOnly).toBe(false)
  expect(
    ['', '1', ';to-tag=a;from-tag=b', '1;to-tag=a', '1;to-tag=;from-tag=b']
      .concat('1;to-tag=a;to-tag=c;from-tag=b', '1;to-tag=a;from-tag=b,2;to-tag=c;from-tag=d')
      .map(parseReplaces),
  ).toEqual(Array(7).fill(undefined))
})

test.each([
  ['<sip:1555@10.0.0.1>;tag=a', '', 'sip:1555@10.0.0.1'],
  ['sip:1555@10.0.0.1:5070;tag=a', '', 'sip:1555@10.0.0.1:5070'],
  ['"Alice" <sip:alice@example.com>;tag=a', 'Alice', 'sip:alice@example.com'],
  ['Alice B <sips:alice@example.com>', 'Alice B', 'sips:alice@example.com'],
  ['"A, \\"B\\" <sip:x@y>" <sip:1@z>', 'A, "B" <sip:x@y>', 'sip:1@z'],
  ['"N" <sip:1@a>, "M" <sip:2@b>', 'N', 'sip:1@a'],
  ['"N", <sip:2@b>', 'N', ''],
  ['<sip:1@a', '', 'sip:1@a'],
  ['"open <sip:1@a>', '', 'sip:1@a'],
  ['""open"" <sip:1@a>', '', 'sip:1@a'],
  ['sip:1@a, <tel:2>', '', 'sip:1@a'],
  ['Doe, Jane <sip:1@a>', 'Doe, Jane', 'sip:1@a'],
  ['"', '', ''],
  ['', '', ''],
])('of %s, the name is %s and the URI %s', (value, displayName, uri) => {
  expect(readAddress(value)).toEqual({ displayName, uri })
})

test.each([
  ['<sip:a@b?Replaces=x>', 'sip:a@b?Replaces=x'],
  ['"Bob" < sip:a@b >;x=1', 'sip:a@b'],
  ['sip:a@b?Replaces=x;method=BYE', 'sip:a@b?Replaces=x'],
  ['sip:a@b, sip:c@d', undefined],
  ['<sip:a@b>, <sip:c@d>', undefined],
  ['<sip:a@b', undefined],
  ['<>', undefined],
  ['', undefined],
])('the one URI of %s is %s', (value, uri) => {
  expect(readSoleUri(value)).toBe(uri)
})

test.each([
  ['sip:bob@h:5060;transport=tcp;lr?x=y', 'sip', 'bob', 'h:5060', ';transport=tcp;lr', 'x=y'],
  ['SIPS:1555;isub=7:secret@[2001:db8::1]', 'sips', '1555;isub=7', '[2001:db8::1]', '', ''],
  ['sip:10.0.0.1', 'sip', '', '10.0.0.1', '', ''],
  ['sip:100%@host', 'sip', '100%', 'host', '', ''],
  ['tel:+1-800;phone-context=x', 'tel', '+1-800', '', ';phone-context=x', ''],
  ['mailto:a@b', 'mailto', '', '', '', ''],
  ['bob', '', '', '', '', ''],
])('%s is taken apart', (uri, scheme, user, hostPort, params, headers) => {
  expect(readUri(uri)).toEqual({ scheme, user, hostPort, params, headers })
})

test('any text is read without an exception', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 500 }), (value) => {
      expect(typeof readUri(readAddress(value).uri).user).toBe('string')
      expect(readSoleUri(value)).not.toBe('')
    }),
  )
})
