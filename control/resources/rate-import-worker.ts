/**
 * The thread that imports tables of rates and numbers, and decks of carriers, with a connection of
 * its own that is open as long as an import.
 * Calls go on: they are in the journal, and are stored when the import has ended.
 */
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { runBehindCalls } from '../../schema/behind-calls.ts'
import type { Database } from '../../schema/tables/database.ts'
import type { Tables } from '../../schema/sql/query.ts'
import { queryBuilder } from '../../schema/postgres/open.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { SqliteStatements } from '../../schema/sql/sqlite-statements.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import {
  ApiError,
  type RequestProblem,
  type ErrorStatus,
  storageUnavailable,
} from '../http/api-error.ts'
import { type ImportOutcome, importTable, type ImportWork } from './import-table.ts'
import {
  type DeckOutcome,
  type DeckProgress,
  type DeckWork,
  type UndoWork,
  workOnDeck,
} from './decks/deck-work.ts'

export type ImportDatabase = { readonly path: string } | { readonly url: string }

export type ThreadWork =
  | { readonly of: 'table'; readonly work: ImportWork }
  | { readonly of: 'deck'; readonly work: DeckWork | UndoWork }

export type ThreadReply =
  | { readonly kind: 'done'; readonly outcome: ImportOutcome | DeckOutcome }
  | { readonly kind: 'progress'; readonly progress: DeckProgress }
  | {
      readonly kind: 'refused'
      readonly status: ErrorStatus
      readonly code: string
      readonly message: string
      readonly details: readonly RequestProblem[] | undefined
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly kind: 'failed'; readonly error: string }
  /** The thread has the write lock, and waits for an answer. */
  | { readonly kind: 'locked' }
  /** Nobody else has committed since; the thread waits for an answer. */
  | { readonly kind: 'committed' }

runBehindCalls(10)

const { database, answered } = workerData as {
  readonly database: ImportDatabase
  /** Counts the answers of the main thread. */
  readonly answered: Int32Array<SharedArrayBuffer>
}

const reply = (message: ThreadReply): void => parentPort?.postMessage(message, [])

parentPort?.on('message', (work: ThreadWork) => void run(work).then(reply))

const perform = (store: Tables, each: ThreadWork): Promise<ImportOutcome | DeckOutcome> =>
  each.of === 'table'
    ? importTable(store, each.work)
    : workOnDeck(store, each.work, (progress) => reply({ kind: 'progress', progress }))

async function run(work: ThreadWork): Promise<ThreadReply> {
  try {
    const outcome =
      'url' in database ? await onServer(database.url, work) : await onFile(database.path, work)
    return { kind: 'done', outcome }
  } catch (error) {
    const refusal = isUnstored(error) ? storageUnavailable() : error
    if (!(refusal instanceof ApiError)) return { kind: 'failed', error: String(error) }
    const { status, code, message, details, headers } = refusal
    return { kind: 'refused', status, code, message, details, headers }
  }
}

async function onServer(url: string, work: ThreadWork): Promise<ImportOutcome | DeckOutcome> {
  const statements = new PostgresStatements({ url, connections: 1, statementTimeoutMs: SERVER_MS })
  try {
    return await perform({ db: queryBuilder(), statements }, work)
  } finally {
    await statements.close()
  }
}

/** Time limit of one statement: the longest counts the rates of a tenant. */
const SERVER_MS = 30_000
/** Rates are written in the order of their index: few pages are met twice. */
const CACHE_KIB = 4_096
/** A wait for the write lock stops this thread alone. */
const BUSY_MS = 5_000

async function onFile(path: string, work: ThreadWork): Promise<ImportOutcome | DeckOutcome> {
  const sqlite = new Sqlite(path, { fileMustExist: true, timeout: BUSY_MS })
  try {
    sqlite.pragma('synchronous = FULL')
    sqlite.pragma('foreign_keys = ON')
    sqlite.pragma(`cache_size = ${-CACHE_KIB}`)
    const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) })
    const statements = new SqliteStatements(sqlite)
    return await perform({ db, statements: toldOf(statements, sqlite) }, work)
  } finally {
    sqlite.close()
  }
}

/**
 * Tells the main thread of its transaction, which would else take it for that of another program,
 * and read every table again. What others have committed before is read first. What they commit
 * between the end of this transaction and the lock after it is seen by the version of the data;
 * then the main thread reads every table.
 */
function toldOf(statements: SqliteStatements, sqlite: Sqlite.Database): Tables['statements'] {
  const versionOf = (): unknown => sqlite.pragma('data_version', { simple: true })
  let isOpen = false
  return {
    isShared: statements.isShared,
    prepare: (sql) => statements.prepare(sql),
    prepareRows: (text) => statements.prepareRows(text),
    afterCommit: (work) => statements.afterCommit(work),
    notify: () => statements.notify(),
    lockedTransaction: (work) => statements.lockedTransaction(work),
    groupTransaction: (work) => statements.groupTransaction(work),
    onDisk: () => statements.onDisk(),
    async transaction(work) {
      if (isOpen) return statements.transaction(work)
      let version: unknown
      isOpen = true
      try {
        const result = await statements.transaction(async () => {
          ask({ kind: 'locked' })
          version = versionOf()
          return work()
        })
        sqlite.exec('BEGIN IMMEDIATE')
        if (versionOf() === version) ask({ kind: 'committed' })
        sqlite.exec('ROLLBACK')
        return result
      } finally {
        isOpen = false
      }
    },
  }
}

/** The main thread may stand still; then what is committed counts as another program's. */
const ANSWER_MS = 2_000

/** Waits, with this thread, until the main thread has answered. */
function ask(question: ThreadReply): void {
  const seen = Atomics.load(answered, 0)
  reply(question)
  Atomics.wait(answered, 0, seen, ANSWER_MS)
}
