import { DAY_MS } from '../../schema/clock.ts'
import { statSync } from 'node:fs'
import { JOURNAL_OPEN } from '../../schema/journal/journal-entries.ts'
import { journalFiles } from '../../schema/journal/journal-file.ts'
import { migratePostgres, findDamage } from '../../schema/migrations/migrate.ts'
import { moveToServer } from '../../schema/postgres/move.ts'
import { nameOf, openStore, refusalOf } from '../../schema/postgres/open.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { DatabaseRefused } from '../../schema/sql/failure.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { keyFileOf } from '../../schema/secrets/key.ts'
import { readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import {
  type Command,
  type CommandContext,
  type ExitCode,
  newDatabase,
  WrongUsage,
} from './command.ts'
import { migrateUnserved } from './with-store.ts'

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'Updates the schema of the database. The command serve does it, too.',
  createsDatabase: 'always',
  options: {
    ...newDatabase,
    from: {
      value: 'FILE',
      meaning: 'copies this SQLite database to the empty PostgreSQL database DATABASE_URL',
    },
  },
  details: () =>
    [
      'With --from, one transaction copies all of FILE, or nothing; try again after a ' +
        'failure. FILE must have the schema of',
      'this program, and no process may serve it. Before the commit, the command compares ' +
        'the number of rows of every',
      'table and the sum of every amount. The spending of today still counts for daily ' +
        'limits. The key of the secrets',
      'stays the same.',
    ].join('\n'),
  run: async ({ options }, context) => {
    const { from } = options
    if (from !== undefined) return move(from, context)
    const { databaseUrl } = readConfig(context.environment)
    return databaseUrl === undefined ? migrateHere(context) : migrateServer(databaseUrl, context)
  },
}

function migrateHere(context: CommandContext): ExitCode {
  const { databasePath, secretKey } = readConfig(context.environment)
  const store = openDatabase(databasePath, { secretKey, isNew: context.isNewDatabase })
  try {
    const report = migrateUnserved(store, databasePath, context.now())
    for (const name of report.applied) context.print(`applied ${name}`)
    const encrypted = store.secrets.protect()
    if (encrypted > 0)
      context.print(`secrets encrypted: ${encrypted}; their key is ${store.secrets.keySource}`)
    const inClear = encrypted > 0 ? ', with those secrets in clear' : ''
    if (report.copy !== null) context.print(`the old database is kept as ${report.copy}${inClear}`)
    context.print(`${databasePath} has schema version ${report.to}`)
    return 0
  } finally {
    store.close()
  }
}

async function migrateServer(url: string, context: CommandContext): Promise<ExitCode> {
  const { databasePath, secretKey } = readConfig(context.environment)
  const keyFile = keyFileOf(databasePath)
  const store = await openStore(url, { secretKey, keyFile, now: context.now(), connections: 1 })
  for (const name of store.migrated.applied) context.print(`applied ${name}`)
  context.print(`${store.name} has schema version ${store.migrated.to}`)
  await store.close()
  return 0
}

async function move(path: string, context: CommandContext): Promise<ExitCode> {
  const url = context.environment['DATABASE_URL'] ?? ''
  if (!URL.canParse(url))
    throw new WrongUsage('set DATABASE_URL, such as postgres://user:password@host/database')
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    throw new WrongUsage(`there is no database ${path}`)
  const { secretKey } = readConfig(context.environment)
  const lock = lockForServing(path)
  try {
    const store = openDatabase(path, { secretKey })
    try {
      refuseUnready(store, path)
      store.secrets.protect()
      await moveStore(store, url, context)
      context.print(`the key of the secrets stays ${store.secrets.keySource}`)
      return 0
    } finally {
      store.close()
    }
  } finally {
    lock.release()
  }
}

/**
 * @throws {DatabaseRefused} it is of another version, damaged, or calls of it are not stored yet.
 */
function refuseUnready({ sqlite }: LocalStore, path: string): void {
  const [fault] = findDamage(sqlite)
  if (fault !== undefined) throw new DatabaseRefused(`cannot move database ${path}: ${fault}`)
  const marked = sqlite.prepare('SELECT 1 FROM setting WHERE name = ?').get(JOURNAL_OPEN)
  if (journalFiles(path).length > 0 || marked !== undefined)
    throw new DatabaseRefused(
      `cannot move database ${path}: its last process was killed; start Tollgate once on this ` +
        'database, and stop it',
    )
}

/** Copying takes as long as it takes. */
const MOVE_TIMEOUT_MS = DAY_MS

async function moveStore(
  { sqlite }: LocalStore,
  url: string,
  context: CommandContext,
): Promise<void> {
  const name = nameOf(url)
  const target = new PostgresStatements({
    url,
    connections: 1,
    statementTimeoutMs: MOVE_TIMEOUT_MS,
  })
  try {
    await migratePostgres(target, name, context.now())
    // One state of all tables: nothing else writes meanwhile.
    sqlite.exec('BEGIN IMMEDIATE')
    const report = await moveToServer(sqlite, target, name, context.now(), context.complain)
    for (const { table, rows } of report.tables)
      if (rows > 0) context.print(`${table}: ${rows} rows in both`)
    for (const { column, micros } of report.sums)
      context.print(`sum of ${column}: ${micros} micro-units in both`)
    if (report.alteredTexts > 0)
      context.print(`texts with a NUL, which is U+FFFD now: ${report.alteredTexts}`)
    context.print(`moved ${sqlite.name} to ${name}`)
  } catch (error) {
    throw refusalOf(name, error)
  } finally {
    if (sqlite.inTransaction) sqlite.exec('ROLLBACK')
    await target.close()
  }
}
