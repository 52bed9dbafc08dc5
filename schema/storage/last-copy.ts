/** What becomes of a database whose file was removed or replaced while it was open. */
import { closeSync, openSync } from 'node:fs'
import type { Store } from '../open.ts'

/**
 * Writes what the handle still has into a new file beside the old one, and answers its path. To be called
 * before the handle is closed: after that it is gone.
 */
export function copyOfLost({ sqlite }: Store, now: number): string {
  const time = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const path = `${sqlite.name}.rescued-${time}`
  // For its owner alone, like the database. SQLite writes into an empty file, and keeps its mode.
  closeSync(openSync(path, 'wx', 0o600))
  sqlite.prepare('VACUUM INTO ?').run(path)
  return path
}
