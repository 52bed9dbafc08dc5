import { expect, test } from 'vitest'
import { isSameSource, locationOf, overlap, type Place } from '../../../schema/net/sip-target.ts'

const at = (host: string, netmask = 32, ports: Place['ports'] = 'any'): Place => ({
  host,
  netmask,
  ports,
})

test.each([
  ['the same address', at('192.0.2.1'), at('192.0.2.1'), true],
  ['an address in a network', at('192.0.2.1'), at('192.0.2.200', 24), true],
  ['a network in a larger one', at('192.0.2.0', 24), at('192.0.0.0', 16), true],
  ['neighbours', at('192.0.2.0', 25), at('192.0.2.128', 25), false],
  ['a mapped address', at('::ffff:192.0.2.1', 128), at('192.0.2.1'), true],
  ['IPv6 networks', at('2001:db8::1', 128), at('2001:db8::', 32), true],
  ['families', at('::', 8), at('0.0.0.1', 8), false],
  ['a name in any case', at('SIP.example.com'), at('sip.example.com'), true],
  ['other names', at('sip.example.com'), at('sip2.example.com'), false],
  ['a name and an address', at('sip.example.com'), at('192.0.2.1'), false],
])('places overlap where they have an address in common: %s', (_, one, other, expected) => {
  const [first, second] = [locationOf(one), locationOf(other)]
  expect([overlap(first, second), overlap(second, first)]).toEqual([expected, expected])
})

test('packets of two places cannot be told apart where a port may be the same', () => {
  const [any, sip, both] = [at('h'), at('h', 32, [5060]), at('h', 32, [5060, 5080])]
  expect([isSameSource(any, sip), isSameSource(sip, both)]).toEqual([true, true])
  expect(isSameSource(sip, at('h', 32, [5070]))).toBe(false)
})
