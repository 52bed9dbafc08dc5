/**
 * What the project `postgres` leaves out of the control API's tests, and why. A test is named by
 * `onSqlite(reason)`, a file here.
 */
export const sqliteReasons = {
  file: 'is about a database file',
  handle: 'makes the handle of SQLite fail, as a full disk does',
  'query plan': 'reads query plans of SQLite',
} as const

/** Paths. */
export const sqliteFiles: Readonly<Record<string, string>> = {
  'test/control/lists.test.ts': sqliteReasons['query plan'],
  'test/control/secrets.test.ts': sqliteReasons.file,
  'test/control/storage.test.ts': sqliteReasons.handle,
}
