/** One asynchronous interface for statements on SQLite and on a database server. */
import type { CopiedRow } from './copied-rows.ts'

export interface Statements {
  /** Prepares one statement, for any number of runs. */
  prepare<R>(sql: string): PreparedStatement<R>
  /**
   * Rows of a query without parameters that reads many bytes: the answer to a usual query has these
   * as digits. Undefined with SQLite, which gives bytes as they are.
   */
  copied?(sql: string): Promise<readonly CopiedRow[]>
  /** Prepares a statement for many rows: a server gets them at once, SQLite ten at a time. */
  prepareRows<R>(text: RowsText): (rows: readonly JsonRow[]) => Promise<R[]>
  /**
   * Runs `work` in a serializable transaction; a rejection rolls it back. Inside another
   * transaction it is a savepoint; savepoints of one transaction must not overlap. `work` waits for
   * statements only. A database server may roll back and run `work` again. A failed statement ends
   * its transaction or savepoint.
   */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /**
   * Runs `work` after the caller's transaction is committed, such as to wake up readers: at once
   * outside a transaction, never after a rollback. `work` must not throw.
   */
  afterCommit(work: () => void): void
  /**
   * Tells all processes of the database, once the transaction of the caller is committed; of SQLite
   * there is one.
   */
  notify(channel: string, payload: string): Promise<void>
  /**
   * Several processes may serve from this database, so the memory of one process decides nothing.
   */
  readonly isShared: boolean
  /**
   * `transaction`, but read committed: others may change rows that it has read and not locked.
   * For frequent work that adds, replaces by key, or locks rows first, always in the same order. It
   * runs again only after a deadlock.
   */
  lockedTransaction<T>(work: () => Promise<T>): Promise<T>
  /**
   * `lockedTransaction`, without an event loop that waits for the disk: others see its rows, and a
   * power cut loses them until `onDisk` resolves. What waits for its commit runs then, too.
   */
  groupTransaction<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when no power cut can lose what is committed now. May be repeated after a failure. */
  onDisk(): Promise<void>
}

export interface PreparedStatement<R> {
  all(parameters: readonly SqlValue[]): Promise<R[]>
  get(parameters: readonly SqlValue[]): Promise<R | undefined>
  /** Each row as an array, in the order of the selected columns. */
  arrays(parameters: readonly SqlValue[]): Promise<unknown[]>
  /** Resolves with the number of inserted, changed or deleted rows. */
  run(parameters: readonly SqlValue[]): Promise<number>
}

/** `sql` reads rows of these columns of a table from `given`. */
export interface RowsText {
  readonly table: string
  readonly columns: readonly string[]
  readonly sql: string
  /**
   * `sql` selects from one other table: locks the selected rows until the end of the transaction.
   */
  readonly locks?: true
}

/** JSON has no bigint: it is passed as text. */
export type JsonRow = Readonly<Record<string, string | number | null>>

/** A value as a statement takes it. */
export type SqlValue = number | bigint | string | Buffer | null

/** @throws {TypeError} no column has values of this kind. */
export function toSqlValue(value: unknown): SqlValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  if (typeof value === 'bigint' || Buffer.isBuffer(value)) return value
  throw new TypeError(`the database has no column for a ${typeof value}`)
}
