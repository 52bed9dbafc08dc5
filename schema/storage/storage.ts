/**
 * Whether what is written lasts. Groups tell how their commits go; `storage-watch.ts` looks at the files, and
 * at the time. Code that begins what must be stored asks `problem` first.
 */

/** Why nothing can be stored at present. `reason` is one line for the operator. */
export interface StorageProblem {
  readonly code: 'commits_fail' | 'database_gone'
  readonly reason: string
}

export class Storage {
  /** Groups whose last commit failed, and why. */
  readonly #failing = new Map<object, string>()
  #episode = 0
  #isDeclared = false
  #fileProblem: StorageProblem | undefined

  /** Undefined: commits succeed, or have failed for a moment only. */
  get problem(): StorageProblem | undefined {
    if (this.#fileProblem !== undefined) return this.#fileProblem
    const [reason] = this.#failing.values()
    if (!this.#isDeclared || reason === undefined) return undefined
    return { code: 'commits_fail', reason }
  }

  failing(group: object, error: unknown): void {
    if (this.#failing.size === 0) this.#episode += 1
    this.#failing.set(group, error instanceof Error ? error.message : String(error))
  }

  working(group: object): void {
    this.#failing.delete(group)
    if (this.#failing.size === 0) this.#isDeclared = false
  }

  /** Names the present row of failures; undefined: there is none. */
  get episode(): number | undefined {
    return this.#failing.size === 0 ? undefined : this.#episode
  }

  /** Commits have failed for too long. */
  declare(): void {
    this.#isDeclared = this.#failing.size > 0
  }

  /** The files are not those that were opened. */
  get fileProblem(): StorageProblem | undefined {
    return this.#fileProblem
  }

  set fileProblem(problem: StorageProblem | undefined) {
    this.#fileProblem = problem
  }
}

/** SQLite's code of an error, such as `SQLITE_FULL`; empty: it is none of SQLite's. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''

/** Another process has the write lock. */
export const isLocked = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_BUSY')

const unstored = /^SQLITE_(?:BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN)/

/** The database takes no write at present; the request itself may be right. */
export const isUnstored = (error: unknown): boolean => unstored.test(codeOf(error))
