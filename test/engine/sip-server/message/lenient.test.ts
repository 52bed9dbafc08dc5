import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAddress, readSoleUri, readUri } from '../../../../engine/sip-server/message/fields.ts'

test.each([
  ['<sip:1555@10.0.0.1>;tag=a', '', 'sip:1555@10.0.0.1'],
  ['sip:1555@10.0.0.1:5070;tag=a', '', 'sip:1555@10.0.0.1:5070'],
  ['"Alice" <sip:alice@example.com>;tag=a', 'Alice', 'sip:alice@example.com'],
  ['Alice B <sips:alice@example.com>', 'Alice B', 'sips:alice@example.com'],
  ['"A, \\"B\\" <sip:x@y>" <sip:1@z>', 'A, "B" <sip:x@y>', 'sip:1@z'],
  ['"N" <sip:1@a>, "M" <sip:2@b>', 'N', 'sip:1@a'],
  ['"N", <sip:2@b>', 'N', ''],
  ['<sip:1@a', '', 'sip:1@a'],
  ['"open <sip:1@a>', 'open <sip:1@a>', ''],
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
