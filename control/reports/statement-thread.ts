/** Runs statements that read in the thread of reports, a few at a time. */
import { deserialize } from 'node:v8'
import type { Reader, ReadingThread } from '../../schema/sql/read-apart.ts'
import type { SqlValue } from '../../schema/sql/sql-value.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'
import { FairTurns } from './fair-turns.ts'
import type { RowsRequest } from './report-chunks.ts'
import { type ReportThread, ThreadEnded } from './report-thread.ts'

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
