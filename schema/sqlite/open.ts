/**
 * Opens the database file. Rejects, without changing it, a file of another program or of a newer
 * version.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  copyFileSync,
  linkSync,
  mkdtempSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Database } from '../tables/database.ts'
import { newestVersion } from '../migrations/index.ts'
import {
  APPLICATION_ID,
  asRefusal,
  DatabaseRefused,
  refuseNewer,
  unreleased,
} from '../sql/failure.ts'
import { LocalSecrets } from '../secrets/local-secrets.ts'
import { SqliteStatements } from '../sql/sqlite-statements.ts'
import { Storage } from '../storage/storage.ts'
import { tmpdir } from 'node:os'
import type { LocalStore } from '../storage/store.ts'
import { WriteAheadLog } from '../sql/write-ahead-log.ts'

export interface OpenOptions {
  /** How long a statement waits for another process's write lock. Milliseconds, 0 or more. */
  readonly busyTimeoutMs?: number
  /**
   * 32 bytes as base64 or hexadecimal digits; absent when stored in a file next to the database.
   */
  readonly secretKey?: string | undefined
  /** Begins an empty database beside the files of one that is gone. */
  readonly isNew?: boolean | undefined
}

/**
 * Opens the database at `path`, or creates it (not its folder); `:memory:` works. Does not migrate.
 *
 * @throws {DatabaseRefused} the file is not a database, damaged, another program's, or newer than
 * this program.
 */
export function openDatabase(path: string, options: OpenOptions = {}): LocalStore {
  const isFile = path !== ':memory:'
  if (isFile) refuseWithoutFolder(path)
  if (isFile) refuseByHeader(path)
  if (isFile && isMissingOrEmpty(path)) beginEmpty(path, options.isNew === true)
  try {
    if (isFile) createPrivately(path)
    if (isFile) makePrivate(path)
    return openHandle(path, options)
  } catch (error) {
    throw asRefusal(path, error)
  }
}

const isMissingOrEmpty = (path: string): boolean =>
  (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0

/** Names of files that only a database which has been used leaves, behind its own name. */
const TRACES = /^(?:\.key|\.lock|\.node|\.sums|-wal|\.calls-\d+(?:\.stopped)?)$/
const MAX_NAMED = 5

/**
 * A volume that is not mounted, or a database that was removed, is no first start: an empty
 * platform with a new administrator would take the place of the old one.
 *
 * @throws {DatabaseRefused} files of a database are there without it, and `isNew` is false.
 */
function beginEmpty(path: string, isNew: boolean): void {
  const name = basename(path)
  const traces = readdirSync(dirname(path))
    .filter((each) => each.startsWith(name) && TRACES.test(each.slice(name.length)))
    .toSorted()
  if (traces.length === 0) return
  if (!isNew)
    throw new DatabaseRefused(
      `cannot use database ${path}: it is ${existsSync(path) ? 'empty' : 'missing'}, and ` +
        'files of it are there: ' +
        `${traces.slice(0, MAX_NAMED).join(', ')}; mount its disk or restore it ` +
        '("tollgate restore FILE"), ' +
        'or begin an empty one with --new',
    )
  // Totals of the calls of the database that is gone.
  for (const suffix of ['.sums', '.sums-wal', '.sums-shm']) rmSync(path + suffix, { force: true })
}

/** A missing folder is a typing error, or a disk that is not mounted. */
export function refuseWithoutFolder(path: string): void {
  const folder = dirname(path)
  if (existsSync(folder)) return
  throw new DatabaseRefused(
    `cannot use database ${path}: the folder ${folder} does not exist; create it, or use --create`,
  )
}

/**
 * Creates the folder of the database at `path`, and those above it.
 *
 * @throws {DatabaseRefused} it cannot be created.
 */
export function createFolderOf(path: string): void {
  const missing: string[] = []
  // Not `mkdir` with `recursive`: under /proc, where nothing can be created, it never returns.
  for (let folder = dirname(path); !existsSync(folder); folder = dirname(folder))
    missing.unshift(folder)
  try {
    for (const folder of missing) mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseRefused(`cannot use database ${path}: ${reason}`)
  }
}

/**
 * Closes the folder of the database at `path` to others if it is the program's own. Any other one
 * may be shared, such as /tmp.
 *
 * @returns a warning if others may read the folder.
 */
export function closeFolderOf(path: string, isOwn: boolean): string | undefined {
  const folder = dirname(path)
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  // Not through a link, which may lead anywhere.
  const isClosable = isOwn && stats.isDirectory() && stats.uid === process.getuid?.()
  if (isClosable && (stats.mode & 0o077) !== 0) chmodSync(folder, 0o700)
  if ((statSync(folder).mode & 0o004) === 0) return undefined
  return (
    `others may read the folder of the database, ${folder}: close it with chmod 700, unless ` +
    'it is shared on purpose'
  )
}

/**
 * The database contains names and calls: only its owner may read it. SQLite gives its side files
 * the same mode.
 */
export function createPrivately(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/**
 * Closes the database, its journals, its lock and its copies to others: a copy by hand may have
 * other modes.
 */
function makePrivate(path: string): void {
  const [folder, name] = [dirname(path), basename(path)]
  for (const each of readdirSync(folder)) {
    if (each !== name && !each.startsWith(`${name}.`) && !each.startsWith(`${name}-`)) continue
    const file = join(folder, each)
    const stats = lstatSync(file, { throwIfNoEntry: false })
    if (stats?.isFile() !== true || (stats.mode & 0o077) === 0) continue
    try {
      chmodSync(file, 0o600)
    } catch {
      // The file belongs to another user, who has to close it.
    }
  }
}

function openHandle(path: string, { busyTimeoutMs = 5_000, secretKey }: OpenOptions): LocalStore {
  const sqlite = new Sqlite(path, { timeout: busyTimeoutMs })
  try {
    refuseByContent(path, sqlite)
    return storeOn(sqlite, secretKey)
  } catch (error) {
    sqlite.close()
    throw error
  }
}

/** Makes a store of an open handle, with the settings that every handle of this program has. */
export function storeOn(sqlite: Sqlite.Database, secretKey?: string): LocalStore {
  sqlite.pragma('journal_mode = WAL')
  sqlite.pragma('synchronous = FULL')
  sqlite.pragma('foreign_keys = ON')
  const close = (): void => closeHandle(sqlite)
  const writeAhead = sqlite.memory ? undefined : new WriteAheadLog(sqlite)
  return plainStore(sqlite, new LocalSecrets(sqlite, secretKey), close, writeAhead)
}

const plainStore = (
  sqlite: Sqlite.Database,
  secrets: LocalSecrets,
  close: () => void,
  writeAhead?: WriteAheadLog,
): LocalStore => ({
  sqlite,
  writeAhead,
  statements: new SqliteStatements(sqlite, writeAhead),
  db: new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) }),
  secrets,
  storage: new Storage(),
  close,
})

/** Statistics of tables with fewer rows are removed. */
const SMALL_TABLE_ROWS = 10_000

function closeHandle(sqlite: Sqlite.Database): void {
  if (!sqlite.open) return
  try {
    sqlite.pragma('optimize')
    // Statements are planned once: one that reads a small table whole would still do so when it has
    // grown.
    sqlite.exec(`DELETE FROM sqlite_stat1 WHERE CAST(stat AS INTEGER) < ${SMALL_TABLE_ROWS}`)
  } catch {
    // A full disk, or a lock of another process: the statistics stay unchanged.
  }
  sqlite.close()
}

/**
 * Reads the 100 bytes at the start of every SQLite file (sqlite.org/fileformat2.html §1.3), so that
 * a foreign file is rejected before SQLite can write to it.
 */
function refuseByHeader(path: string): void {
  if (!existsSync(path)) return
  if (!statSync(path).isFile()) throw new DatabaseRefused(`cannot use database ${path}: not a file`)
  const header = Buffer.alloc(100)
  const length = readStart(path, header)
  if (length === 0) return
  if (length < 100 || header.toString('latin1', 0, 16) !== 'SQLite format 3\0')
    throw new DatabaseRefused(`cannot use database ${path}: the file is not an SQLite database`)
  const version = header.readUInt32BE(60)
  if (version > 0 && header.readUInt32BE(68) !== APPLICATION_ID) throw unreleased(path)
  refuseNewer(path, version, newestVersion)
}

function readStart(path: string, into: Buffer): number {
  try {
    const file = openSync(path, 'r')
    try {
      return readSync(file, into, 0, into.length, 0)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseRefused(`cannot use database ${path}: ${reason}`)
  }
}

/** Files up to this size are checked for damage; checking a larger one would delay the start. */
const quickCheckLimitBytes = 64 * 1024 * 1024

function refuseByContent(path: string, sqlite: Sqlite.Database): void {
  const tables = sqlite.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'")
  const names = new Set(tables.pluck().all())
  if (names.size === 0) return
  if (!names.has('schema_migration'))
    throw new DatabaseRefused(`cannot use database ${path}: it belongs to another program`)
  if (statSync(path).size > quickCheckLimitBytes) return
  const verdict = String(sqlite.pragma('quick_check(1)', { simple: true }))
  if (verdict !== 'ok')
    throw new DatabaseRefused(`cannot use database ${path}: it is damaged (${firstLine(verdict)})`)
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

// ---- a database that must not be changed -------------------------------------------------

/**
 * Opens a database without changing any of its files, even after a crash: SQLite would checkpoint
 * its write-ahead log and remove it.
 *
 * @param isServed whether another process has it open: its log is live, and is read in place.
 * @throws {DatabaseRefused} the file is not a database, or newer than this program.
 */
export function openUnmodified(path: string, isServed: boolean): LocalStore {
  refuseByHeader(path)
  try {
    if (isServed) {
      const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
      return plainStore(
        sqlite,
        new LocalSecrets(sqlite, undefined, path),
        () => void sqlite.close(),
      )
    }
    return openCopy(realpathSync(path))
  } catch (error) {
    throw asRefusal(path, error)
  }
}

/**
 * Opens the file under another name with a copy of its log, so that SQLite changes only the copy.
 */
function openCopy(path: string): LocalStore {
  const { folder, file } = linkIn(dirname(path), path) ?? copyIn(path)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${file}-wal`)
    const sqlite = new Sqlite(file, { readonly: true, fileMustExist: true })
    const close = (): void => {
      sqlite.close()
      remove()
    }
    return plainStore(sqlite, new LocalSecrets(sqlite, undefined, path), close)
  } catch (error) {
    remove()
    throw error
  }
}

interface LinkedDatabase {
  readonly folder: string
  readonly file: string
}

/** Undefined when the folder is not writable, or its file system has no links. */
function linkIn(parent: string, path: string): LinkedDatabase | undefined {
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(parent, '.tollgate-check-'))
    const file = join(folder, 'database')
    linkSync(path, file)
    return { folder, file }
  } catch {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    return undefined
  }
}

function copyIn(path: string): LinkedDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-check-'))
  const file = join(folder, 'database')
  copyFileSync(path, file)
  return { folder, file }
}
