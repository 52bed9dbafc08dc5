/**
 * One serving process per database: a second one would take the live calls of the first for calls
 * that a crash left open, and bill them. The lock is the operating system's, so it ends with its
 * process however that ends.
 */
import { existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { newestVersion } from '../schema/migrations/index.ts'
import { createPrivately, type LocalStore } from '../schema/open.ts'
import { asRefusal, DatabaseRefused } from '../schema/refusal.ts'

/** @throws {DatabaseRefused} another process serves this database. */
export function lockForServing(databasePath: string): { release(): void } {
  if (databasePath === ':memory:') return { release: () => undefined }
  const lock = openLock(databasePath)
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch {
    lock.close()
    throw new DatabaseRefused(
      `cannot use database ${databasePath}: another tollgate process is serving it`,
    )
  }
  return { release: () => void lock.close() }
}

/** The same lock, to be taken and released as the process begins and ends to serve. */
export function servingLock(databasePath: string): { take(): void; release(): void } {
  let lock: { release(): void } | undefined
  return {
    take: () => {
      lock = lockForServing(databasePath)
    },
    release: () => {
      lock?.release()
      lock = undefined
    },
  }
}

/** @throws {DatabaseRefused} the serving process does not know the schema that this program needs. */
export function refuseMigrations({ sqlite }: Pick<LocalStore, 'sqlite'>): void {
  const version = Number(sqlite.pragma('user_version', { simple: true }))
  if (version < newestVersion)
    throw new DatabaseRefused(
      `cannot upgrade: the database is at version ${version}, this program needs ${newestVersion}: stop the running process and start this one instead`,
    )
}

function openLock(databasePath: string): Sqlite.Database {
  try {
    createPrivately(`${databasePath}.lock`)
    return new Sqlite(`${databasePath}.lock`, { timeout: 0 })
  } catch (error) {
    throw asRefusal(databasePath, error)
  }
}

/** Changes nothing. */
export function isServed(databasePath: string): boolean {
  if (!existsSync(`${databasePath}.lock`)) return false
  try {
    lockForServing(databasePath).release()
    return false
  } catch (error) {
    if (error instanceof DatabaseRefused) return true
    throw error
  }
}
