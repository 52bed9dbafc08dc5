/** RFC 3263 §4.1 and §4.2: which records are asked, what they mean, and how long they are known. */
import { expect, test } from 'vitest'
import type {
  NaptrRecord,
  SrvRecord,
  Dns,
  DnsAnswer,
} from '../../../../engine/sip-server/dns/dns.ts'
import { NextHopResolver, srvOrder } from '../../../../engine/sip-server/dns/next-hop-resolver.ts'
import { CachedDns } from '../../../../engine/sip-server/dns/cached-dns.ts'
import type { HopQuestion, HopTarget } from '../../../../engine/sip-server/flow.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

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

/** The places found as `protocol address port`, and the names that were asked for. */
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

test('nothing at all, and no more targets than are tried', async () => {
  expect((await find({})).places).toEqual([])
  const many = Array.from({ length: 40 }, (_, index) => `192.0.2.${index}`)
  expect((await find({ addresses: { 'example.com': many } })).places).toHaveLength(16)
})

const record = (name: string, priority: number, weight: number): SrvRecord => ({
  name,
  priority,
  weight,
  port: 5060,
})

const names = (records: readonly SrvRecord[]): string => records.map(({ name }) => name).join('')

test('a lower priority is tried first, whatever the weights', () => {
  const records = [record('c', 20, 100), record('a', 1, 0), record('b', 10, 50)]
  expect(names(srvOrder(records, () => 0.99))).toBe('abc')
})

test('within a priority the first one is drawn in proportion to the weights', () => {
  const random = seededRandom(1)
  const records = [record('a', 1, 60), record('b', 1, 30), record('c', 1, 10)]
  const firsts = { a: 0, b: 0, c: 0 } as Record<string, number>
  const draws = 20_000
  for (let draw = 0; draw < draws; draw++) {
    const name = srvOrder(records, random)[0]?.name ?? ''
    firsts[name] = (firsts[name] ?? 0) + 1
  }
  expect(firsts['a']).toBeCloseTo(draws * 0.6, -3)
  expect(firsts['b']).toBeCloseTo(draws * 0.3, -3)
  expect(firsts['c']).toBeCloseTo(draws * 0.1, -3)
})

function setUp() {
  const clock = { now: 0 }
  const asked: string[] = []
  const answers = new Map<string, (found: DnsAnswer<string>) => void>()
  const dns: Dns = {
    naptr: () => Promise.reject(new Error('SERVFAIL')),
    srv: () => Promise.resolve({ records: [], ttlMs: 30_000, isAnswer: true }),
    addresses: (name) => {
      asked.push(name)
      return new Promise((resolve) => answers.set(name, resolve))
    },
  }
  const cached = new CachedDns(dns, () => clock.now)
  const answer = (name: string, ttlMs: number, ...records: string[]) =>
    answers.get(name)?.({ records, ttlMs, isAnswer: ttlMs >= 0 })
  return { clock, asked, cached, answer }
}

test('a name is asked for once by all who want it meanwhile, in whatever case', async () => {
  const { cached, asked, answer } = setUp()
  const both = Promise.all([cached.addresses('pbx.example'), cached.addresses('PBX.example')])
  expect(cached.pending).toBe(1)
  answer('pbx.example', 1_000, '192.0.2.1', '2001:db8::1')
  expect(await both).toEqual([
    ['192.0.2.1', '2001:db8::1'],
    ['192.0.2.1', '2001:db8::1'],
  ])
  expect(asked).toEqual(['pbx.example'])
  expect(cached.pending).toBe(0)
})

test.each([
  ['its time to live', 20_000, ['192.0.2.1'], 20_000],
  ['a second where it has none', 0, ['192.0.2.1'], 1_000],
  ['an hour at most', 999_999_999, ['192.0.2.1'], 3_600_000],
  ['two seconds where there is none', 60_000, [], 2_000],
])('an answer is kept for %s', async (_what, ttlMs, records, keptMs) => {
  const { cached, asked, answer, clock } = setUp()
  const first = cached.addresses('a.example')
  answer('a.example', ttlMs, ...records)
  await first
  clock.now = keptMs - 1
  expect(await cached.addresses('a.example')).toEqual(records)
  expect(asked).toHaveLength(1)
  clock.now = keptMs
  void cached.addresses('a.example')
  expect(asked).toHaveLength(2)
})

test('while no server answers, what was true six hours ago at most still counts', async () => {
  const { cached, asked, answer, clock } = setUp()
  const ask = async (ttlMs: number, ...records: string[]) => {
    const found = cached.addresses('a.example')
    answer('a.example', ttlMs, ...records)
    return found
  }
  const unanswered = -1
  expect(await ask(60_000, '192.0.2.1')).toEqual(['192.0.2.1'])
  clock.now = 6 * 3_600_000 - 1
  expect(await ask(unanswered)).toEqual(['192.0.2.1'])
  expect(asked).toHaveLength(2)
  clock.now += 2_000
  expect(await ask(unanswered)).toEqual([])

  await ask(60_000, '192.0.2.1')
  clock.now += 60_000
  // An answer that there is none is one.
  expect(await ask(60_000)).toEqual([])
})

test('the cache and the queries under way are bounded', async () => {
  const { cached, asked, answer } = setUp()
  for (let host = 0; host <= 1_000; host++) {
    const found = cached.addresses(`h${host}.example`)
    answer(`h${host}.example`, 1_000, '192.0.2.1')
    await found
  }
  void cached.addresses('h0.example')
  expect(asked.at(-1)).toBe('h0.example')
  for (let host = 1; host < 1_000; host++) void cached.addresses(`pending${host}.example`)
  expect(cached.pending).toBe(1_000)
  expect(await cached.addresses('one-too-many.example')).toEqual([])
})

/** Strangers make us look for names of their own choice: in a Contact, in a Record-Route. */
test('names of strangers, made up or real, do not push out those that are in use', async () => {
  const { cached, asked, answer, clock } = setUp()
  const ask = async (name: string, ...records: string[]) => {
    const found = cached.addresses(name)
    answer(name, 3_600_000, ...records)
    return found
  }
  await ask('carrier.example', '192.0.2.1')
  for (let host = 0; host < 3_000; host++) {
    if (host % 500 === 0) await ask('carrier.example')
    await ask(`made-up-${host}.example`)
    await ask(`real-${host}.example`, '198.51.100.1')
  }
  clock.now += 1_000
  expect(await ask('carrier.example')).toEqual(['192.0.2.1'])
  expect(asked.filter((name) => name === 'carrier.example')).toHaveLength(1)
})
