/** What is read from the database for measurements: they answer, too, while it is away. */
import type Sqlite from 'better-sqlite3'
import type { Store } from '../../../schema/open.ts'
import type { MaybeLocal } from '../../../schema/sql/handle.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import type { TelemetryView } from './telemetry-view.ts'

type Figures = TelemetryView['database']

/** A server looks at each file of the database to know its size. */
const SIZE_KEPT_MS = 60_000

/** Returns a function that reads the size of the database. */
export function databaseFigures(
  { sqlite, statements }: Pick<Store, 'statements'> & MaybeLocal,
  now: () => number,
): () => Promise<Figures> {
  if (sqlite !== undefined) return async () => figuresOfFile(sqlite)
  const size = statements.prepare<{ readonly bytes: number }>(
    'SELECT pg_database_size(current_database()) AS bytes',
  )
  let read = { at: -Infinity, bytes: 0 }
  return async () => {
    if (now() - read.at >= SIZE_KEPT_MS)
      read = { at: now(), bytes: (await size.get([]))?.bytes ?? 0 }
    return { bytes: read.bytes, free_bytes: null }
  }
}

function figuresOfFile(sqlite: Sqlite.Database): Figures {
  const pragma = (name: string) => Number(sqlite.pragma(name, { simple: true }))
  const pageSize = pragma('page_size')
  return {
    bytes: pragma('page_count') * pageSize,
    free_bytes: pragma('freelist_count') * pageSize,
  }
}

/** Returns `read` with its last result while the database is away, and does not ask it while that is known. */
export function lastKnown<T>(
  { storage }: Pick<Store, 'storage'>,
  first: T,
  read: () => Promise<T>,
): () => Promise<T> {
  let known = first
  return async () => {
    try {
      if (storage.problem === undefined) known = await read()
    } catch (error) {
      if (!isUnstored(error)) throw error
    }
    return known
  }
}
