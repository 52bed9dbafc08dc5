import { existsSync } from 'node:fs'
import { newSecret } from '../../schema/secrets/webhook-signature.ts'
import { migrate } from '../../schema/migrations/migrate.ts'
import { copyDatabase } from '../../schema/sqlite/copy.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import type { LocalStore, Store } from '../../schema/storage/store.ts'
import { readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import { type Command, type CommandContext, WrongUsage } from './command.ts'
import { refuseServer } from './with-store.ts'
import { sql, type SqlBool } from 'kysely'
import { all, execute, transaction } from '../../schema/sql/query.ts'
import { KEY_MARK } from '../../schema/secrets/key.ts'
import { sealedPrefix } from '../../schema/secrets/secret-box.ts'

export const secretsReset: Command = {
  name: 'secrets reset',
  summary: 'Deletes the secrets whose key is lost, and lists what to enter again.',
  details: () =>
    [
      'Carriers lose their passwords, and webhook endpoints their secrets. The command ' +
        'switches both off, and ends all',
      'sessions. It copies the database first: restore the copy when you find the key. It ' +
        'refuses when the present key is',
      'right, and while the database is served.',
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
      `the secrets of ${path} can be read with ${store.secrets.keySource}; nothing changed`,
    )
    return
  }
  const time = new Date(context.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const copy = `${path}.lost-key-${time}`
  copyDatabase(store, copy)
  context.print(`the database is kept as ${copy}: restore it if you find the key`)
  const given = await giveUpSecrets(store, () => newSecret(context.randomBytes), context.now())
  for (const line of toEnter(given)) context.print(line)
  context.print(
    `new secrets are encrypted with ${store.secrets.keySource}: keep it, apart from backups`,
  )
}

/** One line for each thing to do. */
const toEnter = (removed: RemovedSecrets): string[] => [
  ...removed.carriers.map(
    (name) => `carrier ${name}: is off; give it its auth with the password, and switch it on`,
  ),
  ...removed.endpoints.map(
    ({ id, url }) =>
      `webhook ${id} (${url}): is off; rotate it, tell its receiver the new secret, and switch ` +
      'it on',
  ),
  ...removed.routingWebhooks.map(
    ({ id, url }) =>
      `routing webhook ${id} (${url}): is off; rotate it, tell its receiver the new secret, and ` +
      'switch it on',
  ),
  ...removed.stirKeys.map(
    (name) => `STIR key ${name}: is off; give it its private key, and switch it on`,
  ),
  ...removed.providers.map(
    (name) => `identity provider ${name}: is off; give it its client secret, and switch it on`,
  ),
  ...removed.secondFactors.map(
    (name) => `user ${name}: has no second factor any more; it has to be set up again`,
  ),
  ...removed.alertChannels.map(
    (name) => `alert channel ${name}: is off; give it its secret, and switch it on`,
  ),
  'users and customers: have to log in again',
]

/** Secrets that must be entered again. */
interface RemovedSecrets {
  /** Their names. They have no password any more and are deactivated. */
  readonly carriers: readonly string[]
  /** Their secret is unknown; they are deactivated. */
  readonly endpoints: readonly { readonly id: number; readonly url: string }[]
  /** The same holds for them. */
  readonly routingWebhooks: readonly { readonly id: number; readonly url: string }[]
  /** Names of keys that sign calls. They are empty and deactivated. */
  readonly stirKeys: readonly string[]
  /** Names of identity providers. They have no client secret any more and are deactivated. */
  readonly providers: readonly string[]
  /** Names of users who had a second factor. */
  readonly secondFactors: readonly string[]
  /** Names of alert channels that had a secret. They are deactivated. */
  readonly alertChannels: readonly string[]
}

/**
 * Removes the encrypted texts from the database and uses the current key, or a new one. Users must
 * log in again. All or nothing. No other process may have the database open, because it has the old
 * key.
 *
 * @param newSecret for each webhook; its own, until it is rotated.
 * @param now milliseconds UTC.
 * @throws {DatabaseRefused} there is a key, but it is malformed.
 */
function giveUpSecrets(
  store: Store,
  newSecret: () => string,
  now: number,
): Promise<RemovedSecrets> {
  return transaction(store, async () => {
    const { db, secrets } = store
    await execute(store, db.deleteFrom('setting').where('name', 'in', [KEY_MARK, 'jwt_secret']))
    const length = sql.lit(sealedPrefix.length)
    const isSealed = sql<SqlBool>`substr(auth_password, 1, ${length}) = ${sealedPrefix}`
    const carriers = await all(
      store,
      db.selectFrom('carrier').select(['id', 'name']).where(isSealed).orderBy('name'),
    )
    const off = { is_active: 0, updated_at: now } as const
    const withoutPassword = db.updateTable('carrier').set({ ...off, auth_password: null })
    await execute(store, withoutPassword.where(isSealed))
    const endpoints = await all(
      store,
      db.selectFrom('webhook_endpoint').select(['id', 'url', 'removed_at']).orderBy('id'),
    )
    for (const { id } of endpoints) {
      const place = { table: 'webhook_endpoint', column: 'secret', row: id }
      const renewed = {
        ...off,
        secret: secrets.seal(place, newSecret()),
        previous_secret: null,
        previous_secret_expires_at: null,
      }
      await execute(store, db.updateTable('webhook_endpoint').set(renewed).where('id', '=', id))
    }
    const routingWebhooks = await all(
      store,
      db.selectFrom('routing_webhook').select(['id', 'url']).orderBy('id'),
    )
    for (const { id } of routingWebhooks) {
      const renewed = {
        is_enabled: 0,
        secret: secrets.seal({ table: 'routing_webhook', column: 'secret', row: id }, newSecret()),
        previous_secret: null,
        previous_secret_expires_at: null,
        updated_at: now,
      } as const
      await execute(store, db.updateTable('routing_webhook').set(renewed).where('id', '=', id))
    }
    return {
      routingWebhooks,
      stirKeys: await giveUpStirKeys(store, now),
      providers: await giveUpProviders(store, now),
      secondFactors: await giveUpSecondFactors(store),
      alertChannels: await giveUpAlertChannels(store, now),
      carriers: carriers.map(({ name }) => name),
      endpoints: endpoints.filter((each) => each.removed_at === null),
    }
  })
}

async function giveUpStirKeys(store: Store, now: number): Promise<readonly string[]> {
  const { db, secrets } = store
  const keys = await all(store, db.selectFrom('stir_key').select(['id', 'name']).orderBy('name'))
  for (const { id } of keys) {
    const place = { table: 'stir_key', column: 'private_key', row: id }
    const emptied = { is_active: 0, private_key: secrets.seal(place, ''), updated_at: now } as const
    await execute(store, db.updateTable('stir_key').set(emptied).where('id', '=', id))
  }
  return keys.map(({ name }) => name)
}

async function giveUpProviders(store: Store, now: number): Promise<readonly string[]> {
  const { db } = store
  const known = db.selectFrom('identity_provider').select('name').orderBy('name')
  const withSecret = known.where('client_secret', 'is not', null)
  const names = (await all(store, withSecret)).map(({ name }) => name)
  const off = { is_enabled: 0, client_secret: null, updated_at: now } as const
  const update = db.updateTable('identity_provider').set(off)
  await execute(store, update.where('client_secret', 'is not', null))
  return names
}

async function giveUpSecondFactors(store: Store): Promise<readonly string[]> {
  const { db } = store
  const query = db
    .selectFrom('user_second_factor')
    .innerJoin('user', 'user.id', 'user_second_factor.user_id')
    .select('username')
    .orderBy('username')
  const names = (await all(store, query)).map(({ username }) => username)
  await execute(store, db.deleteFrom('user_second_factor'))
  await execute(store, db.deleteFrom('user_recovery_code'))
  return names
}

async function giveUpAlertChannels(store: Store, now: number): Promise<readonly string[]> {
  const { db } = store
  const withSecret = db.selectFrom('alert_channel').select(['id', 'name']).orderBy('name')
  const channels = await all(store, withSecret.where('secret', 'is not', null))
  const emptied = { is_enabled: 0, secret: null, updated_at: now } as const
  const query = db.updateTable('alert_channel').set(emptied).where('secret', 'is not', null)
  await execute(store, query)
  return channels.map(({ name }) => name)
}
