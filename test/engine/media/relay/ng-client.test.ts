import { expect, test } from 'vitest'
import { NgClient } from '../../../../engine/media/relay/ng-client.ts'
import type { NgAnswer } from '../../../../engine/media/relay/relays.ts'
import { FakeRelay } from '../../../support/fake-relay.ts'
import { ManualTime } from '../../../support/manual-time.ts'

function connected() {
  const time = new ManualTime(1_000)
  const relay = new FakeRelay(time.now)
  relay.isAnswering = false
  const seen = { answers: [] as NgAnswer[], latencies: [] as number[], timeouts: [] as number[] }
  let [cookies, refusals] = [0, 0]
  const client = new NgClient({
    open: (events) => relay.connect(events),
    newCookie: () => `a_${cookies++}`,
    now: time.now,
    schedule: time.schedule,
    onAnswer: (answer, tookMs) => {
      seen.answers.push(answer)
      seen.latencies.push(tookMs)
    },
    onTimeout: (sentAt) => seen.timeouts.push(sentAt),
    onRefusal: () => (refusals += 1),
  })
  return { relay, time, client, seen, refusals: () => refusals }
}

const ping = { command: 'ping' }

test('a request is a cookie and a dictionary, and its answer is found by the cookie', async () => {
  const { relay, client, time, seen } = connected()
  const [first, second] = [client.request(ping), client.request({ command: 'list' })]
  expect(relay.received).toEqual([
    { cookie: 'a_0', command: ping },
    { cookie: 'a_1', command: { command: 'list' } },
  ])
  time.advance(3)
  relay.answer('a_1', { calls: ['x'], result: 'ok' })
  relay.answer('a_0', { result: 'pong' })
  expect(await first).toEqual({ kind: 'ok', values: { result: 'pong' } })
  expect(await second).toEqual({ kind: 'ok', values: { calls: ['x'], result: 'ok' } })
  expect(seen.latencies).toEqual([3, 3])
})

test('without an answer a request is repeated with the same cookie, and ends within a second', async () => {
  const { relay, client, time, seen } = connected()
  const answer = client.request(ping)
  time.advance(149)
  expect(relay.received).toHaveLength(1)
  time.advance(100)
  expect(relay.received).toHaveLength(2)
  time.advance(150)
  expect(relay.received.map(({ cookie }) => cookie)).toEqual(['a_0', 'a_0', 'a_0'])
  expect(seen.timeouts).toEqual([])
  time.advance(300)
  expect(await answer).toEqual({ kind: 'timeout' })
  expect(seen.timeouts).toEqual([1_000])
  expect(relay.received).toHaveLength(3)
  expect(time.waiting).toBe(0)
})

test('an error of the relay is a value', async () => {
  const { relay, client } = connected()
  const answers = [1, 2, 3, 4].map(() => client.request(ping))
  relay.answer('a_0', { result: 'error', 'error-reason': 'Unknown call-id' })
  relay.answer('a_1', { result: 'load limit', message: 'Parallel session limit reached' })
  relay.answer('a_2', {})
  relay.sendRaw('a_3 d6:result')
  expect(await Promise.all(answers)).toEqual([
    { kind: 'error', reason: 'Unknown call-id' },
    { kind: 'error', reason: 'Parallel session limit reached' },
    { kind: 'error', reason: 'no reason given' },
    { kind: 'error', reason: 'the answer is malformed' },
  ])
})

test('a process that stood still reads what has come before it gives up', async () => {
  const { relay, client, time, seen } = connected()
  const answers = [client.request(ping), client.request(ping)]
  time.stall(5_000)
  relay.answer('a_0', { result: 'pong' })
  expect((await answers[0])?.kind).toBe('ok')
  expect(seen.timeouts).toEqual([])
  time.advance(50)
  expect((await answers[1])?.kind).toBe('timeout')
})

test('where nothing listens, all requests end at once', async () => {
  const { relay, client, time, refusals } = connected()
  const answers = [client.request(ping), client.request(ping)]
  relay.refuse()
  expect(await Promise.all(answers)).toEqual([{ kind: 'timeout' }, { kind: 'timeout' }])
  expect([client.outstanding, refusals(), time.waiting]).toEqual([0, 1, 0])
})

test('outstanding requests are bounded', async () => {
  const { relay, client } = connected()
  for (let request = 0; request < 4_096; request++) void client.request(ping)
  expect(await client.request(ping)).toEqual({ kind: 'timeout' })
  expect(relay.received).toHaveLength(4_096)
})
