/** Opens a database on a PostgreSQL server, at this program's schema. */
import pg from 'pg'
import { newestVersion } from '../migrations/index.ts'
import { migratePostgres, type PostgresReport, versionOf } from './migrate.ts'
import type { Store } from '../open.ts'
import { queryBuilder } from './query-builder.ts'
import { DatabaseRefused } from '../refusal.ts'
import { openServerSecrets, type ServerKey } from '../secrets/server-secrets.ts'
import { DatabaseUnavailable } from '../sql/failure.ts'
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

export interface ServerOptions extends ServerKey {
  /** Milliseconds UTC. */
  readonly now: number
  /** False: a database of an earlier schema is refused. Absent: it is migrated. */
  readonly migrates?: boolean
  readonly connections?: number
}

/** A migration of many rows takes its time, and another node may be at it. */
const MIGRATION_TIMEOUT_MS = 3_600_000

/**
 * @param url such as `postgres://user:password@host:5432/database`.
 * @throws {DatabaseRefused} it cannot be reached or used, or the key of its secrets is missing.
 */
export async function openStore(url: string, options: ServerOptions): Promise<ServerStore> {
  const name = nameOf(url)
  const { connections } = options
  const statements = new PostgresStatements({
    url,
    ...(connections !== undefined && { connections }),
  })
  try {
    if (options.migrates === false) await refuseMigrations(statements, name)
    const migrated = await migrateAt(url, name, options.now)
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

/** For a planned upgrade: the process that serves does not know the schema that this program needs. */
async function refuseMigrations(statements: PostgresStatements, name: string): Promise<void> {
  const version = await versionOf(statements)
  if (version < newestVersion)
    throw new DatabaseRefused(
      `cannot upgrade: database ${name} is at version ${version}, this program needs ${newestVersion}: stop the running processes and start this one instead`,
    )
}

async function migrateAt(url: string, name: string, now: number): Promise<PostgresReport> {
  const patient = new PostgresStatements({
    url,
    connections: 1,
    statementTimeoutMs: MIGRATION_TIMEOUT_MS,
  })
  try {
    return await migratePostgres(patient, name, now)
  } finally {
    await patient.close()
  }
}

/** What a server says, such as of a wrong password, in a line that names the database; other errors as they are. */
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
  if (!URL.canParse(url)) throw new DatabaseRefused('DATABASE_URL is not a URL')
  const { protocol, username, host, pathname } = new URL(url)
  return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
}
