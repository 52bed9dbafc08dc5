/** A database with millions of call records, written by SQLite itself. */
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'

/** The records are spread evenly over so many days from `startOfRecords` on. */
const DAYS = 10
export const DAY_MS = 86_400_000
export const startOfRecords = Date.UTC(2026, 0, 1)

const BATCH = 1_000_000

/** Creates the database at `path`. 10 million: 80 s, 5 GB. */
export function fillRecords(path: string, records: number, progress: (text: string) => void): void {
  const store = openDatabase(path)
  const { sqlite } = store
  const begin = performance.now()
  const seconds = () => `${((performance.now() - begin) / 1_000).toFixed(0)} s`
  try {
    migrate(sqlite, startOfRecords)
    // After a power cut, start again.
    sqlite.pragma('journal_mode = OFF')
    sqlite.pragma('synchronous = OFF')
    sqlite.pragma('cache_size = -200000')
    // In the order of an index its entries are sorted once instead of inserted one by one.
    const indexes = sqlite
      .prepare<[], { name: string; sql: string }>(
        `SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'cdr' AND sql IS NOT NULL`,
      )
      .all()
    for (const { name } of indexes) sqlite.exec(`DROP INDEX ${name}`)
    const insert = sqlite.prepare(insertion)
    const stepMs = (DAYS * DAY_MS) / records
    for (let first = 0; first < records; first += BATCH) {
      const end = Math.min(first + BATCH, records)
      insert.run({ first, end, start: startOfRecords, stepMs })
      progress(`${end} of ${records} records after ${seconds()}`)
    }
    for (const { sql } of indexes) sqlite.exec(sql)
    sqlite.pragma('journal_mode = WAL')
    progress(`indexes after ${seconds()}`)
  } finally {
    store.close()
  }
}

/** Inserts `@first` to `@end`, the calls of `@start` and every `@stepMs` from then on. */
const insertion = `
WITH RECURSIVE
  call (n) AS (
    SELECT CAST(@first AS INTEGER) UNION ALL SELECT n + 1 FROM call WHERE n + 1 < @end
  ),
  timed AS (SELECT n, CAST(@start + n * @stepMs AS INTEGER) AS at, n % 5 = 0 AS is_busy FROM call)
INSERT INTO cdr (
  call_uuid, call_id, direction, caller_id_number, destination_number,
  start_stamp, answer_stamp, end_stamp, post_dial_delay_ms, duration, billsec,
  disposition, sip_code, hangup_cause, hangup_by, set_id, node, carrier,
  attempts, rate_prefix, cost_micros, currency, source_address
)
SELECT
  printf('00000000-0000-4000-8000-%012d', n), n || '-a84b4c76e66710@203.0.113.7', 'inbound',
  '1555000' || (1000 + n % 9000), '1800555' || (1000 + n % 7919),
  at, iif(is_busy, NULL, at + 2000), at + 2000 + n % 120000, 150 + n % 1000,
  2 + n % 120, iif(is_busy, 0, n % 120),
  iif(is_busy, 'BUSY', 'ANSWERED'), iif(is_busy, 486, 200),
  iif(is_busy, 'USER_BUSY', 'NORMAL_CLEARING'), 'caller', 1, 'sip:10.0.0.1:5060;transport=udp', 'trunk',
  printf(
    '[{"destination":"sip:10.0.0.1:5060;transport=udp","status":%d,"reason":"%s","startedAt":%d,"endedAt":%d}]',
    iif(is_busy, 486, 200), iif(is_busy, 'Busy Here', 'OK'), at, at + 2000
  ),
  '1', iif(is_busy, 0, 110 * (n % 120)), 'USD', '203.0.113.7:5060'
FROM timed`
