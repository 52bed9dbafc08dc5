import { type ReportThread, ThreadEnded } from './report-thread.ts'
import { FairTurns } from '../http/fair-turns.ts'
import type { RowsRequest } from './report-chunks.ts'
import { deserialize } from 'node:v8'
import type { Reader, ReadingThread } from '../../schema/sql/query.ts'
import type { PreparedStatement, SqlValue } from '../../schema/sql/statements.ts'
import { tooManySearches } from './searches.ts'

/** While one is sent, another one runs. */
const AT_A_TIME = 2

/** Waiting pieces of one reader. */
const MAX_WAITING = 100

/** Runs statements that read in the thread of reports, a few at a time. */
export class StatementThread implements ReadingThread {
  readonly #thread: Pick<ReportThread, 'piece'>
  readonly #turns = new FairTurns<Reader>(AT_A_TIME, MAX_WAITING, tooManySearches)

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

  /** Repeats the read once when the thread ends meanwhile: a read changes nothing. */
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
