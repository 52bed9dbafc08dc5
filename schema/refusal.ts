/** The database file cannot be used. `message` is one line for the operator. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}

/** SQLite's `application_id` of a database of this program: "toll". Unreleased versions wrote none. */
export const APPLICATION_ID = 0x74_6f_6c_6c

export const unreleased = (database: string): DatabaseRefused =>
  new DatabaseRefused(
    `cannot use database ${database}: it was made by an unreleased version of Tollgate; move it away and start again, or keep using the version that made it`,
  )

/** @param version the number of the newest migration in the database. */
export function refuseNewer(database: string, version: number, known: number): void {
  if (version <= known) return
  throw new DatabaseRefused(
    `cannot use database ${database}: it has schema version ${version}, this program knows up to ${known}; use a newer Tollgate`,
  )
}

const unusable = new Set([
  'SQLITE_CORRUPT',
  'SQLITE_NOTADB',
  'SQLITE_CANTOPEN',
  'SQLITE_READONLY',
  // From the file system, while creating the file.
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
