/** Resets a database whose key is lost: it becomes usable again, without the unreadable secrets. */
import { sql, type SqlBool } from 'kysely'
import type { Store } from '../open.ts'
import { all, execute, transaction } from '../sql/query.ts'
import { sealedPrefix } from './secret-box.ts'
import { KEY_MARK } from './key.ts'

/** What must be entered again. */
export interface GivenUp {
  /** Their names. They have no password any more and are deactivated. */
  readonly carriers: readonly string[]
  /** Their secret is unknown; they are deactivated. */
  readonly endpoints: readonly { readonly id: number; readonly url: string }[]
}

/**
 * Removes the encrypted texts from the database and uses the current key, or a new one. Users must log in
 * again. All or nothing. No other process may have the database open, because it has the old key.
 *
 * @param newSecret for each webhook endpoint; its own, until it is rotated.
 * @param now milliseconds UTC.
 * @throws {DatabaseRefused} there is a key, but it is malformed.
 */
export function giveUpSecrets(
  store: Store,
  newSecret: () => string,
  now: number,
): Promise<GivenUp> {
  return transaction(store, async () => {
    const { db, secrets } = store
    await execute(store, db.deleteFrom('setting').where('name', 'in', [KEY_MARK, 'jwt_secret']))
    const isSealed = sql<SqlBool>`substr(auth_password, 1, ${sql.lit(sealedPrefix.length)}) = ${sealedPrefix}`
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
    return {
      carriers: carriers.map(({ name }) => name),
      endpoints: endpoints.filter((each) => each.removed_at === null),
    }
  })
}
