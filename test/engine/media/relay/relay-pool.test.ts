import { beforeEach, expect, test } from 'vitest'
import { RelayPool } from '../../../../engine/media/relay/relay-pool.ts'
import { FakeRelay } from '../../../support/fake-relay.ts'
import { ManualTime } from '../../../support/manual-time.ts'

let time: ManualTime
let changes: string[]
let logged: string[]
/** The relays by address and port. */
let relays: Map<string, FakeRelay>
let addresses: Record<string, string[]>

beforeEach(() => {
  time = new ManualTime(1_000_000)
  changes = []
  logged = []
  relays = new Map()
  addresses = {}
})

function relayAt(place: string): FakeRelay {
  const relay = relays.get(place) ?? new FakeRelay(time.now)
  relays.set(place, relay)
  return relay
}

/** Started, and each relay has answered. */
function poolOf(...places: readonly (readonly [host: string, weight?: number])[]): RelayPool {
  const pool = new RelayPool({
    relays: places.map(([host, weight = 1]) => ({
      name: `${host}:2223`,
      host,
      port: 2_223,
      weight,
    })),
    open: ({ address, port }, events) => relayAt(`${address}:${port}`).connect(events),
    hosts: { watch: () => undefined, addressesOf: (host) => addresses[host] ?? [host] },
    cookiePrefix: 'test',
    now: time.now,
    schedule: time.schedule,
    log: (level, message, fields) =>
      logged.push(`${level}: ${message} (${String(fields?.['relay'])})`),
    onChange: (relay, change) => changes.push(`${relay.name} ${change}`),
  })
  pool.start()
  return pool
}

/** Answers are promises: what waits for them goes on between two steps. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    time.advance(Math.min(50, ms - passed))
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
  }
}

test('relays are pinged at the start, and those that answer get sessions', async () => {
  const pool = poolOf(['10.0.0.1'], ['10.0.0.2'])
  expect(pool.all().map(({ name, isAlive }) => [name, isAlive])).toEqual([
    ['10.0.0.1:2223', true],
    ['10.0.0.2:2223', true],
  ])
  expect(logged).toEqual([
    'info: media relay answers (10.0.0.1:2223)',
    'info: media relay answers (10.0.0.2:2223)',
  ])
  expect([pool.pick()?.name, pool.pick()?.name, pool.pick()?.name]).toEqual([
    '10.0.0.1:2223',
    '10.0.0.2:2223',
    '10.0.0.1:2223',
  ])
  expect(pool.byName('10.0.0.2:2223')?.name).toBe('10.0.0.2:2223')
  expect(pool.byName('10.0.0.3:2223')).toBeUndefined()
})

test('a relay that falls silent is dead within a second, and back when it answers again', async () => {
  const pool = poolOf(['10.0.0.1'], ['10.0.0.2'])
  await pass(5_000)
  const relay = relayAt('10.0.0.1:2223')
  relay.isAnswering = false
  await pass(1_000)
  expect(pool.byName('10.0.0.1:2223')?.isAlive).toBe(false)
  expect([1, 2, 3].map(() => pool.pick()?.name)).toEqual(Array(3).fill('10.0.0.2:2223'))
  relay.isAnswering = true
  await pass(1_000)
  expect(pool.byName('10.0.0.1:2223')?.isAlive).toBe(true)
  expect(changes.slice(2)).toEqual(['10.0.0.1:2223 silent', '10.0.0.1:2223 answers'])
  expect(logged.slice(2)).toEqual([
    'warn: media relay does not answer (10.0.0.1:2223)',
    'info: media relay answers (10.0.0.1:2223)',
  ])
})

test('where nothing listens, the relay is dead at once', async () => {
  const pool = poolOf(['10.0.0.1'], ['10.0.0.2'])
  relayAt('10.0.0.1:2223').isRefusing = true
  const answer = await pool.byName('10.0.0.1:2223')?.request({ command: 'offer' })
  expect(answer).toEqual({ kind: 'timeout' })
  expect([1, 2].map(() => pool.pick()?.name)).toEqual(Array(2).fill('10.0.0.2:2223'))
})

test('weights share the sessions out without bursts; weight 0 is for when no other answers', async () => {
  const pool = poolOf(['10.0.0.1', 2], ['10.0.0.2'], ['10.0.0.3', 0])
  const turns = (count: number) =>
    Array.from({ length: count }, () => pool.pick()?.name.slice(7, 8)).join('')
  expect(turns(6)).toBe('121121')
  for (const place of ['10.0.0.1:2223', '10.0.0.2:2223']) relayAt(place).isAnswering = false
  await pass(1_000)
  expect(turns(2)).toBe('33')
})

test('a name that has another address now leads there, and one without an address is no relay', async () => {
  addresses['relay.test'] = []
  const pool = poolOf(['relay.test'])
  expect(pool.pick()).toBeUndefined()
  addresses['relay.test'] = ['10.0.0.1']
  await pass(2_000)
  expect(pool.pick()?.name).toBe('relay.test:2223')
  const connections = () => ['10.0.0.1', '10.0.0.9'].map((at) => relayAt(`${at}:2223`).connections)
  addresses['relay.test'] = ['10.0.0.9', '10.0.0.1']
  await pass(1_000)
  expect(connections(), 'as long as the old one is among them it stays').toEqual([1, 0])
  addresses['relay.test'] = ['10.0.0.9']
  await pass(1_000)
  expect(connections()).toEqual([0, 1])
  await pool.pick()?.request({ command: 'offer' })
  expect(relayAt('10.0.0.9:2223').commands).toContain('offer')
})

test('when a relay was lost is its last sign of life, also when it is back', async () => {
  const pool = poolOf(['10.0.0.1'])
  const relay = relayAt('10.0.0.1:2223')
  await pass(10_000)
  const lostAt = pool.byName('10.0.0.1:2223')?.seenAt
  relay.isAnswering = false
  await pass(20_000)
  relay.isAnswering = true
  relay.startedAt = time.now()
  await pass(10_000)
  expect(changes.at(-1)).toBe('10.0.0.1:2223 restarted')
  expect(pool.byName('10.0.0.1:2223')?.lostAt).toBe(lostAt)
})

test('a relay that was started anew is noticed, also when it was never found silent', async () => {
  poolOf(['10.0.0.1'])
  const relay = relayAt('10.0.0.1:2223')
  await pass(6_000)
  expect(changes).toEqual(['10.0.0.1:2223 answers'])
  relay.startedAt = time.now()
  await pass(6_000)
  expect(changes).toEqual(['10.0.0.1:2223 answers', '10.0.0.1:2223 restarted'])
  expect(logged.at(-1)).toBe(
    'warn: media relay has started anew: its sessions are lost (10.0.0.1:2223)',
  )
})

test('cookies never repeat, and end with the pool its sockets and timers', async () => {
  const pool = poolOf(['10.0.0.1'], ['10.0.0.2'])
  await pass(3_000)
  const cookies = [...relays.values()].flatMap(({ received }) => received.map((r) => r.cookie))
  expect(new Set(cookies).size).toBe(cookies.length)
  expect(cookies[0]).toMatch(/^test_/)
  pool.stop()
  expect(time.waiting).toBe(0)
  expect([...relays.values()].map(({ connections }) => connections)).toEqual([0, 0])
})
