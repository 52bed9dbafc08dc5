/** Saves a database whose file was removed or replaced while it was open. */
import type { LocalStore } from '../open.ts'
import { copyDatabase, timeName } from './copy.ts'

/**
 * Writes the data of the handle to a new file next to the old one and returns its path. Call it before the
 * handle is closed: closing loses the data.
 */
export function saveLostDatabase(store: LocalStore, now: number): string {
  const path = `${store.sqlite.name}.saved-${timeName(now)}`
  copyDatabase(store, path)
  return path
}
