/**
 * This instance's share of one resource: how much it may use without asking, and what its next
 * request asks of the database. `README.md` has the protocol.
 */
import { noHold, type Hold, type Share } from '../../schema/contracts/limits.ts'
import type { ShareTable } from '../../schema/tables/installation.ts'
import type { ShareAnswer, ShareRequest, StoredShare } from './share-rows.ts'
import { type DemandEvent, type DemandState, demandTable } from './share-tables.ts'
import { UseRate } from './use-rate.ts'
import { unknownHold, type WaitDeps, WaitingCalls } from './waiting-calls.ts'

/** A kind of resource, and how much of it instances hold. */
export interface ShareKind {
  readonly kind: ShareTable['kind']
  /** The use of so many seconds is held ahead. */
  readonly aheadSeconds: number
  /**
   * The second that has begun counts, too: many come at once, and none of them should ask by
   * itself.
   */
  readonly isBursty?: true
  readonly busyWaitMs: number
  /** A part that is not needed for so many polls (one a second) is given back. Absent: ten. */
  readonly idlePolls?: number
}

/** The holder of all shares of this instance, as one share sees it. */
export interface ShareHolder extends ShareKind, WaitDeps {
  /** False: another instance may have this one's shares. */
  readonly canHold: () => boolean
  /** Whether one more call may wait. */
  readonly hasRoom: () => boolean
  /** The share is to be set anew in the database. */
  readonly want: (share: InstanceShare, isUrgent: boolean) => void
}

/** A share asks for more ahead no sooner than this after the last answer. */
const AHEAD_PAUSE_MS = 100
/** The same pause where instances hold all that there is. */
const ALL_HELD_PAUSE_MS = 1_000
const IDLE_POLLS = 10

export class InstanceShare implements Share {
  readonly resource: string
  /** The limit of a day bounds it, and not the money, as the database said last. */
  isOfDay = false
  /** The sum of the shares of other instances, as the database said last. */
  elsewhere = 0
  /** Counts the use anew. */
  readonly reset: () => void
  readonly waiting: WaitingCalls
  readonly #used: () => number
  readonly #holder: ShareHolder
  /** Never more than what is stored. */
  #amount = 0
  #stored: StoredShare = nothingStored
  /** The need in the request that is under way, or the answer of which is lost. */
  #requested: { readonly limit: number; need: number } | undefined
  /** Infinity: the database knows it. */
  #limit: number
  /** The amount that is held for calls that are not counted yet. */
  #promised = 0
  readonly #rate = new UseRate()
  /** Nothing is asked for ahead before this time. */
  #aheadAt = -Infinity
  #demand: DemandState = 'growing'
  /** The amount that stays while the demand is `returning` or `yielding`. */
  #keep = 0
  #idlePolls = 0

  constructor(resource: string, used: () => number, reset: () => void, holder: ShareHolder) {
    this.resource = resource
    this.reset = reset
    this.#used = used
    this.#holder = holder
    this.#limit = holder.kind === 'wallet' ? Infinity : 0
    this.waiting = new WaitingCalls(this, holder)
  }

  // ---- a call is admitted ----------------------------------------------------------------------

  admits(limit: number, own = 0): boolean {
    this.follow(limit)
    // This comes first: a share that may not be held any more has nothing free.
    const canHold = this.#holder.canHold()
    if (this.free + own <= 0 || this.#isClosing || !canHold) return false
    this.begun(1, own - 1)
    return true
  }

  mayAdmit(limit: number): boolean {
    const used = this.#used()
    if (used >= limit || this.#isClosing || !this.#holder.canHold()) return false
    const isQuiet = limit <= this.#limit && this.isQuiet
    return !isQuiet || used + this.#promised < this.#amount
  }

  get isAnswered(): boolean {
    return this.waiting.isAnswered && this.#holder.canHold()
  }

  /** A call has just waited in vain, and nothing has come since. */
  get isQuiet(): boolean {
    return this.waiting.isQuiet
  }

  /** Returns how much may be used now. Negative: more is used than this instance has. */
  get free(): number {
    return this.#amount - this.#used() - this.#promised
  }

  /**
   * So much was used. More is asked for before a call has to wait for it.
   *
   * @param more the amount that is free apart from what is counted.
   */
  begun(amount: number, more = 0): void {
    this.#rate.add(amount)
    const isLow = (this.free + more) * 2 < this.#ahead
    if (isLow && !this.isQuiet && this.#holder.now() >= this.#aheadAt)
      this.#holder.want(this, false)
  }

  obtain(limit: number): Promise<Hold> {
    this.follow(limit)
    return this.mayAdmit(limit) ? this.obtainAmount(1) : Promise.resolve(noHold)
  }

  /** Asks also where a call has just waited in vain. */
  obtainAmount(amount: number): Promise<Hold> {
    const { canHold, hasRoom, want } = this.#holder
    if (this.#isClosing || !canHold() || !hasRoom()) return Promise.resolve(unknownHold)
    if (this.free >= amount && this.waiting.isEmpty) return Promise.resolve(this.hold(amount))
    const hold = this.waiting.wait(amount)
    want(this, true)
    return hold
  }

  noted(limit = Infinity): void {
    this.follow(limit)
    if (this.#used() > this.#amount) this.#holder.want(this, false)
  }

  /** Sets a free amount apart for a call that is not counted yet. */
  hold(amount: number): Hold {
    this.#promised += amount
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#promised -= amount
      isOver = true
    }
    return { isGiven: true, isKnown: true, end }
  }

  // ---- the database is asked, and answers ------------------------------------------------------

  /** Returns what is stored next. The part that is given back is not used from here on. */
  request(): ShareRequest {
    const demand = this.#demand
    const used = atMost(this.#used())
    const wanted = demand === 'yielding' ? 0 : this.waiting.amount
    const need = atMost(used + this.#promised + wanted)
    const kept = Math.max(need, demand === 'growing' ? this.#amount : this.#keep)
    const base = demand === 'closing' ? used : kept
    const extra = demand === 'growing' ? Math.max(0, atMost(need + this.#ahead) - base) : 0
    this.#amount = Math.min(this.#amount, base)
    this.#step('sent')
    this.#requested = { limit: this.#limit, need }
    const { version } = this.#stored
    return { resource: this.resource, limit: this.#limit, used, base, extra, version }
  }

  /**
   * Lets calls go on for which there is enough. Returns the amount for which others wait until
   * other instances give some back.
   */
  answered(answer: Omit<ShareAnswer, 'resource'>): number {
    this.waiting.isAnswered = true
    this.elsewhere = answer.elsewhere
    this.isOfDay = answer.isOfDay
    // Otherwise calls have spent of it meanwhile: until that is known here, what they held counts
    // twice.
    const isWhole = answer.version <= this.#stored.version + 1
    if (answer.version > this.#stored.version) this.#stored = answer
    const { amount } = this.#stored
    const { limit, need } = this.#requested ?? { limit: 0, need: 0 }
    this.#requested = undefined
    const isOfThisLimit = limit <= this.#limit
    this.#amount = isOfThisLimit ? amount : Math.min(amount, this.#used())
    if (!isOfThisLimit) this.#holder.want(this, false)
    const isAllHeld = answer.amount + answer.elsewhere >= limit
    this.#aheadAt = this.#holder.now() + (isAllHeld ? ALL_HELD_PAUSE_MS : AHEAD_PAUSE_MS)
    this.#serve()
    if (!isWhole && !this.waiting.isEmpty) this.#holder.want(this, true)
    const isShort = isWhole && answer.amount < need
    // Otherwise those that wait have come since, or are asked for again.
    if (!isShort || this.waiting.isEmpty) return 0
    this.waiting.noteAnswer()
    if (answer.elsewhere === 0 || this.#used() >= this.#limit) this.refuse()
    return Math.max(0, this.waiting.amount - Math.max(0, this.free))
  }

  /** The database has committed a debit of calls: the share is smaller by it. */
  spent({ amount, version }: StoredShare, micros: number): void {
    if (version <= this.#stored.version) return
    this.#stored = { amount, version }
    // A request that is under way may be stored after this, or was before.
    this.#amount = Math.min(amount, Math.max(0, this.#amount - micros))
    this.#keep = Math.max(0, this.#keep - micros)
    if (this.#requested !== undefined) this.#requested.need -= micros
  }

  /** Ends the wait of calls: there is no more than here. */
  refuse(): void {
    this.#serve()
    this.waiting.refuse()
  }

  // ---- a part is given back, or lost -----------------------------------------------------------

  /**
   * Another instance needs so much. Of the part that is not used here it gets as much, or half;
   * where both have too little for a call that waits, the one with the lesser name keeps its part.
   * False: nothing is left.
   */
  give(amount: number, isLesser: boolean): boolean {
    const { free } = this
    const isStuck = !isLesser && free < this.waiting.firstAmount
    const idle = isStuck ? free : free - this.waiting.amount
    if (idle <= 0) return false
    this.#amount -= Math.min(idle, Math.max(amount, Math.ceil(idle / 2)))
    this.#keep = this.#amount
    this.#idlePolls = 0
    this.#step(isStuck ? 'outranked' : 'asked')
    return true
  }

  /** Another instance has given something back, or money has come. */
  freed(): void {
    this.waiting.endQuiet()
    if (!this.waiting.isEmpty) this.#holder.want(this, true)
  }

  /** Another instance may hold meanwhile what is not used here. */
  void(): void {
    this.#amount = Math.min(this.#amount, this.#used())
    this.#keep = this.#amount
    this.#step('voided')
  }

  /** The database allows less than before: the free part is asked for anew. */
  lowered(): void {
    if (this.#amount === 0) return
    this.void()
    this.#holder.want(this, false)
  }

  /** Another server may answer, which is behind, or has freed what this instance had. */
  forgetStored(): void {
    this.#stored = nothingStored
  }

  /** Gives back what is not used; no call begins any more. */
  close(): void {
    this.#step('closed')
  }

  /**
   * An operator has changed the limit. A share that was granted under a greater one is void, as
   * other instances hold a part of it.
   */
  follow(limit: number): void {
    if (limit === this.#limit) return
    const isLess = limit < this.#limit
    this.#limit = limit
    this.waiting.endQuiet()
    if (!isLess) return
    this.void()
    this.#holder.want(this, false)
  }

  /** Passes once a second. False: nothing of it is used or held here. */
  poll(): boolean {
    const used = this.#used() + this.#promised + this.waiting.amount
    this.#rate.tick()
    if (used === 0 && this.#amount === 0 && this.#rate.isZero) return false
    if (used > this.#amount) this.#holder.want(this, false)
    const ahead = this.#ahead
    this.#idlePolls = this.#amount > used + 2 * ahead ? this.#idlePolls + 1 : 0
    if (this.#idlePolls >= (this.#holder.idlePolls ?? IDLE_POLLS)) {
      this.#idlePolls = 0
      this.#keep = used + ahead
      this.#step('idle')
    }
    return true
  }

  #step(event: DemandEvent): void {
    const step = demandTable[this.#demand][event]
    if (step === undefined) return
    this.#demand = step.to
    for (const action of step.do) {
      if (action === 'refuseWaiting') this.refuse()
      else this.#holder.want(this, action === 'wantAtOnce')
    }
  }

  get #isClosing(): boolean {
    return this.#demand === 'closing'
  }

  #serve(): void {
    if (!this.#isClosing) this.waiting.serve()
  }

  /** Returns how much the next seconds use. */
  get #ahead(): number {
    const { aheadSeconds, isBursty } = this.#holder
    return this.#rate.ahead(aheadSeconds, isBursty === true)
  }
}

const nothingStored: StoredShare = { amount: 0, version: 0 }
/** Bounds an amount: what is greater is no exact number. */
const atMost = (amount: number): number => Math.min(amount, Number.MAX_SAFE_INTEGER)
