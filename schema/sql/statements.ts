/**
 * The statements of the control API, behind one asynchronous interface, so that each store is written once
 * for SQLite and for a database server.
 */
import type { SqlValue } from './sql-value.ts'

export interface Statements {
  /** Prepares one statement, for any number of runs. */
  prepare<R>(sql: string): PreparedStatement<R>
  /**
   * Runs `work` in a transaction; a rejection rolls it back. What it reads is still true when it writes.
   * Inside another transaction it is a savepoint; savepoints of one transaction are not used at the same time.
   * `work` waits for statements only, never for anything else. A database server may have it run again from
   * its beginning, after a rollback. A statement that failed ends the transaction, or the savepoint, it is in.
   */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /**
   * Runs `work` once what its caller has written is committed, such as to wake up those that read it: at once
   * outside a transaction, never after a rollback. It throws nothing.
   */
  afterCommit(work: () => void): void
  /** Several processes may serve from this database: memory of one alone decides nothing. */
  readonly isShared: boolean
  /**
   * As `transaction`, but others may change what it has read before it writes, unless it has locked the rows:
   * for frequent work that adds, replaces by key, or locks rows first, always in the same order. It does not
   * run again because of what others read or add.
   */
  lockedTransaction<T>(work: () => Promise<T>): Promise<T>
}

export interface PreparedStatement<R> {
  all(parameters: readonly SqlValue[]): Promise<R[]>
  get(parameters: readonly SqlValue[]): Promise<R | undefined>
  /** Each row as an array, in the order of the selected columns. */
  arrays(parameters: readonly SqlValue[]): Promise<unknown[]>
  /** Resolves with the number of inserted, changed or deleted rows. */
  run(parameters: readonly SqlValue[]): Promise<number>
}
