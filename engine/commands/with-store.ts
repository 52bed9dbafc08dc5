import { existsSync } from 'node:fs'
import { migrate, type MigrationReport } from '../../schema/migrations/migrate.ts'
import { newestVersion } from '../../schema/migrations/index.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import type { LocalStore, Store } from '../../schema/storage/store.ts'
import { openStore, readServer } from '../../schema/postgres/open.ts'
import { keyFileOf } from '../../schema/secrets/key.ts'
import { type Config, readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import { type CommandContext, WrongUsage } from './command.ts'

/** Whether a command works on a database that is there, or may make it. */
export type Presence = 'must exist' | 'may be made'

/**
 * Opens the database of the settings at this program's schema, and closes it after `work`.
 *
 * @throws {WrongUsage} there is none, and this command does not make one.
 */
export async function withStore<T>(
  context: CommandContext,
  work: (store: Store) => T | Promise<T>,
  presence: Presence,
): Promise<T> {
  const config = readConfig(context.environment)
  if (presence === 'must exist') await refuseAbsent(config)
  return config.databaseUrl === undefined
    ? withFile(config, context, work)
    : withServer(config.databaseUrl, config, context, work)
}

async function refuseAbsent({ databasePath, databaseUrl }: Config): Promise<void> {
  const advice =
    '"tollgate serve", "tollgate migrate" or "tollgate seed --create FILE.json" makes one'
  if (databaseUrl !== undefined) {
    const { name, version } = await readServer(databaseUrl, () => Promise.resolve(undefined))
    if (version === 0)
      throw new WrongUsage(`DATABASE_URL: ${name} is no database of Tollgate yet; ${advice}`)
  } else if (databasePath !== ':memory:' && !existsSync(databasePath))
    throw new WrongUsage(`DATABASE_PATH: there is no database ${databasePath}; ${advice}`)
}

async function withFile<T>(
  { databasePath, secretKey }: Config,
  context: CommandContext,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const store = openDatabase(databasePath, { secretKey, isNew: context.isNewDatabase })
  try {
    migrateUnserved(store, databasePath, context.now())
    store.secrets.protect()
    return await work(store)
  } finally {
    store.close()
  }
}

async function withServer<T>(
  url: string,
  { databasePath, secretKey }: Config,
  context: CommandContext,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const keyFile = keyFileOf(databasePath)
  const store = await openStore(url, { secretKey, keyFile, now: context.now(), connections: 2 })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/**
 * For a command that is about an SQLite file.
 *
 * @throws {WrongUsage} the database is on a server. @param instead what to do there.
 */
export function refuseServer(context: CommandContext, instead: string): void {
  if (readConfig(context.environment).databaseUrl !== undefined)
    throw new WrongUsage(`DATABASE_URL is set, and this command is for an SQLite file: ${instead}`)
}

/**
 * A migration may hold the write lock for long, and a serving process does not know the new schema.
 *
 * @throws {DatabaseRefused} something is to be migrated while the database is served.
 */
export function migrateUnserved(store: LocalStore, path: string, now: number): MigrationReport {
  const version = Number(store.sqlite.pragma('user_version', { simple: true }))
  if (version >= newestVersion) return migrate(store.sqlite, now)
  const lock = lockForServing(path)
  try {
    return migrate(store.sqlite, now)
  } finally {
    lock.release()
  }
}
