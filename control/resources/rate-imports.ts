/**
 * Imports tables of rates and numbers, and decks of carriers, one at a time, in the thread of
 * `rate-import-worker.ts`, where the program has one: reading and writing a hundred thousand lines
 * takes seconds, in which no call would be answered. An in-memory database and a program that runs
 * from its sources import here, with a turn of the event loop after each part that is read.
 */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Changes } from '../../schema/changes/changes.ts'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { startSmall } from '../../schema/small-thread.ts'
import type { MaybeLocal, Store } from '../../schema/storage/store.ts'
import { ApiError, storageUnavailable } from '../http/api-error.ts'
import { FairTurns } from '../http/fair-turns.ts'
import { type ImportOutcome, importTable, type ImportWork } from './import-table.ts'
import {
  type DeckOutcome,
  type DeckProgress,
  type DeckWork,
  type UndoWork,
  workOnDeck,
} from './decks/deck-work.ts'
import type { ImportDatabase, ThreadReply, ThreadWork } from './rate-import-worker.ts'

export interface RateImportsDeps {
  readonly store: Store & MaybeLocal
  /** Address of the server that has the database; undefined: it is a file, or in memory. */
  readonly databaseUrl?: string | undefined
  /** Learns what the thread has committed. */
  readonly changes?: Changes | undefined
  readonly schedule: Schedule
  readonly log: Log
  /** Program of the thread; absent: beside the bundle, where the program has one. */
  readonly file?: URL
}

export interface RateImports {
  run(work: ImportWork): Promise<ImportOutcome>
  /** Previews, compares, imports or undoes a deck. */
  onDeck(work: DeckWork | UndoWork): Promise<DeckOutcome>
  /** How far the work of a tenant is; undefined: there is none. */
  progress(tenantId: number | null): DeckProgress | undefined
  /** An import that is under way is rolled back. */
  stop(): Promise<void>
}

const threadFile = new URL('./rate-import-worker.js', import.meta.url)

/** Tables that wait of one tenant: their bytes are in memory. */
const MAX_WAITING = 3

export function openRateImports(deps: RateImportsDeps): RateImports {
  const database = databaseOf(deps)
  const { file = threadFile } = deps
  const thread =
    database === undefined || !existsSync(file) ? undefined : new ImportThread(file, database, deps)
  const { store } = deps
  const turns = new FairTurns<number | null>(1, MAX_WAITING, tooManyImports)
  let current: { readonly tenantId: number | null; progress: DeckProgress | undefined } | undefined
  const tell = (progress: DeckProgress): void => {
    if (current !== undefined) current.progress = progress
  }
  const inTurn = <T>(tenantId: number | null, run: () => Promise<T>): Promise<T> =>
    turns.run(tenantId, async () => {
      if (store.storage.problem !== undefined) throw storageUnavailable()
      current = { tenantId, progress: undefined }
      try {
        return await run()
      } finally {
        current = undefined
      }
    })
  return {
    run: (work) =>
      inTurn(
        work.scope.tenantId,
        () => thread?.run<ImportOutcome>({ of: 'table', work }, tell) ?? importTable(store, work),
      ),
    onDeck: (work) =>
      inTurn(
        work.scope.tenantId,
        () => thread?.run<DeckOutcome>({ of: 'deck', work }, tell) ?? workOnDeck(store, work, tell),
      ),
    progress: (tenantId) =>
      current !== undefined && (tenantId === null || current.tenantId === tenantId)
        ? current.progress
        : undefined,
    stop: () => thread?.stop() ?? Promise.resolve(),
  }
}

const tooManyImports = (): ApiError =>
  new ApiError(
    429,
    'too_many_imports',
    `${MAX_WAITING} imports are waiting already: wait for the answer of one before you ` +
      'send the next',
    { headers: { 'Retry-After': '10' } },
  )

function databaseOf({ store, databaseUrl }: RateImportsDeps): ImportDatabase | undefined {
  if (databaseUrl !== undefined) return { url: databaseUrl }
  const { sqlite } = store
  return sqlite === undefined || sqlite.memory ? undefined : { path: sqlite.name }
}

/** 250,000 rates of a table need about 200 MB. */
const MAX_HEAP_MB = 512
const MAX_YOUNG_MB = 12
/** Its memory is given back. */
const IDLE_MS = 60_000
/**
 * After a table of so many bytes, or the undo of a deck, it is given back before the answer: the
 * engine reads the rates next.
 */
const LARGE_BYTES = 1_048_576
/**
 * An import that takes longer is rolled back: the longest takes about ten seconds. The connection
 * of its client would end after two minutes without an answer.
 */
const LONGEST_MS = 110_000

interface Pending {
  readonly worker: Worker
  readonly tell: (progress: DeckProgress) => void
  /** With the outcome of this kind of work. */
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: Error) => void
}

class ImportThread {
  readonly #file: URL
  readonly #database: ImportDatabase
  readonly #deps: RateImportsDeps
  #worker: Worker | undefined
  #pending: Pending | undefined
  #cancelIdle: Cancel | undefined

  constructor(file: URL, database: ImportDatabase, deps: RateImportsDeps) {
    this.#file = file
    this.#database = database
    this.#deps = deps
  }

  /** One at a time. */
  async run<T>(work: ThreadWork, tell: (progress: DeckProgress) => void): Promise<T> {
    this.#cancelIdle?.()
    const worker = (this.#worker ??= this.#start())
    const cancelEnd = this.#deps.schedule(() => void worker.terminate(), LONGEST_MS)
    const isLarge = isLargeWork(work)
    try {
      const outcome = await new Promise<unknown>((resolve, reject) => {
        this.#pending = { worker, tell, resolve, reject }
        worker.postMessage(work, transferred(work))
      })
      // The thread answers each kind of work with its outcome.
      return outcome as T
    } finally {
      cancelEnd()
      this.#deps.store.storage.isLockedHere = false
      this.#pending = undefined
      if (isLarge) await this.stop()
      else this.#cancelIdle = this.#deps.schedule(() => void this.stop(), IDLE_MS)
    }
  }

  async stop(): Promise<void> {
    this.#cancelIdle?.()
    const worker = this.#worker
    // An import that comes while it ends has a thread of its own.
    this.#worker = undefined
    await worker?.terminate()
  }

  #start(): Worker {
    const { log, changes, store } = this.#deps
    const answered = new Int32Array(new SharedArrayBuffer(4))
    const options = {
      workerData: { database: this.#database, answered },
      resourceLimits: {
        maxOldGenerationSizeMb: MAX_HEAP_MB,
        maxYoungGenerationSizeMb: MAX_YOUNG_MB,
      },
    }
    const worker = startSmall(() => new Worker(this.#file, options), process.execArgv)
    worker.unref()
    const pending = () => (this.#pending?.worker === worker ? this.#pending : undefined)
    worker.on('message', (reply: ThreadReply) => {
      if (reply.kind === 'done') return pending()?.resolve(reply.outcome)
      if (reply.kind === 'refused') return pending()?.reject(refusalOf(reply))
      if (reply.kind === 'failed') return pending()?.reject(new Error(reply.error))
      if (reply.kind === 'progress') return pending()?.tell(reply.progress)
      store.storage.isLockedHere = reply.kind === 'locked'
      if (reply.kind === 'locked') changes?.readForeign()
      else changes?.passOver()
      Atomics.add(answered, 0, 1)
      Atomics.notify(answered, 0)
    })
    worker.on('error', (error) => {
      log('error', 'rates: the thread of imports failed', { error })
      pending()?.reject(new Error('the thread of imports has failed'))
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      pending()?.reject(interrupted())
    })
    return worker
  }
}

const isLargeWork = ({ work }: ThreadWork): boolean =>
  !('table' in work) || work.table.byteLength >= LARGE_BYTES

/** The bytes of a table go to the thread, instead of a copy. */
function transferred({ work }: ThreadWork): ArrayBuffer[] {
  if (!('table' in work)) return []
  const { table } = work
  const isWhole = table.byteLength === table.buffer.byteLength
  return isWhole && table.buffer instanceof ArrayBuffer ? [table.buffer] : []
}

const interrupted = (): ApiError =>
  new ApiError(503, 'import_interrupted', 'The import was interrupted: send the table again', {
    headers: { 'Retry-After': '5' },
  })

const refusalOf = (reply: ThreadReply & { readonly kind: 'refused' }): ApiError => {
  const { status, code, message, details, headers } = reply
  return new ApiError(status, code, message, { headers, ...(details && { details }) })
}
