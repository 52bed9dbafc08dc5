import { migrate, type MigrationReport } from '../../schema/migrate.ts'
import { newestVersion } from '../../schema/migrations/index.ts'
import { openDatabase, type LocalStore } from '../../schema/open.ts'
import { readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import type { World } from './command.ts'

/** Opens the database of the settings at this program's schema, and closes it after `work`. */
export async function withStore<T>(
  world: World,
  work: (store: LocalStore) => T | Promise<T>,
): Promise<T> {
  const { databasePath, secretKey } = readConfig(world.environment)
  const store = openDatabase(databasePath, { secretKey })
  try {
    migrateUnserved(store, databasePath, world.now())
    store.secrets.protect()
    return await work(store)
  } finally {
    store.close()
  }
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
