/** Which database this is: a random number that its migration has written. */
import type { LocalStore, Store } from '../open.ts'
import { first } from '../sql/query.ts'

/** A copy of the file has the same. */
export const databaseId = ({ sqlite }: Pick<LocalStore, 'sqlite'>): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())

/** The same of any. */
export async function databaseIdOf(store: Pick<Store, 'statements' | 'db'>): Promise<string> {
  const query = store.db.selectFrom('setting').select('value').where('name', '=', 'database_id')
  return (await first(store, query))?.value ?? ''
}
