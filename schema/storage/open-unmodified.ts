/**
 * Opens a database without changing any of its files, even after a crash: SQLite would checkpoint its
 * write-ahead log and remove it.
 */
import { copyFileSync, existsSync, linkSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Database } from '../database.ts'
import { refuseByHeader, type LocalStore } from '../open.ts'
import { asRefusal } from '../refusal.ts'
import { LocalSecrets } from '../secrets/secrets.ts'
import { SqliteStatements } from '../sql/sqlite-statements.ts'
import { Storage } from './storage.ts'

/**
 * @param isServed whether another process has it open: its log is live, and is read in place.
 * @throws {DatabaseRefused} the file is not a database, or newer than this program.
 */
export function openUnmodified(path: string, isServed: boolean): LocalStore {
  refuseByHeader(path)
  try {
    if (isServed) {
      const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
      return storeOn(sqlite, path, () => void sqlite.close())
    }
    return openElsewhere(realpathSync(path))
  } catch (error) {
    throw asRefusal(path, error)
  }
}

/** Opened under another name, with a copy of its log, so that SQLite changes only those. */
function openElsewhere(path: string): LocalStore {
  const { folder, file } = linkIn(dirname(path), path) ?? copyIn(path)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${file}-wal`)
    const sqlite = new Sqlite(file, { readonly: true, fileMustExist: true })
    const close = (): void => {
      sqlite.close()
      remove()
    }
    return storeOn(sqlite, path, close)
  } catch (error) {
    remove()
    throw error
  }
}

function storeOn(sqlite: Sqlite.Database, path: string, close: () => void): LocalStore {
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) })
  const secrets = new LocalSecrets(sqlite, undefined, path)
  const statements = new SqliteStatements(sqlite)
  return { sqlite, statements, db, secrets, storage: new Storage(), close }
}

interface Elsewhere {
  readonly folder: string
  readonly file: string
}

/** Undefined when the folder is not writable, or its file system has no links. */
function linkIn(beside: string, path: string): Elsewhere | undefined {
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(beside, '.tollgate-check-'))
    const file = join(folder, 'database')
    linkSync(path, file)
    return { folder, file }
  } catch {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    return undefined
  }
}

function copyIn(path: string): Elsewhere {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-check-'))
  const file = join(folder, 'database')
  copyFileSync(path, file)
  return { folder, file }
}
