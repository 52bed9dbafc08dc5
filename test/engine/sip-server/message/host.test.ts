import { expect, test } from 'vitest'
import {
  bracketed,
  hostPort,
  parseHostPort,
  withoutBrackets,
} from '../../../../engine/sip-server/message/fields.ts'

test('a host without port has port 0', () => {
  expect(['h', '[::1]', '192.0.2.1:5060', '[::ffff:192.0.2.1]:5061'].map(parseHostPort)).toEqual([
    { host: 'h', port: 0 },
    { host: '::1', port: 0 },
    { host: '192.0.2.1', port: 5060 },
    { host: '::ffff:192.0.2.1', port: 5061 },
  ])
})

test.each(['', ':5060', 'h:', 'h:0', 'h:65536', 'h:1x', '::1', '[::1', '[h]', '[::1]5060', 'a b'])(
  '%s is no host and port',
  (text) => {
    expect(parseHostPort(text)).toBeUndefined()
  },
)

test('an IPv6 address has brackets in a URI, and none beside one', () => {
  expect(['h', '192.0.2.1', '2001:db8::1'].map(bracketed)).toEqual([
    'h',
    '192.0.2.1',
    '[2001:db8::1]',
  ])
  expect(['h', '[2001:db8::1]', '2001:db8::1', '['].map(withoutBrackets)).toEqual([
    'h',
    '2001:db8::1',
    '2001:db8::1',
    '[',
  ])
  expect([hostPort('h', 0), hostPort('h', 5060), hostPort('::1', 5060)]).toEqual([
    'h',
    'h:5060',
    '[::1]:5060',
  ])
})
