/**
 * The statements of the control API, behind one asynchronous interface, so that each store is written once
 * for SQLite and for a database server.
 *
 * A statement belongs to the transaction that its caller runs in, through whatever functions it is called:
 * the transaction is found by AsyncLocalStorage. What starts inside a transaction and outlives it, such as
 * a timer, runs outside it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { clearImmediate, setImmediate } from 'node:timers'
import type Sqlite from 'better-sqlite3'
import type { SqlValue } from './sql-value.ts'

export interface Statements {
  /** Prepares one statement, for any number of runs. */
  prepare<R>(sql: string): PreparedStatement<R>
  /**
   * Runs `work` in a transaction; a rejection rolls it back. What it reads is still true when it writes.
   * Inside another transaction it is a savepoint; savepoints of one transaction are not used at the same time.
   * `work` waits for statements only, never for anything else.
   */
  transaction<T>(work: () => Promise<T>): Promise<T>
}

export interface PreparedStatement<R> {
  all(parameters: readonly SqlValue[]): Promise<R[]>
  get(parameters: readonly SqlValue[]): Promise<R | undefined>
  /** Each row as an array, in the order of the selected columns. */
  arrays(parameters: readonly SqlValue[]): Promise<unknown[]>
  /** Resolves with the number of inserted, changed or deleted rows. */
  run(parameters: readonly SqlValue[]): Promise<number>
}

interface Transaction {
  /** Resolves once it is committed or rolled back. */
  readonly ended: Promise<void>
  isOver: boolean
  /** Why it was rolled back while its work still ran. */
  failure: Error | undefined
  savepoints: number
}

/**
 * Statements on the handle of the process, where each runs at once. A transaction ends in the turn of the
 * event loop in which it began: only promises that are already settled are waited for. So timers, sockets and
 * the group commits of calls never meet an open one.
 */
export class SqliteStatements implements Statements {
  readonly #sqlite: Sqlite.Database
  readonly #around = new AsyncLocalStorage<Transaction>()
  #open: Transaction | undefined

  constructor(sqlite: Sqlite.Database) {
    this.#sqlite = sqlite
  }

  prepare<R>(sql: string): PreparedStatement<R> {
    const statement = this.#sqlite.prepare<SqlValue[], R>(sql)
    return {
      all: (parameters) => this.#run(() => statement.all(...parameters)),
      get: (parameters) => this.#run(() => statement.get(...parameters)),
      arrays: (parameters) =>
        this.#run(() => {
          statement.raw(true)
          try {
            return statement.all(...parameters)
          } finally {
            statement.raw(false)
          }
        }),
      run: (parameters) => this.#run(() => statement.run(...parameters).changes),
    }
  }

  async transaction<T>(work: () => Promise<T>): Promise<T> {
    const outer = this.#current()
    if (outer !== undefined) return this.#savepoint(outer, work)
    while (this.#open !== undefined) await this.#open.ended
    let end = (): void => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const transaction: Transaction = { ended, isOver: false, failure: undefined, savepoints: 0 }
    // Takes the write lock first.
    this.#sqlite.exec('BEGIN IMMEDIATE')
    this.#open = transaction
    const overdue = setImmediate(() => this.#abandon(transaction))
    try {
      const result = await this.#around.run(transaction, work)
      if (transaction.failure !== undefined) throw transaction.failure
      this.#sqlite.exec('COMMIT')
      return result
    } catch (error) {
      this.#rollback()
      throw error
    } finally {
      clearImmediate(overdue)
      transaction.isOver = true
      if (this.#open === transaction) this.#open = undefined
      end()
    }
  }

  /** Runs in the caller's transaction; outside one, after the open one. */
  async #run<T>(statement: () => T): Promise<T> {
    const current = this.#current()
    while (this.#open !== undefined && this.#open !== current) await this.#open.ended
    return statement()
  }

  #current(): Transaction | undefined {
    const around = this.#around.getStore()
    if (around === undefined || around.isOver) return undefined
    if (around.failure !== undefined) throw around.failure
    return around
  }

  async #savepoint<T>(outer: Transaction, work: () => Promise<T>): Promise<T> {
    outer.savepoints += 1
    const depth = outer.savepoints
    const name = `savepoint_${depth}`
    this.#sqlite.exec(`SAVEPOINT ${name}`)
    try {
      const result = await work()
      if (outer.failure !== undefined) throw outer.failure
      if (outer.savepoints !== depth)
        throw new Error('savepoints of one transaction were used at the same time')
      this.#sqlite.exec(`RELEASE ${name}`)
      return result
    } catch (error) {
      if (this.#sqlite.inTransaction && outer.failure === undefined)
        this.#sqlite.exec(`ROLLBACK TO ${name}; RELEASE ${name}`)
      throw error
    } finally {
      outer.savepoints = depth - 1
    }
  }

  /** Its work waits for something other than statements: calls must not wait for that. */
  #abandon(transaction: Transaction): void {
    transaction.failure = new Error('a transaction waited for something other than its statements')
    this.#rollback()
    if (this.#open === transaction) this.#open = undefined
  }

  /** SQLite has ended the transaction itself after some errors, such as a full disk. */
  #rollback(): void {
    if (this.#sqlite.inTransaction) this.#sqlite.exec('ROLLBACK')
  }
}
