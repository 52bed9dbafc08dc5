import type { LoopDelay } from '../../http/platform.ts'

const TICKS = 10

/** The resolution of Node's measurement, included in every value. */
export const LOOP_RESOLUTION_MS = 10

export interface LoopLag {
  /** Milliseconds, over the last ten seconds. */
  readonly p50: number
  readonly p99: number
}

interface RecentLoadDeps {
  readonly loopDelay: LoopDelay
  /** Total calls started. */
  readonly startedCalls: () => number
}

export class RecentLoad {
  readonly #deps: RecentLoadDeps
  /** Total calls started at each of the last ticks, oldest first. */
  readonly #started: number[]
  #ticks = 0
  #lag: LoopLag = { p50: 0, p99: 0 }

  constructor(deps: RecentLoadDeps) {
    this.#deps = deps
    this.#started = [deps.startedCalls()]
  }

  /** Called every `TICK_MS`. */
  tick(): void {
    this.#started.push(this.#deps.startedCalls())
    if (this.#started.length > TICKS + 1) this.#started.shift()
    this.#ticks += 1
    if (this.#ticks % TICKS !== 0) return
    const { loopDelay } = this.#deps
    this.#lag = { p50: lagOf(loopDelay, 50), p99: lagOf(loopDelay, 99) }
    loopDelay.reset()
  }

  /** Rates over the last ten seconds, or since the start. */
  callsPerSecond(): number {
    const [oldest = 0] = this.#started
    const newest = this.#started.at(-1) ?? 0
    return (newest - oldest) / Math.max(1, this.#started.length - 1)
  }

  loopLag(): LoopLag {
    return this.#lag
  }
}

function lagOf(loopDelay: LoopDelay, percentile: number): number {
  const ms = loopDelay.percentile(percentile) / 1e6 - LOOP_RESOLUTION_MS
  return Math.max(0, Math.round(ms * 1_000) / 1_000)
}
