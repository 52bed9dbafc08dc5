import { expect, test } from 'vitest'
import { CarrierSources, TrustedSources } from '../../../engine/routing/recognition.ts'
import { sampleCarrier, sampleGateway } from './samples.ts'

const own = ({ host }: { readonly host: string }) => [host]
const at = (gatewayId: number, port: number) =>
  sampleGateway(gatewayId, { host: '203.0.113.1', port })

test('the smallest network around the source wins', () => {
  const sources = new CarrierSources(
    [
      sampleCarrier(1, { gateways: [sampleGateway(1, { host: '203.0.113.0', netmask: 24 })] }),
      sampleCarrier(2, { gateways: [sampleGateway(2, { host: '203.0.113.9' })] }),
    ],
    own,
  )
  expect(sources.find('203.0.113.9', 5060)?.carrier.carrierId).toBe(2)
  expect(sources.find('203.0.113.10', 5060)?.carrier.carrierId).toBe(1)
  expect(sources.find('203.0.114.1', 5060)).toBeUndefined()
})

test('a UDP gateway is recognized from its port only; port 0 and TCP from any', () => {
  const gateways = [
    sampleGateway(1),
    sampleGateway(2, { port: 0 }),
    sampleGateway(3, { transport: 'tcp' }),
  ]
  const sources = new CarrierSources([sampleCarrier(1, { gateways })], own)
  expect(sources.find('203.0.113.1', 5060)).toBeDefined()
  expect(sources.find('203.0.113.1', 5061)).toBeUndefined()
  expect(sources.find('203.0.113.2', 49_152)).toBeDefined()
  expect(sources.find('203.0.113.3', 49_152)).toBeDefined()
})

test('of two carriers on one address the port decides, then any port', () => {
  const sources = new CarrierSources(
    [
      sampleCarrier(1, { gateways: [at(1, 0)] }),
      sampleCarrier(2, { gateways: [at(2, 5070)] }),
      sampleCarrier(3, { gateways: [at(3, 5080)] }),
    ],
    own,
  )
  const found = [5070, 5080, 5090].map((port) => {
    return sources.find('203.0.113.1', port)?.carrier.carrierId
  })
  expect(found).toEqual([2, 3, 1])
})

test('inactive carriers, outbound carriers and outbound gateways are not recognized', () => {
  const sources = new CarrierSources(
    [
      sampleCarrier(1, { isActive: false }),
      sampleCarrier(2, { direction: 'out' }),
      sampleCarrier(3, { gateways: [sampleGateway(3, { isInbound: false })] }),
    ],
    own,
  )
  for (const host of [1, 2, 3]) expect(sources.find(`203.0.113.${host}`, 5060)).toBeUndefined()
})

test('a gateway with a host name is each of its addresses, never a network around them', () => {
  const gateways = [sampleGateway(1, { host: 'sip.example.com', netmask: 8 })]
  const sources = new CarrierSources([sampleCarrier(1, { gateways })], () => [
    '198.51.100.1',
    '2001:db8::1',
  ])
  expect(sources.find('198.51.100.1', 5060)).toBeDefined()
  expect(sources.find('2001:db8::1', 5060)).toBeDefined()
  expect(sources.find('198.51.100.2', 5060)).toBeUndefined()
})

test('trusted sources are exactly the listed networks', () => {
  const trusted = new TrustedSources(['127.0.0.0/8', '::1/128', '10.1.0.0/16'])
  for (const address of ['127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1', '10.1.200.3'])
    expect(trusted.has(address)).toBe(true)
  for (const address of ['128.0.0.1', '10.2.0.1', '::2', 'localhost'])
    expect(trusted.has(address)).toBe(false)
  expect(() => new TrustedSources(['10.0.0.0/40'])).toThrow(RangeError)
})
