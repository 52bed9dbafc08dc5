/** Failures of the operator's file, for people: what has failed last, how often, since when. */
import { MINUTE_MS } from '../../schema/clock.ts'
import type { HookName, HookTrouble } from '../../schema/contracts/hooks.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { problemLine, shownPath, type ThrownProblem } from './thrown.ts'

/** After so long without a failure, the next one begins another count. */
const QUIET_MS = 10 * MINUTE_MS
/** Each hook has so many lines in the log. */
const LINE_EVERY_MS = 1_000

interface Entry {
  trouble: HookTrouble
  loggedAt: number
  unlogged: number
}

export class HookFailures {
  readonly #by: string
  /** Milliseconds UTC. */
  readonly #now: () => number
  readonly #log: Log
  /** By hook; null: the file itself, or its thread. */
  readonly #entries = new Map<HookName | null, Entry>()
  #total = 0

  constructor(deps: { readonly by: string; readonly wallNow: () => number; readonly log: Log }) {
    this.#by = deps.by
    this.#now = deps.wallNow
    this.#log = deps.log
  }

  get total(): number {
    return this.#total
  }

  list(): readonly HookTrouble[] {
    return [...this.#entries.values()].map(({ trouble }) => trouble)
  }

  note(hook: HookName | null, problem: ThrownProblem, count = 1): void {
    const now = this.#now()
    const known = this.#entries.get(hook)
    const isSame = known !== undefined && now - known.trouble.lastAt <= QUIET_MS
    const entry: Entry = {
      trouble: {
        by: this.#by,
        hook,
        message: problemLine(problem),
        file: problem.file === null ? null : shownPath(problem.file),
        line: problem.line,
        count: (isSame ? known.trouble.count : 0) + count,
        firstAt: isSame ? known.trouble.firstAt : now,
        lastAt: now,
      },
      loggedAt: known?.loggedAt ?? -Infinity,
      unlogged: (known?.unlogged ?? 0) + count,
    }
    this.#total += count
    this.#entries.set(hook, entry)
    // A clock that was set back does not silence it.
    if (Math.abs(now - entry.loggedAt) < LINE_EVERY_MS) return
    const { message } = entry.trouble
    const failures = entry.unlogged
    this.#log('error', `hooks: ${message}`, { ...(hook && { hook }), failures })
    entry.loggedAt = now
    entry.unlogged = 0
  }

  /** The file is loaded, and its thread lives. */
  clearFile(): void {
    this.#entries.delete(null)
  }
}
