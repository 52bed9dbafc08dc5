import { expect, test } from 'vitest'
import { CachedDns, type Dns, type DnsAnswer } from '../../../../engine/sip-server/dns/next-hop.ts'

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
