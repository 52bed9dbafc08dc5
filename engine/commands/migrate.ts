import { readConfig } from '../config.ts'
import { openDatabase } from '../../schema/open.ts'
import type { Command } from './command.ts'
import { migrateUnserved } from './with-store.ts'

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'Brings the database to the schema of this program; serve does it too.',
  createsDatabase: true,
  run: async (_input, world) => {
    const { databasePath, secretKey } = readConfig(world.environment)
    const store = openDatabase(databasePath, { secretKey })
    try {
      const report = migrateUnserved(store, databasePath, world.now())
      for (const name of report.applied) world.print(`applied ${name}`)
      const encrypted = store.secrets.protect()
      if (encrypted > 0)
        world.print(`secrets encrypted: ${encrypted}; their key is ${store.secrets.keptIn}`)
      const inClear = encrypted > 0 ? ', with those secrets in clear' : ''
      if (report.copy !== null) world.print(`the old database is kept as ${report.copy}${inClear}`)
      world.print(`${databasePath} has schema version ${report.to}`)
      return 0
    } finally {
      store.close()
    }
  },
}
