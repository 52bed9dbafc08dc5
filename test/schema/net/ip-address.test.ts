import { expect, test } from 'vitest'
import {
  networkCheck,
  networkKey,
  parseAddress,
  parseNetwork,
} from '../../../schema/net/ip-address.ts'

const keyOf = (text: string, prefixLength: number) => {
  const address = parseAddress(text)
  return address && networkKey(address, prefixLength)
}

test('an address is its 32-bit words', () => {
  expect(parseAddress('192.0.2.255')).toEqual({ family: 4, words: [0xc00002ff] })
  expect(parseAddress('2001:db8::8a2e:370:7334')).toEqual({
    family: 6,
    words: [0x20010db8, 0, 0x8a2e, 0x03707334],
  })
  expect(parseAddress('::')).toEqual({ family: 6, words: [0, 0, 0, 0] })
  expect(parseAddress('::1')).toEqual({ family: 6, words: [0, 0, 0, 1] })
  expect(parseAddress('fe80::')).toEqual({ family: 6, words: [0xfe800000, 0, 0, 0] })
  expect(parseAddress('64:ff9b::192.0.2.33')?.words.at(-1)).toBe(0xc0000221)
})

test.each(['::ffff:192.0.2.1', '::FFFF:192.0.2.1', '0:0:0:0:0:ffff:c000:201', '::ffff:c000:201'])(
  '%s is the IPv4 address 192.0.2.1',
  (text) => {
    expect(parseAddress(text)).toEqual(parseAddress('192.0.2.1'))
  },
)

test.each([
  '',
  '1.2.3',
  '1.2.3.256',
  '1.2.3.4.5',
  '01.2.3.4',
  'pbx.example.com',
  ':::',
  'fe80::1%eth0',
])('"%s" is no address', (text) => {
  expect(parseAddress(text)).toBeUndefined()
})

test('addresses of one network have one key, and no others', () => {
  expect(keyOf('10.1.2.3', 8)).toBe(keyOf('10.255.0.1', 8))
  expect(keyOf('10.1.2.3', 16)).not.toBe(keyOf('10.255.0.1', 16))
  expect(keyOf('10.1.2.3', 0)).toBe(keyOf('200.1.2.3', 0))
  expect(keyOf('10.1.2.3', 32)).not.toBe(keyOf('10.1.2.2', 32))
  expect(keyOf('2001:db8:1:2::1', 48)).toBe(keyOf('2001:db8:1:ffff::', 48))
  expect(keyOf('2001:db8:1::', 48)).not.toBe(keyOf('2001:db8:2::', 48))
  expect(keyOf('2001:db8::1', 128)).not.toBe(keyOf('2001:db8::2', 128))
  expect(keyOf('0.0.0.0', 0)).not.toBe(keyOf('::', 0))
})

test('a network is an address with a prefix length, or one address', () => {
  expect(parseNetwork('10.0.0.0/8')?.prefixLength).toBe(8)
  expect(parseNetwork('10.0.0.1')?.prefixLength).toBe(32)
  expect(parseNetwork('::1')?.prefixLength).toBe(128)
  for (const text of ['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'x/8'])
    expect(parseNetwork(text)).toBeUndefined()
})

test('a list holds what lies in any of its networks, and every address when it is empty', () => {
  const isIn = networkCheck(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'])
  expect(['10.255.0.1', '2001:db8::1', '192.0.2.7', '::ffff:10.0.0.1'].map(isIn)).toEqual([
    true,
    true,
    true,
    true,
  ])
  expect(['11.0.0.1', '2001:db9::1', '192.0.2.8', 'x', ''].map(isIn)).not.toContain(true)
  expect(networkCheck([])('203.0.113.1')).toBe(true)
})
