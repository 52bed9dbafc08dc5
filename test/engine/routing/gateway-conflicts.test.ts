import { expect, test } from 'vitest'
import { conflictingGateways } from '../../../engine/routing/gateway-conflicts.ts'
import type { GatewayRecord } from '../../../engine/routing/routing-records.ts'
import { sampleGateway } from './samples.ts'

const conflicts = (written: Partial<GatewayRecord>, existing: Partial<GatewayRecord>) =>
  conflictingGateways(
    1,
    [sampleGateway(1, { host: '203.0.113.1', ...written })],
    [{ carrierId: 2, gateway: sampleGateway(2, { host: '203.0.113.1', ...existing }) }],
  ).length > 0

test('the same network and port of two carriers cannot be told apart', () => {
  expect(conflicts({}, {})).toBe(true)
  expect(conflicts({ host: '203.0.113.7', netmask: 24 }, { netmask: 24 })).toBe(true)
  expect(conflicts({ host: '::ffff:203.0.113.1' }, {})).toBe(true)
  expect(conflicts({ transport: 'tcp' }, { transport: 'tls', port: 5061 })).toBe(true)
  expect(conflicts({ host: 'SIP.example.com' }, { host: 'sip.example.com', netmask: 24 })).toBe(
    true,
  )
})

test('another port, another size of network and any port are told apart', () => {
  expect(conflicts({ port: 5061 }, {})).toBe(false)
  expect(conflicts({ port: 0 }, {})).toBe(false)
  expect(conflicts({ netmask: 24 }, {})).toBe(false)
  expect(conflicts({ host: '203.0.113.2' }, {})).toBe(false)
})

test('a gateway that takes no calls in conflicts with nothing', () => {
  expect(conflicts({ isInbound: false }, {})).toBe(false)
  expect(conflicts({}, { isInbound: false })).toBe(false)
})

test("a carrier's own gateways never conflict, as they mean the same carrier", () => {
  const gateway = sampleGateway(1)
  expect(conflictingGateways(1, [gateway], [{ carrierId: 1, gateway }])).toEqual([])
})

test('a conflict names both gateways', () => {
  const existing = { carrierId: 2, gateway: sampleGateway(5) }
  const written = sampleGateway(5)
  expect(conflictingGateways(1, [sampleGateway(4), written], [existing])).toEqual([
    { written, existing },
  ])
})
