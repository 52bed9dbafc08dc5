/** The pool of relays against real ones. */
import { afterEach, beforeAll, beforeEach, afterAll, expect, test } from 'vitest'
import { deleteWithStatistics, deleteOf } from '../../engine/media/gate/offer-answer.ts'
import { createRelays, type RelayPool } from '../../engine/media/relay/relay-pool.ts'
import { NgClient, openNgSocket } from '../../engine/media/relay/ng-client.ts'
import { readConfig } from '../../engine/config.ts'
import type { Schedule } from '../../schema/clock.ts'
import { ManualTime } from '../support/manual-time.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { eventually } from '../support/waiting.ts'

let first: RtpEngine
let second: RtpEngine
let pool: RelayPool
let happenings: string[]

beforeAll(async () => {
  ;[first, second] = await Promise.all([RtpEngine.start(), RtpEngine.start()])
})

afterAll(() => Promise.all([first.stop(), second.stop()]))

beforeEach(async () => {
  happenings = []
  pool = poolOf(`${first.setting},${second.setting}`)
  await eventually(() => {
    for (const engine of [first, second]) expect(relayOf(engine).isAlive).toBe(true)
    expect(happenings.length).toBeGreaterThanOrEqual(2)
  })
})

afterEach(() => pool.stop())

const schedule: Schedule = (work, delayMs) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

function poolOf(setting: string): RelayPool {
  const made = createRelays(readConfig({ RTPENGINE: setting }).relays, {
    hosts: { watch: () => undefined, addressesOf: (host) => [host] },
    now: () => performance.timeOrigin + performance.now(),
    schedule,
    log: () => undefined,
    randomBytes: (size) => crypto.getRandomValues(Buffer.alloc(size)),
    events: {
      add: (event) => happenings.push('relay' in event ? `${event.type} ${event.relay}` : ''),
    },
  })
  if (made === undefined) throw new Error('no relays')
  made.start()
  return made
}

const sdp = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0 8',
  'a=sendrecv',
  '',
].join('\r\n')

const nameOf = ({ port }: RtpEngine): string => `127.0.0.1:${port}`

const relayOf = (engine: RtpEngine) => {
  const relay = pool.byName(nameOf(engine))
  if (relay === undefined) throw new Error('no such relay')
  return relay
}

const offer = (callId: string) => ({
  command: 'offer',
  'call-id': callId,
  'from-tag': 'a',
  'to-tag': 'b',
  sdp,
  replace: ['origin'],
  flags: ['trust address'],
})

/** How many it has taken so far. */
async function offersAt(engine: RtpEngine): Promise<number> {
  const text = JSON.stringify(await engine.request({ command: 'statistics' }))
  return [...text.matchAll(/"offercount":(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0)
}

test('a session is offered, listed, told of and deleted', async () => {
  const offered = await relayOf(first).request(offer('one'))
  expect(offered.kind === 'ok' && offered.values['sdp']).toMatch(/m=audio 6[1-5]\d{3} RTP\/AVP 0 8/)
  const answer = { ...offer('one'), command: 'answer' }
  expect((await relayOf(first).request(answer)).kind).toBe('ok')
  expect(await first.sessions()).toEqual(['one'])
  expect(Object.keys((await first.query('one'))['tags'] ?? {})).toEqual(['a', 'b'])
  const deleted = await relayOf(first).request(
    deleteWithStatistics({ id: 'one', legs: ['a', 'b'] }),
  )
  expect(deleted).toMatchObject({ kind: 'ok', values: { totals: { RTP: { packets: 0 } } } })
  expect(await first.sessions()).toEqual([])
})

test('what the relay refuses is an error with its reason', async () => {
  const query = { command: 'query', 'call-id': 'unknown' }
  expect(await relayOf(first).request(query)).toEqual({ kind: 'error', reason: 'Unknown call-id' })
  const { sdp: _sdp, ...withoutSdp } = offer('two')
  expect(await relayOf(first).request(withoutSdp)).toMatchObject({ kind: 'error' })
})

test('a request that is repeated is not done twice', async () => {
  const sent: string[] = []
  // What passes is the time of the repetition: however slow the machine is, none is given up.
  const time = new ManualTime(0)
  const client = new NgClient({
    open: (events) => {
      const socket = openNgSocket({ address: '127.0.0.1', port: first.port }, events)
      const send = (datagram: string) => {
        sent.push(datagram)
        socket.send(datagram)
      }
      return { ...socket, send }
    },
    newCookie: () => 'test_late',
    now: time.now,
    schedule: time.schedule,
    onAnswer: () => undefined,
    onTimeout: () => undefined,
    onRefusal: () => undefined,
  })
  const before = await offersAt(first)
  await first.pause()
  const offered = client.request(offer('late'))
  time.advance(200)
  expect(sent).toHaveLength(2)
  first.resume()
  expect((await offered).kind).toBe('ok')
  expect(sent[0]).toBe(sent[1])
  expect((await offersAt(first)) - before).toBe(1)
  await client.request(deleteOf('late'))
  client.close()
})

// Within a second: test/engine/media/relay/relay-pool.test.ts, where time is virtual.
test('a relay that stands still is out, and back when it goes on', async () => {
  await first.pause()
  const lost = relayOf(first).request({ command: 'ping' })
  await eventually(() => expect(relayOf(first).isAlive).toBe(false))
  expect((await lost).kind).toBe('timeout')
  expect([1, 2].map(() => pool.pick()?.name)).toEqual(Array(2).fill(nameOf(second)))
  first.resume()
  await eventually(() => expect(relayOf(first).isAlive).toBe(true))
  const ofFirst = happenings.filter((each) => each.endsWith(` ${nameOf(first)}`))
  expect(ofFirst.slice(1)).toEqual([`relay.down ${nameOf(first)}`, `relay.up ${nameOf(first)}`])
})

test('a relay that is killed is out; started anew, it is told as such', async () => {
  await relayOf(first).request(offer('lost'))
  await eventually(() => expect(pool.status()[0]?.sessions).not.toBeNull())
  await first.kill()
  await eventually(() => expect(relayOf(first).isAlive).toBe(false))
  expect(pool.pick()?.name).toBe(nameOf(second))
  await first.restart()
  await eventually(() => expect(happenings).toContain(`relay.restarted ${nameOf(first)}`))
  expect(relayOf(first).isAlive).toBe(true)
  expect(pool.status()[0]).toMatchObject({ restarts: 1, sessions: 0 })
})
