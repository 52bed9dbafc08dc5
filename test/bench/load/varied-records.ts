/**
 * Millions of call records of many customers, written by the database itself, and added to the
 * daily sums as the program adds them.
 */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { CallSources } from '../../../control/reports/call-filters.ts'
import { openSums } from '../../../control/reports/call-filters.ts'
import { rollUp } from '../../../control/reports/roll-up.ts'
import { DAY_MS } from '../../../schema/clock.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { queryBuilder } from '../../../schema/postgres/open.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { resultOf } from '../../support/summed-calls.ts'

export interface RecordsShape {
  readonly records: number
  readonly days: number
  readonly customers: number
  readonly carriers: number
  readonly prefixes: number
  readonly tenants: number
  /** Midnight UTC in milliseconds. */
  readonly start: number
}

type Progress = (text: string) => void

const BATCH = 500_000

/** A customer calls so many prefixes. */
const PREFIXES_OF_CUSTOMER = 20
const CALLERS_OF_CUSTOMER = 5

/** Call-IDs come in no order. */
const CALL_ID_STEP = 982_451_653
const CALL_IDS = 1_000_000_007
const CALL_ID_END = '-a84b4c76e66710@203.0.113.7'

/** The Call-ID of a record: the first one is 0. */
export const callIdOf = (n: number): string =>
  `${(BigInt(n) * BigInt(CALL_ID_STEP)) % BigInt(CALL_IDS)}${CALL_ID_END}`

const uuidPrefix = '00000000-0000-4000-8000-'
const callsOfDay = ({ records, days }: RecordsShape): number => Math.floor(records / days)

/**
 * Inserts calls `first` to `end`, spread evenly over the days, each of which has the same calls. A
 * fifth is not answered, a half goes out by a carrier; of these a tenth has a price of the carrier
 * in another currency or none. Each has what the program writes of a call today.
 */
function insertion(shape: RecordsShape, { isServer }: { readonly isServer: boolean }): string {
  const { customers, carriers, prefixes, tenants, start } = shape
  const perDay = callsOfDay(shape)
  const [first, end] = isServer ? ['$1::bigint', '$2::bigint'] : ['@first', '@end']
  const numbers = isServer
    ? `SELECT generate_series(${first}, ${end} - 1) AS n`
    : `WITH RECURSIVE call (n) AS (
        SELECT CAST(${first} AS INTEGER) UNION ALL SELECT n + 1 FROM call WHERE n + 1 < ${end}
      ) SELECT n FROM call`
  const prefix = `1000 + (who * 13 + (m / ${customers}) % ${PREFIXES_OF_CUSTOMER} * 7) % ${prefixes}`
  return `INSERT INTO cdr (
    id, call_uuid, call_id, direction, caller_id_number, destination_number, start_stamp,
    answer_stamp, end_stamp, post_dial_delay_ms, duration, billsec, disposition, sip_code,
    hangup_cause, hangup_by, denial_code, set_id, node, carrier, attempts, tenant_id, customer_id,
    rate_prefix, cost_micros, currency, carrier_cost_micros, carrier_currency, carrier_prefix,
    carrier_tenant_id, source_address, mos_score, mos_source, jitter_ms, packet_loss_pct, instance,
    tags, verification, attestation, rated, number_dialled)
  SELECT n + 1, '${uuidPrefix}' || CAST(100000000000 + n AS TEXT),
    CAST(n * ${CALL_ID_STEP} % ${CALL_IDS} AS TEXT) || '${CALL_ID_END}',
    CASE WHEN out = 1 THEN 'outbound' ELSE 'inbound' END,
    CAST(15550000000 + who * ${CALLERS_OF_CUSTOMER} + (m / 77) % ${CALLERS_OF_CUSTOMER} AS TEXT),
    CAST(prefix AS TEXT) || CAST(1000000 + m % 7919 AS TEXT),
    at, CASE WHEN answered = 1 THEN at + 2000 END, at + 2000 + seconds * 1000, 150 + m % 1000,
    seconds + 2, CASE WHEN answered = 1 THEN seconds ELSE 0 END,
    CASE WHEN answered = 1 THEN 'ANSWERED' WHEN m % 10 = 0 THEN 'BUSY' ELSE 'FAILED' END,
    CASE WHEN answered = 1 THEN 200 WHEN m % 10 = 0 THEN 486 ELSE 503 END,
    'NORMAL_CLEARING', 'caller', CASE WHEN answered = 0 AND m % 10 <> 0 THEN 'no_rate' END,
    1, 'sip:10.0.0.' || CAST(1 + m % 4 AS TEXT) || ':5060;transport=udp',
    CASE WHEN out = 1 THEN 'carrier ' || CAST(by_carrier AS TEXT) END,
    '[{"destination":"sip:10.0.0.1:5060;transport=udp","status":200,"reason":"OK","sent":' ||
      '{"called":"' || CAST(prefix AS TEXT) || '1000000","caller":"1555"},' ||
      '"startedAt":1,"endedAt":2}]',
    tenant, who + 1, CAST(prefix AS TEXT),
    CASE WHEN answered = 1 THEN seconds * (100 + who % 50) ELSE 0 END, 'USD',
    CASE WHEN answered = 1 AND out = 1 AND m % 20 <> 1
      THEN seconds * (80 + by_carrier * 3) END,
    CASE WHEN answered = 1 AND out = 1 AND m % 20 <> 1
      THEN CASE WHEN m % 20 = 3 THEN 'EUR' ELSE 'USD' END END,
    CASE WHEN answered = 1 AND out = 1 AND m % 20 <> 1 THEN CAST(prefix AS TEXT) END,
    CASE WHEN answered = 1 AND out = 1 AND by_carrier % 2 = 0 THEN tenant END,
    '203.0.113.7:5060',
    CASE WHEN answered = 1 THEN 1 + (m * 31) % 351 / 100.0 END,
    CASE WHEN answered = 1 THEN 'measured' END, m % 97 / 10.0, m % 53 / 10.0,
    'sbc-' || CAST(1 + m % 3 AS TEXT),
    CASE WHEN m % 10 = 3 THEN '{"crm":"' || CAST(m % 1000 AS TEXT) || '"}' END,
    CASE m % 4 WHEN 1 THEN 'passed' WHEN 2 THEN 'failed' WHEN 3 THEN 'none' END,
    CASE m % 8 WHEN 1 THEN 'A' WHEN 5 THEN 'B' END,
    '[0,1,' || CAST(6000 + who AS TEXT) || ',1,' || CAST(6000 + who AS TEXT) || ']',
    '00' || CAST(prefix AS TEXT) || CAST(1000000 + m % 7919 AS TEXT)
  FROM (
    SELECT n, m, at, who, seconds, answered, out, tenant, by_carrier, ${prefix} AS prefix FROM (
      SELECT n, m, ${start} + day * ${DAY_MS} + m * ${Math.floor(DAY_MS / perDay)} AS at,
        m % ${customers} AS who, 1 + (m * 7919) % 300 AS seconds,
        CASE WHEN m % 5 = 0 THEN 0 ELSE 1 END AS answered, (m / 3) % 2 AS out,
        nullif(m % ${customers} % ${tenants + 1}, 0) AS tenant,
        (m / 7) % ${carriers} AS by_carrier
      FROM (
        SELECT n, n % ${perDay} AS m, n / ${perDay} AS day FROM (${numbers}) AS numbered
      ) AS dated
    ) AS drawn
  ) AS call`
}

/** Inserts the calls of the first day, adds them up, and inserts the others. */
async function fill(
  { sources, insert, execute }: Target,
  shape: RecordsShape,
  progress: Progress,
): Promise<void> {
  const perDay = callsOfDay(shape)
  const end = perDay * shape.days
  await insert(0, perDay)
  await addUp(sources, execute, shape, progress)
  for (let first = perDay; first < end; first += BATCH) {
    await insert(first, Math.min(first + BATCH, end))
    progress(`${Math.min(first + BATCH, end)} of ${end} records`)
  }
}

interface Target {
  readonly sources: CallSources
  readonly insert: (first: number, end: number) => unknown
  /** Runs a statement on the sums. */
  readonly execute: (sql: string) => unknown
}

const steadyNow = (): number => performance.now()

export async function fillFile(
  path: string,
  shape: RecordsShape,
  progress: Progress,
): Promise<void> {
  const store = openDatabase(path)
  const { sqlite } = store
  migrate(sqlite, shape.start)
  // After a power cut, start again.
  sqlite.pragma('journal_mode = OFF')
  sqlite.pragma('synchronous = OFF')
  sqlite.pragma('cache_size = -200000')
  const indexes = sqlite
    .prepare<[], { name: string; sql: string }>(
      `SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'cdr' AND sql IS NOT NULL`,
    )
    .all()
  for (const { name } of indexes) sqlite.exec(`DROP INDEX ${name}`)
  const inserting = sqlite.prepare(insertion(shape, { isServer: false }))
  const sums = openSums(path)
  const target: Target = {
    sources: { store, sums, steadyNow },
    insert: (first, end) => inserting.run({ first, end }),
    execute: (text) => sums.statements.prepare(text).run([]),
  }
  await fill(target, shape, progress)
  for (const { sql } of indexes) sqlite.exec(sql)
  sqlite.pragma('journal_mode = WAL')
  progress('indexes')
  store.close()
}

export async function fillServer(
  url: string,
  shape: RecordsShape,
  progress: Progress,
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const statements = new PostgresStatements({ url, connections: 2 })
  const store = { db: queryBuilder(), statements }
  const inserting = insertion(shape, { isServer: true })
  const { rows: indexes } = await client.query<{ indexname: string; indexdef: string }>(
    `SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'cdr' AND indexdef LIKE 'CREATE INDEX%'`,
  )
  for (const { indexname } of indexes) await client.query(`DROP INDEX ${indexname}`)
  const target: Target = {
    sources: { store, sums: store, steadyNow },
    insert: (first, end) => client.query(inserting, [first, end]),
    execute: (text) => client.query(text),
  }
  await fill(target, shape, progress)
  for (const { indexdef } of indexes) await client.query(indexdef)
  // The server does so itself where its autovacuum is on.
  await client.query('VACUUM ANALYZE')
  progress('indexes')
  await statements.close()
  await client.end()
}

/** The tenants and customers of the records, in words of both databases. */
export const owners = ({ customers, tenants, start }: RecordsShape): readonly string[] => {
  const numbered = (end: number) =>
    `WITH RECURSIVE one (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM one WHERE i < ${end})`
  return [
    `INSERT INTO tenant (slug, name, created_at) ${numbered(tenants)}
      SELECT 't' || i, 'Tenant ' || i, ${start} FROM one`,
    `INSERT INTO customer (tenant_id, name, created_at, updated_at) ${numbered(customers)}
      SELECT nullif((i - 1) % ${tenants + 1}, 0), 'Customer ' || i, ${start}, ${start} FROM one`,
  ]
}

/** The first day is added by the program; each other has the same sums, a day later. */
async function addUp(
  sources: CallSources,
  execute: Target['execute'],
  shape: RecordsShape,
  progress: Progress,
): Promise<void> {
  const { days, start } = shape
  const perDay = callsOfDay(shape)
  const last = uuidPrefix + String(100_000_000_000 + perDay * days - 1)
  for (let behind = 1; behind > 0;) {
    const work = rollUp(sources, { now: start + days * DAY_MS, retainedFrom: undefined })
    behind = (await resultOf(work)).behind
  }
  progress('sums of the first day')
  for (let day = 1; day < days; day += 1) {
    const later = `+ ${day * DAY_MS}`
    const ids = `+ ${day * perDay}`
    await execute(`INSERT INTO call_sum SELECT day ${later}, dimension, customer_id, tenant_id,
      CASE WHEN dimension IN ('minute', 'tenant_minute')
        THEN CAST(CAST(member AS bigint) ${later} AS TEXT) ELSE member END,
      currency, calls, answered, denied, failed, billsec, cost_micros, pdd_ms, pdd_calls,
      first_at ${later}, last_at ${later}, first_id ${ids}, last_id ${ids},
      CASE dearest WHEN '' THEN '' ELSE substr(dearest, 1, 20)
        || CAST(CAST(substr(dearest, 21) AS bigint) ${ids} AS TEXT) END
      FROM call_sum WHERE day = ${start}`)
    await execute(`INSERT INTO margin_sum SELECT day ${later}, dimension, tenant_id, is_own, member,
      currency, carrier_currency, calls, billsec, losses, cost_micros, carrier_cost_micros
      FROM margin_sum WHERE day = ${start}`)
  }
  await execute(`UPDATE call_sum_state SET records_up_to = ${perDay * days}, last_uuid = '${last}'`)
  progress('sums of all days')
}

/** Processes that wanted to run in the last minute. */
export const load = (): string => readFileSync('/proc/loadavg', 'utf8').split(' ')[0] ?? ''
