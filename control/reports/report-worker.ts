/**
 * The thread that produces reports, with connections of its own that only read: calls do not wait
 * for it. No read spans two pieces, so that a slow reader does not pin an old snapshot of the
 * database. The thread also writes the daily totals, which with SQLite are a file of its own.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { runBehindCalls } from '../../schema/behind-calls.ts'
import type { Database } from '../../schema/tables/database.ts'
import { queryBuilder } from '../../schema/postgres/open.ts'
import { failureOf, isTimedOut } from '../../schema/sql/failure.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { SqliteStatements } from '../../schema/sql/sqlite-statements.ts'
import { openSums, type CallSources } from './call-filters.ts'
import { reportChunks, type ThreadRequest } from './report-chunks.ts'

/** The database, which the thread opens by itself. */
export type ReportDatabase = { readonly path: string } | { readonly url: string }

/** `request` comes with the first message of a report; `isOver` ends the report. */
export interface PieceRequest {
  readonly report: number
  readonly request?: ThreadRequest
  readonly isOver?: true
  /** The report is one piece: no further request follows. */
  readonly isOnce?: true
}

export interface PieceReply {
  readonly report: number
  /** Undefined when the report has ended. */
  readonly bytes?: Uint8Array
  readonly error?: string
  /** The database server does not answer. */
  readonly isUnavailable?: true
  /** The database server has ended a statement. */
  readonly isTooLong?: true
}

runBehindCalls(19)

/**
 * Statements of one instance that the server works on at the same time; adding to the sums takes
 * one for seconds.
 */
const CONNECTIONS = 3

const sources = openSources(workerData as ReportDatabase)
const reports = new Map<number, ReturnType<typeof reportChunks>>()

parentPort?.on('message', ({ report, request, isOver, isOnce }: PieceRequest) => {
  if (isOver === true) return void reports.delete(report)
  if (request !== undefined) reports.set(report, reportChunks(sources, request))
  return void step(report).then(() => isOnce && reports.delete(report))
})

function steadyNow(): number {
  return performance.now()
}

function openSources(database: ReportDatabase): CallSources {
  if ('url' in database) {
    const statements = new PostgresStatements({ url: database.url, connections: CONNECTIONS })
    const store = { db: queryBuilder(), statements }
    return { store, sums: store, steadyNow }
  }
  const sqlite = new Sqlite(database.path, { readonly: true, fileMustExist: true })
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) })
  const store = { db, statements: new SqliteStatements(sqlite) }
  return { store, sums: openSums(database.path), steadyNow }
}

/** Produces one piece. When it is not ready, other work runs before the next attempt. */
async function step(report: number): Promise<void> {
  let reply = await next(report)
  while (reply === undefined) {
    await nextTurn()
    reply = await next(report)
  }
  if (reply.bytes === undefined) reports.delete(report)
  const { buffer } = reply.bytes ?? {}
  parentPort?.postMessage(reply, buffer instanceof ArrayBuffer ? [buffer] : [])
}

/** Undefined when not ready yet. */
async function next(report: number): Promise<PieceReply | undefined> {
  try {
    const piece = await reports.get(report)?.next()
    if (piece === undefined || piece.done === true) return { report }
    return piece.value.length === 0 ? undefined : { report, bytes: piece.value }
  } catch (error) {
    const isUnavailable = failureOf(error)?.kind === 'unavailable'
    const isTooLong = isTimedOut(error)
    return {
      report,
      error: String(error),
      ...(isUnavailable && { isUnavailable }),
      ...(isTooLong && { isTooLong }),
    }
  }
}
