/**
 * Runs reports in a thread of their own, where the program has one. Reports of an in-memory database run in
 * this thread, piece by piece.
 */
import { existsSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cancel } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/open.ts'
import type { MaybeLocal } from '../../schema/open.ts'
import { setReadingThread } from '../../schema/sql/query.ts'
import type { UnusualCalls, UnusualRequest } from './unusual-calls.ts'
import { keepSums, type KeepSumsDeps, type RolledUp, type RollUpRequest } from './roll-up.ts'
import { openSums, type Place } from './call-filters.ts'
import type { Found, SearchRequest } from './search.ts'
import { summary, type Summary } from './summary.ts'
import type { SummaryRequest } from './summarize.ts'
import {
  reportChunks,
  type ReportMaker,
  type ReportRequest,
  type ThreadRequest,
} from './report-chunks.ts'
import { ReportThread } from './report-thread.ts'
import type { ReportPlace } from './report-worker.ts'
import { StatementThread } from './statement-thread.ts'

export interface ReportsDeps {
  readonly store: Store & MaybeLocal
  /** Of the server that has the database; undefined: it is a file, or in memory. */
  readonly databaseUrl?: string | undefined
  /** Milliseconds of a clock that never jumps. */
  readonly now: () => number
  readonly log: Log
  /** Absent: records are added to the sums by `rollUp` alone. */
  readonly keeping?: Omit<KeepSumsDeps, 'log' | 'rollUp'>
}

/** Next to the bundle; absent when the program runs from its sources. */
const threadFile = new URL('./report-worker.js', import.meta.url)

/** From then on, what `readApart` surrounds is read by the thread, too. */
export function openReports(deps: ReportsDeps): Reports {
  const place = placeOf(deps)
  if (place === undefined || !existsSync(threadFile))
    return new Reports(new ReportsHere(placeHere(deps)), deps)
  const thread = new ReportThread(threadFile, place, deps.log)
  setReadingThread(deps.store.statements, new StatementThread(thread))
  return new Reports(thread, deps)
}

function placeOf({ store, databaseUrl }: ReportsDeps): ReportPlace | undefined {
  if (databaseUrl !== undefined) return { url: databaseUrl }
  const { sqlite } = store
  return sqlite === undefined || sqlite.memory ? undefined : { path: sqlite.name }
}

/** The file of the sums is made when they are asked for. */
function placeHere({ store, now: steadyNow }: ReportsDeps): Place {
  const { sqlite } = store
  if (sqlite === undefined) return { store, sums: store, steadyNow }
  let sums: Place['sums'] | undefined
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
/** A report is closed when its next piece is not requested for so long: its reader may be gone. */
const IDLE_MS = 60_000

interface Open {
  readonly pieces: AsyncGenerator<Uint8Array, void>
  /** Null for the platform. */
  readonly tenantId: number | null
  askedAt: number
}

/** The open reports; bounded. */
export interface WithReports {
  readonly reports: Reports
}

export class Reports {
  readonly #maker: ReportMaker
  readonly #now: () => number
  readonly #open = new Set<Open>()
  readonly #stopKeeping: Cancel

  constructor(
    maker: ReportMaker,
    { now, log, keeping }: Pick<ReportsDeps, 'now' | 'log' | 'keeping'>,
  ) {
    this.#maker = maker
    this.#now = now
    const rollUp = (request: RollUpRequest) => this.rollUp(request)
    this.#stopKeeping = keeping ? keepSums({ ...keeping, log, rollUp }) : () => undefined
  }

  /** Undefined when too many are open. Request the first piece immediately. */
  open(request: ReportRequest): AsyncGenerator<Uint8Array, void> | undefined {
    return this.#openFor(request.filter.tenantId, request)
  }

  /** Undefined when too many reports are open. */
  async summarize(request: SummaryRequest): Promise<Summary | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'summary', summary: request })
    return pieces && summary.parse(JSON.parse(await textOf(pieces)))
  }

  /** Undefined when too many reports are open. */
  async search(request: SearchRequest): Promise<Found | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'search', search: request })
    // Only `search` writes it.
    return pieces && (JSON.parse(await textOf(pieces)) as Found)
  }

  /** Undefined when too many reports are open. */
  async findUnusual(request: UnusualRequest): Promise<UnusualCalls | undefined> {
    const pieces = this.#openFor(request.tenantId, { format: 'unusual', unusual: request })
    // Only `unusualCalls` writes it.
    return pieces && (JSON.parse(await textOf(pieces)) as UnusualCalls)
  }

  /** Adds records to the kept sums. One at a time: the caller waits for the answer. */
  async rollUp(request: RollUpRequest): Promise<RolledUp> {
    const text = await textOf(this.#maker.open({ format: 'roll-up', rollUp: request }))
    // Only `rollUp` writes it.
    return JSON.parse(text) as RolledUp
  }

  #openFor(
    tenantId: number | null,
    request: ThreadRequest,
  ): AsyncGenerator<Uint8Array, void> | undefined {
    if (!this.#hasRoom(tenantId)) this.#closeIdle()
    if (!this.#hasRoom(tenantId)) return undefined
    const open = { pieces: this.#maker.open(request), tenantId, askedAt: this.#now() }
    this.#open.add(open)
    return this.#watched(open)
  }

  /** Ends the thread; the next report starts another. */
  restart(): Promise<void> {
    return this.#maker.stop()
  }

  stop(): Promise<void> {
    this.#stopKeeping()
    return this.#maker.stop()
  }

  async *#watched(open: Open): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const piece of open.pieces) {
        yield piece
        open.askedAt = this.#now()
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
      if (open.askedAt > oldest) continue
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
  readonly #place: Place

  constructor(place: Place) {
    this.#place = place
  }

  async *open(request: ThreadRequest): AsyncGenerator<Uint8Array, void> {
    for await (const piece of reportChunks(this.#place, request)) {
      if (piece.length > 0) yield piece
      await nextTurn()
    }
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}
