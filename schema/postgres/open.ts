/** Opens a database on a PostgreSQL server, at this program's schema. */
import { HOUR_MS } from '../clock.ts'
import {
  DummyDriver,
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  replaceWithNoncontingentExpression,
} from 'kysely'
import pg from 'pg'
import type { Database } from '../tables/database.ts'
import { type Migration, migrations, newestVersion } from '../migrations/index.ts'
import { servingInstances } from '../instances/instance-registry.ts'
import type { Tables } from '../sql/query.ts'
import type { Store } from '../storage/store.ts'
import { migratePostgres, type PostgresReport, versionOf } from '../migrations/migrate.ts'
import { urlsOf } from '../net/hosts.ts'
import { openServerSecrets, type ServerKey } from '../secrets/secrets.ts'
import {
  DatabaseUnavailable,
  failureOf,
  isUnreadableFile,
  DatabaseRefused,
} from '../sql/failure.ts'
import { PostgresStatements } from '../sql/postgres-statements.ts'
import { Storage } from '../storage/storage.ts'

/** A database that several processes may have open. */
export interface ServerStore extends Store {
  readonly statements: PostgresStatements
  /** Its URL without the password, for the operator. */
  readonly name: string
  readonly migrated: PostgresReport
  close(): Promise<void>
}

export interface ServerStoreOptions extends ServerKey {
  /** Milliseconds UTC. */
  readonly now: number
  /** This instance may be in the list of those that serve: it is the one that starts. */
  readonly instanceName?: string
  readonly connections?: number
  /** Absent: those of this program. */
  readonly known?: readonly Migration[]
}

/** A migration of many rows takes long, and another instance may be running it. */
const MIGRATION_TIMEOUT_MS = HOUR_MS

/**
 * @param url such as `postgres://user:password@host:5432/database`.
 * @throws {DatabaseRefused} it cannot be reached or used, or the key of its secrets is missing.
 */
export async function openStore(url: string, options: ServerStoreOptions): Promise<ServerStore> {
  const name = nameOf(url)
  const { connections, known = migrations } = options
  const statements = new PostgresStatements({
    url,
    ...(connections !== undefined && { connections }),
  })
  try {
    await refuseMigrations(statements, name, known.length, options)
    const migrated = await migrateAt(url, name, options.now, known)
    const secrets = await openServerSecrets(statements, name, options)
    const close = (): Promise<void> => statements.close()
    return {
      statements,
      db: queryBuilder(),
      secrets,
      storage: new Storage('server_unavailable'),
      name,
      migrated,
      close,
    }
  } catch (error) {
    await statements.close()
    throw refusalOf(name, error)
  }
}

/** Refuses a migration while other processes serve: they do not know the new schema. */
async function refuseMigrations(
  statements: PostgresStatements,
  name: string,
  needed: number,
  { instanceName }: ServerStoreOptions,
): Promise<void> {
  const version = await versionOf(statements, name)
  if (version === 0 || version >= needed) return
  const serving = (await servingInstances(statements)).filter((each) => each !== instanceName)
  if (serving.length === 0) return
  throw new DatabaseRefused(
    `cannot use database ${name}: it is at version ${version}, this program needs ` +
      `${needed}: stop the processes that serve from it (${serving.join(', ')}), and start ` +
      'this one then',
  )
}

/**
 * Reads a database before anything is changed.
 *
 * @param read reads from one that has this program's schema.
 */
export async function readServer<T>(
  url: string,
  read: (store: Tables) => Promise<T>,
): Promise<{
  readonly name: string
  readonly version: number
  /** Undefined: it has another schema. */
  readonly seen: T | undefined
}> {
  const name = nameOf(url)
  const statements = new PostgresStatements({ url, connections: 1 })
  try {
    const version = await versionOf(statements, name)
    const isCurrent = version === newestVersion
    const seen = isCurrent ? await read({ statements, db: queryBuilder() }) : undefined
    return { name, version, seen }
  } catch (error) {
    throw refusalOf(name, error)
  } finally {
    await statements.close()
  }
}

async function migrateAt(
  url: string,
  name: string,
  now: number,
  known: readonly Migration[],
): Promise<PostgresReport> {
  const patient = new PostgresStatements({
    url,
    connections: 1,
    statementTimeoutMs: MIGRATION_TIMEOUT_MS,
  })
  try {
    return await migratePostgres(patient, name, now, known)
  } finally {
    await patient.close()
  }
}

/**
 * Turns an error of the server, such as a wrong password, into a refusal that names the database.
 * Returns other errors unchanged.
 */
export function refusalOf(name: string, error: unknown): unknown {
  const isOfServer = error instanceof DatabaseUnavailable || error instanceof pg.DatabaseError
  if (!isOfServer) return error
  return new DatabaseRefused(`cannot use database ${name}: ${error.message}`, { cause: error })
}

/**
 * The URL without the password.
 *
 * @throws {DatabaseRefused} it is not a URL.
 */
export function nameOf(url: string): string {
  const urls = (urlsOf(url) ?? []).map((one) => new URL(one))
  const [first] = urls
  if (first === undefined) throw new DatabaseRefused('DATABASE_URL is not a URL')
  const { protocol, username, pathname } = first
  const hosts = [...new Set(urls.map(({ host }) => host))].join(',')
  return `${protocol}//${username === '' ? '' : `${username}@`}${hosts}${pathname}`
}

/** Builds PostgreSQL's texts of queries; it cannot run any. */
export const queryBuilder = (): Kysely<Database> =>
  new Kysely<Database>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    // SQLite takes `in ()` for false; PostgreSQL has no such list.
    plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
  })

// ---- a server that is away for a while: it restarts, fails over, or is not reached -------

/** Longer than a round trip through any network that an instance can work with. */
const ANSWER_MS = 3_000

/**
 * Whether a retry may succeed. False: a person has to repair something first, such as a wrong
 * password.
 */
export function isServerUnavailable(error: unknown): boolean {
  const cause = error instanceof DatabaseRefused ? error.cause : error
  if (cause instanceof DatabaseUnavailable && isUnreadableFile(cause.cause)) return false
  const kind = failureOf(cause)?.kind
  // `unwritable`: a standby that is about to become the primary, or a full disk.
  return kind === 'unavailable' || kind === 'unwritable'
}

/** Asks the server once. Resolves with the reason in one line; undefined: the server answers. */
export async function whyServerUnavailable(url: string): Promise<string | undefined> {
  const statements = new PostgresStatements({
    url,
    connections: 1,
    connectTimeoutMs: ANSWER_MS,
    statementTimeoutMs: ANSWER_MS,
  })
  try {
    const standby = statements.prepare<{ readonly is_standby: 0 | 1 }>(
      'SELECT pg_is_in_recovery() AS is_standby',
    )
    return (await standby.get([]))?.is_standby === 1 ? 'the server is a standby' : undefined
  } catch (error) {
    return isServerUnavailable(error) && error instanceof Error ? error.message : undefined
  } finally {
    await statements.close()
  }
}
