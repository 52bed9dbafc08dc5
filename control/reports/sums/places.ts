/** Where records are, and where their kept sums: one database on a server, two files with SQLite. */
import { closeSync, openSync, rmSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Database } from '../../../schema/database.ts'
import { sumTables } from '../../../schema/migrations/several-nodes/033-call-sums.ts'
import type { Store } from '../../../schema/open.ts'
import { SqliteStatements } from '../../../schema/sql/sqlite-statements.ts'

type Readable = Pick<Store, 'db' | 'statements'>

export interface Place {
  readonly store: Readable
  readonly sums: Readable
  /** Milliseconds of a clock that never jumps: long work on records ends in time. */
  readonly steadyNow: () => number
}

/** Of the tables in the file; one of another version is made again. */
const VERSION = 2

/**
 * Opens the sums of the database at `path`, which are made again out of the records when their file is missing, damaged
 * or of another version. `:memory:`: of a database in memory.
 */
export function openSums(path: string): Readable {
  const file = path === ':memory:' ? path : `${path}.sums`
  const sqlite = open(file) ?? openAgain(file)
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) })
  return { db, statements: new SqliteStatements(sqlite) }
}

function openAgain(file: string): Sqlite.Database {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  const sqlite = open(file)
  if (sqlite === undefined) throw new Error(`${file} cannot be made`)
  return sqlite
}

/** Undefined: it is damaged, or of another version. */
function open(file: string): Sqlite.Database | undefined {
  // It names callers: only the owner of the database may read it.
  if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
  const sqlite = new Sqlite(file)
  try {
    sqlite.pragma('journal_mode = WAL')
    // What a power cut takes is added up again.
    sqlite.pragma('synchronous = NORMAL')
    // Groups of a day lie apart: what a slice changes is about so much.
    sqlite.pragma('cache_size = -8000')
    // A slice of records is grouped there.
    sqlite.pragma('temp_store = MEMORY')
    sqlite
      .transaction(() => {
        if (sqlite.pragma('user_version', { simple: true }) !== 0) return
        sqlite.exec(sumTables)
        sqlite.pragma(`user_version = ${VERSION}`)
      })
      .immediate()
    if (sqlite.pragma('user_version', { simple: true }) === VERSION) return sqlite
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError) || !/CORRUPT|NOTADB/.test(error.code)) throw error
  }
  sqlite.close()
  return undefined
}
