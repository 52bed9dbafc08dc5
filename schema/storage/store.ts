/** An open database as the engine and the API use it. */
import type Sqlite from 'better-sqlite3'
import type { LocalSecrets } from '../secrets/local-secrets.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Tables } from '../sql/query.ts'
import type { WriteAheadLog } from '../sql/write-ahead-log.ts'
import type { Storage } from './storage.ts'

/** A database of either kind. */
export interface Store extends Tables {
  /** Encrypts the texts that must not be stored in clear. */
  readonly secrets: Secrets
  /** Whether writes succeed. */
  readonly storage: Storage
}

/** An SQLite database in this process. */
export interface LocalStore extends Store {
  /** The only handle of the process. */
  readonly sqlite: Sqlite.Database
  /** Undefined: the database is in memory, or only read. */
  readonly writeAhead: WriteAheadLog | undefined
  readonly secrets: LocalSecrets
  close(): void
}

/** A store with the SQLite handle, if it has one. */
export type MaybeLocal = Pick<Store, 'statements'> & Partial<Pick<LocalStore, 'sqlite'>>
