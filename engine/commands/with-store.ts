import { migrate } from '../../schema/migrate.ts'
import { openDatabase, type Store } from '../../schema/open.ts'
import { readConfig } from '../config.ts'
import type { World } from './command.ts'

/** Opens the database of the settings at this program's schema, and closes it after `work`. */
export async function withStore<T>(
  world: World,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const store = openDatabase(readConfig(world.environment).databasePath)
  try {
    migrate(store.sqlite, world.now())
    return await work(store)
  } finally {
    store.close()
  }
}
