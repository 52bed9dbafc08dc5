/**
 * The reasons of failed statements, the same for every database, and of databases that are not
 * used.
 */

export type Failure =
  /** Another row has the same values in a unique index. */
  | { readonly kind: 'unique'; readonly unique: Unique }
  /** The row is still referenced, or refers to none. */
  | { readonly kind: 'reference' }
  /** A value that no row may have. */
  | { readonly kind: 'check' }
  /** Others changed what the transaction has read: it may be run again. */
  | { readonly kind: 'conflict' }
  /** Another process holds the write lock. */
  | { readonly kind: 'locked' }
  /** Nothing can be written now: a full disk, a database that is read-only. */
  | { readonly kind: 'unwritable' }
  /** The database server does not answer. Whether a COMMIT took place is unknown. */
  | { readonly kind: 'unavailable' }

/** The name of an index on expressions; the columns of any other index as `table.column`. */
export type Unique =
  { readonly index: string } | { readonly columns: readonly [string, ...(readonly string[])] }

/** The connection to the database server was refused, timed out or broke. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
}

/**
 * A file that the URL names, such as the CA of `sslrootcert`. The missing socket of a server that
 * is down is not such a file.
 */
export const isUnreadableFile = (error: unknown): boolean =>
  error instanceof Error && 'syscall' in error && error.syscall === 'open'

/**
 * Undefined for errors that do not come from the database, and for those that a caller cannot act
 * on.
 */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof DatabaseUnavailable) return { kind: 'unavailable' }
  const code = codeOf(error)
  if (!(error instanceof Error) || code === '') return undefined
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return { kind: 'unique', unique: uniqueOfSqlite(error.message) }
  if (code === '23505') return { kind: 'unique', unique: uniqueOfPostgres(error) }
  const match = kinds.find(([pattern]) => pattern.test(code))
  return match && { kind: match[1] }
}

/** The server ended the statement: it took longer than a statement may. */
export const isTimedOut = (error: unknown): boolean => codeOf(error) === '57014'

/** The disk has failed under an SQLite file; a full one has not. */
export const isDiskFailure = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_IOERR')

/**
 * The name of an SQLite error, such as `SQLITE_FULL`, or the five characters of PostgreSQL; empty
 * for other errors.
 */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''

/** PostgreSQL's are those of its appendix A. */
const kinds: readonly (readonly [RegExp, Exclude<Failure['kind'], 'unique'>])[] = [
  [/^SQLITE_CONSTRAINT_FOREIGNKEY$|^2350[13]$/, 'reference'],
  // 22: such as a text with a NUL, which PostgreSQL does not store.
  [/^SQLITE_CONSTRAINT|^2[23]/, 'check'],
  [/^40001$|^40P01$/, 'conflict'],
  [/^SQLITE_(?:BUSY|LOCKED)|^55P03$/, 'locked'],
  [/^SQLITE_(?:FULL|IOERR|READONLY|CANTOPEN)|^25006$|^53[12]|^58030$/, 'unwritable'],
  [/^08|^53|^57/, 'unavailable'],
]

/** `UNIQUE constraint failed: carrier.name`, or `… index 'rate_identity'`. */
function uniqueOfSqlite(message: string): Unique {
  const [, target = ''] = /constraint failed: (.*)$/.exec(message) ?? []
  const [, index] = /^index '(.*)'$/.exec(target) ?? []
  return index === undefined ? { columns: columnsIn(target) } : { index }
}

/** `Key (name)=(x) already exists.`, in whatever language the server speaks. */
function uniqueOfPostgres(error: Error & PostgresFields): Unique {
  const { table = '', constraint = '', detail = '' } = error
  const [, keys = ''] = /\((.*?)\)=\(/.exec(detail) ?? []
  if (keys === '' || keys.includes('(')) return { index: constraint }
  return { columns: columnsIn(keys, `${table}.`) }
}

interface PostgresFields {
  readonly table?: string | undefined
  readonly constraint?: string | undefined
  readonly detail?: string | undefined
}

function columnsIn(names: string, prefix = ''): [string, ...string[]] {
  const [first = '', ...more] = names.split(', ').map((name) => `${prefix}${name}`)
  return [first, ...more]
}

// ---- databases that are not used ---------------------------------------------------------

/** The database file cannot be used. `message` is one line for the operator. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}

/**
 * SQLite's `application_id` of a database of this program: "toll". Unreleased versions wrote none.
 */
export const APPLICATION_ID = 0x74_6f_6c_6c

export const unreleased = (database: string): DatabaseRefused =>
  new DatabaseRefused(
    `cannot use database ${database}: it was made by an unreleased version of Tollgate; ` +
      'move it away and start again, or keep using the version that made it',
  )

/** @param version the number of the newest migration in the database. */
export function refuseNewer(database: string, version: number, known: number): void {
  if (version <= known) return
  throw new DatabaseRefused(
    `cannot use database ${database}: it has schema version ${version}, this program knows ` +
      `up to ${known}; use a newer Tollgate`,
  )
}

const unusable = new Set([
  'SQLITE_CORRUPT',
  'SQLITE_NOTADB',
  'SQLITE_CANTOPEN',
  'SQLITE_READONLY',
  // The file system gives these while the file is created.
  'ENOENT',
  'ENOTDIR',
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOSPC',
])

/** Maps SQLite's errors about a file to a `DatabaseRefused`; returns any other error unchanged. */
export function asRefusal(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error
  const code = String(error.code)
  const family = code.split('_').slice(0, 2).join('_')
  if (!unusable.has(family)) return error
  return new DatabaseRefused(`cannot use database ${path}: ${error.message} (${code})`)
}
