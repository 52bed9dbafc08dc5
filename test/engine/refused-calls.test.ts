import { expect, test } from 'vitest'
import { RefusedCalls } from '../../engine/refused-calls.ts'
import { emptyStore } from '../support/empty-store.ts'
import { ManualTime } from '../support/manual-time.ts'

const minute = 60_000
const startedAt = Date.UTC(2026, 0, 1)

function counting() {
  const time = new ManualTime(startedAt)
  const store = emptyStore()
  const logged: [string, unknown][] = []
  const load = { refused: 0 }
  const refused = new RefusedCalls({
    ...{ store, now: time.now, schedule: time.schedule },
    refusedByOverload: () => load.refused,
    log: (_level, message, fields) => void logged.push([message, fields]),
  })
  refused.start()
  const rows = (): unknown[] => store.sqlite.prepare('SELECT * FROM refused_calls').all()
  return { time, store, logged, load, refused, rows }
}

test('twenty thousand calls of one stranger are one row, one sample and one line of the log', () => {
  const { refused, rows, time, logged } = counting()
  const samples = Array.from({ length: 20_000 }, () => refused.unknownSource('192.0.2.1'))
  expect(samples.filter(Boolean)).toHaveLength(1)
  time.advance(minute)
  expect(rows()).toEqual([{ minute: startedAt, reason: 'unknown_source', calls: 20_000 }])
  expect(logged).toEqual([
    ['calls of unknown sources were refused within a minute', { calls: 20_000, sampled: 1 }],
  ])
  expect(refused.telemetry()).toEqual({
    calls_refused_unknown_source_total: 20_000,
    calls_refused_unknown_source_sampled_total: 1,
  })
})

test('as many forged sources as calls make ten samples a minute, and as many in the next', () => {
  const { refused, time } = counting()
  const sampled = (): number =>
    Array.from({ length: 5_000 }, (_, call) => refused.unknownSource(`10.0.${call}`)).filter(
      Boolean,
    ).length
  expect([sampled(), sampled()]).toEqual([10, 0])
  time.advance(minute)
  expect(sampled()).toBe(10)
})

test('what overload refused is counted in the minute in which it was', () => {
  const { load, time, rows } = counting()
  load.refused = 7
  time.advance(5_000)
  load.refused = 9
  time.advance(minute)
  load.refused = 12
  time.advance(5_000)
  expect(rows()).toEqual([
    { minute: startedAt, reason: 'overload', calls: 9 },
    { minute: startedAt + minute, reason: 'overload', calls: 3 },
  ])
})

test('counts that the database does not take are stored later, and those at the end by the stop', () => {
  const { refused, store, time, rows, logged } = counting()
  store.sqlite.exec(
    'CREATE TRIGGER full BEFORE INSERT ON refused_calls BEGIN SELECT RAISE(ABORT, 1); END',
  )
  refused.unknownSource('192.0.2.1')
  time.advance(5_000)
  expect([rows(), logged.length]).toEqual([[], 1])
  store.sqlite.exec('DROP TRIGGER full')
  refused.unknownSource('192.0.2.1')
  refused.stop()
  expect(rows()).toEqual([{ minute: startedAt, reason: 'unknown_source', calls: 2 }])
  expect(time.waiting).toBe(0)
})
