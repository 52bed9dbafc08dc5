import { expect, test } from 'vitest'
import { canonicalAddress, sourceKey } from '../../../schema/net/source-address.ts'

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['2001:0DB8:0000::0001', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['192.0.2.1', '192.0.2.1'],
  ['not:an:address', 'not:an:address'],
  ['', ''],
])('%s is spelled %s', (address, canonical) => expect(canonicalAddress(address)).toBe(canonical))

test.each([
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:ffff::1', true],
  ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['2001:db8::1', '2001:db8::2', true],
  ['2001:db8::1', '2001:db8:0:0:1::1', true],
  ['::1', '::2', true],
  ['::1', '1::', false],
  ['2001:db8::1', '2001:db8:0:1::1', false],
  ['192.0.2.1', '192.0.2.2', false],
])('%s and %s are one source: %s', (one, other, isOne) => {
  expect(sourceKey(canonicalAddress(one)) === sourceKey(canonicalAddress(other))).toBe(isOne)
})
