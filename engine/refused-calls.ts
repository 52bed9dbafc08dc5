/**
 * Calls that get no record: those of unknown sources, and those that overload turned away. Counted
 * by minute, whatever their number; of unknown sources a few are let through as samples, so that an
 * operator can see who tries what.
 */
import { MINUTE_MS, type Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import { addRefusedCalls } from '../schema/records/refused-calls.ts'
import type { Store } from '../schema/storage/store.ts'
import { refusalReasons, type RefusalReason } from '../schema/tables/calls.ts'

export interface RefusedCallsDeps {
  readonly store: Store
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Since the start of the process. */
  readonly refusedByOverload: () => number
  readonly log: Log
}

/** A crash loses counts that are no older than this. */
const FLUSH_MS = 5_000
/** Minutes that wait while the database is away; then they are counted as one. */
const MAX_MINUTES = 1_440
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
  /** Calls of unknown sources in this minute. */
  #calls = 0
  /** Counts that are not stored yet, by minute. */
  readonly #waiting = new Map<number, Record<RefusalReason, number>>()
  #minute: number
  #overloadSeen = 0
  #cancel: () => void = () => undefined
  #last: Promise<void> = Promise.resolve()
  #isWriting = false

  constructor(deps: RefusedCallsDeps) {
    this.#deps = deps
    this.#minute = minuteOf(deps.now())
    this.#add = addRefusedCalls(deps.store)
  }

  start(): void {
    this.#cancel = this.#deps.schedule(() => {
      this.start()
      void this.flush()
    }, FLUSH_MS)
  }

  async stop(): Promise<void> {
    this.#cancel()
    await this.#last
    await this.flush()
  }

  /** Counts a call of an unknown source; true: it shall have a record, as a sample. */
  unknownSource(sourceKey: string): boolean {
    this.#enterMinute()
    this.#calls += 1
    this.#count(this.#minute, 'unknown_source', 1)
    this.#totals.unknown_source += 1
    if (this.#sampled.size >= SAMPLES_A_MINUTE || this.#sampled.has(sourceKey)) return false
    this.#sampled.add(sourceKey)
    this.#samples += 1
    return true
  }

  /**
   * Stores what was counted. What the database does not take waits for the next time: calls of a
   * server that fell silent while it stored them may so be counted twice.
   */
  flush(): Promise<void> {
    this.#enterMinute()
    this.#takeOverload()
    this.#store()
    return this.#last
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
    this.#count(this.#minute, 'overload', refused - this.#overloadSeen)
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

  #count(minute: number, reason: RefusalReason, calls: number): void {
    if (calls === 0) return
    const isFull = this.#waiting.size >= MAX_MINUTES && !this.#waiting.has(minute)
    const [oldest = minute] = isFull ? this.#waiting.keys() : []
    const counts = this.#waiting.get(oldest) ?? nothing()
    counts[reason] += calls
    this.#waiting.set(oldest, counts)
  }

  #store(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#last = this.#write().finally(() => {
      this.#isWriting = false
    })
  }

  async #write(): Promise<void> {
    for (const [minute, counts] of this.#waiting) {
      this.#waiting.delete(minute)
      for (const reason of refusalReasons) {
        const calls = counts[reason]
        if (calls === 0) continue
        try {
          await this.#add({ minute, reason, calls })
          counts[reason] = 0
        } catch (error) {
          for (const left of refusalReasons) this.#count(minute, left, counts[left])
          this.#deps.log('warn', 'counts of refused calls cannot be stored yet', {
            error: String(error),
          })
          return
        }
      }
    }
  }
}
