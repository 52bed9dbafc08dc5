/** Runs statements that read in the thread of reports, a few at a time. */
import { deserialize } from 'node:v8'
import type { Reader, ReadingThread } from '../../schema/sql/query.ts'
import type { PreparedStatement, SqlValue } from '../../schema/sql/statements.ts'
import type { RowsRequest } from './report-chunks.ts'
import { type ReportThread, ThreadEnded } from './report-thread.ts'
import { tooManySearches } from './searches.ts'

/** While one is sent, another one runs. */
const AT_A_TIME = 2

export class StatementThread implements ReadingThread {
  readonly #thread: Pick<ReportThread, 'piece'>
  readonly #turns = new FairTurns(AT_A_TIME)

  constructor(thread: Pick<ReportThread, 'piece'>) {
    this.#thread = thread
  }

  prepare<R>(sql: string, reader: Reader): PreparedStatement<R> {
    const ask = (how: RowsRequest['how'], values: readonly SqlValue[]): Promise<unknown> =>
      this.#turns.run(reader, () => this.#ask({ sql, values, how }))
    // The thread gives what the same statement gives here.
    return {
      all: async (values) => (await ask('all', values)) as R[],
      get: async (values) => (await ask('get', values)) as R | undefined,
      arrays: async (values) => (await ask('arrays', values)) as unknown[],
      run: () => Promise.reject(new TypeError('what runs apart only reads')),
    }
  }

  /** It only reads: a second time, when the thread ended meanwhile. */
  async #ask(rows: RowsRequest): Promise<unknown> {
    const once = async (): Promise<unknown> =>
      deserialize(await this.#thread.piece({ format: 'rows', rows }))
    try {
      return await once()
    } catch (error) {
      if (error instanceof ThreadEnded) return once()
      throw error
    }
  }
}

/** Of one reader. */
const MAX_WAITING = 100

export class FairTurns {
  /** The next one first. */
  readonly #waiting = new Map<Reader, (() => void)[]>()
  #free: number

  /** @param places how many work at the same time. */
  constructor(places: number) {
    this.#free = places
  }

  /** @throws {ApiError} 503: this reader waits for too many. */
  async run<T>(reader: Reader, work: () => Promise<T>): Promise<T> {
    await this.#turnOf(reader)
    try {
      return await work()
    } finally {
      this.#endTurn()
    }
  }

  #turnOf(reader: Reader): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    const own = this.#waiting.get(reader) ?? []
    if (own.length >= MAX_WAITING) throw tooManySearches()
    return new Promise((resolve) => {
      own.push(resolve)
      this.#waiting.set(reader, own)
    })
  }

  #endTurn(): void {
    for (const [reader, own] of this.#waiting) {
      const begin = own.shift()
      this.#waiting.delete(reader)
      // Now it is the last one.
      if (own.length > 0) this.#waiting.set(reader, own)
      begin?.()
      return
    }
    this.#free += 1
  }
}
