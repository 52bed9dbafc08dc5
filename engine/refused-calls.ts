/**
 * Calls that get no record: those of unknown sources, and those that overload turned away. Counted by minute,
 * whatever their number; of unknown sources a few are let through as samples, so that an operator can see
 * who tries what.
 */
import type { Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import { addRefusedCalls } from '../schema/refused-calls.ts'
import { refusalReasons, type RefusalReason } from '../schema/tables/refused-calls.ts'
import type { Store } from '../schema/open.ts'

export interface RefusedCallsDeps {
  readonly store: Store
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Since the start of the process. */
  readonly refusedByOverload: () => number
  readonly log: Log
}

const MINUTE_MS = 60_000
/** How old a count may be that a crash loses. */
const FLUSH_MS = 5_000
/** Records of unknown sources a minute, one for each source. */
const SAMPLES_A_MINUTE = 10

const minuteOf = (now: number): number => now - (now % MINUTE_MS)
const nothing = (): Record<RefusalReason, number> => ({ unknown_source: 0, overload: 0 })

export class RefusedCalls {
  readonly #deps: RefusedCallsDeps
  readonly #add: ReturnType<typeof addRefusedCalls>
  readonly #totals = nothing()
  readonly #sampled = new Set<string>()
  #samples = 0
  /** Of unknown sources, in this minute. */
  #calls = 0
  /** What is not stored yet, and of which minute. */
  #waiting = nothing()
  #minute: number
  #overloadSeen = 0
  #cancel: () => void = () => undefined

  constructor(deps: RefusedCallsDeps) {
    this.#deps = deps
    this.#minute = minuteOf(deps.now())
    this.#add = addRefusedCalls(deps.store)
  }

  start(): void {
    this.#cancel = this.#deps.schedule(() => {
      this.start()
      this.flush()
    }, FLUSH_MS)
  }

  stop(): void {
    this.#cancel()
    this.flush()
  }

  /** Counts a call of an unknown source; true: it shall have a record, as a sample. */
  unknownSource(sourceKey: string): boolean {
    this.#enterMinute()
    this.#calls += 1
    this.#waiting.unknown_source += 1
    this.#totals.unknown_source += 1
    if (this.#sampled.size >= SAMPLES_A_MINUTE || this.#sampled.has(sourceKey)) return false
    this.#sampled.add(sourceKey)
    this.#samples += 1
    return true
  }

  /** Stores what was counted. What the database does not take waits for the next time. */
  flush(): void {
    this.#enterMinute()
    this.#takeOverload()
    this.#store()
  }

  /** Totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    return {
      calls_refused_unknown_source_total: this.#totals.unknown_source,
      calls_refused_unknown_source_sampled_total: this.#samples,
    }
  }

  #takeOverload(): void {
    const refused = this.#deps.refusedByOverload()
    this.#waiting.overload += refused - this.#overloadSeen
    this.#overloadSeen = refused
  }

  #enterMinute(): void {
    const minute = minuteOf(this.#deps.now())
    if (minute === this.#minute) return
    this.#takeOverload()
    this.#store()
    this.#tell()
    this.#minute = minute
    this.#calls = 0
    this.#sampled.clear()
  }

  #tell(): void {
    if (this.#calls === 0) return
    const fields = { calls: this.#calls, sampled: this.#sampled.size }
    this.#deps.log('info', 'calls of unknown sources were refused within a minute', fields)
  }

  #store(): void {
    for (const reason of refusalReasons) {
      const calls = this.#waiting[reason]
      if (calls === 0) continue
      try {
        this.#add({ minute: this.#minute, reason, calls })
        this.#waiting[reason] = 0
      } catch (error) {
        this.#deps.log('warn', 'refused calls cannot be counted yet', { error: String(error) })
        return
      }
    }
  }
}
