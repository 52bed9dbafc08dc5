/**
 * Runs reports in a thread of their own, where the program has one. Reports of an in-memory
 * database run in this thread, piece by piece.
 */
import { existsSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { Cancel } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Store, MaybeLocal } from '../../schema/storage/store.ts'
import { setReadingThread } from '../../schema/sql/query.ts'
import type { UnusualCalls, UnusualRequest } from './unusual-calls.ts'
import {
  scheduleRollUps,
  type RollUpDeps,
  type RollUpResult,
  type RollUpRequest,
} from './roll-up.ts'
import { pacedPieces } from './paced-pieces.ts'
import { openSums, type CallSources } from './call-filters.ts'
import { marginReport, type MarginReport, type MarginRequest } from './margins.ts'
import type { CallsByText, TextSearch } from './columns/find-calls.ts'
import type { FindRequest, FoundRecords } from './columns/find-records.ts'
import { FairTurns } from '../http/fair-turns.ts'
import type { SearchResult, SearchRequest } from './search.ts'
import { summary, type Summary } from './summary.ts'
import type { SummaryRequest } from './summarize.ts'
import {
  reportChunks,
  type ReportMaker,
  type ReportRequest,
  type ThreadRequest,
} from './report-chunks.ts'
import { tooManySearches } from './searches.ts'
import { ReportThread } from './report-thread.ts'
import { StatementThread } from './statement-thread.ts'
import type { ReportDatabase } from './report-worker.ts'

export interface ReportsDeps {
  readonly store: Store & MaybeLocal
  /** Address of the server that has the database; undefined: it is a file, or in memory. */
  readonly databaseUrl?: string | undefined
  /** Milliseconds of a clock that never jumps. */
  readonly now: () => number
  readonly log: Log
  /** Absent: records are added to the daily totals by `rollUp` alone. */
  readonly rollUps?: Omit<RollUpDeps, 'log' | 'rollUp'>
}

/** Next to the bundle; absent when the program runs from its sources. */
const threadFile = new URL('./report-worker.js', import.meta.url)

/** Opens the reports. From then on, `readApart` reads in their thread, too. */
export function openReports(deps: ReportsDeps): Reports {
  const database = databaseOf(deps)
  if (database === undefined || !existsSync(threadFile))
    return new Reports(new ReportsHere(localSources(deps)), deps)
  const thread = new ReportThread(threadFile, database, deps.log)
  setReadingThread(deps.store.statements, new StatementThread(thread))
  return new Reports(thread, deps)
}

function databaseOf({ store, databaseUrl }: ReportsDeps): ReportDatabase | undefined {
  if (databaseUrl !== undefined) return { url: databaseUrl }
  const { sqlite } = store
  return sqlite === undefined || sqlite.memory ? undefined : { path: sqlite.name }
}

/** The file of daily totals is made when it is first read. */
function localSources({ store, now: steadyNow }: ReportsDeps): CallSources {
  const { sqlite } = store
  if (sqlite === undefined) return { store, sums: store, steadyNow }
  let sums: CallSources['sums'] | undefined
  return {
    store,
    steadyNow,
    get sums() {
      return (sums ??= openSums(sqlite.memory ? ':memory:' : sqlite.name))
    },
  }
}

/** Each uses about two megabytes. */
const MAX_REPORTS = 16
/** Slow readers of one tenant must leave room for the others. */
const MAX_OF_TENANT = 4
/** Searches for calls that wait, of one tenant or of the platform. */
const MAX_CALL_SEARCHES = 20
/** A report is closed when its next piece is not requested for so long: its reader may be gone. */
const IDLE_MS = 60_000

interface OpenReport {
  readonly pieces: AsyncGenerator<Uint8Array, void>
  /** Null for the platform. */
  readonly tenantId: number | null
  requestedAt: number
}

/** The open reports; bounded. */
export interface WithReports {
  readonly reports: Reports
}

export class Reports {
  readonly #maker: ReportMaker
  readonly #now: () => number
  readonly #open = new Set<OpenReport>()
  readonly #stopRollUps: Cancel
  readonly #callSearches = new FairTurns<number | null>(1, MAX_CALL_SEARCHES, tooManySearches)

  constructor(
    maker: ReportMaker,
    { now, log, rollUps }: Pick<ReportsDeps, 'now' | 'log' | 'rollUps'>,
  ) {
    this.#maker = maker
    this.#now = now
    const rollUp = (request: RollUpRequest) => this.rollUp(request)
    this.#stopRollUps = rollUps ? scheduleRollUps({ ...rollUps, log, rollUp }) : () => undefined
  }

  /** Undefined when too many are open. Request the first piece immediately. */
  open(request: ReportRequest): AsyncGenerator<Uint8Array, void> | undefined {
    const pieces = this.#openFor(request.filter.tenantId, request)
    return pieces && pacedPieces(pieces, { now: this.#now, turn: nextTurn, pause })
  }

  /** Undefined when too many reports are open. */
  async summarize(request: SummaryRequest): Promise<Summary | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'summary', summary: request })
    return pieces && summary.parse(JSON.parse(await textOf(pieces)))
  }

  /** Undefined when too many reports are open. */
  async margins(request: MarginRequest): Promise<MarginReport | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'margins', margins: request })
    return pieces && marginReport.parse(JSON.parse(await textOf(pieces)))
  }

  /** Undefined when too many reports are open. */
  async search(request: SearchRequest): Promise<SearchResult | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'search', search: request })
    // Only `search` writes it.
    return pieces && (JSON.parse(await textOf(pieces)) as SearchResult)
  }

  /** Undefined when too many reports are open. */
  async find(request: FindRequest): Promise<FoundRecords | undefined> {
    const pieces = this.#openFor(request.scope.tenantId, { format: 'find', find: request })
    // Only `findRecords` writes it.
    return pieces && (JSON.parse(await textOf(pieces)) as FoundRecords)
  }

  /**
   * Calls by their numbers and Call-IDs. It takes some ten milliseconds, and waits for no report.
   *
   * @throws {ApiError} 503: its reader waits for too many.
   */
  findCalls(search: TextSearch): Promise<CallsByText> {
    return this.#callSearches.run(search.tenantId, async () => {
      const text = await textOf(this.#maker.open({ format: 'calls', calls: search }))
      // Only `findCalls` of the columns writes it.
      return JSON.parse(text) as CallsByText
    })
  }

  /** Undefined when too many reports are open. */
  async findUnusual(request: UnusualRequest): Promise<UnusualCalls | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'unusual', unusual: request })
    // Only `unusualCalls` writes it.
    return pieces && (JSON.parse(await textOf(pieces)) as UnusualCalls)
  }

  /** Adds records to the daily totals. One at a time: the caller waits for the answer. */
  async rollUp(request: RollUpRequest): Promise<RollUpResult> {
    const text = await textOf(this.#maker.open({ format: 'roll-up', rollUp: request }))
    // Only `rollUp` writes it.
    return JSON.parse(text) as RollUpResult
  }

  #openFor(
    tenantId: number | null,
    request: ThreadRequest,
  ): AsyncGenerator<Uint8Array, void> | undefined {
    if (!this.#hasRoom(tenantId)) this.#closeIdle()
    if (!this.#hasRoom(tenantId)) return undefined
    const open = { pieces: this.#maker.open(request), tenantId, requestedAt: this.#now() }
    this.#open.add(open)
    return this.#watched(open)
  }

  /** Ends the thread; the next report starts another. */
  restart(): Promise<void> {
    return this.#maker.stop()
  }

  stop(): Promise<void> {
    this.#stopRollUps()
    return this.#maker.stop()
  }

  async *#watched(open: OpenReport): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const piece of open.pieces) {
        yield piece
        open.requestedAt = this.#now()
      }
      // Without an error, its reader would take it for the whole report.
      if (!this.#open.has(open))
        throw new Error('the report was closed: it was not read for a minute')
    } finally {
      this.#open.delete(open)
    }
  }

  #hasRoom(tenantId: number | null): boolean {
    if (this.#open.size >= MAX_REPORTS) return false
    if (tenantId === null) return true
    return [...this.#open].filter((open) => open.tenantId === tenantId).length < MAX_OF_TENANT
  }

  #closeIdle(): void {
    const oldest = this.#now() - IDLE_MS
    for (const open of this.#open) {
      if (open.requestedAt > oldest) continue
      this.#open.delete(open)
      void open.pieces.return()
    }
  }
}

async function textOf(pieces: AsyncGenerator<Uint8Array, void>): Promise<string> {
  const blocks: Uint8Array[] = []
  for await (const piece of pieces) blocks.push(piece)
  return Buffer.concat(blocks).toString()
}

class ReportsHere implements ReportMaker {
  readonly #sources: CallSources

  constructor(sources: CallSources) {
    this.#sources = sources
  }

  async *open(request: ThreadRequest): AsyncGenerator<Uint8Array, void> {
    for await (const piece of reportChunks(this.#sources, request)) {
      if (piece.length > 0) yield piece
      await nextTurn()
    }
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}
