import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { Log } from '../schema/contracts/log.ts'

/** Copies of what was answered longer ago are not expected any more (64·T1, RFC 3261 §17). */
const COPIES_MS = 32_000

/**
 * Answers that the last process gave at its end, in a file next to the database: the next one finds
 * copies of those requests in its sockets. Without the file, such a copy would be a new request.
 */
export class AnswersFile {
  readonly #path: string | undefined
  readonly #log: Log

  constructor(databasePath: string, log: Log) {
    this.#path = databasePath === ':memory:' ? undefined : `${databasePath}.answers`
    this.#log = log
  }

  write(answers: readonly string[]): void {
    try {
      if (this.#path !== undefined) writeFileSync(this.#path, answers.join('\n'), { mode: 0o600 })
    } catch (error) {
      this.#log('warn', 'the last answers cannot be written for the next process', { error })
    }
  }

  /**
   * They are taken once. Empty: the last process has left none, or ended long ago. `now`:
   * milliseconds UTC.
   */
  take(now: number): readonly string[] {
    if (this.#path === undefined || !existsSync(this.#path)) return []
    const { mtimeMs } = statSync(this.#path)
    const answers = readFileSync(this.#path, 'utf8').split('\n')
    rmSync(this.#path)
    return now - mtimeMs > COPIES_MS ? [] : answers
  }
}
