import { existsSync } from 'node:fs'
import { readConfig } from '../config.ts'
import { copyDatabase } from '../../schema/storage/copy.ts'
import { openDatabase } from '../../schema/open.ts'
import { type Command, WrongUsage } from './command.ts'
import { refuseServer } from './with-store.ts'

export const backup: Command = {
  name: 'backup',
  argument: 'FILE',
  summary: 'Writes a consistent copy of the database to a new file, also while it is in use.',
  run: async ({ argument: file }, world) => {
    refuseServer(world, 'copy a PostgreSQL database with pg_dump')
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
