/**
 * Charges calls that end. Where several processes spend from one wallet, a call that was cut off
 * may cost more than this one holds, and less than the wallet has: it waits a moment for the rest.
 */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Books } from '../authorization/authorize.ts'
import { type Charge, chargeOf, missingFor } from './charge.ts'

interface ChargesDeps {
  readonly books: () => Books
  /** False: others may spend what this process holds of wallets. */
  readonly canHold: () => boolean
  /** Present while it is asked whether others have what this process held: resolves in a moment. */
  readonly uncertain?: () => Promise<void> | undefined
}

export class Charges {
  readonly #deps: ChargesDeps
  /** Calls that wait; each decides on what there is now. */
  readonly #waiting = new Map<() => void, Promise<void>>()

  constructor(deps: ChargesDeps) {
    this.#deps = deps
  }

  /**
   * Calls `settle` with what the call costs: at once, or when the share is large enough, or cannot
   * be in time. Until then the journal has the call as it was before its end: after a crash it goes
   * on, and no party has got a BYE.
   */
  of<T>(record: CallRecord, settle: (charge: Charge) => Promise<T>): Promise<T> {
    const { books, canHold, uncertain } = this.#deps
    const certain = uncertain?.()
    if (certain !== undefined) return this.#later(record, settle, (decide) => certain.then(decide))
    const missing = canHold() ? missingFor(record, books()) : undefined
    const share = missing?.payer.money
    if (missing === undefined || share === undefined) return settle(chargeOf(record, books()))
    return this.#later(record, settle, async (decide) => {
      const { end } = await share.obtainAmount(Number(missing.amountMicros))
      end()
      decide()
    })
  }

  /** `wait` calls what it is given when the call may be charged. */
  #later<T>(
    record: CallRecord,
    settle: (charge: Charge) => Promise<T>,
    wait: (decide: () => void) => Promise<void>,
  ): Promise<T> {
    const { books } = this.#deps
    return new Promise((resolve, reject) => {
      const decide = (): void => {
        if (this.#waiting.delete(decide)) settle(chargeOf(record, books())).then(resolve, reject)
      }
      this.#waiting.set(decide, wait(decide))
    })
  }

  get areWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Resolves when no call waits. */
  async finish(): Promise<void> {
    await Promise.all(this.#waiting.values())
  }
}
