import { existsSync } from 'node:fs'
import { newSecret } from '../../control/webhooks/endpoint-store.ts'
import { migrate } from '../../schema/migrate.ts'
import { copyDatabase } from '../../schema/storage/copy.ts'
import { openDatabase, type LocalStore } from '../../schema/open.ts'
import { type GivenUp, giveUpSecrets } from '../../schema/secrets/lost-key.ts'
import { readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import { type Command, type CommandContext, WrongUsage } from './command.ts'
import { refuseServer } from './with-store.ts'

export const secretsReset: Command = {
  name: 'secrets reset',
  summary: 'Gives up the secrets whose key is lost, and says what has to be entered again.',
  details: () =>
    [
      'Carriers lose their passwords and webhook endpoints their secrets; both are switched off. All users',
      'have to log in again. The database is copied first: should the key be found, put the copy back.',
      'Nothing happens as long as the key at hand is right, or while the database is served.',
    ].join('\n'),
  run: async (_input, context) => {
    refuseServer(context, 'on PostgreSQL put the key back, or move the database to a file first')
    const { databasePath, secretKey } = readConfig(context.environment)
    if (!existsSync(databasePath)) throw new WrongUsage(`there is no database ${databasePath}`)
    const lock = lockForServing(databasePath)
    const store = openDatabase(databasePath, { secretKey })
    try {
      migrate(store.sqlite, context.now())
      await reset(store, databasePath, context)
      return 0
    } finally {
      store.close()
      lock.release()
    }
  },
}

async function reset(store: LocalStore, path: string, context: CommandContext): Promise<void> {
  const problem = store.secrets.problem()
  if (problem === undefined) {
    context.print(
      `the secrets of ${path} can be read with ${store.secrets.keptIn}; nothing changed`,
    )
    return
  }
  const time = new Date(context.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const copy = `${path}.lost-key-${time}`
  copyDatabase(store, copy)
  context.print(`the database is kept as ${copy}: it is of use should the key be found`)
  const given = await giveUpSecrets(store, () => newSecret(context.randomBytes), context.now())
  for (const line of toEnter(given)) context.print(line)
  context.print(
    `new secrets are encrypted with ${store.secrets.keptIn}: keep it, apart from backups`,
  )
}

/** One line for each thing to do. */
const toEnter = ({ carriers, endpoints }: GivenUp): string[] => [
  ...carriers.map(
    (name) => `carrier ${name}: is off; give it its auth with the password, and switch it on`,
  ),
  ...endpoints.map(
    ({ id, url }) =>
      `webhook ${id} (${url}): is off; rotate it, tell its receiver the new secret, and switch it on`,
  ),
  'users and customers: have to log in again',
]
