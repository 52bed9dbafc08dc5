import { migrate } from '../../schema/migrate.ts'
import { openDatabase, type LocalStore } from '../../schema/open.ts'

/** A migrated database in memory. */
export function emptyStore(): LocalStore {
  const store = openDatabase(':memory:')
  migrate(store.sqlite, 0)
  return store
}
