/**
 * What the calls of an old process hold of wallets, while it ends after a planned upgrade. Where
 * other nodes spend from the same wallets, the old process has shares of its own: nothing of it counts here.
 */
import type { Held } from '../../../schema/contracts/charging.ts'
import type { Customer } from '../customers/customer.ts'
import type { Reservations } from './reservations.ts'

interface HeldElsewhereDeps {
  readonly reservations: Reservations
  readonly payerOf: (customerId: number) => Customer | undefined
  readonly now: () => number
}

export class HeldElsewhere {
  readonly #deps: HeldElsewhereDeps
  readonly #held: string[] = []
  /** What was told last, until a load has taken it over. */
  #told: readonly Held[] | undefined

  constructor(deps: HeldElsewhereDeps) {
    this.#deps = deps
  }

  /** Holds from the end of the next load on. */
  tell(held: readonly Held[]): void {
    this.#told = held
  }

  /**
   * To be called when a load begins; undefined when nothing was told. What it returns belongs to the balances that were
   * read since: a call is debited before it holds nothing.
   */
  whenLoaded(): (() => void) | undefined {
    const told = this.#told
    if (told === undefined) return undefined
    return () => {
      this.#hold(told)
      if (this.#told === told) this.#told = undefined
    }
  }

  #hold(held: readonly Held[]): void {
    const { reservations, payerOf, now } = this.#deps
    for (const callUuid of this.#held.splice(0)) reservations.release(callUuid)
    for (const { customerId, amountMicros, ...call } of held) {
      const payer = payerOf(customerId)
      if (payer === undefined || payer.isShared) continue
      const callUuid = `old process: ${call.callUuid}`
      const grant = { tariff: null, maxSeconds: 0, grantedSeconds: 0, isLastGrant: true }
      reservations.open({ callUuid, payer, amountMicros, ...grant }, now())
      this.#held.push(callUuid)
    }
  }
}
