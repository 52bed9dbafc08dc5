/** RFC 3263 §4.1 and §4.2: which records are asked, and what they mean. */
import { expect, test } from 'vitest'
import {
  type NaptrRecord,
  NextHopResolver,
  type SrvRecord,
} from '../../../../engine/sip-server/dns/next-hop.ts'
import type { HopQuestion, HopTarget } from '../../../../engine/sip-server/flow.ts'

interface Zone {
  readonly naptr?: Record<string, readonly NaptrRecord[]>
  readonly srv?: Record<string, readonly SrvRecord[]>
  readonly addresses?: Record<string, readonly string[]>
}

const naptr = (order: number, service: string, replacement: string, flags = 's'): NaptrRecord => ({
  order,
  preference: 50,
  service,
  replacement,
  flags,
})

const srv = (name: string, priority = 10, port = 5060): SrvRecord => ({
  name,
  priority,
  port,
  weight: 0,
})

const open: HopQuestion = {
  host: 'example.com',
  port: 0,
  protocol: undefined,
  isSecure: false,
  supported: ['udp', 'tcp'],
}

/** What is found as `protocol address port`, and the names that were asked for it. */
async function find(zone: Zone, question: Partial<HopQuestion> = {}) {
  const asked: string[] = []
  const answer = <T>(kind: string, name: string, records: Record<string, readonly T[]> = {}) => {
    asked.push(`${kind} ${name}`)
    return Promise.resolve({ records: records[name] ?? [], ttlMs: 1_000, isAnswer: true })
  }
  const targets = await new Promise<readonly HopTarget[]>((resolve) => {
    const resolver = new NextHopResolver(
      {
        naptr: (name) => answer('naptr', name, zone.naptr),
        srv: (name) => answer('srv', name, zone.srv),
        addresses: (name) => answer('a', name, zone.addresses),
      },
      () => 0,
      () => 0.5,
      (_reference, found) => resolve(found),
    )
    resolver.resolve({ ...open, ...question }, 'q1')
  })
  const places = targets.map(({ protocol, address, port }) => `${protocol} ${address} ${port}`)
  return { places, asked: asked.toSorted() }
}

const zone: Zone = {
  naptr: {
    'example.com': [
      naptr(90, 'SIP+D2U', '_sip._udp.far.example'),
      naptr(50, 'SIPS+D2T', '_sips._tcp.example.com'),
      naptr(70, 'SIP+D2T', '_sip._tcp.example.com'),
      naptr(10, 'E2U+sip', '', 'u'),
    ],
  },
  srv: {
    '_sips._tcp.example.com': [srv('s1.example.com', 10, 5061)],
    '_sip._tcp.example.com': [srv('s2.example.com', 20), srv('s1.example.com', 10)],
    '_sip._udp.far.example': [srv('u.example.com', 10, 5099)],
    '_sip._udp.example.com': [srv('u.example.com')],
  },
  addresses: {
    'example.com': ['192.0.2.9'],
    's1.example.com': ['192.0.2.1', '2001:db8::1'],
    's2.example.com': ['192.0.2.2'],
    'u.example.com': ['192.0.2.3'],
  },
}

test('NAPTR says the transports and their order; only what we have counts', async () => {
  const { places } = await find(zone)
  expect(places).toEqual([
    'tcp 192.0.2.1 5060',
    'tcp 2001:db8::1 5060',
    'tcp 192.0.2.2 5060',
    'udp 192.0.2.3 5099',
  ])
  const byUdp = await find(zone, { supported: ['udp'] })
  expect(byUdp.places).toEqual(['udp 192.0.2.3 5099'])
  const byTls = await find(zone, { supported: ['udp', 'tcp', 'tls'] })
  expect(byTls.places[0]).toBe('tls 192.0.2.1 5061')
})

test('sips goes by TLS, or not at all', async () => {
  const { places } = await find(zone, { isSecure: true, supported: ['udp', 'tcp', 'tls'] })
  expect(places).toEqual(['tls 192.0.2.1 5061', 'tls 2001:db8::1 5061'])
  const bare = { addresses: { 'example.com': ['192.0.2.9'] } }
  const found = await find(bare, { isSecure: true, supported: ['udp', 'tls'] })
  expect(found.places).toEqual(['tls 192.0.2.9 5061'])
})

test('without NAPTR the SRV records of our transports count, UDP first', async () => {
  const { places } = await find({ ...zone, naptr: {} })
  expect(places).toEqual([
    'udp 192.0.2.3 5060',
    'tcp 192.0.2.1 5060',
    'tcp 2001:db8::1 5060',
    'tcp 192.0.2.2 5060',
  ])
})

test('without SRV, A and AAAA and the default port', async () => {
  const { places, asked } = await find({ addresses: zone.addresses ?? {} })
  expect(places).toEqual(['udp 192.0.2.9 5060'])
  expect(asked).toEqual([
    'a example.com',
    'naptr example.com',
    'srv _sip._tcp.example.com',
    'srv _sip._udp.example.com',
  ])
  const stream = await find({ addresses: zone.addresses ?? {} }, { supported: ['tcp'] })
  expect(stream.places).toEqual(['tcp 192.0.2.9 5060'])
})

test.each([
  ['udp', 'udp 192.0.2.3 5060'],
  ['tcp', 'tcp 192.0.2.1 5060'],
  ['tls', 'tls 192.0.2.1 5061'],
] as const)('transport=%s asks its own SRV record and no NAPTR', async (protocol, place) => {
  const { places, asked } = await find(zone, { protocol })
  expect(places[0]).toBe(place)
  expect(asked.some((name) => name.startsWith('naptr'))).toBe(false)
})

test('a port leaves only the addresses', async () => {
  const { places, asked } = await find(zone, { protocol: 'udp', port: 5080 })
  expect(places).toEqual(['udp 192.0.2.9 5080'])
  expect(asked).toEqual(['a example.com'])
})

test('a name without a dot is no domain', async () => {
  const { places, asked } = await find({ addresses: { node1: ['10.0.0.5'] } }, { host: 'node1' })
  expect(places).toEqual(['udp 10.0.0.5 5060'])
  expect(asked).toEqual(['a node1'])
})

test('an SRV target of "." is no service', async () => {
  const none = { ...zone, srv: { '_sip._udp.example.com': [srv('.')] } }
  expect((await find(none, { protocol: 'udp' })).places).toEqual([])
})

test('nothing at all, and no more targets than are tried', async () => {
  expect((await find({})).places).toEqual([])
  const many = Array.from({ length: 40 }, (_, index) => `192.0.2.${index}`)
  expect((await find({ addresses: { 'example.com': many } })).places).toHaveLength(16)
})
