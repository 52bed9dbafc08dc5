/** Calls that wait for money of a wallet, in the order of their arrival. */
import { UNANSWERED_WAIT_MS, waitForAnswer } from '../../../schema/answer-wait.ts'
import type { Schedule } from '../../../schema/clock.ts'

/** A call waits for so long at most for what other nodes may give back, in which this process does its work. */
export const LEASE_WAIT_MS = 100
/** A server that answers has not said so far what a wallet has: transactions of other nodes hold its row. */
export const BUSY_WAIT_MS = 2_000
const MAX_WAITING = 10_000

interface Waiting {
  readonly amountMicros: bigint
  readonly done: () => void
  /** The database has said that nothing more is free now. */
  isAnswered: boolean
  /** The database answers other questions meanwhile. */
  isServerThere: boolean
  isOver: boolean
}

interface WaitingCallsDeps {
  readonly schedule: Schedule
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** A call has waited for its time, and there was no more. */
  readonly onVain?: (walletId: number) => void
}

export class WaitingCalls {
  readonly #deps: WaitingCallsDeps
  readonly #byWallet = new Map<number, Waiting[]>()
  #size = 0

  constructor(deps: WaitingCallsDeps) {
    this.#deps = deps
  }

  get isFull(): boolean {
    return this.#size >= MAX_WAITING
  }

  walletIds(): IterableIterator<number> {
    return this.#byWallet.keys()
  }

  get isEmpty(): boolean {
    return this.#byWallet.size === 0
  }

  has(walletId: number): boolean {
    return this.#byWallet.has(walletId)
  }

  /** Resolves when it waits no longer; false: whether there is more is not known. */
  add(walletId: number, amountMicros: bigint): Promise<boolean> {
    this.#size += 1
    return new Promise((resolve) => {
      const waiting: Waiting = {
        amountMicros,
        isAnswered: false,
        isServerThere: false,
        isOver: false,
        done: () => {
          if (waiting.isOver) return
          waiting.isOver = true
          this.#size -= 1
          cancel()
          resolve(waiting.isAnswered)
        },
      }
      const atMostMs = (): number => {
        if (waiting.isAnswered) return LEASE_WAIT_MS
        return waiting.isServerThere ? BUSY_WAIT_MS : UNANSWERED_WAIT_MS
      }
      const cancel = waitForAnswer(this.#deps, atMostMs, () => {
        if (waiting.isAnswered) this.#deps.onVain?.(walletId)
        waiting.done()
      })
      const others = this.#byWallet.get(walletId)
      if (others === undefined) this.#byWallet.set(walletId, [waiting])
      else others.push(waiting)
    })
  }

  /** The database has said what is free: less than they need. Others may give some back yet. */
  answered(walletId: number): void {
    for (const waiting of this.#byWallet.get(walletId) ?? []) waiting.isAnswered = true
  }

  /** The database has answered, but not yet what it was asked for them. */
  serverIsThere(): void {
    for (const some of this.#byWallet.values()) for (const one of some) one.isServerThere = true
  }

  /** What they need in all. */
  needOf(walletId: number): bigint {
    let sum = 0n
    for (const { amountMicros, isOver } of this.#byWallet.get(walletId) ?? [])
      if (!isOver) sum += amountMicros
    return sum
  }

  /** Lets calls go on for which there is enough. */
  tell(spendableOf: (walletId: number) => bigint): void {
    for (const [walletId, waiting] of this.#byWallet) {
      let spendable = spendableOf(walletId)
      for (const one of waiting) {
        if (one.isOver) continue
        if (spendable < one.amountMicros) break
        spendable -= one.amountMicros
        one.isAnswered = true
        one.done()
      }
      const left = waiting.filter(({ isOver }) => !isOver)
      if (left.length === 0) this.#byWallet.delete(walletId)
      else this.#byWallet.set(walletId, left)
    }
  }

  /** There is no more. */
  end(walletId: number): void {
    this.answered(walletId)
    for (const { done } of this.#byWallet.get(walletId) ?? []) done()
    this.#byWallet.delete(walletId)
  }
}
