/** One customer's money and limits in memory: its balance, what is reserved, what is allowed. */
import { DAY_MS } from '../../../schema/clock.ts'
import { noHold, type Hold, type Share, type Shares } from '../../../schema/contracts/limits.ts'
import type { Balance } from '../../../schema/contracts/charging.ts'
import type { NodeShare } from '../../shares/node-share.ts'
import type { NodeShares } from '../../shares/node-shares.ts'

/** The terms that an operator set. A limit of 0 is no limit. */
export interface Terms {
  readonly customerId: number
  readonly tenantId: number | null
  /** The customer and its tenant are both active. */
  readonly isActive: boolean
  readonly planId: number | null
  /** Null: the customer has no wallet, so nothing to pay with. */
  readonly walletId: number | null
  /** Of the wallet. */
  readonly currency: string | null
  readonly creditLimitMicros: number
  readonly maxConcurrentCalls: number
  /** Calls per second. */
  readonly maxCps: number
  /** Per day (UTC). */
  readonly maxDailySpendMicros: number
  readonly maxCallSeconds: number
  /** Below this the customer's balance is low. */
  readonly lowBalanceMicros: number
}

/** What the limits of a customer say of one more call. */
export type Room =
  | 'room'
  /** Other nodes may have room for it. */
  | 'ask'
  /** What other nodes use is not known. */
  | 'unreachable'
  | 'concurrent_limit'
  | 'cps_limit'

/** Whose calls count against the limits of a customer. */
export type Counting =
  /** Those of all nodes. */
  | 'all'
  /** Those of all nodes; while the database does not answer, those of this node. */
  | 'answered'
  /** Those of this node. */
  | 'alone'

/** What came of asking other nodes for room for one more call. */
export interface HeldRoom {
  /** Its start counts already. */
  readonly isCounted: boolean
  readonly calls: Hold
  readonly starts: Hold
}

/** Where other nodes draw from the same. */
export interface SharedWith {
  /** Absent: no other one counts against the same limits. */
  readonly limits?: Shares | undefined
  /** Absent: no other one spends from the same wallets. */
  readonly money?: NodeShares | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

/** Midnight UTC before `now`. */
export const startOfDay = (now: number): number => now - (now % DAY_MS)

/**
 * The balance is the one that the database has committed; what live calls may still cost is
 * reserved on top. No call reserves more than `availableMicros`, so debits and reservations
 * together stay within what was paid in plus the credit limit.
 */
export class Customer {
  terms: Terms
  reservedMicros = 0n
  openCalls = 0
  #balanceMicros: bigint
  /** The ledger entry that the balance is of; 0: not known. */
  #lastEntry = 0
  /** The balance has followed a commit since `beginLoad`. */
  #hasMoved = false
  /** All debits of this process. */
  #debitedMicros = 0n
  readonly #attempts = new RollingSecond()
  readonly #shared: SharedWith | undefined
  #sharedMoney: NodeShare | undefined
  #sharedCalls: Share | undefined
  #sharedStarts: Share | undefined
  #spentMicros = 0n
  #spentOn = -1

  constructor(terms: Terms, balanceMicros: bigint, shared?: SharedWith) {
    this.terms = terms
    this.#shared = shared
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
   * What is read from now on is not older than the balance in memory, unless that moves meanwhile.
   */
  beginLoad(): void {
    this.#hasMoved = false
  }

  /**
   * Takes over what was read since `beginLoad`. A balance that has moved meanwhile stays: it is the
   * one after the last commit, and what was read may be the one before. So does the wallet, which
   * may not have been there.
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

  /** Where they do, what this one may. Undefined: they do not, or there is no wallet. */
  get money(): NodeShare | undefined {
    if (this.#sharedMoney !== undefined || this.#shared?.money === undefined)
      return this.#sharedMoney
    const { walletId } = this.terms
    if (walletId === null) return undefined
    const used = (): number => Number(this.reservedMicros)
    return (this.#sharedMoney = this.#shared.money.of(String(walletId), used))
  }

  /** What this process may reserve now. */
  get spendableMicros(): bigint {
    if (!this.isShared) return this.availableMicros
    return BigInt(this.money?.free ?? 0)
  }

  /** What may still be reserved today; undefined without a daily limit. */
  dailyBudgetMicros(now: number): bigint | undefined {
    // A share is within the limit already, with what other processes have spent.
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

  /** Takes over what the ledger says was debited since midnight. */
  setSpending(micros: bigint, now: number): void {
    this.#spentOn = startOfDay(now)
    this.#spentMicros = micros
  }

  /**
   * Counts a new call if there is room for it.
   *
   * @param held when other nodes have been asked: what came of it. Only without it the answer may
   * be `ask`.
   */
  admit(now: number, held?: HeldRoom, counting: Counting = 'all'): Room {
    const { maxConcurrentCalls, maxCps } = this.terms
    if (maxConcurrentCalls > 0 && this.openCalls >= maxConcurrentCalls) return 'concurrent_limit'
    const isStart = maxCps > 0 && held?.isCounted !== true
    if (isStart && !this.#attempts.hasRoom(now, maxCps)) return 'cps_limit'
    const room = counting === 'alone' ? 'room' : this.#roomHere(isStart, held, counting)
    if (room === 'room' && isStart) this.#attempts.add(now)
    return room
  }

  #roomHere(isStart: boolean, held: HeldRoom | undefined, counting: Counting): Room {
    const { maxConcurrentCalls, maxCps } = this.terms
    const [calls, starts] = [this.#calls(maxConcurrentCalls), this.#starts(isStart ? maxCps : 0)]
    if (calls?.admits(maxConcurrentCalls, ownOf(held?.calls)) === false) {
      const room = denied(calls, maxConcurrentCalls, held) ?? 'concurrent_limit'
      if (room !== 'unreachable' || counting === 'all') return room
    }
    if (starts?.admits(maxCps, ownOf(held?.starts)) === false) {
      const room = denied(starts, maxCps, held) ?? 'cps_limit'
      if (room !== 'unreachable' || counting === 'all') return room
    }
    return 'room'
  }

  /** What `admit` would return in the end; nothing is counted. */
  foresee(now: number): Room {
    const { maxConcurrentCalls, maxCps } = this.terms
    const [calls, starts] = [this.#calls(maxConcurrentCalls), this.#starts(maxCps)]
    if (maxConcurrentCalls > 0 && this.openCalls >= maxConcurrentCalls) return 'concurrent_limit'
    if (calls?.mayAdmit(maxConcurrentCalls) === false) return 'concurrent_limit'
    if (maxCps > 0 && !this.#attempts.hasRoom(now, maxCps)) return 'cps_limit'
    return starts?.mayAdmit(maxCps) === false ? 'cps_limit' : 'room'
  }

  /**
   * Holds room for one call, and asks other nodes where there is none here; waits a tenth of a
   * second at most.
   *
   * @param isCounted its start counts already.
   */
  async obtainRoom(isCounted: boolean): Promise<HeldRoom> {
    const { maxConcurrentCalls, maxCps } = this.terms
    const [calls = noHold, starts = noHold] = await Promise.all([
      this.#calls(maxConcurrentCalls)?.obtain(maxConcurrentCalls),
      this.#starts(isCounted ? 0 : maxCps)?.obtain(maxCps),
    ])
    return { isCounted, calls, starts }
  }

  /** Its calls are counted without being asked for: some have been resumed, or the limit is new. */
  noteCalls(): void {
    const { maxConcurrentCalls } = this.terms
    if (this.openCalls > 0) this.#calls(maxConcurrentCalls)?.noted(maxConcurrentCalls)
  }

  #calls(limit: number): Share | undefined {
    const { limits } = this.#shared ?? {}
    if (limit === 0 || limits === undefined) return undefined
    return (this.#sharedCalls ??= limits.of(
      `customer ${this.terms.customerId} calls`,
      () => this.openCalls,
    ))
  }

  #starts(limit: number): Share | undefined {
    const { limits, now } = this.#shared ?? {}
    if (limit === 0 || limits === undefined || now === undefined) return undefined
    return (this.#sharedStarts ??= limits.of(`customer ${this.terms.customerId} starts`, () =>
      this.#attempts.count(now()),
    ))
  }
}

/** Undefined: the limit is reached. */
function denied(
  share: Share,
  limit: number,
  held: HeldRoom | undefined,
): 'ask' | 'unreachable' | undefined {
  if (held === undefined && (share.mayAdmit(limit) || !share.isAnswered)) return 'ask'
  return share.isAnswered ? undefined : 'unreachable'
}

const ownOf = (hold: Hold | undefined): number => (hold?.isGiven === true ? 1 : 0)

/** The times of the last second's calls, oldest first, from `#start` on. */
class RollingSecond {
  #times: number[] = []
  #start = 0

  /** Past times are dropped. */
  hasRoom(now: number, limit: number): boolean {
    return this.count(now) < limit
  }

  count(now: number): number {
    while ((this.#times[this.#start] ?? Infinity) <= now - 1_000) this.#start += 1
    return this.#times.length - this.#start
  }

  add(now: number): void {
    if (this.#start > 1_000) this.#dropPast()
    this.#times.push(now)
  }

  #dropPast(): void {
    this.#times = this.#times.slice(this.#start)
    this.#start = 0
  }
}
