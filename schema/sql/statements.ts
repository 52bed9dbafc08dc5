/** Statements behind one asynchronous interface: what runs them is written once for SQLite and for a database server. */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Statements {
  /** Prepares one statement, for any number of runs. */
  prepare<R>(sql: string): PreparedStatement<R>
  /** Prepares a statement for many rows: a server gets them at once, SQLite ten at a time. */
  prepareRows<R>(text: RowsText): (rows: readonly Row[]) => Promise<R[]>
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

/** `sql` reads rows of these columns of a table from `given`. */
export interface RowsText {
  readonly table: string
  readonly columns: readonly string[]
  readonly sql: string
  /** It selects from one other table: others cannot change these rows until the end of the transaction. */
  readonly locks?: true
}

/** Without bigint, which JSON has not: it is given as a text. */
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
 * Which transaction a statement belongs to: the one that its caller runs in, through whatever functions it is
 * called. What starts inside a transaction and outlives it, such as a timer, runs outside it.
 */
export interface Transaction {
  isOver: boolean
  /** Why it cannot be committed, although its work still runs. */
  failure: Error | undefined
  savepoints: number
  /** Called after the commit, in this order. */
  readonly afterCommit: (() => void)[]
}

export class TransactionScope<T extends Transaction> {
  readonly #around = new AsyncLocalStorage<T>()
  readonly #outside = AsyncLocalStorage.snapshot()

  /**
   * Undefined outside a transaction.
   *
   * @throws {Error} it cannot be committed any more.
   */
  get current(): T | undefined {
    const around = this.#around.getStore()
    if (around === undefined || around.isOver) return undefined
    if (around.failure !== undefined) throw around.failure
    return around
  }

  /** Runs `work` once what its caller has written is committed: at once outside a transaction, never after a rollback. */
  afterCommit(work: () => void): void {
    const { current } = this
    if (current === undefined) work()
    else current.afterCommit.push(work)
  }

  /** The transaction is committed: what `afterCommit` was given runs outside it. It throws nothing. */
  committed({ afterCommit }: T): void {
    for (const work of afterCommit) this.#outside(work)
  }

  /** Runs `work` in a transaction that has begun. Rejects when it cannot be committed. */
  async run<R>(transaction: T, work: () => Promise<R>): Promise<R> {
    const result = await this.#around.run(transaction, work)
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
