/**
 * What the projects `postgres` and `postgres-process` leave out, and why. A test is named by `onSqlite(reason)`, a file
 * here.
 */
export const sqliteReasons = {
  file: 'is about a database file',
  'no database': 'ends before a database is opened, or whatever the database is',
  handle: 'makes the handle of SQLite fail, as a full disk does',
  upgrade:
    'is about the two processes of an upgrade on a file; on a server each has its shares (shared-money.test.ts)',
  elsewhere:
    'has its SIP server in another process, which is refused beside a database on a server',
  'query plan': 'reads query plans of SQLite',
  'one process':
    'expects limits or the clock of one process; on a server limits are granted in shares, by its clock (shared-window.test.ts)',
} as const

/** Paths. */
export const sqliteFiles: Readonly<Record<string, string>> = {
  'test/control/auth/rate-limit.test.ts': sqliteReasons['one process'],
  'test/control/lists.test.ts': sqliteReasons['query plan'],
  'test/control/secrets.test.ts': sqliteReasons.file,
  'test/control/storage.test.ts': sqliteReasons.handle,
}
