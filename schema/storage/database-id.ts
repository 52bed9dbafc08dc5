/** Which database this is: a random number that its migration has written. */
import type { LocalStore } from '../open.ts'

/** A copy of the file has the same. */
export const databaseId = ({ sqlite }: Pick<LocalStore, 'sqlite'>): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())
