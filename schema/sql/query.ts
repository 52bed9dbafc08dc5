/** Runs Kysely queries inside the transaction of their caller. `statements.ts` says how. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Compilable, type Expression, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from '../database.ts'
import type { Store } from '../open.ts'
import { type PreparedStatement, type SqlValue, type Statements, toSqlValue } from './statements.ts'

type Queried = Pick<Store, 'statements'>

export function all<R>(store: Queried, query: Compilable<R>): Promise<R[]> {
  return read(store, query, (statement: PreparedStatement<R>, values) => statement.all(values))
}

/** Resolves with each row as an array, in the order of the selected columns: twice as fast to read. */
export async function rawRows<V>(store: Queried, query: Compilable): Promise<V[]> {
  // The caller knows the selected columns.
  return (await read(store, query, (statement, values) => statement.arrays(values))) as V[]
}

export function first<R>(store: Queried, query: Compilable<R>): Promise<R | undefined> {
  return read(store, query, (statement: PreparedStatement<R>, values) => statement.get(values))
}

/** Runs an INSERT, UPDATE or DELETE without `returning`. Resolves with the number of affected rows. */
export function execute<R>({ statements }: Queried, query: Compilable<R>): Promise<number> {
  const { sql, parameters } = query.compile()
  return statements.prepare(sql).run(parameters.map(toSqlValue))
}

/** Runs an INSERT with `returning('id')`. Resolves with the id of the new row. */
export async function insert(
  store: Queried,
  query: Compilable<{ readonly id: number }>,
): Promise<number> {
  const row = await first(store, query)
  if (row === undefined) throw new Error('an INSERT returned no row')
  return row.id
}

/** Runs `work` in a transaction; a rejection rolls it back. Inside another transaction it is a savepoint. */
export function transaction<T>(store: Queried, work: () => Promise<T>): Promise<T> {
  return withoutThread(() => store.statements.transaction(work))
}

/** Runs `work` in a transaction as `Statements.lockedTransaction` says; inside another one it is a savepoint. */
export function lockedTransaction<T>(store: Queried, work: () => Promise<T>): Promise<T> {
  return withoutThread(() => store.statements.lockedTransaction(work))
}

function read<R, T>(
  { statements }: Queried,
  query: Compilable<R>,
  by: (statement: PreparedStatement<R>, values: readonly SqlValue[]) => Promise<T>,
): Promise<T> {
  const { sql, parameters } = query.compile()
  return by(prepareRead(statements, sql), parameters.map(toSqlValue))
}

/** Names a parameter: `(db, param: Param<{ id: number }>) => … param('id')`. */
export type Param<P> = <K extends keyof P & string>(name: K) => P[K]

/** Frequent statements: built and typed by Kysely once, then prepared once. */
export interface Prepared<P, R> {
  get(values: P): Promise<R | undefined>
  all(values: P): Promise<R[]>
  /** Resolves with the number of inserted, changed or deleted rows. */
  run(values: P): Promise<number>
}

/**
 * Prepares a query whose variable parts are `param('name')`; a parameter is exactly one value. Inside `readApart` it is
 * one that reads, and it keeps running there.
 */
export function prepare<P extends { readonly [name in keyof P]: SqlValue }, R>(
  store: Pick<Store, 'statements' | 'db'>,
  build: (db: Kysely<Database>, param: Param<P>) => Compilable<R>,
): Prepared<P, R> {
  const { sql, bind } = binderOf(store, build)
  const statement = prepareRead<R>(store.statements, sql)
  return {
    get: (values) => statement.get(bind(values)),
    all: (values) => statement.all(bind(values)),
    run: (values) => statement.run(bind(values)),
  }
}

/** The text of a query, and the function that puts values in the places of its parameters. */
function binderOf<P, R>(
  { db }: Pick<Store, 'db'>,
  build: (db: Kysely<Database>, param: Param<P>) => Compilable<R>,
): { readonly sql: string; readonly bind: (values: P) => SqlValue[] } {
  // A placeholder has the type of the value: Kysely passes it unchanged to the parameters.
  const param: Param<P> = (name) => {
    const placeholder: unknown = new Placeholder(name)
    return placeholder as P[typeof name]
  }
  const { sql, parameters } = build(db, param).compile()
  return { sql, bind: binder<P>(parameters) }
}

class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/** A plain loop over prepared slots, because it runs several times per call. */
function binder<P>(parameters: readonly unknown[]): (values: P) => SqlValue[] {
  const names = parameters.map((parameter) =>
    parameter instanceof Placeholder ? (parameter.name as keyof P) : undefined,
  )
  const constants = parameters as readonly SqlValue[]
  return (values) => {
    const bound = constants.slice()
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index]
      if (name !== undefined) bound[index] = values[name] as SqlValue
    }
    return bound
  }
}

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
 * Reads that may take long run where calls do not wait for them: in a thread with connections of its own, where the
 * process has one. Which statements those are is said here, around the function that runs them, not at each of them.
 *
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
function withoutThread<T>(work: () => Promise<T>): Promise<T> {
  return around.run('in a transaction', work)
}

/** Prepares a statement that reads, where the caller's statements run. */
function prepareRead<R>(statements: Statements, sql: string): PreparedStatement<R> {
  const here = around.getStore()
  if (here === undefined || here === 'in a transaction' || here.statements !== statements)
    return statements.prepare(sql)
  return here.thread.prepare(sql, here.reader)
}

/** Of the advisory locks. */
const locks = {
  retention: 0x70_11_6a_90,
  recordings: 0x70_11_6a_91,
  webhooks: 0x70_11_6a_92,
  removedEndpoints: 0x70_11_6a_93,
  callSums: 0x70_11_6a_94,
} as const

export type OneNodesWork = keyof typeof locks

export type Outcome<T> =
  { readonly kind: 'done'; readonly result: T } | { readonly kind: 'elsewhere' }

/**
 * Runs `work` in a transaction, unless another node is at the same work: it is then left to that node. A node
 * that dies is at no work any more.
 */
export function onOneNode<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  return transaction(store, () => unlessElsewhere(store, name, work))
}

/** The same in a transaction that sees what others commit meanwhile, as `lockedTransaction` says. */
export function onOneNodeLocked<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  return lockedTransaction(store, () => unlessElsewhere(store, name, work))
}

async function unlessElsewhere<T>(
  store: Pick<Store, 'statements'>,
  name: OneNodesWork,
  work: () => Promise<T>,
): Promise<Outcome<T>> {
  if (store.statements.isShared && !(await isTaken(store, locks[name])))
    return { kind: 'elsewhere' }
  return { kind: 'done', result: await work() }
}

/** Until the transaction ends. */
async function isTaken({ statements }: Pick<Store, 'statements'>, lock: number): Promise<boolean> {
  const row = await statements
    .prepare<{ readonly taken: 0 | 1 }>(`SELECT pg_try_advisory_xact_lock(${lock}) AS taken`)
    .get([])
  return row?.taken === 1
}

/** Rows of one statement. */
export const SLICE = 500

/** All rows of a table by ascending id. `read` returns at most `SLICE` of them after this id. */
export async function* slicesOf<Row extends { readonly id: number }>(
  read: (after: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let after = 0; ; await nextTurn()) {
    const rows = await read(after)
    if (rows.length > 0) yield rows
    if (rows.length < SLICE) return
    after = rows.at(-1)?.id ?? after
  }
}

/** A list that is worked off in slices. */
export async function* inSlices<T>(items: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let start = 0; start < items.length; start += SLICE) {
    if (start > 0) await nextTurn()
    yield items.slice(start, start + SLICE)
  }
}

/** Conditions on texts that mean the same in SQLite and PostgreSQL. Upper and lower case are different. */
export const startsWith = (text: Expression<string>, start: string): RawBuilder<boolean> =>
  sql<boolean>`substr(${text}, 1, length(${start})) = ${start}`

/** LIKE regards case in one and not in the other; only one of them has `instr`. */
export const includes = (text: Expression<string>, part: string): RawBuilder<boolean> =>
  part === '' ? sql<boolean>`true` : sql<boolean>`replace(${text}, ${part}, '') <> ${text}`
