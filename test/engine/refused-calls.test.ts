import { describe, expect, test } from 'vitest'
import { RefusedCalls } from '../../engine/refused-calls.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import { ManualTime } from '../support/manual-time.ts'
import { eachDatabase, sharedDatabase } from '../support/shared-database.ts'
import { hasPostgres } from '../support/postgres.ts'

const minute = 60_000
const startedAt = Date.UTC(2026, 0, 1)

function counting(store: Store) {
  const time = new ManualTime(startedAt)
  const logged: [string, unknown][] = []
  const load = { refused: 0 }
  const refused = new RefusedCalls({
    store,
    now: time.now,
    schedule: time.schedule,
    refusedByOverload: () => load.refused,
    log: (_level, message, fields) => void logged.push([message, fields]),
  })
  refused.start()
  const rows = async (): Promise<unknown[]> => {
    await refused.flush()
    return all(store, store.db.selectFrom('refused_calls').selectAll().orderBy('minute'))
  }
  return { time, store, logged, load, refused, rows }
}

describe.each(eachDatabase)('refused calls on $database', ({ open }) => {
  test('twenty thousand calls of one stranger are one row, one sample and one line of the log', async () => {
    const { refused, rows, time, logged } = counting(await open())
    const samples = Array.from({ length: 20_000 }, () => refused.unknownSource('192.0.2.1'))
    expect(samples.filter(Boolean)).toHaveLength(1)
    time.advance(minute)
    expect(await rows()).toEqual([{ minute: startedAt, reason: 'unknown_source', calls: 20_000 }])
    expect(logged).toEqual([
      ['calls of unknown sources were refused within a minute', { calls: 20_000, sampled: 1 }],
    ])
    expect(refused.telemetry()).toEqual({
      calls_refused_unknown_source_total: 20_000,
      calls_refused_unknown_source_sampled_total: 1,
    })
  })

  test('as many forged sources as calls make ten samples a minute, and as many in the next', async () => {
    const { refused, time } = counting(await open())
    const sampled = (): number =>
      Array.from({ length: 5_000 }, (_, call) => refused.unknownSource(`10.0.${call}`)).filter(
        Boolean,
      ).length
    expect([sampled(), sampled()]).toEqual([10, 0])
    time.advance(minute)
    expect(sampled()).toBe(10)
  })

  test('what overload refused is counted in the minute in which it was', async () => {
    const { load, time, rows } = counting(await open())
    load.refused = 7
    time.advance(5_000)
    load.refused = 9
    time.advance(minute)
    load.refused = 12
    time.advance(5_000)
    expect(await rows()).toEqual([
      { minute: startedAt, reason: 'overload', calls: 9 },
      { minute: startedAt + minute, reason: 'overload', calls: 3 },
    ])
  })

  test('counts that the database does not take are stored later, and those at the end by the stop', async () => {
    const { refused, store, time, rows, logged } = counting(await open())
    const rename = (from: string, to: string) =>
      store.statements.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run([])
    await rename('refused_calls', 'gone')
    refused.unknownSource('192.0.2.1')
    await refused.flush()
    expect(logged.length).toBe(1)
    await rename('gone', 'refused_calls')
    refused.unknownSource('192.0.2.1')
    await refused.stop()
    const stored = [{ minute: startedAt, reason: 'unknown_source', calls: 2 }]
    expect([await rows(), time.waiting]).toEqual([stored, 0])
  })
})

test.runIf(hasPostgres)(
  'several instances count in one row, and none of their counts is lost',
  async () => {
    const { open } = await sharedDatabase()
    const instances = [counting(await open()), counting(await open()), counting(await open())]
    for (let round = 0; round < 20; round += 1) {
      for (const { refused } of instances) refused.unknownSource('192.0.2.1')
      await Promise.all(instances.map(({ refused }) => refused.flush()))
    }
    expect(await instances[0]?.rows()).toEqual([
      { minute: startedAt, reason: 'unknown_source', calls: 60 },
    ])
  },
)
