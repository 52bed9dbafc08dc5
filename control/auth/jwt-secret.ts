import { DatabaseRefused } from '../../schema/refusal.ts'
import type { Store } from '../../schema/open.ts'
import { execute, first, transaction } from '../../schema/sql/query.ts'

const NAME = 'jwt_secret'
const place = { table: 'setting', column: 'value', row: NAME } as const

/** Returns the configured secret, or one that is generated at the first start and stored in the database. */
export async function jwtSecret(
  store: Store,
  configured: string | undefined,
  randomBytes: (size: number) => Buffer,
): Promise<string> {
  if (configured !== undefined) return configured
  return transaction(store, async () => {
    const query = store.db.selectFrom('setting').select('value').where('name', '=', NAME)
    const kept = (await first(store, query))?.value
    if (kept !== undefined) return opened(store, kept)
    const value = randomBytes(48).toString('base64url')
    const row = { name: NAME, value: store.secrets.seal(place, value) }
    await execute(store, store.db.insertInto('setting').values(row))
    return value
  })
}

function opened(store: Store, kept: string): string {
  const value = store.secrets.open(place, kept)
  if (value === undefined)
    throw new DatabaseRefused(`cannot use the database: its ${NAME} is damaged`)
  return value
}
