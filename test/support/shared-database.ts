/** A database on a server that several processes share: each `open` is one of them. */
import { onTestFinished } from 'vitest'
import type { Store } from '../../schema/storage/store.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import { migrate } from '../../schema/migrations/migrate.ts'
import { openStore, type ServerStore } from '../../schema/postgres/open.ts'
import { freshDatabase, hasPostgres } from './postgres.ts'
import { watched } from './watched-statements.ts'

const secretKey = Buffer.alloc(32, 7).toString('base64')

export async function sharedDatabase(): Promise<{
  readonly url: string
  readonly open: () => Promise<ServerStore>
}> {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  return {
    url,
    async open() {
      const store = await openStore(url, { now: 0, connections: 4, secretKey, keyFile: '/none' })
      onTestFinished(() => store.close())
      return store
    },
  }
}

/** An empty SQLite database in memory. */
export function localDatabase() {
  const store = openDatabase(':memory:')
  migrate(store.sqlite, 0)
  onTestFinished(() => store.close())
  return store
}

/** The stores that a test of both databases is run with: a fresh store of each kind. */
export const eachDatabase: readonly {
  readonly database: string
  readonly open: () => Promise<Store>
}[] = [
  { database: 'SQLite', open: async () => localDatabase() },
  ...(hasPostgres
    ? [{ database: 'PostgreSQL', open: async () => (await sharedDatabase()).open() }]
    : []),
]

/**
 * A process that ManualTime moves: `settled` resolves once no statement of it runs, and none
 * follows.
 */
export function settling<S extends Store>(
  store: S,
): { readonly store: S; readonly settled: () => Promise<void> } {
  const { statements, settled } = watched(store.statements)
  return { store: { ...store, statements }, settled }
}
