/**
 * Decides which live calls go on when others have taken the money held for them: this process was
 * asleep, paused or cut off for so long that its shares were freed (D183). It asks anew. A call
 * whose grant has passed by the clock of the server ends, and so does one for which nothing more is
 * there; the others go on. No call costs more than what was obtained anew.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { RevokedCall } from '../../schema/contracts/charging.ts'
import type { Fenced } from '../../schema/contracts/instances.ts'
import type { InstanceShares } from '../shares/instance-shares.ts'
import type { Customer } from './customers/customer.ts'
import type { Reservation, Reservations } from './authorization/reservations.ts'

interface LostHoldingsDeps {
  /** Undefined: no other process spends from the same wallets. */
  readonly money: InstanceShares | undefined
  readonly reservations: Reservations
  /** A call whose payer cannot be asked is refused, or goes on. */
  readonly failMode: 'closed' | 'open'
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

/** The end of a call waits for so long at most to learn what it may cost: two heartbeats. */
const CERTAIN_MS = 3_000
const STEP_MS = 50

export class LostHoldings {
  readonly #deps: LostHoldingsDeps
  /** The last loss; undefined: there was none. */
  #lost: (Fenced & { readonly at: number }) | undefined
  #isAsking = false
  #certain: Promise<void> | undefined

  constructor(deps: LostHoldingsDeps) {
    this.#deps = deps
  }

  /** Resolves when it was asked anew; `revoked` knows from then on which calls end. */
  async lose(fenced: Fenced): Promise<void> {
    const { reservations, money, now } = this.#deps
    reservations.takenAway()
    this.#lost = { ...fenced, at: now() }
    this.#isAsking = true
    const asked = fenced.mayHold ? money?.holdAnew() : undefined
    await Promise.race([asked, this.#pause(CERTAIN_MS)])
    this.#isAsking = false
  }

  /** Present while it is not known what a call may cost that ends now. Never rejects. */
  certain(): Promise<void> | undefined {
    if (!this.#isUncertain) return undefined
    return (this.#certain ??= this.#untilCertain())
  }

  get #isUncertain(): boolean {
    return this.#isAsking || this.#deps.money?.mayHaveSlept === true
  }

  async #untilCertain(): Promise<void> {
    const latest = this.#deps.now() + CERTAIN_MS
    while (this.#isUncertain && this.#deps.now() < latest) await this.#pause(STEP_MS)
    this.#certain = undefined
  }

  #pause(waitMs: number): Promise<void> {
    return new Promise((resolve) => void this.#deps.schedule(resolve, waitMs))
  }

  /** Those of the live calls that are not paid for any more. */
  revoked(callUuids: readonly string[]): readonly RevokedCall[] {
    const lost = this.#lost
    if (lost === undefined || this.#isAsking) return []
    /** Money missing for the calls of each payer; those that end need nothing. */
    const missing = new Map<Customer, number>()
    const calls = callUuids.flatMap((callUuid) => this.#paid(callUuid))
    const ended = calls.filter(({ call }) => this.#isOver(call, lost))
    for (const { payer } of calls) missing.set(payer, Math.max(0, -Number(payer.spendableMicros)))
    for (const { payer, call } of ended)
      missing.set(payer, (missing.get(payer) ?? 0) - call.amountMicros)
    const unpaid = calls.filter((each) => {
      const micros = missing.get(each.payer) ?? 0
      if (micros <= 0 || ended.includes(each)) return false
      missing.set(each.payer, micros - each.call.amountMicros)
      return true
    })
    return [
      ...ended.map(({ call: { callUuid } }) => ({ callUuid, code: 'ocs_unreachable' })),
      ...unpaid.map(({ call: { callUuid } }) => ({ callUuid, code: 'insufficient_funds' })),
    ]
  }

  #paid(callUuid: string): readonly { readonly call: Reservation; readonly payer: Customer }[] {
    const call = this.#deps.reservations.find(callUuid)
    if (call?.isTakenAway !== true || call.isEnded) return []
    const { payer, amountMicros } = call
    return payer === undefined || amountMicros === 0 ? [] : [{ call, payer }]
  }

  /** Compares with the clock of the server, which went on while this process slept. */
  #isOver(
    { answeredAt, grantedSeconds }: Reservation,
    { at, stoodStillMs, mayHold }: Fenced & { readonly at: number },
  ): boolean {
    if (!mayHold) return this.#deps.failMode === 'closed'
    return answeredAt !== undefined && at + stoodStillMs >= answeredAt + grantedSeconds * 1_000
  }
}
