import type { LoopDelay } from '../../http/platform.ts'
import { waitWithin } from './loop-lag.ts'

const TICKS = 10

export interface LoopLag {
  /** Milliseconds, over the last ten seconds. */
  readonly p50: number
  readonly p99: number
}

interface RecentLoadDeps {
  readonly loopDelay: LoopDelay
  /** Steady time. */
  readonly now: () => number
  /** Total calls started. */
  readonly startedCalls: () => number
}

export class RecentLoad {
  readonly #deps: RecentLoadDeps
  /** Total calls started at each of the last ticks, oldest first. */
  readonly #started: number[]
  #ticks = 0
  /** When the loop was looked at last. */
  #lookedAt: number
  #lag: LoopLag = { p50: 0, p99: 0 }

  constructor(deps: RecentLoadDeps) {
    this.#deps = deps
    this.#started = [deps.startedCalls()]
    this.#lookedAt = deps.now()
  }

  /** Called every `TICK_MS`. */
  tick(): void {
    this.#started.push(this.#deps.startedCalls())
    if (this.#started.length > TICKS + 1) this.#started.shift()
    this.#ticks += 1
    if (this.#ticks % TICKS !== 0) return
    const { loopDelay, now } = this.#deps
    const spanMs = now() - this.#lookedAt
    this.#lag = { p50: lagOf(loopDelay, 0.5, spanMs), p99: lagOf(loopDelay, 0.99, spanMs) }
    this.#lookedAt = now()
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

const lagOf = (loopDelay: LoopDelay, part: number, spanMs: number): number =>
  Math.round(waitWithin(part, loopDelay, spanMs) * 1_000) / 1_000
