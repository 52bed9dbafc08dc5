import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * The transaction of a statement: the one in which its caller runs, however deep the call. Work
 * that outlives the transaction in which it started, such as a timer, runs outside it.
 */
export interface DatabaseTransaction {
  isOver: boolean
  /** Why it cannot be committed, although its work still runs. */
  failure: Error | undefined
  savepoints: number
  /** Run after the commit, in this order. */
  readonly afterCommit: (() => void)[]
}

export class TransactionScope<T extends DatabaseTransaction> {
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

  /** Implements `Statements.afterCommit`. */
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
