/**
 * One serving process per database: a second one would take the live calls of the first for calls
 * that a crash left open, and bill them. The lock is the operating system's, so it ends with its
 * process however that ends.
 */
import { existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { createPrivately } from '../schema/sqlite/open.ts'
import { asRefusal, DatabaseRefused } from '../schema/sql/failure.ts'

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
