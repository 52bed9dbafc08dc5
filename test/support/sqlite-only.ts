/**
 * The tests that the projects `postgres` and `postgres-process` leave out, and why. A test is named
 * by `onSqlite(reason)`, a file here.
 */
export const sqliteReasons = {
  file: 'is about a database file',
  'no database': 'ends before a database is opened, or whatever the database is',
  handle: 'makes the handle of SQLite fail, as a full disk does',
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

/** Patterns of files to which the kind of the database makes no difference: they run on SQLite. */
export const sameOnPostgres: readonly string[] = [
  'test/control/{app,bodies.property,strangers}.test.ts',
  'test/control/{client,console,http}/**/*.test.ts',
  'test/control/agents/{hostile-names,toolbox}.test.ts',
  'test/control/agents/mcp/{own-pages,session}.test.ts',
  'test/control/auth/{client-address,escalation,own-password,scopes,session-cookie}.test.ts',
  'test/control/calls/{control,simulate,trace}-routes.test.ts',
  'test/control/instances/node-routes.test.ts',
  'test/control/observe/telemetry.test.ts',
  'test/control/observe/events/event-routes.test.ts',
  'test/control/resources/{ban-routes,gateway-reach,media-fields,own-places,refused}.test.ts',
  'test/engine/charging/{accounting-events,clock-jumps}.test.ts',
  'test/engine/charging/authorization/saved-grant.test.ts',
  'test/engine/charging/pricing/rates.test.ts',
]
