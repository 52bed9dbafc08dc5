import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { Tenancy } from '../../../engine/routing/tenancy.ts'
import {
  Recognition,
  type RecognitionDeps,
  CarrierSources,
} from '../../../engine/routing/recognition.ts'
import type { CarrierRecord } from '../../../engine/routing/routing-records.ts'
import {
  noLookUp,
  outboundRoute,
  routingOver,
  sampleCarrier,
  sampleGateway,
  tenantRecord,
} from './samples.ts'
import { networkKey, parseAddress, parseNetwork } from '../../../schema/net/ip-address.ts'
import { TrustedSources } from '../../../engine/routing/trusted-sources.ts'
import { NetworkTable } from '../../../engine/routing/network-table.ts'

const names: Readonly<Record<string, readonly string[]>> = {
  'anywhere.example': ['203.0.113.7'],
  'local.example': ['127.0.0.1'],
}
const hosts = {
  version: 0,
  addressesOf: (host: string) => names[host] ?? [host],
  watch: () => undefined,
  lookUp: noLookUp,
}
const node = { nodeId: 2, setId: 3, tenantId: null, isNamed: false }

const at = (carrierId: number, host: string, fields: Partial<CarrierRecord> = {}, netmask = 32) =>
  sampleCarrier(carrierId, {
    gateways: [sampleGateway(carrierId, { host, netmask, port: 0 })],
    ...fields,
  })

function over(carriers: readonly CarrierRecord[], deps: Partial<RecognitionDeps> = {}) {
  const recognition = new Recognition({
    trustedSources: ['127.0.0.0/8'],
    edgeProxies: [],
    nodeAt: () => undefined,
    hosts,
    ...deps,
  })
  recognition.replace(
    carriers,
    new Tenancy([
      tenantRecord(5, { slug: 'acme' }),
      tenantRecord(6, { slug: 'globex' }),
      tenantRecord(7, { slug: 'gone', isActive: false }),
    ]),
  )
  return (address: string, port = 5060) => recognition.recognize({ address, port })
}

test('a network of the platform wins over the smaller one of a tenant inside it, and over the larger around it', () => {
  const inside = over([at(1, '203.0.113.0', {}, 24), at(2, '203.0.113.7', { tenantId: 5 })])
  expect(inside('203.0.113.7')).toMatchObject({ carrierId: 1 })
  const around = over([at(1, '203.0.113.7'), at(2, '203.0.0.0', { tenantId: 5 }, 16)])
  expect(around('203.0.113.7')).toMatchObject({ carrierId: 1 })
  expect(around('203.0.113.8')).toMatchObject({ carrierId: 2 })
})

test("a name that a tenant points to the platform's carrier or to a trusted source takes nothing", () => {
  const recognize = over([
    at(1, '203.0.113.7'),
    at(2, 'anywhere.example', { tenantId: 5 }),
    at(3, 'local.example', { tenantId: 5 }),
  ])
  expect(recognize('203.0.113.7')).toMatchObject({ carrierId: 1 })
  expect(recognize('127.0.0.1')).toEqual({ kind: 'trusted' })
})

test("a node of the platform wins over a tenant's carrier, a tenant's carrier over a tenant's node", () => {
  const carriers = [at(2, '203.0.113.7', { tenantId: 5 })]
  const found = (tenantId: number | null) =>
    over(carriers, { nodeAt: () => ({ ...node, tenantId }) })('203.0.113.7').kind
  expect([found(null), found(6)]).toEqual(['node', 'carrier'])
})

test("a tenant's node by a name is not recognized where a trusted source is", () => {
  const found = (isNamed: boolean) =>
    over([], { nodeAt: () => ({ ...node, tenantId: 5, isNamed }) })('127.0.0.1').kind
  expect([found(true), found(false)]).toEqual(['trusted', 'node'])
})

test('a proxy speaks for the tenants that it serves, before a trusted network and what tenants claim', () => {
  const edgeProxies = [
    { network: '203.0.113.7/32', tenants: ['acme', 'globex', 'unheard-of'] },
    { network: '127.0.0.1/32', tenants: ['globex'] },
    { network: '203.0.113.9/32', tenants: ['gone'] },
  ]
  const recognize = over([at(2, '203.0.113.7', { tenantId: 5 })], { edgeProxies })
  expect(recognize('203.0.113.7')).toEqual({ kind: 'proxy', tenantIds: [5, 6] })
  expect(recognize('127.0.0.1')).toEqual({ kind: 'proxy', tenantIds: [6] })
  expect(recognize('127.0.0.2')).toEqual({ kind: 'trusted' })
  // It serves no active tenant.
  expect(recognize('203.0.113.9')).toEqual({ kind: 'unknown' })
})

test("a tenant's gateway at a place of the platform's gets no calls, whatever its port", () => {
  const platform = at(1, '198.51.100.0', { direction: 'out', isActive: false }, 24)
  const call = (host: string) => {
    const tenants = sampleCarrier(2, {
      tenantId: 5,
      gateways: [sampleGateway(2, { host, port: 5090 })],
    })
    const { routing } = routingOver(
      {
        carriers: [platform, tenants],
        outboundRoutes: [outboundRoute(1, { tenantId: 5, carrierId: 2 })],
      },
      {
        hosts: {
          ...hosts,
          addressesOf: (name) => (name === 'sly.example' ? ['198.51.100.9'] : [name]),
        },
        nodeAt: (address) => (address === '192.0.2.1' ? node : undefined),
      },
    )
    return routing.outboundCandidates(null, '1900', 5).kind
  }
  expect(['198.51.100.9', 'sly.example', '192.0.2.1', '192.0.2.2'].map(call)).toEqual([
    'unavailable',
    'unavailable',
    'unavailable',
    'gateways',
  ])
})

const ownAddress = ({ host }: { readonly host: string }) => [host]
const gatewayAt = (gatewayId: number, port: number) =>
  sampleGateway(gatewayId, { host: '203.0.113.1', port })

test('the smallest network around the source wins', () => {
  const sources = new CarrierSources(
    [
      sampleCarrier(1, { gateways: [sampleGateway(1, { host: '203.0.113.0', netmask: 24 })] }),
      sampleCarrier(2, { gateways: [sampleGateway(2, { host: '203.0.113.9' })] }),
    ],
    ownAddress,
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
  const sources = new CarrierSources([sampleCarrier(1, { gateways })], ownAddress)
  expect(sources.find('203.0.113.1', 5060)).toBeDefined()
  expect(sources.find('203.0.113.1', 5061)).toBeUndefined()
  expect(sources.find('203.0.113.2', 49_152)).toBeDefined()
  expect(sources.find('203.0.113.3', 49_152)).toBeDefined()
})

test('of two carriers on one address the port decides, then any port', () => {
  const sources = new CarrierSources(
    [
      sampleCarrier(1, { gateways: [gatewayAt(1, 0)] }),
      sampleCarrier(2, { gateways: [gatewayAt(2, 5070)] }),
      sampleCarrier(3, { gateways: [gatewayAt(3, 5080)] }),
    ],
    ownAddress,
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
    ownAddress,
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

function tableOf(networks: readonly string[]) {
  return new NetworkTable(
    networks.flatMap((text) => {
      const network = parseNetwork(text)
      return network ? [[network, text] as const] : []
    }),
  )
}

test('what the table finds is what comparing with every network finds', () => {
  const octet = fc.constantFrom(0, 1, 127, 128, 255)
  const address = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'))
  const network = fc.tuple(address, fc.nat(32)).map(([base, length]) => `${base}/${length}`)
  fc.assert(
    fc.property(fc.array(network, { maxLength: 30 }), address, (networks, source) => {
      const parsed = parseAddress(source)
      const around = networks.filter((text) => {
        const each = parseNetwork(text)
        if (!each || !parsed) return false
        return networkKey(each.address, each.prefixLength) === networkKey(parsed, each.prefixLength)
      })
      expect([...tableOf(networks).lookup(source)].toSorted()).toEqual(around.toSorted())
    }),
    { seed: 1 },
  )
})
