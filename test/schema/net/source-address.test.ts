import { expect, test } from 'vitest'
import {
  addressCheck,
  bucketAddress,
  parseNetwork,
  plainAddress,
} from '../../../control/auth/address.ts'

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:0:0', '::ffff:0:0'],
])('%s is spelled %s', (address, plain) => expect(plainAddress(address)).toBe(plain))

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
])('%s and %s share a bucket: %s', (one, other, isShared) => {
  expect(bucketAddress(one) === bucketAddress(other)).toBe(isShared)
})

test.each(['10.0.0.0/33', '10.0.0.0/-1', '10.0.0/8', '10.0.0.0/8/8', '10.0.0.0/', '::/129', 'a'])(
  '%s is no network',
  (cidr) => expect(parseNetwork(cidr)).toBeUndefined(),
)

test('a list lets in what lies in any of its networks, and everybody when it is empty', () => {
  const isIn = addressCheck(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'])
  expect(['10.255.0.1', '2001:db8::1', '192.0.2.7'].map(isIn)).toEqual([true, true, true])
  expect(['11.0.0.1', '2001:db9::1', '192.0.2.8', 'x', ''].map(isIn)).not.toContain(true)
  expect(addressCheck([])('203.0.113.1')).toBe(true)
})
