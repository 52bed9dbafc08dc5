import { migrate } from '../../schema/migrate.ts'
import { openDatabase, type Store } from '../../schema/open.ts'
import { readConfig } from '../config.ts'
import type { World } from './command.ts'

/** Opens the database of the settings at this program's schema, and closes it after `work`. */
export async function withStore<T>(
  world: World,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const { databasePath, secretKey } = readConfig(world.environment)
  const store = openDatabase(databasePath, { secretKey })
  try {
    migrate(store.sqlite, world.now())
    store.secrets.protect()
    return await work(store)
  } finally {
    store.close()
  }
}
