/**
 * Makes a consistent copy of a database, which gets its name only when it is complete and on the
 * disk.
 */
import { closeSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import Sqlite from 'better-sqlite3'
import { JOURNAL_OPEN } from '../journal/journal-entries.ts'
import type { LocalStore } from '../storage/store.ts'
import { sync } from '../storage/sync.ts'

/** An interrupted copy never looks complete. Writers continue meanwhile. */
export function copyDatabase({ sqlite }: { readonly sqlite: Sqlite.Database }, file: string): void {
  const unfinished = `${file}.unfinished`
  rmSync(unfinished, { force: true })
  // Readable by its owner only, like the database. SQLite writes into an empty file and keeps its
  // mode.
  closeSync(openSync(unfinished, 'wx', 0o600))
  try {
    // Unlike SQLite's online backup, this does not restart when another process writes.
    sqlite.prepare('VACUUM INTO ?').run(unfinished)
    forgetJournal(unfinished)
    sync(unfinished)
    renameSync(unfinished, file)
    sync(dirname(file))
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
}

/** A copy has no journal files, so it must not have the mark of the journal either. */
function forgetJournal(file: string): void {
  const copy = new Sqlite(file)
  try {
    const isEmpty = copy.pragma('user_version', { simple: true }) === 0
    if (!isEmpty) copy.prepare('DELETE FROM setting WHERE name = ?').run(JOURNAL_OPEN)
  } finally {
    copy.close()
  }
}

/** A time in the name of a file, such as `20261122T093000Z`. @param now milliseconds UTC. */
export const timeName = (now: number): string =>
  new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')

/**
 * Saves a database whose file was removed or replaced while it was open: writes the data of the
 * handle to a new file next to the old one and returns its path. Call it before the handle is
 * closed: closing loses the data.
 */
export function saveLostDatabase(store: LocalStore, now: number): string {
  const path = `${store.sqlite.name}.saved-${timeName(now)}`
  copyDatabase(store, path)
  return path
}
