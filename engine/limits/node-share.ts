/** This node's share of one limit: what it may use without asking, and the calls that wait for more. */
import { UNANSWERED_WAIT_MS, waitForAnswer } from '../../schema/answer-wait.ts'
import type { Schedule } from '../../schema/clock.ts'
import { noHold, type Hold, type Share } from '../../schema/contracts/limits.ts'
import type { ShareAnswer, ShareRequest } from './share-rows.ts'

/** What a share asks of those that hold all shares of this node. */
export interface ShareHolder {
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
const SHARE_WAIT_MS = 100
/** After a call has waited in vain, others are refused at once for so long. */
const QUIET_MS = 250
/** Room is not asked for ahead more often. */
const AHEAD_PAUSE_MS = 100
/** What is not needed for so many looks (one a second) is given back. */
const IDLE_LOOKS = 10
/** Of the rate of the second before. */
const FADE = 0.8

interface Waiting {
  readonly settle: (isGiven: boolean) => void
}

export class NodeShare implements Share {
  readonly resource: string
  readonly #used: () => number
  readonly #holder: ShareHolder
  /** Never more than what is stored. */
  #slots = 0
  #limit = 0
  /** Held for calls that are not counted yet. */
  #promised = 0
  readonly #waiting: Waiting[] = []
  #quietUntil = -Infinity
  #aheadAt = -Infinity
  /** The limit of the request that is under way. */
  #askedLimit = 0
  /** To be given back: so many are kept. */
  #keep: number | undefined
  /** Of this second. */
  #starts = 0
  #ratePerSecond = 0
  #idleLooks = 0
  #isClosed = false
  /** How many times the database has answered. */
  #answers = 0
  #isAnswered = true

  constructor(resource: string, used: () => number, holder: ShareHolder) {
    this.resource = resource
    this.#used = used
    this.#holder = holder
  }

  admits(limit: number, own = 0): boolean {
    this.#follow(limit)
    // First: what may not be held any more is not free.
    const canHold = this.#holder.canHold()
    const free = this.#free + own
    if (free <= 0 || this.#isClosed || !canHold) return false
    this.#starts += 1
    if ((free - 1) * 2 < this.#ahead && this.#holder.now() >= this.#aheadAt)
      this.#holder.want(this, false)
    return true
  }

  mayAdmit(limit: number): boolean {
    const used = this.#used()
    if (used >= limit || this.#isClosed || !this.#holder.canHold()) return false
    const isQuiet = limit <= this.#limit && this.#holder.now() < this.#quietUntil
    return !isQuiet || used + this.#promised < this.#slots
  }

  get isHeard(): boolean {
    return this.#isAnswered && this.#holder.canHold()
  }

  obtain(limit: number): Promise<Hold> {
    this.#follow(limit)
    if (!this.mayAdmit(limit) || !this.#holder.hasRoom()) return Promise.resolve(noHold)
    if (this.#free > 0 && !this.isWaitedFor) return Promise.resolve(this.#promise())
    this.#holder.waits(1)
    const answers = this.#answers
    return new Promise((resolve) => {
      const waiting: Waiting = {
        settle: (isGiven) => {
          cancel()
          const index = this.#waiting.indexOf(waiting)
          if (index < 0) return
          this.#waiting.splice(index, 1)
          this.#holder.waits(-1)
          if (!isGiven) this.#quietUntil = this.#holder.now() + QUIET_MS
          if (!isGiven && answers === this.#answers) this.#isAnswered = false
          resolve(isGiven ? this.#promise() : noHold)
        },
      }
      const cancel = waitForAnswer(
        this.#holder,
        () => (answers === this.#answers ? UNANSWERED_WAIT_MS : SHARE_WAIT_MS),
        () => waiting.settle(false),
      )
      this.#waiting.push(waiting)
      this.#holder.want(this, true)
    })
  }

  noted(limit: number): void {
    this.#follow(limit)
    if (this.#used() > this.#slots) this.#holder.want(this, false)
  }

  get isWaitedFor(): boolean {
    return this.#waiting.length > 0
  }

  /** What is stored next. What is given back is not used from here on. */
  request(): ShareRequest {
    const used = this.#used()
    const needed = used + this.#promised + this.#waiting.length
    const base = this.#isClosed ? used : Math.max(needed, this.#keep ?? this.#slots)
    const isGrowing = this.#keep === undefined && !this.#isClosed
    const extra = isGrowing ? Math.max(0, needed + this.#ahead - base) : 0
    this.#slots = Math.min(this.#slots, base)
    this.#keep = undefined
    this.#askedLimit = this.#limit
    return { resource: this.resource, limit: this.#limit, used, base, extra }
  }

  /** Lets calls go on for which there is room. Returns how many wait for room that other nodes may give back. */
  stored({ slots, elsewhere }: Pick<ShareAnswer, 'slots' | 'elsewhere'>): number {
    this.#answers += 1
    this.#isAnswered = true
    const isOfThisLimit = this.#askedLimit <= this.#limit
    this.#slots = isOfThisLimit ? slots : Math.min(slots, this.#used())
    if (!isOfThisLimit) this.#holder.want(this, false)
    this.#aheadAt = this.#holder.now() + AHEAD_PAUSE_MS
    this.#serve()
    if (this.#waiting.length > 0 && (elsewhere === 0 || this.#used() >= this.#limit)) this.refuse()
    return this.#waiting.length
  }

  /** There is no more room than here. */
  refuse(): void {
    this.#serve()
    for (const waiting of [...this.#waiting]) waiting.settle(false)
  }

  /** Another node needs room for `count`. Of what is not used here it gets so much, or half. False: none is left. */
  give(count: number): boolean {
    const idle = this.#free - this.#waiting.length
    if (idle <= 0) return false
    this.#slots -= Math.min(idle, Math.max(count, Math.ceil(idle / 2)))
    this.#keep = this.#slots
    this.#idleLooks = 0
    this.#holder.want(this, true)
    return true
  }

  /** Another node has given room back. */
  freed(): void {
    this.#quietUntil = -Infinity
    if (this.isWaitedFor) this.#holder.want(this, true)
  }

  /** What is not used may be held by another node meanwhile. */
  void(): void {
    this.#slots = Math.min(this.#slots, this.#used())
    this.#keep = undefined
  }

  /** Gives back what is not used; no call begins any more. */
  close(): void {
    this.#isClosed = true
    this.refuse()
    this.#holder.want(this, false)
  }

  /** Once a second. False: nothing of it is used or held here. */
  look(): boolean {
    const used = this.#used() + this.#promised + this.#waiting.length
    this.#ratePerSecond = Math.max(this.#starts, this.#ratePerSecond * FADE)
    if (this.#ratePerSecond < 0.5) this.#ratePerSecond = 0
    this.#starts = 0
    if (used === 0 && this.#slots === 0 && this.#ratePerSecond === 0) return false
    if (used > this.#slots) this.#holder.want(this, false)
    const kept = used + this.#ahead
    this.#idleLooks = this.#slots > kept ? this.#idleLooks + 1 : 0
    if (this.#idleLooks >= IDLE_LOOKS) {
      this.#idleLooks = 0
      this.#keep = kept
      this.#holder.want(this, false)
    }
    return true
  }

  #serve(): void {
    for (const waiting of this.#isClosed ? [] : [...this.#waiting]) {
      if (this.#free <= 0) return
      waiting.settle(true)
    }
  }

  get #free(): number {
    return this.#slots - this.#used() - this.#promised
  }

  /** Room for the starts of the next second. */
  get #ahead(): number {
    return Math.ceil(this.#ratePerSecond)
  }

  #promise(): Hold {
    this.#promised += 1
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#promised -= 1
      isOver = true
    }
    return { isGiven: true, end }
  }

  /** An operator has changed the limit. What was granted under a greater one is void, as other nodes hold a part of it. */
  #follow(limit: number): void {
    if (limit === this.#limit) return
    const isLess = limit < this.#limit
    this.#limit = limit
    this.#quietUntil = -Infinity
    if (!isLess) return
    this.void()
    this.#holder.want(this, false)
  }
}
