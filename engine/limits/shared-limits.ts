/**
 * Limits that several nodes share: how many calls a customer, a carrier or an agent may have at once, or begin in a
 * second. Each node holds a share, and decides on it in memory; where that is too small, a call waits a moment for more,
 * which other nodes may have to give back.
 *
 * Always: the shares of a limit are no more than the limit, and the share in memory is no more than the stored one. What
 * is given back is not used from before it is stored; what is taken is used after.
 */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { Share, Shares } from '../../schema/contracts/limits.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { NodeIdentity } from '../../schema/contracts/nodes.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/open.ts'
import { NodeShare, type ShareHolder } from './node-share.ts'
import { ASK, FREED, messages, type Notices, readMessage } from './share-notices.ts'
import { ShareRows } from './share-rows.ts'

/** What this process knows of itself and of the other nodes. */
export interface LimitMembers {
  /** Of the node. */
  readonly name: string
  /** Of this run: no other one has had it. */
  readonly process: string
  /** False: others may take the node for gone, and what it holds. */
  readonly canHold: () => boolean
  /** How many nodes are alive. */
  readonly size: () => number
  /** Nodes that cannot come back as what they were. */
  readonly gone: () => readonly NodeIdentity[]
  readonly notices: Notices
}

export interface SharedLimitsDeps {
  readonly store: Pick<Store, 'statements'>
  readonly members: LimitMembers
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** Requests of this time are one statement. */
const GROUP_MS = 2
/** While a call waits, others are asked again, and the free part is looked at again. */
const ASK_AGAIN_MS = 20
const LOOK_MS = 1_000
const LOOKS_PER_RELEASE = 5
/** All is stored again: a server that took over may have lost the last of it. */
const LOOKS_PER_REPETITION = 10
/** While nothing may be held, what is wanted is looked at again. */
const UNHELD_MS = 100
/** Of shares in one statement. */
const AT_ONCE = 200
const MAX_WAITING = 10_000

export class SharedLimits implements Shares {
  readonly #deps: SharedLimitsDeps
  readonly #rows: ShareRows
  readonly #work = new OneAtATime(() => this.#exchange())
  readonly #holder: ShareHolder
  /** Those that hold, use or want something. */
  readonly #active = new Map<string, NodeShare>()
  readonly #wanting = new Set<NodeShare>()
  /** Those of the request that is under way. */
  #asking: ReadonlySet<NodeShare> = new Set()
  /** Given back because another node has asked. */
  readonly #freed = new Set<string>()
  #waiting = 0
  #isFailing = false
  #isStopped = false
  /** Others may have taken what is held here. */
  #isStale = false
  /** When these are stored, rows of other processes of this node are to be removed. Undefined: none are. */
  #unstored: Set<NodeShare> | undefined
  #looks = 0
  #cancelSoon: Cancel | undefined
  #cancelLook: Cancel
  readonly #cancelNotices: readonly Cancel[]

  constructor(deps: SharedLimitsDeps) {
    const { store, members, now, schedule } = deps
    this.#deps = deps
    this.#rows = new ShareRows(store, members.name, members.process)
    this.#holder = {
      now,
      schedule,
      canHold: () => !this.#isStopped && this.#canHold(),
      hasRoom: () => this.#waiting < MAX_WAITING,
      waits: (change) => {
        this.#waiting += change
      },
      want: (share, isUrgent) => this.#want(share, isUrgent),
    }
    this.#cancelNotices = [
      members.notices.on(ASK, (payload) => this.#onAsked(payload)),
      members.notices.on(FREED, (payload) => this.#onFreed(payload)),
    ]
    this.#cancelLook = schedule(() => this.#look(), LOOK_MS)
  }

  of(resource: string, used: () => number): Share {
    return this.#active.get(resource) ?? new NodeShare(resource, used, this.#holder)
  }

  /**
   * No other process of this node has calls any more, and those that go on are counted here: what the others held is
   * free when that is stored.
   */
  async alone(): Promise<void> {
    this.#unstored = new Set(this.#wanting)
    await this.#work.request()
  }

  /** Gives back what is not used. Calls that go on in another process stay counted until that says `alone`. */
  async stop(): Promise<void> {
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelLook()
    for (const share of this.#active.values()) share.close()
    this.#cancelSoon?.()
    const { canHold } = this.#deps.members
    while (this.#wanting.size > 0 && !this.#isFailing && canHold()) await this.#work.request()
    this.#isStopped = true
    this.#cancelSoon?.()
    if (!this.#isFailing) await this.#rows.forgetUnused().catch((error) => this.#failed(error))
  }

  // ---- what is exchanged with the database -----------------------------------------------------

  #want(share: NodeShare, isUrgent: boolean): void {
    if (this.#isStopped) return share.refuse()
    this.#active.set(share.resource, share)
    this.#wanting.add(share)
    this.#soon(isUrgent ? GROUP_MS : GROUP_MS * 5)
  }

  #soon(waitMs: number): void {
    if (this.#cancelSoon !== undefined || this.#isStopped) return
    this.#cancelSoon = this.#deps.schedule(() => {
      this.#cancelSoon = undefined
      void this.#work.request()
    }, waitMs)
  }

  /** Never rejects. */
  async #exchange(): Promise<void> {
    if (!this.#canHold()) return this.#putOff()
    const unstored = this.#unstored
    const shares = [...this.#wanting].slice(0, AT_ONCE)
    for (const share of shares) this.#wanting.delete(share)
    this.#asking = new Set(shares)
    try {
      if (shares.length > 0) await this.#store(shares)
      for (const share of shares) unstored?.delete(share)
      if (unstored?.size === 0 && this.#canHold()) {
        await this.#rows.freeOthersOfNode()
        if (this.#unstored === unstored) this.#unstored = undefined
      }
      if (this.#isFailing) {
        this.#deps.log('info', 'limits: they are shared with other nodes again')
        this.#storeAll()
      }
      this.#isFailing = false
    } catch (error) {
      for (const share of shares) {
        share.refuse()
        this.#wanting.add(share)
        this.#unstored?.add(share)
      }
      this.#failed(error)
    }
    this.#asking = new Set()
    if (this.#isWorkLeft)
      this.#soon(this.#isFailing ? LOOK_MS : this.#waiting > 0 ? ASK_AGAIN_MS : GROUP_MS)
  }

  /** After a time in which others may have taken what this node holds, each share is stored again before it is used. */
  #canHold(): boolean {
    const canHold = this.#deps.members.canHold()
    if (canHold && this.#isStale) {
      this.#isStale = false
      for (const share of this.#active.values()) share.void()
      this.#storeAll()
    }
    if (!canHold) this.#isStale = true
    return canHold
  }

  /** A server that took over may have lost the last of it. */
  #storeAll(): void {
    for (const share of this.#active.values()) this.#wanting.add(share)
    if (this.#wanting.size > 0) this.#soon(GROUP_MS)
  }

  get #isWorkLeft(): boolean {
    return this.#wanting.size > 0 || this.#unstored !== undefined
  }

  /** Others may have this node's shares: nothing is stored and nothing is freed, but nothing is forgotten. */
  #putOff(): void {
    if (this.#waiting > 0) for (const share of this.#wanting) share.refuse()
    if (this.#isWorkLeft) this.#soon(UNHELD_MS)
  }

  #failed(error: unknown): void {
    const message = 'limits: what other nodes use is not known: calls keep to what this node holds'
    if (!this.#isFailing) this.#deps.log('error', message, { error })
    this.#isFailing = true
  }

  async #store(shares: readonly NodeShare[]): Promise<void> {
    const freed = shares.map(({ resource }) => resource).filter((one) => this.#freed.delete(one))
    const requests = shares.map((share) => share.request())
    const asked: (readonly [string, number])[] = []
    for (const answer of await this.#rows.take(requests, Math.max(1, this.#deps.members.size()))) {
      const share = this.#active.get(answer.resource)
      const missing = share?.stored(answer) ?? 0
      if (share === undefined || missing === 0) continue
      asked.push([answer.resource, missing])
      this.#wanting.add(share)
    }
    this.#notify(ASK, asked)
    this.#notify(
      FREED,
      freed.map((resource) => [resource, 0] as const),
    )
  }

  // ---- what nodes tell each other --------------------------------------------------------------

  #notify(channel: string, resources: readonly (readonly [string, number])[]): void {
    const { process, notices } = this.#deps.members
    for (const payload of messages(process, resources)) notices.notify(channel, payload)
  }

  #onAsked(payload: string): void {
    const { process, resources } = readMessage(payload)
    if (process === this.#deps.members.process) return
    for (const [resource, count] of resources)
      if (this.#active.get(resource)?.give(count) === true) this.#freed.add(resource)
  }

  #onFreed(payload: string): void {
    const { process, resources } = readMessage(payload)
    if (process === this.#deps.members.process) return
    for (const [resource] of resources) this.#active.get(resource)?.freed()
  }

  // ---- once a second ---------------------------------------------------------------------------

  #look(): void {
    this.#cancelLook = this.#deps.schedule(() => this.#look(), LOOK_MS)
    this.#canHold()
    this.#looks += 1
    if (this.#looks % LOOKS_PER_RELEASE === 0) void this.#releaseGone()
    const isRepeated = this.#looks % LOOKS_PER_REPETITION === 0
    for (const [resource, share] of this.#active)
      if (!share.look() && !this.#wanting.has(share) && !this.#asking.has(share))
        this.#active.delete(resource)
      else if (isRepeated) this.#want(share, false)
  }

  /** A failure is tried again later. */
  async #releaseGone(): Promise<void> {
    try {
      for (const node of this.#deps.members.gone()) await this.#rows.release(node)
    } catch (error) {
      this.#deps.log('warn', 'limits: what a lost node holds cannot be freed yet', { error })
    }
  }
}
