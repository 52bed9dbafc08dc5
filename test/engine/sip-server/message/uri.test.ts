import { expect, test } from 'vitest'
import { parseUri, sameUri } from '../../../../engine/sip-server/message/fields.ts'
import { paramsOf } from './sample.ts'

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

test('a tel URI has its number as user', () => {
  expect(parseUri('tel:+1-201-555-0123;phone-context=example.com')).toMatchObject({
    scheme: 'tel',
    user: '+1-201-555-0123',
    host: '',
    params: paramsOf([['phone-context', 'example.com']]),
  })
  expect(parseUri('tel:7042;phone-context=+1')).toMatchObject({ user: '7042' })
})

test.each([
  '',
  'sip:',
  'sip:@h',
  'sip::p@h',
  'sip:a@',
  'sip:a@h:',
  'sip:a@h:0',
  'sip:a@h:99999',
  'sip:a b@h',
  'sip:a@b@c',
  'sip:a%4@h',
  'sip:a%zz@h',
  'sip:a@h;',
  'sip:a@h;;lr',
  'sip:a@h;x=1;X=2',
  'sip:a@h;x=%',
  'sip:a@h?',
  'sip:a@h?=1',
  'sip:a@h?x',
  'sip:a@h?a=1%0D%0AVia:x',
  'sip:a@h?a=%ff',
  'sip:a@[::1',
  'sip:<a>@h',
  'sip:a@h;x="1"',
  'tel:',
  'tel:+',
  'tel:bob',
  'mailto:a@b',
  'http://h',
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
