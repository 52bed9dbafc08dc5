/**
 * This node's share of one resource: what it may use without asking, and the calls that wait for
 * more.
 */
import type { Schedule, Cancel } from '../../schema/clock.ts'
import { noHold, type Hold, type Share } from '../../schema/contracts/limits.ts'
import type { ShareTable } from '../../schema/tables/installation.ts'
import type { ShareAnswer, ShareRequest, StoredShare } from './share-rows.ts'

/** What is shared, and how. */
export interface ShareKind {
  readonly kind: ShareTable['kind']
  /** What is used in so many seconds is held ahead. */
  readonly aheadSeconds: number
  /**
   * The second that has begun counts, too: many come at once, and none of them should ask by
   * itself.
   */
  readonly isBursty?: true
  /**
   * How long a call waits for a server that answers others: their transactions hold what this one
   * needs.
   */
  readonly busyWaitMs: number
  /** What is not needed for so many polls (one a second) is given back. Absent: for ten. */
  readonly idlePolls?: number
}

/** What a share asks of those that hold all shares of this node. */
export interface ShareHolder extends ShareKind {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  /** False: another node may have this node's shares. */
  readonly canHold: () => boolean
  /** Room for one more call that waits. */
  readonly hasRoom: () => boolean
  /** A call begins to wait (1), or waits no longer (-1). */
  readonly waits: (change: 1 | -1) => void
  /** The share is to be set anew in the database. */
  readonly want: (share: NodeShare, isUrgent: boolean) => void
}

/** A call waits for so long at most for what other nodes may give back. */
export const SHARE_WAIT_MS = 100
/** After a call has waited in vain, others are refused at once for so long. */
const QUIET_MS = 250
/** Nothing is asked for ahead more often. */
const AHEAD_PAUSE_MS = 100
/** The same where nodes hold all that there is. */
const ALL_HELD_PAUSE_MS = 1_000
const IDLE_POLLS = 10
/** Of the rate of the second before. */
const FADE = 0.8

interface Waiting {
  readonly amount: number
  /** The database has said that nothing more is free now. */
  isAnswered: boolean
  /** The database answers other questions meanwhile. */
  isServerThere: boolean
  readonly settle: (isGiven: boolean) => void
}

export class NodeShare implements Share {
  readonly resource: string
  /** The limit of a day bounds it, and not the money, as the database said last. */
  isOfDay = false
  /** The shares of others, as the database said last. */
  elsewhere = 0
  /** Counts anew what is used. */
  readonly reset: () => void
  readonly #used: () => number
  readonly #holder: ShareHolder
  /** Never more than what is stored. */
  #amount = 0
  #stored: StoredShare = nothingStored
  /**
   * What the request that is under way, or the answer of which is lost, needs. Undefined: there is
   * none.
   */
  #requested: { readonly limit: number; need: number } | undefined
  /** Infinity: the database knows it. */
  #limit: number
  /** Held for calls that are not counted yet. */
  #promised = 0
  readonly #waiting: Waiting[] = []
  #quietUntil = -Infinity
  #aheadAt = -Infinity
  /** To be given back: so much stays. */
  #keep: number | undefined
  /** The calls that wait are not asked for the next time: another node has the precedence. */
  #isYielding = false
  /** Of this second. */
  #started = 0
  #ratePerSecond = 0
  #idlePolls = 0
  #isClosed = false
  #isAnswered = true

  constructor(resource: string, used: () => number, reset: () => void, holder: ShareHolder) {
    this.resource = resource
    this.reset = reset
    this.#used = used
    this.#holder = holder
    this.#limit = holder.kind === 'wallet' ? Infinity : 0
  }

  admits(limit: number, own = 0): boolean {
    this.follow(limit)
    // First: what may not be held any more is not free.
    const canHold = this.#holder.canHold()
    if (this.free + own <= 0 || this.#isClosed || !canHold) return false
    this.begun(1, own - 1)
    return true
  }

  mayAdmit(limit: number): boolean {
    const used = this.#used()
    if (used >= limit || this.#isClosed || !this.#holder.canHold()) return false
    const isQuiet = limit <= this.#limit && this.isQuiet
    return !isQuiet || used + this.#promised < this.#amount
  }

  get isAnswered(): boolean {
    return this.#isAnswered && this.#holder.canHold()
  }

  /** A call has just waited in vain, and nothing has come since. */
  get isQuiet(): boolean {
    return this.#holder.now() < this.#quietUntil
  }

  /** What may be used now. Negative: more is used than this node has. */
  get free(): number {
    return this.#amount - this.#used() - this.#promised
  }

  /**
   * So much was used. `more`: what is free apart from what is counted. More is asked for before a
   * call has to wait for it.
   */
  begun(amount: number, more = 0): void {
    this.#started += amount
    const isLow = (this.free + more) * 2 < this.#ahead
    if (isLow && !this.isQuiet && this.#holder.now() >= this.#aheadAt)
      this.#holder.want(this, false)
  }

  obtain(limit: number): Promise<Hold> {
    this.follow(limit)
    return this.mayAdmit(limit) ? this.obtainAmount(1) : Promise.resolve(noHold)
  }

  /** Whether it is known to be quiet does not count. */
  obtainAmount(amount: number): Promise<Hold> {
    const { canHold, hasRoom, waits, want, busyWaitMs } = this.#holder
    if (this.#isClosed || !canHold() || !hasRoom()) return Promise.resolve(unknownHold)
    if (this.free >= amount && !this.isWaitedFor) return Promise.resolve(this.#promise(amount))
    waits(1)
    return new Promise((resolve) => {
      const waiting: Waiting = {
        amount,
        isAnswered: false,
        isServerThere: false,
        settle: (isGiven) => {
          cancel()
          const index = this.#waiting.indexOf(waiting)
          if (index < 0) return
          this.#waiting.splice(index, 1)
          waits(-1)
          if (isGiven) return resolve(this.#promise(amount))
          if (waiting.isAnswered) this.#quietUntil = this.#holder.now() + QUIET_MS
          else this.#isAnswered = false
          resolve(waiting.isAnswered ? noHold : unknownHold)
        },
      }
      const atMostMs = (): number => {
        if (waiting.isAnswered) return SHARE_WAIT_MS
        return waiting.isServerThere ? busyWaitMs : UNANSWERED_WAIT_MS
      }
      const cancel = waitForAnswer(this.#holder, atMostMs, () => {
        this.#serve()
        waiting.settle(false)
      })
      this.#waiting.push(waiting)
      want(this, true)
    })
  }

  noted(limit = Infinity): void {
    this.follow(limit)
    if (this.#used() > this.#amount) this.#holder.want(this, false)
  }

  get isWaitedFor(): boolean {
    return this.#waiting.length > 0
  }

  /** What is stored next. What is given back is not used from here on. */
  request(): ShareRequest {
    const used = atMost(this.#used())
    const wanted = this.#isYielding ? 0 : this.#waitingAmount
    const need = atMost(used + this.#promised + wanted)
    const base = this.#isClosed ? used : Math.max(need, this.#keep ?? this.#amount)
    const isGrowing = this.#keep === undefined && !this.#isClosed
    const extra = isGrowing ? Math.max(0, atMost(need + this.#ahead) - base) : 0
    this.#amount = Math.min(this.#amount, base)
    this.#keep = undefined
    this.#isYielding = false
    this.#requested = { limit: this.#limit, need }
    const { version } = this.#stored
    return { resource: this.resource, limit: this.#limit, used, base, extra, version }
  }

  /**
   * Lets calls go on for which there is enough. Returns how much others wait for that other nodes
   * may give back.
   */
  stored(answer: Omit<ShareAnswer, 'resource'>): number {
    this.#isAnswered = true
    this.elsewhere = answer.elsewhere
    this.isOfDay = answer.isOfDay
    // Otherwise calls have spent of it meanwhile, and what they held counts twice until that is
    // known here.
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
    if (!isWhole && this.isWaitedFor) this.#holder.want(this, true)
    const isShort = isWhole && answer.amount < need
    // Otherwise those that wait have come since, or are asked for again.
    if (!isShort || !this.isWaitedFor) return 0
    for (const waiting of this.#waiting) waiting.isAnswered = true
    if (answer.elsewhere === 0 || this.#used() >= this.#limit) this.refuse()
    return Math.max(0, this.#waitingAmount - Math.max(0, this.free))
  }

  /** The database has committed what calls have spent: it is no more in the share. */
  spent({ amount, version }: StoredShare, micros: number): void {
    if (version <= this.#stored.version) return
    this.#stored = { amount, version }
    // A request that is under way may be stored after this, or was before.
    this.#amount = Math.min(amount, Math.max(0, this.#amount - micros))
    if (this.#keep !== undefined) this.#keep = Math.max(0, this.#keep - micros)
    if (this.#requested !== undefined) this.#requested.need -= micros
  }

  /** The server answers, but not yet what it was asked for those that wait. */
  serverIsThere(): void {
    for (const waiting of this.#waiting) waiting.isServerThere = true
  }

  /** There is no more than here. */
  refuse(): void {
    this.#serve()
    for (const waiting of [...this.#waiting]) waiting.settle(false)
  }

  /**
   * Another node needs so much. Of what is not used here it gets as much, or half; where both have
   * too little for a call that waits, the one with the lesser name keeps its part. False: nothing
   * is left.
   */
  give(amount: number, isLesser: boolean): boolean {
    const { free } = this
    const isStuck = !isLesser && free < (this.#waiting[0]?.amount ?? 0)
    const idle = isStuck ? free : free - this.#waitingAmount
    if (idle <= 0) return false
    this.#amount -= Math.min(idle, Math.max(amount, Math.ceil(idle / 2)))
    this.#keep = this.#amount
    this.#isYielding = isStuck
    this.#idlePolls = 0
    this.#holder.want(this, true)
    return true
  }

  /** Another node has given something back, or money has come. */
  freed(): void {
    this.#quietUntil = -Infinity
    if (this.isWaitedFor) this.#holder.want(this, true)
  }

  /** What is not used may be held by another node meanwhile. */
  void(): void {
    this.#amount = Math.min(this.#amount, this.#used())
    this.#keep = undefined
  }

  /** Of what the database bounds, there is less than before: what is not used is asked for anew. */
  lowered(): void {
    if (this.#amount === 0) return
    this.void()
    this.#holder.want(this, false)
  }

  /** Another server may answer, which is behind, or has freed what this node had. */
  forgetStored(): void {
    this.#stored = nothingStored
  }

  /** Gives back what is not used; no call begins any more. */
  close(): void {
    this.#isClosed = true
    this.refuse()
    this.#holder.want(this, false)
  }

  /** Once a second. False: nothing of it is used or held here. */
  poll(): boolean {
    const used = this.#used() + this.#promised + this.#waitingAmount
    this.#ratePerSecond = Math.max(this.#started, this.#ratePerSecond * FADE)
    if (this.#ratePerSecond < 0.5) this.#ratePerSecond = 0
    this.#started = 0
    if (used === 0 && this.#amount === 0 && this.#ratePerSecond === 0) return false
    if (used > this.#amount) this.#holder.want(this, false)
    const ahead = this.#ahead
    this.#idlePolls = this.#amount > used + 2 * ahead ? this.#idlePolls + 1 : 0
    if (this.#idlePolls >= (this.#holder.idlePolls ?? IDLE_POLLS)) {
      this.#idlePolls = 0
      this.#keep = used + ahead
      this.#holder.want(this, false)
    }
    return true
  }

  #serve(): void {
    for (const waiting of this.#isClosed ? [] : [...this.#waiting]) {
      if (this.free < waiting.amount) return
      waiting.settle(true)
    }
  }

  get #waitingAmount(): number {
    let sum = 0
    for (const { amount } of this.#waiting) sum += amount
    return sum
  }

  /** What the next seconds use. */
  get #ahead(): number {
    const { aheadSeconds, isBursty } = this.#holder
    const started = isBursty === true ? this.#started : 0
    return Math.ceil(Math.max(started, this.#ratePerSecond) * aheadSeconds)
  }

  #promise(amount: number): Hold {
    this.#promised += amount
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#promised -= amount
      isOver = true
    }
    return { isGiven: true, isKnown: true, end }
  }

  /**
   * An operator has changed the limit. What was granted under a greater one is void, as other nodes
   * hold a part of it.
   */
  follow(limit: number): void {
    if (limit === this.#limit) return
    const isLess = limit < this.#limit
    this.#limit = limit
    this.#quietUntil = -Infinity
    if (!isLess) return
    this.void()
    this.#holder.want(this, false)
  }
}

const nothingStored: StoredShare = { amount: 0, version: 0 }
const unknownHold: Hold = { ...noHold, isKnown: false }
/** What is greater is no exact number. */
const atMost = (amount: number): number => Math.min(amount, Number.MAX_SAFE_INTEGER)

// ---- how long a call waits for the answer of a database -----------------------------------------

// Time in which this process stands still counts as one part of the wait: it has not asked, or the
// answer is there unread.

/** So long for a database that has not answered at all: a caller waits rather than hears 503. */
export const UNANSWERED_WAIT_MS = 500
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

interface Clock {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

/**
 * Calls `giveUp` after `atMostMs` of waiting, which may become less or more meanwhile; the returned
 * function cancels it.
 */
function waitForAnswer(
  { now, schedule }: Clock,
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
