/**
 * Bounds what one asker takes of this process: bytes of bodies, and milliseconds of the event loop,
 * on which calls are set up, too. A count of requests does not bound either: a body of 64 kB takes
 * a hundred times the work of a small one. Each process has budgets of its own, since it is the
 * process that they protect.
 */
import { nextTick } from 'node:process'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { LRUCache } from 'lru-cache'
import { ApiError } from './api-error.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'

/** An amount that runs off at a steady rate. */
interface Limit {
  readonly perSecond: number
  /** Work that may be used at once; then the rest has to run off. */
  readonly most: number
}

interface Share {
  readonly workMs: Limit
  readonly bytes: Limit
  /** A body that took a millisecond is followed by so many without one. */
  readonly restTimes: number
}

const MIB = 1_048_576

/**
 * `tenant`: all its keys and persons together, because it can make itself a thousand keys; a
 * quarter of the loop leaves calls three. `platform`: each credential by itself. `address`: who
 * shows no valid credential. Two of the largest tables of rates fit at once.
 */
const shares = {
  tenant: {
    workMs: { perSecond: 250, most: 2_500 },
    bytes: { perSecond: 2 * MIB, most: 34 * MIB },
    restTimes: 3,
  },
  platform: {
    workMs: { perSecond: 800, most: 30_000 },
    bytes: { perSecond: 16 * MIB, most: 256 * MIB },
    restTimes: 0,
  },
  address: {
    workMs: { perSecond: 250, most: 2_500 },
    bytes: { perSecond: 2 * MIB, most: 16 * MIB },
    restTimes: 3,
  },
} as const satisfies Readonly<Record<string, Share>>

export type Asker = keyof typeof shares

/** An evicted one starts anew. */
const MAX_ASKERS = 20_000

export class WorkBudgets {
  readonly #steadyNow: () => number
  readonly #budgets: LRUCache<string, WorkBudget> = recentlyUsed(MAX_ASKERS)

  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow
  }

  of(asker: Asker, name: number | string): WorkBudget {
    const key = `${asker} ${name}`
    const known = this.#budgets.get(key)
    if (known !== undefined) return known
    const budget = new WorkBudget(shares[asker], this.#steadyNow)
    this.#budgets.set(key, budget)
    return budget
  }
}

/** A turn that took longer: the machine stood still. Milliseconds. */
const LONGEST_TURN_MS = 1_000
/** Bytes of a refused body that are read, so that its client can read the answer. */
const MAX_DISCARDED = MIB
/** Nobody waits longer, whatever was taken. */
const LONGEST_WAIT_SECONDS = 60
/** Bodies that wait for their turn. */
const MAX_WAITING = 100

export class WorkBudget {
  readonly #workMs: Running
  readonly #bytes: Running
  readonly #restTimes: number
  readonly #steadyNow: () => number
  readonly #waiting: (() => void)[] = []
  #hasTurn = false

  constructor({ workMs, bytes, restTimes }: Share, steadyNow: () => number) {
    this.#steadyNow = steadyNow
    this.#workMs = new Running(workMs)
    this.#bytes = new Running(bytes)
    this.#restTimes = restTimes
  }

  /**
   * How long until there is room again; 0: there is. A request that is let in may take more than
   * the rest.
   */
  waitMs(): number {
    const now = this.#steadyNow()
    return Math.max(this.#workMs.waitMs(now), this.#bytes.waitMs(now))
  }

  /**
   * Its text says why a client that keeps to its rate is refused.
   *
   * @param unread bytes of the body. Many are not read any more: the connection ends.
   */
  refusal(unread = Infinity): ApiError {
    const seconds = Math.max(1, Math.ceil(this.waitMs() / 1_000))
    return new ApiError(
      429,
      'rate_limited',
      'The requests of this credential, or of its tenant, were too large or took too long: ' +
        'send smaller ones, or fewer',
      {
        headers: {
          'Retry-After': String(seconds),
          ...(unread > MAX_DISCARDED && { Connection: 'close' }),
        },
      },
    )
  }

  takeBytes(count: number): void {
    if (count > 0) this.#bytes.take(count, this.#steadyNow())
  }

  takeWork(ms: number): void {
    this.#workMs.take(ms, this.#steadyNow())
  }

  /**
   * Counts what the event loop does from here until nothing is left that need not wait. Resolves
   * with it, in milliseconds.
   */
  measure(): Promise<number> {
    const began = this.#steadyNow()
    return new Promise((resolve) => {
      // Node runs the ticks when no promise is left to continue.
      queueMicrotask(() =>
        nextTick(() => {
          const ms = Math.min(this.#steadyNow() - began, LONGEST_TURN_MS)
          this.takeWork(ms)
          resolve(ms)
        }),
      )
    })
  }

  /**
   * Resolves when the next body may be worked on: one in a turn of the event loop, and then a rest.
   * Bodies that arrive together would else stop all calls for as long as they take together.
   *
   * @throws {ApiError} 429: too many wait.
   */
  async turn(): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING) throw this.refusal(0)
    if (this.#hasTurn) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#hasTurn = true
    void this.#rest(this.measure())
  }

  async #rest(work: Promise<number>): Promise<void> {
    const restMs = (await work) * this.#restTimes
    await (restMs > 0 ? sleep(restMs) : nextTurn())
    const next = this.#waiting.shift()
    if (next === undefined) this.#hasTurn = false
    else next()
  }
}

/** A leaky bucket. */
class Running {
  readonly #limit: Limit
  #taken = 0
  #at = -Infinity

  constructor(limit: Limit) {
    this.#limit = limit
  }

  take(amount: number, now: number): void {
    this.#runOff(now)
    const { perSecond, most } = this.#limit
    const full = most + perSecond * LONGEST_WAIT_SECONDS
    this.#taken = Math.min(this.#taken + Math.max(0, amount), full)
  }

  waitMs(now: number): number {
    this.#runOff(now)
    const { perSecond, most } = this.#limit
    return this.#taken < most ? 0 : Math.ceil(((this.#taken - most + 1) * 1_000) / perSecond)
  }

  #runOff(now: number): void {
    const passedMs = Math.max(0, now - this.#at)
    this.#taken = Math.max(0, this.#taken - (passedMs * this.#limit.perSecond) / 1_000)
    this.#at = Math.max(this.#at, now)
  }
}
