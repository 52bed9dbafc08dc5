import { expect, test } from 'vitest'
import { Tenancy } from '../../../engine/routing/tenancy.ts'
import { Recognition, type RecognitionDeps } from '../../../engine/routing/recognition.ts'
import type { CarrierRecord } from '../../../engine/routing/routing-records.ts'
import {
  noLookUp,
  outboundRoute,
  routingOver,
  sampleCarrier,
  sampleGateway,
  tenantRecord,
} from './samples.ts'

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
