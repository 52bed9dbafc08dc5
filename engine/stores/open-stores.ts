/** The one place that chooses between an SQLite file and a PostgreSQL server. */
import { openFile } from './file-stores.ts'
import { openServer } from './server-stores.ts'
import type { Stores, StoresDeps } from './stores.ts'

/** @throws {DatabaseRefused} the database cannot be used, or another process serves it as this node. */
export const openStores = (deps: StoresDeps): Promise<Stores> =>
  deps.config.databaseUrl === undefined ? openFile(deps) : openServer(deps.config.databaseUrl, deps)
