/**
 * Databases with this program's schema and nothing in them: migrated once in a worker, copied for
 * each test.
 */
import { existsSync, writeFileSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { migrate } from '../../schema/migrations/migrate.ts'
import { openDatabase, storeOn } from '../../schema/sqlite/open.ts'
import type { LocalStore } from '../../schema/storage/store.ts'

/**
 * A store in memory, or in a file at `path`, as `migrate` would make it at `now`. A file that is
 * there is opened as it is.
 */
export function emptyStore(now = 0, path = ':memory:'): LocalStore {
  if (existsSync(path)) return openDatabase(path)
  image ??= migratedImage()
  const store = path === ':memory:' ? storeOn(new Sqlite(image)) : openCopy(path, image)
  store.sqlite.prepare('UPDATE schema_migration SET applied_at = ?').run(now)
  // No two databases have the same one.
  store.sqlite.exec(
    "UPDATE setting SET value = lower(hex(randomblob(16))) WHERE name = 'database_id'",
  )
  return store
}

/** A migration takes 60 ms of a core, a copy of what it made 2 ms. */
let image: Buffer | undefined

function migratedImage(): Buffer {
  const { sqlite, close } = openDatabase(':memory:')
  migrate(sqlite, 0)
  const bytes = sqlite.serialize()
  close()
  return bytes
}

function openCopy(path: string, bytes: Buffer): LocalStore {
  writeFileSync(path, bytes, { mode: 0o600 })
  return openDatabase(path)
}
