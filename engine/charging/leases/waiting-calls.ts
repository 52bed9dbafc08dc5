/** Calls that wait for money of a wallet, in the order of their arrival. */
import type { Schedule } from '../../../schema/clock.ts'

/** A call waits for so long at most. */
export const LEASE_WAIT_MS = 100
const MAX_WAITING = 10_000

interface Waiting {
  readonly amountMicros: bigint
  readonly done: () => void
  isOver: boolean
}

export class WaitingCalls {
  readonly #schedule: Schedule
  readonly #byWallet = new Map<number, Waiting[]>()
  #size = 0

  constructor(schedule: Schedule) {
    this.#schedule = schedule
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

  /** Resolves when it waits no longer. */
  add(walletId: number, amountMicros: bigint): Promise<void> {
    this.#size += 1
    return new Promise((resolve) => {
      const waiting: Waiting = {
        amountMicros,
        isOver: false,
        done: () => {
          if (waiting.isOver) return
          waiting.isOver = true
          this.#size -= 1
          cancel()
          resolve()
        },
      }
      const cancel = this.#schedule(waiting.done, LEASE_WAIT_MS)
      const others = this.#byWallet.get(walletId)
      if (others === undefined) this.#byWallet.set(walletId, [waiting])
      else others.push(waiting)
    })
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
        one.done()
      }
      const left = waiting.filter(({ isOver }) => !isOver)
      if (left.length === 0) this.#byWallet.delete(walletId)
      else this.#byWallet.set(walletId, left)
    }
  }

  /** There is no more. */
  end(walletId: number): void {
    for (const { done } of this.#byWallet.get(walletId) ?? []) done()
    this.#byWallet.delete(walletId)
  }
}
