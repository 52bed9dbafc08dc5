/** The database of a test of the control API: SQLite, or PostgreSQL with TEST_DATABASE=postgres. */
import type { Store } from '../../schema/storage/store.ts'
import type Sqlite from 'better-sqlite3'
import { emptyStore } from './empty-store.ts'
import { isOnPostgres } from './on-sqlite.ts'
import { takeServerStore } from './reused-database.ts'
import { turnOfEventLoop } from './waiting.ts'

export interface TestStore extends Store {
  readonly sqlite?: Sqlite.Database
  /** The URL of a database on a server. */
  readonly url?: string
  /** Resolves once no statement runs, and none follows. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** Those on a server, in the order in which they were opened. */
export const openedStores: TestStore[] = []

/** An empty database with this program's schema; a file at `path` is one of SQLite. */
export async function openTestStore(now: number, path?: string): Promise<TestStore> {
  if (isOnPostgres && path === undefined) return onServer()
  const store = emptyStore(now, path)
  return { ...store, settled: turnOfEventLoop, close: async () => store.close() }
}

async function onServer(): Promise<TestStore> {
  const taken = await takeServerStore()
  let closed: Promise<void> | undefined
  const store = { ...taken, close: () => (closed ??= taken.close()) }
  openedStores.push(store)
  return store
}
