import { expect, test } from 'vitest'
import { isNoHost } from '../../../schema/sip/index.ts'

test.each([
  ...['0.0.0.0', '0.1.2.3', '224.0.0.1', '239.255.255.250', '255.255.255.255', '240.0.0.1'],
  ...['::', '0:0:0:0:0:0:0:0', 'ff02::1', 'FF0E::5', '::ffff:224.0.0.1', '::ffff:e000:1'],
  ...['0:0:0:0:0:ffff:ffff:ffff', '64:ff9b::224.0.0.1', '64:ff9b::e000:1', '::ffff:0.0.0.0'],
])('%s is no single host', (host) => {
  expect(isNoHost(host)).toBe(true)
})

test.each([
  ...['192.0.2.1', '10.0.0.255', '223.255.255.255', '127.0.0.1', '::1', 'fe80::1', '2001:db8::1'],
  ...['::ffff:192.0.2.1', '::ffff:c000:201', '64:ff9b::c000:201', 'ff02.example', '224.example'],
  ...['localhost', '', '2001:db8::ffff:e000:1', '1.224.0.0.1.example'],
])('%s may be one', (host) => {
  expect(isNoHost(host)).toBe(false)
})
