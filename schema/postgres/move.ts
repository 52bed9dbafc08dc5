/**
 * Copies a database from SQLite to a PostgreSQL server: all of it in one transaction, or nothing.
 * Before it is committed, the rows of every table and the sum of every amount are compared.
 */
import { DAY_MS } from '../clock.ts'
import type Sqlite from 'better-sqlite3'
import { DatabaseRefused } from '../sql/failure.ts'
import type { PostgresStatements } from '../sql/postgres-statements.ts'

export interface MoveReport {
  readonly tables: readonly { readonly table: string; readonly rows: number }[]
  /** The sum of every column with amounts, in micro-units. */
  readonly sums: readonly { readonly column: string; readonly micros: bigint }[]
  /** Texts with a NUL, which PostgreSQL cannot store: U+FFFD stands there instead. */
  readonly alteredTexts: number
}

/** About this much is sent at once. */
const BATCH_BYTES = 1_000_000
const ROWS_PER_PROGRESS = 50_000
const MOVE_LOCK = 0x70_11_6a_7f

/**
 * @param source at this program's schema; nothing writes to it meanwhile.
 * @param target migrated and without rows.
 * @param now milliseconds UTC.
 * @throws {DatabaseRefused} the target is not empty, or what was copied differs from the source.
 */
export function moveToServer(
  source: Sqlite.Database,
  target: PostgresStatements,
  name: string,
  now: number,
  onProgress: (line: string) => void,
): Promise<MoveReport> {
  const tables = inOrder(source)
  return target.exclusively(MOVE_LOCK, async () => {
    await target.execute(`LOCK TABLE ${tables.map(quoted).join(', ')} IN EXCLUSIVE MODE`)
    await refuseRows(target, tables, name)
    // The source has its own rows there.
    await target.execute('DELETE FROM setting')
    const counter = { alteredTexts: 0 }
    for (const table of tables) await copyTable(source, target, table, counter, onProgress)
    const report = await compare(source, target, tables, name)
    for (const table of tables) await continueNumbers(source, target, table)
    await countToday(target, now)
    return { ...report, ...counter }
  })
}

/**
 * Referenced tables come first. Tables that a server's processes write for each other are left out.
 */
function inOrder(source: Sqlite.Database): readonly string[] {
  const waiting = new Set(
    texts(
      source,
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
       AND name NOT IN ('schema_migration', 'change_counter', 'node') ORDER BY name`,
    ),
  )
  const ordered: string[] = []
  while (waiting.size > 0) {
    const next = [...waiting].find((table) =>
      texts(source, `SELECT "table" FROM pragma_foreign_key_list(${literal(table)})`).every(
        (parent) => parent === table || !waiting.has(parent),
      ),
    )
    if (next === undefined)
      throw new Error(`tables refer to each other: ${[...waiting].join(', ')}`)
    waiting.delete(next)
    ordered.push(next)
  }
  return ordered
}

async function refuseRows(
  target: PostgresStatements,
  tables: readonly string[],
  name: string,
): Promise<void> {
  for (const table of tables) {
    // A migration has named the database.
    const own = table === 'setting' ? "WHERE name <> 'database_id'" : ''
    const row = await target.prepare(`SELECT 1 FROM ${quoted(table)} ${own} LIMIT 1`).get([])
    if (row !== undefined)
      throw new DatabaseRefused(
        `cannot move to ${name}: it is not empty, there are rows in ${table}`,
      )
  }
}

type Value = bigint | number | string | Buffer | null

async function copyTable(
  source: Sqlite.Database,
  target: PostgresStatements,
  table: string,
  counter: { alteredTexts: number },
  onProgress: (line: string) => void,
): Promise<void> {
  const columns = columnsOf(source, table)
  const list = columns.map(quoted).join(', ')
  const insert = target.prepare(
    `INSERT INTO ${quoted(table)} (${list})
     SELECT ${list} FROM json_populate_recordset(NULL::${quoted(table)}, $1)`,
  )
  let batch: string[] = []
  let bytes = 0
  let rows = 0
  const send = async (): Promise<void> => {
    await insert.run([`[${batch.join(',')}]`])
    batch = []
    bytes = 0
  }
  const asJson = (value: Value): string | number | null => {
    if (typeof value === 'bigint') return String(value)
    if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`
    if (typeof value !== 'string' || !value.includes('\0')) return value
    counter.alteredTexts += 1
    return value.replaceAll('\0', '\uFFFD')
  }
  const all = source.prepare<[], Value[]>(`SELECT ${list} FROM ${quoted(table)}`).raw()
  for (const row of all.safeIntegers().iterate()) {
    const json = JSON.stringify(
      Object.fromEntries(columns.map((column, index) => [column, asJson(row[index] ?? null)])),
    )
    batch.push(json)
    bytes += json.length
    rows += 1
    if (rows % ROWS_PER_PROGRESS === 0) onProgress(`${table}: ${rows} rows so far`)
    if (bytes >= BATCH_BYTES) await send()
  }
  if (batch.length > 0) await send()
  if (rows > 0) onProgress(`${table}: ${rows} rows`)
}

async function compare(
  source: Sqlite.Database,
  target: PostgresStatements,
  tables: readonly string[],
  name: string,
): Promise<Pick<MoveReport, 'tables' | 'sums'>> {
  const counted: { table: string; rows: number }[] = []
  const sums: { column: string; micros: bigint }[] = []
  const differ = (what: string, here: unknown, there: unknown): DatabaseRefused =>
    new DatabaseRefused(
      `nothing was moved to ${name}: ${what} is ${String(there)} there, ${String(here)} here`,
    )
  for (const table of tables) {
    const count = `SELECT count(*) AS n FROM ${quoted(table)}`
    const here = source.prepare<[], { n: number }>(count).get()?.n ?? 0
    const there = (await target.prepare<{ n: number }>(count).get([]))?.n
    if (here !== there) throw differ(`the number of rows of ${table}`, here, there)
    counted.push({ table, rows: here })
    for (const column of columnsOf(source, table).filter((each) => each.endsWith('_micros'))) {
      const micros = sumHere(source, table, column)
      const added = `CAST(coalesce(sum(${quoted(column)}), 0) AS text)`
      const sum = `SELECT ${added} AS sum FROM ${quoted(table)}`
      const other = (await target.prepare<{ sum: string }>(sum).get([]))?.sum
      if (String(micros) !== other) throw differ(`the sum of ${table}.${column}`, micros, other)
      sums.push({ column: `${table}.${column}`, micros })
    }
  }
  return { tables: counted, sums }
}

/** Adds units and fractions separately, because SQLite's sum of integers has 64 bits. */
function sumHere(source: Sqlite.Database, table: string, column: string): bigint {
  const row = source
    .prepare<[], { units: bigint; rest: bigint }>(
      `SELECT coalesce(sum(${column} / 1000000), 0) AS units,
         coalesce(sum(${column} % 1000000), 0) AS rest
         FROM ${quoted(table)}`,
    )
    .safeIntegers()
    .get()
  return (row?.units ?? 0n) * 1_000_000n + (row?.rest ?? 0n)
}

/** Stores the spending since midnight UTC, which the process adds up from the ledger on SQLite. */
async function countToday(target: PostgresStatements, now: number): Promise<void> {
  const count = target.prepare(
    `UPDATE wallet SET spent_on = $1, spent_micros = (
       SELECT coalesce(-sum(amount_micros), 0) FROM ledger_entry
       WHERE wallet_id = wallet.id AND kind = 'debit' AND created_at >= $1
     )`,
  )
  await count.run([now - (now % DAY_MS)])
}

/** A number that a row has had is not given again, where SQLite remembers it. */
async function continueNumbers(
  source: Sqlite.Database,
  target: PostgresStatements,
  table: string,
): Promise<void> {
  if (!columnsOf(source, table).includes('id')) return
  const newest = source
    .prepare<[string], number | null>(
      `SELECT max(coalesce((SELECT max(id) FROM ${quoted(table)}), 0),
                  coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))`,
    )
    .pluck()
    .get(table)
  if (typeof newest === 'number' && newest > 0)
    await target
      .prepare(`SELECT setval(pg_get_serial_sequence(${literal(quoted(table))}, 'id'), $1)`)
      .run([newest])
}

const columnsOf = (source: Sqlite.Database, table: string): readonly string[] =>
  texts(source, `SELECT name FROM pragma_table_info(${literal(table)})`)

const texts = (source: Sqlite.Database, sql: string): string[] =>
  source.prepare<[], string>(sql).pluck().all()

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`
