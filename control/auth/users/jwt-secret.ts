import type { Store } from '../../../schema/open.ts'
import { execute, first, transaction } from '../../../schema/query.ts'

const NAME = 'jwt_secret'

/** The configured secret, or one that is made at the first start and kept in the database. */
export function jwtSecret(
  store: Store,
  configured: string | undefined,
  randomBytes: (size: number) => Buffer,
): string {
  if (configured !== undefined) return configured
  return transaction(store, () => {
    const query = store.db.selectFrom('setting').select('value').where('name', '=', NAME)
    const kept = first(store, query)?.value
    if (kept !== undefined) return kept
    const value = randomBytes(48).toString('base64url')
    execute(store, store.db.insertInto('setting').values({ name: NAME, value }))
    return value
  })
}
