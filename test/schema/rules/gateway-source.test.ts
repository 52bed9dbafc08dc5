import { expect, test } from 'vitest'
import type { GatewaySource } from '../../../schema/contracts/gateways.ts'
import { isAmbiguous } from '../../../schema/rules/gateways.ts'

const gateway: GatewaySource = { host: '203.0.113.1', port: 5060, transport: 'udp', netmask: 32 }
const ambiguous = (one: Partial<GatewaySource>, other: Partial<GatewaySource>): boolean =>
  isAmbiguous({ ...gateway, ...one }, { ...gateway, ...other })

test.each([
  ['the same address and port', {}, {}],
  ['one network', { host: '203.0.113.7', netmask: 24 }, { netmask: 24 }],
  ['an IPv4 address in IPv6 clothes', { host: '::ffff:203.0.113.1', netmask: 128 }, {}],
  ['connections, whose port tells nothing', { transport: 'tcp' }, { transport: 'tls', port: 5061 }],
  ['a connection and any port', { transport: 'tcp', port: 5070 }, { port: 0 }],
  ['one name', { host: 'SIP.example.com' }, { host: 'sip.example.com', netmask: 24 }],
] as const)('gateways with %s cannot be told apart', (_, one, other) => {
  expect(ambiguous(one, other)).toBe(true)
  expect(ambiguous(other, one)).toBe(true)
})

test.each([
  ['another port', { port: 5061 }],
  ['any port', { port: 0 }],
  ['another size of network', { netmask: 24 }],
  ['another address', { host: '203.0.113.2' }],
  ['another family', { host: '2001:db8::1' }],
] as const)('gateways with %s are told apart', (_, one) => {
  expect(ambiguous(one, {})).toBe(false)
})
