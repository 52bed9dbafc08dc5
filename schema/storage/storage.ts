/**
 * Whether writes are durable. Groups report their commits; `storage-watch.ts` checks the files and
 * the time. Code that starts something that must be stored checks `problem` first.
 */
import { failureOf } from '../sql/failure.ts'

/** Why nothing can be stored now. `reason` is one line for the operator. */
export interface StorageProblem {
  readonly code: 'commits_fail' | 'database_gone' | 'server_unavailable'
  readonly reason: string
}

export class Storage {
  /** Groups whose last commit failed, and why. */
  readonly #failing = new Map<object, string>()
  #episode = 0
  #isDeclared = false
  /** The files are not the opened ones. */
  fileProblem: StorageProblem | undefined
  /**
   * A thread of this process has the write lock of the file, for seconds: what waits is no failure.
   */
  isLockedHere = false
  readonly #code: 'commits_fail' | 'server_unavailable'

  /** @param code why commits fail: of a server, calls go on without it. */
  constructor(code: 'commits_fail' | 'server_unavailable' = 'commits_fail') {
    this.#code = code
  }

  /** Undefined while commits succeed, or have failed only for a moment. */
  get problem(): StorageProblem | undefined {
    if (this.fileProblem !== undefined) return this.fileProblem
    const [reason] = this.#failing.values()
    if (!this.#isDeclared || reason === undefined) return undefined
    return { code: this.#code, reason }
  }

  failing(group: object, error: unknown): void {
    if (this.#failing.size === 0) this.#episode += 1
    this.#failing.set(group, error instanceof Error ? error.message : String(error))
  }

  working(group: object): void {
    this.#failing.delete(group)
    if (this.#failing.size === 0) this.#isDeclared = false
  }

  /** Identifies the current series of failures; undefined when there is none. */
  get episode(): number | undefined {
    return this.#failing.size === 0 ? undefined : this.#episode
  }

  /** Commits have failed for too long. */
  declare(): void {
    this.#isDeclared = this.#failing.size > 0
  }
}

/** Another process holds the write lock. */
export const isLocked = (error: unknown): boolean => failureOf(error)?.kind === 'locked'

const violations = new Set(['unique', 'reference', 'check'])

/** The write violates a constraint: it can never be stored. */
export const isViolation = (error: unknown): boolean => violations.has(failureOf(error)?.kind ?? '')

const unstored = new Set(['locked', 'unwritable', 'unavailable', 'conflict'])

/** The database cannot be written now; the request itself may be valid. */
export const isUnstored = (error: unknown): boolean => unstored.has(failureOf(error)?.kind ?? '')

/** Delays before a failed write is tried again. */
const delaysMs = [50, 100, 250, 500, 1_000] as const
/** Another process holds the write lock, usually for a moment. */
const lockedDelayMs = 20
/** The lock is reported after so many failures, about a second. */
const failuresOfALongLock = 64

/** `failures`: those in a row before this one. */
export function retryDelayMs(error: unknown, failures: number): number {
  if (isLocked(error)) return lockedDelayMs
  return delaysMs[Math.min(failures, delaysMs.length - 1)] ?? lockedDelayMs
}

/**
 * Whether a failure is reported: the first in a row, the second, the fourth and so on. `failures`
 * includes this one.
 */
export function isNews(error: unknown, failures: number): boolean {
  const isPowerOfTwo = (failures & (failures - 1)) === 0
  return isPowerOfTwo && (!isLocked(error) || failures >= failuresOfALongLock)
}
