/**
 * Reads that may take long run where calls do not wait for them: in a thread with connections of its own, where the
 * process has one. Which statements those are is said around the function that runs them, not at each of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { PreparedStatement, Statements } from './statements.ts'

/** A tenant, null for the platform, or a name, such as that of one customer. Readers take turns. */
export type Reader = number | string | null

export interface ReadingThread {
  /** Resolves with what the same statement would give here. It only reads. */
  prepare<R>(sql: string, reader: Reader): PreparedStatement<R>
}

interface Apart {
  readonly statements: Statements
  readonly thread: ReadingThread
  readonly reader: Reader
}

const around = new AsyncLocalStorage<Apart | 'in a transaction'>()
const threads = new WeakMap<Statements, ReadingThread>()

/** From now on, `readApart` has statements on this database run by `thread`. */
export function setReadingThread(statements: Statements, thread: ReadingThread): void {
  threads.set(statements, thread)
}

/**
 * Runs `work`, which only reads, with its statements in the reading thread: another turn of the event loop follows after
 * each. They see what has been committed. Inside a transaction, or without such a thread, they run as everywhere else.
 */
export function readApart<T>(
  { statements }: { readonly statements: Statements },
  reader: Reader,
  work: () => Promise<T>,
): Promise<T> {
  const thread = threads.get(statements)
  if (thread === undefined || around.getStore() !== undefined) return work()
  return around.run({ statements, thread, reader }, work)
}

/** Runs the work of a transaction: what it reads is what it has written. */
export function withoutThread<T>(work: () => Promise<T>): Promise<T> {
  return around.run('in a transaction', work)
}

/** Prepares a statement that reads, where the caller's statements run. */
export function prepareRead<R>(statements: Statements, sql: string): PreparedStatement<R> {
  const here = around.getStore()
  if (here === undefined || here === 'in a transaction' || here.statements !== statements)
    return statements.prepare(sql)
  return here.thread.prepare(sql, here.reader)
}
