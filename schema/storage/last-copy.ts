/** What becomes of a database whose file was removed or replaced while it was open. */
import type { Store } from '../open.ts'
import { copyDatabase, timeName } from './copy.ts'

/**
 * Writes what the handle still has into a new file beside the old one, and answers its path. To be called
 * before the handle is closed: after that it is gone.
 */
export function copyOfLost(store: Store, now: number): string {
  const path = `${store.sqlite.name}.rescued-${timeName(now)}`
  copyDatabase(store, path)
  return path
}
