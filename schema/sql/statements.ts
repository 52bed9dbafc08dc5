/** One asynchronous interface for statements on SQLite and on a database server. */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Statements {
  /** Prepares one statement, for any number of runs. */
  prepare<R>(sql: string): PreparedStatement<R>
  /** Prepares a statement for many rows: a server gets them at once, SQLite ten at a time. */
  prepareRows<R>(text: RowsText): (rows: readonly Row[]) => Promise<R[]>
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
   * As `transaction`, but read committed: others may change rows that it has read and not locked.
   * For frequent work that adds, replaces by key, or locks rows first, always in the same order. It
   * runs again only after a deadlock.
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
export type Row = Readonly<Record<string, string | number | null>>

/** A value as a statement takes it. */
export type SqlValue = number | bigint | string | Buffer | null

/** @throws {TypeError} no column has values of this kind. */
export function toSqlValue(value: unknown): SqlValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  if (typeof value === 'bigint' || Buffer.isBuffer(value)) return value
  throw new TypeError(`the database has no column for a ${typeof value}`)
}

/**
 * The transaction of a statement: the one in which its caller runs, however deep the call. Work
 * that outlives the transaction in which it started, such as a timer, runs outside it.
 */
export interface Transaction {
  isOver: boolean
  /** Why it cannot be committed, although its work still runs. */
  failure: Error | undefined
  savepoints: number
  /** Run after the commit, in this order. */
  readonly afterCommit: (() => void)[]
}

export class TransactionScope<T extends Transaction> {
  readonly #storage = new AsyncLocalStorage<T>()
  readonly #outside = AsyncLocalStorage.snapshot()

  /**
   * Undefined outside a transaction.
   *
   * @throws {Error} it cannot be committed any more.
   */
  get current(): T | undefined {
    const transaction = this.#storage.getStore()
    if (transaction === undefined || transaction.isOver) return undefined
    if (transaction.failure !== undefined) throw transaction.failure
    return transaction
  }

  /** As `Statements.afterCommit`. */
  afterCommit(work: () => void): void {
    const { current } = this
    if (current === undefined) work()
    else current.afterCommit.push(work)
  }

  /** Runs the work of `afterCommit`, outside the committed transaction. Throws nothing. */
  committed({ afterCommit }: T): void {
    for (const work of afterCommit) this.#outside(work)
  }

  /** Runs `work` in a transaction that has begun. Rejects when it cannot be committed. */
  async run<R>(transaction: T, work: () => Promise<R>): Promise<R> {
    const result = await this.#storage.run(transaction, work)
    if (transaction.failure !== undefined) throw transaction.failure
    return result
  }

  /** Runs `work` in a savepoint of `outer`. @param execute runs a text in that transaction. */
  async savepoint<R>(
    outer: T,
    work: () => Promise<R>,
    execute: (sql: string) => Promise<unknown>,
  ): Promise<R> {
    outer.savepoints += 1
    const depth = outer.savepoints
    const name = `savepoint_${depth}`
    const { length } = outer.afterCommit
    try {
      await execute(`SAVEPOINT ${name}`)
      const result = await work()
      if (outer.failure !== undefined) throw outer.failure
      if (outer.savepoints !== depth)
        throw new Error('savepoints of one transaction were used at the same time')
      await execute(`RELEASE SAVEPOINT ${name}`)
      return result
    } catch (error) {
      outer.afterCommit.length = length
      if (!outer.isOver && outer.failure === undefined)
        await execute(`ROLLBACK TO SAVEPOINT ${name}; RELEASE SAVEPOINT ${name}`).catch(() => {
          // The database has ended the transaction itself, such as after a full disk.
          outer.failure ??= error instanceof Error ? error : new Error(String(error))
        })
      throw error
    } finally {
      outer.savepoints = depth - 1
    }
  }
}
