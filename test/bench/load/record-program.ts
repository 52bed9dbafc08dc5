/**
 * The program over millions of call records, with the daily sums and the blocks of columns that it
 * has of them after a while.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import pg from 'pg'
import { DAY_MS } from '../../../schema/clock.ts'
import { migratePostgres } from '../../../schema/migrations/migrate.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { TollgateProcess } from '../../support/tollgate-process.ts'
import { fillFile, fillServer, load, owners, type RecordsShape } from './varied-records.ts'

interface RecordOptions {
  readonly records: number
  readonly database: string
  /** Records of an earlier run: a file, or the URL of a database. Empty: there are none. */
  readonly keep: string
}

export const RECORD_DAYS = 90
const RECORD_TENANTS = 20

const progress = (text: string): void => console.log(`  ${new Date().toISOString()} ${text}`)

interface Records {
  readonly environment: Record<string, string>
  /** Midnight UTC of the first day. */
  readonly start: number
  /** Records that are in blocks. */
  readonly inBlocks: () => Promise<number>
  readonly records: () => Promise<number>
}

/**
 * Fills a database, or takes one of an earlier run, and starts the program on it. `use` begins when
 * the program has made its blocks.
 *
 * @param seed what the program is provisioned with.
 */
export async function withRecords(
  { records, database, keep }: RecordOptions,
  seed: Parameters<typeof TollgateProcess.start>[0],
  use: (tollgate: TollgateProcess, start: number) => Promise<void>,
  more: Record<string, string> = {},
): Promise<void> {
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const shape: RecordsShape = {
    records,
    days: RECORD_DAYS,
    customers: 2_000,
    carriers: 20,
    prefixes: 500,
    tenants: RECORD_TENANTS,
    start: end - RECORD_DAYS * DAY_MS,
  }
  const run = async (filled: Records): Promise<void> => {
    const tollgate = await TollgateProcess.start(seed, {
      LOG_LEVEL: 'warn',
      ...filled.environment,
      ...more,
    })
    try {
      await blocksMade(filled)
      await use(tollgate, filled.start)
    } finally {
      await tollgate.stop()
    }
  }
  if (database === 'postgres') return onServer(shape, keep, run)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-records-'))
  try {
    await run(await inFile(shape, keep === '' ? join(folder, 'records.db') : keep))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function inFile(shape: RecordsShape, path: string): Promise<Records> {
  if (!existsSync(path)) {
    await fillFile(path, shape, progress)
    const sqlite = new Sqlite(path)
    for (const statement of owners(shape)) sqlite.exec(statement)
    sqlite.close()
  }
  const read = (file: string, sql: string): number => {
    const sqlite = new Sqlite(file, { readonly: true, fileMustExist: true })
    try {
      return sqlite.prepare<[], number>(sql).pluck().get() ?? 0
    } finally {
      sqlite.close()
    }
  }
  return {
    environment: { DATABASE_PATH: path },
    start: read(path, `SELECT min(start_stamp) FROM cdr`),
    inBlocks: async () => read(`${path}.sums`, BLOCKS),
    records: async () => read(path, RECORDS),
  }
}

const BLOCKS = 'SELECT coalesce(sum(calls), 0) AS count FROM record_block WHERE is_stale = 0'
const RECORDS = 'SELECT count(*) AS count FROM cdr'

async function onServer(
  shape: RecordsShape,
  keep: string,
  run: (filled: Records) => Promise<void>,
): Promise<void> {
  if (!hasPostgres && keep === '') return console.log('  not run: there is no PostgreSQL')
  const { url, drop } =
    keep === '' ? await freshDatabase() : { url: keep, drop: () => Promise.resolve() }
  const client = new pg.Client({ connectionString: url })
  const count = async (sql: string): Promise<number> =>
    Number((await client.query<{ count: string }>(sql)).rows[0]?.count)
  try {
    if (keep !== '') await migrated(url)
    await client.connect()
    if ((await count(RECORDS)) === 0) {
      await fillServer(url, shape, progress)
      for (const statement of owners(shape)) await client.query(statement)
      await client.query('VACUUM ANALYZE')
    }
    await run({
      environment: { DATABASE_URL: url },
      start: await count('SELECT min(start_stamp) AS count FROM cdr'),
      inBlocks: () => count(BLOCKS),
      records: () => count(RECORDS),
    })
  } finally {
    await client.end()
    await drop()
  }
}

async function migrated(url: string): Promise<void> {
  const statements = new PostgresStatements({ url, connections: 1 })
  await migratePostgres(statements, url, Date.now())
  await statements.close()
}

/** A block has about so many records: the newest ones have none yet. */
const LAST_RECORDS = 10_000
const LONGEST_MS = 900_000

async function blocksMade({ records, inBlocks }: Records): Promise<void> {
  const wanted = (await records()) - LAST_RECORDS
  const begin = performance.now()
  let known = await inBlocks()
  if (known >= wanted) return
  while (known < wanted) {
    if (performance.now() - begin > LONGEST_MS)
      throw new Error(`blocks have only ${known} of ${wanted} records`)
    await pause(1_000)
    known = await inBlocks()
  }
  const seconds = (performance.now() - begin) / 1_000
  progress(`blocks made after ${seconds.toFixed(0)} s (load ${load()})`)
}
