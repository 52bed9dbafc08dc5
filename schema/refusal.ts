/** The database file cannot be used. `message` is one line for the operator. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
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
