/** One customer's money in memory: its terms, its balance, and how much of it calls reserve. */
import { DAY_MS } from '../../../schema/clock.ts'
import type { Balance } from '../../../schema/contracts/charging.ts'
import type { InstanceShare } from '../../shares/instance-share.ts'
import type { InstanceShares } from '../../shares/instance-shares.ts'
import type { LossTerms } from '../../../schema/rules/loss-protection.ts'
import type { CustomerZone } from '../pricing/plan-times.ts'
import { CustomerLimits, type SharedLimits } from './customer-limits.ts'

/** The terms that an operator set. A limit of 0 is no limit. */
export interface Terms {
  readonly customerId: number
  readonly name: string
  readonly tenantId: number | null
  /** The customer and its tenant are both active. */
  readonly isActive: boolean
  readonly planId: number | null
  /** Null: the customer has no wallet, so nothing to pay with. */
  readonly walletId: number | null
  /** Currency of the wallet. */
  readonly currency: string | null
  readonly creditLimitMicros: number
  readonly maxConcurrentCalls: number
  /** Calls that may begin in a second. */
  readonly maxCps: number
  /** Debits in a day (UTC). */
  readonly maxDailySpendMicros: number
  readonly maxCallSeconds: number
  /** Below this the customer's balance is low. */
  readonly lowBalanceMicros: number
  /** Absent: it names none. */
  readonly zone?: CustomerZone | undefined
  /** Absent: nothing is said of calls at a loss. */
  readonly lossTerms?: LossTerms | undefined
}

/** The shares that this instance has where others draw from the same wallets and limits. */
export interface SharedWith extends SharedLimits {
  /** Absent: no other instance spends from the same wallets. */
  readonly money?: InstanceShares | undefined
}

/** Midnight UTC before `now`. */
export const startOfDay = (now: number): number => now - (now % DAY_MS)

/**
 * The balance is the one that the database has committed; the rest of what live calls may cost is
 * reserved on top. No call reserves more than `availableMicros`, so debits and reservations
 * together stay within what was paid in plus the credit limit.
 */
export class Customer {
  terms: Terms
  reservedMicros = 0n
  openCalls = 0
  readonly limits: CustomerLimits
  #balanceMicros: bigint
  /** Id of the ledger entry that left this balance; 0: not known. */
  #lastEntry = 0
  /** The balance has followed a commit since `beginLoad`. */
  #hasMoved = false
  /** Sum of the debits of this process. */
  #debitedMicros = 0n
  readonly #shared: SharedWith | undefined
  #sharedMoney: InstanceShare | undefined
  #spentMicros = 0n
  #spentOn = -1

  constructor(terms: Terms, balanceMicros: bigint, shared?: SharedWith) {
    this.terms = terms
    this.#shared = shared
    this.limits = new CustomerLimits(this, shared)
    this.#balanceMicros = balanceMicros
  }

  get balanceMicros(): bigint {
    return this.#balanceMicros
  }

  get debitedMicros(): bigint {
    return this.#debitedMicros
  }

  /**
   * The database has committed a posting, which has left this balance. `entryId` grows with each
   * posting of a wallet: a balance before the one in memory changes nothing.
   */
  posted(balanceMicros: bigint, entryId: number): void {
    this.#hasMoved = true
    if (entryId <= this.#lastEntry) return
    this.#lastEntry = entryId
    this.#follow(balanceMicros)
  }

  #follow(balanceMicros: bigint): void {
    if (balanceMicros > this.#balanceMicros) this.#sharedMoney?.freed()
    this.#balanceMicros = balanceMicros
  }

  /** Another server may answer, with a ledger that is behind this one's. */
  rewind(): void {
    this.#lastEntry = 0
  }

  /** The database has a wallet for a customer that had none. */
  opened(walletId: number, currency: string): void {
    this.terms = { ...this.terms, walletId, currency }
    this.#hasMoved = true
  }

  /**
   * A load begins: the rows that it reads are not older than the balance in memory, unless that
   * moves meanwhile.
   */
  beginLoad(): void {
    this.#hasMoved = false
  }

  /**
   * Takes over the row that was read since `beginLoad`. A balance that has moved meanwhile stays:
   * it is the one after the last commit, and the row may have the one before. A wallet that was
   * opened meanwhile stays, too: the row may have none.
   */
  take(terms: Terms, balanceMicros: bigint): void {
    const { walletId, currency } = this.terms
    const isOlder = this.#hasMoved && terms.walletId === null
    this.terms = isOlder ? { ...terms, walletId, currency } : terms
    if (!this.#hasMoved) this.#follow(balanceMicros)
  }

  /** Negative after a lowered credit limit, or when a call was billed beyond its grant. */
  get availableMicros(): bigint {
    if (this.terms.walletId === null) return 0n
    return this.#balanceMicros + BigInt(this.terms.creditLimitMicros) - this.reservedMicros
  }

  toBalance(): Balance {
    const { balanceMicros, reservedMicros, availableMicros, openCalls } = this
    const { currency, creditLimitMicros } = this.terms
    return {
      balanceMicros,
      reservedMicros,
      availableMicros,
      creditLimitMicros,
      currency,
      openCalls,
    }
  }

  /** Whether other processes spend from the same wallet. */
  get isShared(): boolean {
    return this.#shared?.money !== undefined
  }

  /** This instance's share of the wallet. Undefined: no other one spends, or there is no wallet. */
  get money(): InstanceShare | undefined {
    if (this.#sharedMoney !== undefined || this.#shared?.money === undefined)
      return this.#sharedMoney
    const { walletId } = this.terms
    if (walletId === null) return undefined
    const used = (): number => Number(this.reservedMicros)
    return (this.#sharedMoney = this.#shared.money.of(String(walletId), used))
  }

  /** Returns how much this process may reserve now. */
  get spendableMicros(): bigint {
    if (!this.isShared) return this.availableMicros
    return BigInt(this.money?.free ?? 0)
  }

  /** Returns how much may still be reserved today; undefined without a daily limit. */
  dailyBudgetMicros(now: number): bigint | undefined {
    // The database keeps the shares within the daily limit, with the debits of other processes.
    if (this.terms.maxDailySpendMicros === 0 || this.isShared) return undefined
    const spent = this.#spentOn === startOfDay(now) ? this.#spentMicros : 0n
    return BigInt(this.terms.maxDailySpendMicros) - spent - this.reservedMicros
  }

  /** Counts a debit that was committed at `now`. */
  addSpending(micros: number, now: number): void {
    const today = startOfDay(now)
    if (this.#spentOn !== today) this.setSpending(0n, now)
    this.#spentMicros += BigInt(micros)
    this.#debitedMicros += BigInt(micros)
  }

  /** Takes over the sum of the debits since midnight, as the ledger has it. */
  setSpending(micros: bigint, now: number): void {
    this.#spentOn = startOfDay(now)
    this.#spentMicros = micros
  }
}
