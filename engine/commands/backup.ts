import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { readConfig } from '../config.ts'
import { openDatabase, type Store } from '../../schema/open.ts'
import { type Command, WrongUsage } from './command.ts'

export const backup: Command = {
  name: 'backup',
  argument: 'FILE',
  summary: 'Writes a consistent copy of the database to a new file, also while it is in use.',
  run: async ({ argument: file }, world) => {
    const { databasePath, secretKey } = readConfig(world.environment)
    if (!existsSync(databasePath)) throw new WrongUsage(`there is no database ${databasePath}`)
    if (existsSync(file)) throw new WrongUsage(`${file} exists; a backup is never written over`)
    const store = openDatabase(databasePath, { secretKey })
    try {
      copyDatabase(store, file)
      world.print(`${databasePath} is copied to ${file}`)
      world.print(
        `the key of the secrets in it is not: ${store.secrets.keptIn}; keep it too, apart from the copy`,
      )
    } finally {
      store.close()
    }
    return 0
  },
}

/** The file gets its name when it is whole, so an interrupted copy is never taken for a backup. */
export function copyDatabase(store: Store, file: string): void {
  const unfinished = `${file}.unfinished`
  rmSync(unfinished, { force: true })
  // For its owner alone, like the database. SQLite writes into an empty file, and keeps its mode.
  closeSync(openSync(unfinished, 'wx', 0o600))
  try {
    // Unlike SQLite's online backup, this needs no restart when another process writes meanwhile.
    store.sqlite.prepare('VACUUM INTO ?').run(unfinished)
    renameSync(unfinished, file)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
}
