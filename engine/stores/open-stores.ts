/** The one place that chooses between an SQLite file and a PostgreSQL server. */
import { closeFolderOf } from '../../schema/sqlite/open.ts'
import { settings } from '../settings.ts'
import { openFile } from './file-stores.ts'
import { openServer } from './server-stores.ts'
import type { Stores, StoresDeps } from './stores.ts'

/**
 * @throws {DatabaseRefused} the database cannot be used, or another process serves it as this
 * instance.
 */
export function openStores(deps: StoresDeps): Promise<Stores> {
  const { databasePath, databaseUrl } = deps.config
  const isOwn = databasePath === settings.databasePath.whenUnset
  const warning = databasePath === ':memory:' ? undefined : closeFolderOf(databasePath, isOwn)
  if (warning !== undefined) deps.log('warn', warning)
  return databaseUrl === undefined ? openFile(deps) : openServer(databaseUrl, deps)
}
