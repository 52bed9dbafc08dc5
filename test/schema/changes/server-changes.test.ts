import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { topics, type Details, type Topic } from '../../../schema/changes/changes.ts'
import { ServerChanges } from '../../../schema/changes/server-changes.ts'
import { ServerNotices } from '../../../schema/changes/server-notices.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/waiting.ts'

/** The next look at the counter. */
let look: (() => void) | undefined
const schedule = (work: () => void, delayMs: number) => {
  if (delayMs === 1_000) look = work
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

describe.runIf(hasPostgres)('a database that several processes change', () => {
  let url: string
  let drop: () => Promise<void>
  let other: PostgresStatements
  let notices: ServerNotices
  let changes: ServerChanges
  const log: string[] = []
  const told: (readonly [Topic, Details])[] = []

  beforeEach(async () => {
    ;({ url, drop } = await freshDatabase())
    other = new PostgresStatements({ url })
    log.length = 0
    told.length = 0
    const deps = { schedule, log: (level: string) => log.push(level) }
    notices = new ServerNotices({ url, ...deps })
    await notices.start()
    changes = await ServerChanges.open({ notices, random: () => 0, ...deps })
    for (const topic of topics)
      changes.follow({
        topics: [topic],
        reload: async (details) => void told.push([topic, details]),
      })
  })
  afterEach(async () => {
    await changes.stop()
    await notices.stop()
    await other.close()
    await drop()
  })
  const addPlan = (name: string) =>
    other.execute(`INSERT INTO rate_plan (name, currency, created_at) VALUES ('${name}', 'USD', 0)`)
  const addRate = (prefix: string) =>
    other.execute(`INSERT INTO rate (rate_plan_id, prefix, rate_per_minute_micros, first_rate_per_minute_micros)
      SELECT max(id), '${prefix}', 1, 1 FROM rate_plan`)

  test('a commit is told soon and once, whether its notice or the counter is first', async () => {
    await changes.start()
    await addPlan('one')
    await eventually(() => expect(told).toEqual([['rate_plan', new Set(['1'])]]), 1_000)
    for (let looks = 0; looks < 3; looks += 1) {
      const before = look
      before?.()
      await eventually(() => expect(look).not.toBe(before))
    }
    expect(told).toHaveLength(1)
  })

  test('of few rates the prefixes are told, of many their plans', async () => {
    await addPlan('one')
    await changes.start()
    told.length = 0
    await addRate('49')
    await eventually(() => expect(told).toEqual([['rate', new Set(['1/49'])]]), 1_000)
    await other.execute("UPDATE rate SET prefix = '44'")
    await eventually(
      () =>
        expect(told.flatMap(([, details]) => Array.from(details)).toSorted()).toEqual([
          '1/44',
          '1/49',
          '1/49',
        ]),
      1_000,
    )
    told.length = 0
    await other.execute(`INSERT INTO rate (rate_plan_id, prefix, rate_per_minute_micros, first_rate_per_minute_micros)
      SELECT 1, '5' || n, 1, 1 FROM generate_series(1, 100) n`)
    await eventually(() => expect(told).toEqual([['rate', new Set(['1'])]]), 1_000)
    await other.execute("DELETE FROM rate WHERE prefix = '44'")
    await eventually(() => expect(told).toContainEqual(['rate', new Set(['1/44'])]), 1_000)
  })

  test('every topic is a table with triggers that tell of it', async () => {
    const rows = await other
      .prepare<{ relname: Topic }>(
        `SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
          WHERE t.tgname LIKE 'note\\_%' AND NOT t.tgisinternal`,
      )
      .all([])
    expect(rows.map(({ relname }) => relname).toSorted()).toEqual([...topics].toSorted())
  })

  test('uses of a key and money of a wallet are no changes', async () => {
    await changes.start()
    await other.execute('UPDATE application_key SET request_count = 1, last_used_at = 1')
    await other.execute('UPDATE wallet SET balance_micros = 1, is_depleted = 0')
    await addPlan('one')
    await eventually(() => expect(told).toEqual([['rate_plan', new Set(['1'])]]), 1_000)
  })

  test('a lost notice is made up for within a second', async () => {
    await changes.start()
    await notices.query('UNLISTEN *', [])
    await addPlan('one')
    await eventually(() => expect(told).toEqual([['rate_plan', new Set(['1'])]]), 2_000)
  })

  test('after a broken connection everything is loaded again', async () => {
    await changes.start()
    await other.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollgate notices' AND datname = current_database()",
    )
    await eventually(() => expect(told.map(([topic]) => topic)).toEqual([...topics]), 3_000)
    expect(log).toEqual(['error', 'info'])
    told.length = 0
    await addPlan('one')
    await eventually(() => expect(told).toEqual([['rate_plan', new Set(['1'])]]), 1_000)
  })
})
