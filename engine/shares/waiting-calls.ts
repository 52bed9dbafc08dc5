/** Calls that wait for more of a share, in the order in which they came. */
import type { Schedule, Cancel } from '../../schema/clock.ts'
import { noHold, type Hold } from '../../schema/contracts/limits.ts'

/** A call waits for so long at most for what other instances may give back. */
export const SHARE_WAIT_MS = 100
/** Calls are refused at once for so long after one has waited in vain. */
const QUIET_MS = 250
/** A call waits for so long for a database that does not answer, rather than hear 503. */
export const UNANSWERED_WAIT_MS = 500

interface WaitClock {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

export interface WaitDeps extends WaitClock {
  /**
   * How long a call waits for a server that answers others: their transactions hold what this one
   * needs.
   */
  readonly busyWaitMs: number
  /** A call begins to wait (1), or waits no longer (-1). */
  readonly waits: (change: 1 | -1) => void
}

/** The share for which the calls wait. */
interface Supply {
  readonly free: number
  hold(amount: number): Hold
}

interface WaitingCall {
  readonly amount: number
  /** The database has said that nothing more is free now. */
  isAnswered: boolean
  /** The database answers other questions meanwhile. */
  isServerThere: boolean
  readonly settle: (isGiven: boolean) => void
}

export class WaitingCalls {
  readonly #supply: Supply
  readonly #deps: WaitDeps
  readonly #calls: WaitingCall[] = []
  #quietUntil = -Infinity
  /** Whether the database answered the last call that waited in vain, or any request since. */
  isAnswered = true

  constructor(supply: Supply, deps: WaitDeps) {
    this.#supply = supply
    this.#deps = deps
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0
  }

  /** Sum of the amounts for which calls wait. */
  get amount(): number {
    let sum = 0
    for (const { amount } of this.#calls) sum += amount
    return sum
  }

  get firstAmount(): number {
    return this.#calls[0]?.amount ?? 0
  }

  /** A call has just waited in vain, and nothing has come since. */
  get isQuiet(): boolean {
    return this.#deps.now() < this.#quietUntil
  }

  endQuiet(): void {
    this.#quietUntil = -Infinity
  }

  /** Resolves with a hold when so much is free, or when waiting is in vain. */
  wait(amount: number): Promise<Hold> {
    const { waits, busyWaitMs } = this.#deps
    waits(1)
    return new Promise((resolve) => {
      const call: WaitingCall = {
        amount,
        isAnswered: false,
        isServerThere: false,
        settle: (isGiven) => {
          cancel()
          const index = this.#calls.indexOf(call)
          if (index < 0) return
          this.#calls.splice(index, 1)
          waits(-1)
          if (isGiven) return resolve(this.#supply.hold(amount))
          if (call.isAnswered) this.#quietUntil = this.#deps.now() + QUIET_MS
          else this.isAnswered = false
          resolve(call.isAnswered ? noHold : unknownHold)
        },
      }
      const atMostMs = (): number => {
        if (call.isAnswered) return SHARE_WAIT_MS
        return call.isServerThere ? busyWaitMs : UNANSWERED_WAIT_MS
      }
      const cancel = waitForAnswer(this.#deps, atMostMs, () => {
        this.serve()
        call.settle(false)
      })
      this.#calls.push(call)
    })
  }

  /** Lets calls go on for which there is enough. */
  serve(): void {
    if (this.isEmpty) return
    for (const call of [...this.#calls]) {
      if (this.#supply.free < call.amount) return
      call.settle(true)
    }
  }

  /** The database has said that nothing more is free now; other instances may give some back. */
  noteAnswer(): void {
    for (const call of this.#calls) call.isAnswered = true
  }

  /** The server answers, but has not yet answered the request for these calls. */
  noteServer(): void {
    for (const call of this.#calls) call.isServerThere = true
  }

  /** Ends the wait of all: nothing more comes. */
  refuse(): void {
    for (const call of [...this.#calls]) call.settle(false)
  }
}

/** Nothing is held, as the database did not answer in time. */
export const unknownHold: Hold = { ...noHold, isKnown: false }

// Time in which this process stands still counts as one part of the wait: it has not asked, or the
// answer is there unread.
const PART_MS = 25
/**
 * A part that took longer counts so much: a process that is slow all the time does not hold its
 * callers for long.
 */
const LONGEST_PART_MS = 100
/**
 * The end of a wait: a late event loop runs timers first, and then reads the answer that is there.
 */
const LAST_MS = 10
/**
 * Nothing waits for longer, whatever stands still: a caller that heard nothing else has repeated
 * its INVITE four times.
 */
const LONGEST_WAIT_MS = 5_000

/**
 * Calls `giveUp` after `atMostMs` of waiting, which may become less or more meanwhile; the returned
 * function cancels it.
 */
function waitForAnswer(
  { now, schedule }: WaitClock,
  atMostMs: () => number,
  giveUp: () => void,
): Cancel {
  const latest = now() + LONGEST_WAIT_MS
  let cancel: Cancel = () => undefined
  const wait = (waitedMs: number): void => {
    const startedAt = now()
    const leftMs = startedAt < latest ? atMostMs() - LAST_MS - waitedMs : 0
    const partMs = Math.min(PART_MS, leftMs)
    const next = (): void => {
      const tookMs = Math.max(partMs, now() - startedAt)
      wait(waitedMs + Math.min(tookMs, LONGEST_PART_MS))
    }
    cancel = partMs > 0 ? schedule(next, partMs) : schedule(giveUp, LAST_MS)
  }
  wait(0)
  return () => cancel()
}
