/**
 * What several nodes draw from: the money of a wallet, the rest of a cap, the calls that a
 * customer, a carrier or an agent may have at once or begin in a second, the requests that a client
 * may make in a minute. Each node holds a share and decides on it in memory. Where the share is too
 * small, a call waits a moment for more, which other nodes may have to give back.
 *
 * Always: the shares of a resource are no more than there is, and the share in memory is no more
 * than the stored one. What is given back is not used from before it is stored; what is taken is
 * used after.
 */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { RequestShares, Shares } from '../../schema/contracts/limits.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { NodeIdentity } from '../../schema/contracts/nodes.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { isLocked } from '../../schema/storage/storage.ts'
import { NodeShare, type ShareHolder, type ShareKind } from './node-share.ts'
import { ASK, FREED, messages, type Notices, readMessage, RESET } from './share-notices.ts'
import { LocalRows } from './local-rows.ts'
import { type ShareOwner, ShareRows, type ShareStore, type StoredShare } from './share-rows.ts'

/** What this process knows of itself and of the other nodes. */
export interface ShareMembers extends ShareOwner {
  /** False: others may take the node for gone, and what it holds. */
  readonly canHold: () => boolean
  /**
   * Changes when others have taken what was held, and this process may hold again. Absent: it does
   * not.
   */
  readonly run?: () => number
  /**
   * Whether others have taken what is held here is known in a moment only: the machine may have
   * been asleep.
   */
  readonly mayHaveSlept?: () => boolean
  /** How many nodes are alive. */
  readonly size: () => number
  /** Nodes that cannot come back as what they were. */
  readonly gone: () => readonly NodeIdentity[]
  readonly notices: Notices
  /** No other process uses the database. */
  readonly isOnly?: true
}

/** The one process of an SQLite database. */
export const onlyMember: ShareMembers = {
  name: '',
  process: '',
  canHold: () => true,
  size: () => 1,
  gone: () => [],
  notices: { on: () => () => undefined, notify: () => undefined },
  isOnly: true,
}

export interface NodeSharesDeps {
  readonly store: Store
  readonly members: ShareMembers
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** What calls have spent of a share, and what is left of it. */
export interface SpentShare extends StoredShare {
  readonly resource: string
  readonly spent: number
}

/** While the database is away, calls go on within what is held. */
export const limitShares: ShareKind = { kind: 'limit', aheadSeconds: 1, busyWaitMs: 500 }

/** A client at its limit costs few statements. */
export const requestShares: ShareKind = {
  kind: 'request',
  aheadSeconds: 5,
  isBursty: true,
  busyWaitMs: 500,
}

/**
 * What calls reserve in half of the time without a database is held ahead: most give the greater
 * part back.
 */
export const walletShares = (awaySeconds = 10): ShareKind => ({
  kind: 'wallet',
  aheadSeconds: awaySeconds / 2,
  busyWaitMs: 2_000,
})

/** Requests of this time are one statement. */
const GROUP_MS = 2
/** While a call waits, others are asked again, and the free part is looked at again. */
const ASK_AGAIN_MS = 20
/** After a failure, while a call waits. */
const TRY_AGAIN_MS = 50
/**
 * An exchange that takes longer may wait for rows: meanwhile the server is asked whether it is
 * there.
 */
const LATE_MS = 200
const POLL_MS = 1_000
const POLLS_PER_RELEASE = 5
/**
 * Limits are stored again: a server that took over may have lost the last of them. For wallets that
 * is noticed.
 */
const POLLS_PER_REPETITION = 10
/** A minute: no statement is under way for so long. */
const POLLS_PER_SWEEP = 60
/** While nothing may be held, what is wanted is looked at again. */
const UNHELD_MS = 100
/** While another transaction has the row of a share locked, the row is looked at again. */
const LOCKED_MS = 100
/** Of shares in one statement. */
const AT_ONCE = 500
/** The log names no more of the resources that are locked. */
const MAX_TOLD = 10
const MAX_WAITING = 10_000

export class NodeShares implements Shares, RequestShares {
  readonly #deps: NodeSharesDeps
  readonly #kind: ShareKind
  readonly #rows: ShareStore
  readonly #work = new OneAtATime(() => this.#exchange())
  readonly #holder: ShareHolder
  /** Those that hold, use or want something. */
  readonly #active = new Map<string, NodeShare>()
  readonly #wanting = new Set<NodeShare>()
  /**
   * Another transaction has locked their rows: only their own calls wait for them. No more than
   * `AT_ONCE`.
   */
  readonly #locked = new Set<NodeShare>()
  #lookedAt = -Infinity
  /** Those of the request that is under way. */
  #asking: ReadonlySet<NodeShare> = new Set()
  /** Given back because another node has asked. */
  readonly #freed = new Set<string>()
  #waiting = 0
  #isFailing = false
  #isStopped = false
  /** Others may have taken what is held here. */
  #isStale = false
  #run: number | undefined
  /** No other process of this node goes on. */
  #isAlone = false
  /**
   * When these are stored, rows of other processes of this node are to be removed. Undefined: none
   * are.
   */
  #unstored: Set<NodeShare> | undefined
  #polls = 0
  #soonAt = 0
  #cancelSoon: Cancel | undefined
  #cancelPoll: Cancel
  readonly #cancelNotices: readonly Cancel[]

  constructor(kind: ShareKind, deps: NodeSharesDeps) {
    const { store, members, now, schedule } = deps
    this.#deps = deps
    this.#kind = kind
    this.#run = members.run?.()
    this.#rows = members.isOnly
      ? new LocalRows(store, kind.kind)
      : new ShareRows(store, kind.kind, members)
    this.#holder = {
      ...kind,
      now,
      schedule,
      canHold: () => this.canHold,
      hasRoom: () => this.#waiting < MAX_WAITING,
      waits: (change) => {
        this.#waiting += change
      },
      want: (share, isUrgent) => this.#want(share, isUrgent),
    }
    this.#cancelNotices = [
      members.notices.on(ASK, (payload) => this.#onAsked(payload)),
      members.notices.on(FREED, (payload) => this.#onFreed(payload)),
      members.notices.on(RESET, (payload) => this.#onReset(payload)),
    ]
    this.#cancelPoll = schedule(() => this.#poll(), POLL_MS)
  }

  of(resource: string, used: () => number, onReset = (): void => undefined): NodeShare {
    return this.#active.get(resource) ?? new NodeShare(resource, used, onReset, this.#holder)
  }

  forget(resource: string): void {
    const share = this.#active.get(resource)
    this.#active.delete(resource)
    if (share === undefined) return
    this.#wanting.delete(share)
    this.#locked.delete(share)
  }

  reset(resource: string): void {
    this.#notify(RESET, [[resource, 0]])
  }

  get owner(): ShareOwner {
    return this.#deps.members
  }

  /** Whether what is held here is this node's own. */
  get canHold(): boolean {
    return !this.#isStopped && this.#mayHold()
  }

  /**
   * No other process of this node has calls any more, and those that go on are counted here: what
   * the others held is free when that is stored.
   */
  async alone(): Promise<void> {
    this.#isAlone = true
    this.#unstored = new Set(this.#wanting)
    await this.#work.request()
  }

  /**
   * Others have taken what was held here. Resolves when the database has been asked for it anew.
   */
  async holdAnew(): Promise<void> {
    this.#mayHold()
    await this.#work.request()
  }

  /** Whether others have taken what is held here is known in a moment only. */
  get mayHaveSlept(): boolean {
    return this.#deps.members.mayHaveSlept?.() === true
  }

  /** Another server may answer than before: what it has counts, also where it is behind. */
  readAgain(): void {
    for (const share of this.#active.values()) share.forgetStored()
    this.#storeAll()
  }

  /**
   * What is deducted in the transaction of the caller, which has locked the wallet, is held in
   * memory until it ends.
   */
  async spend(resource: string, spent: number): Promise<void> {
    const left = await this.#rows.spend(resource, spent)
    if (left === undefined) throw new Error(`${this.#kind.kind} ${resource} has no share here`)
    this.#deps.store.statements.afterCommit(() => this.settled([{ ...left, resource, spent }]))
  }

  /**
   * The database has committed what calls have spent. `beyond`: resources of which they have spent
   * more than was held for it; others hold of the same.
   */
  settled(shares: readonly SpentShare[], beyond: readonly string[] = []): void {
    for (const { resource, spent, ...left } of shares)
      this.#active.get(resource)?.spent(left, spent)
    this.#notify(
      ASK,
      beyond.map((resource) => [resource, Number.MAX_SAFE_INTEGER] as const),
    )
  }

  /**
   * Gives back what is not used. Calls that go on in another process stay counted until that says
   * `alone`.
   */
  async stop(): Promise<void> {
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelPoll()
    for (const share of this.#active.values()) share.close()
    this.#cancelSoon?.()
    // What is locked stays stored as it is, as what a process holds that ends without a server.
    while (this.#wanting.size > this.#locked.size && !this.#isFailing && this.#mayHold())
      await this.#work.request()
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
    const now = this.#deps.now()
    const isSoon = this.#cancelSoon !== undefined && this.#soonAt <= now + ASK_AGAIN_MS
    if (this.#isStopped || isSoon) return
    this.#cancelSoon?.()
    this.#soonAt = now + waitMs
    this.#cancelSoon = this.#deps.schedule(() => {
      this.#cancelSoon = undefined
      void this.#work.request()
    }, waitMs)
  }

  /** Never rejects. */
  async #exchange(): Promise<void> {
    if (!this.#mayHold()) return this.#putOff()
    const unstored = this.#unstored
    let shares: readonly NodeShare[] = []
    const cancelProbes = this.#probeLater()
    try {
      await this.#lookAtLocked()
      shares = this.#nextShares()
      for (const share of shares) this.#wanting.delete(share)
      this.#asking = new Set(shares)
      if (shares.length > 0) await this.#store(shares)
      for (const share of shares) unstored?.delete(share)
      if (unstored?.size === 0 && this.#unstored === unstored && this.#mayHold()) {
        await this.#rows.freeOthersOfNode()
        if (this.#unstored === unstored) this.#unstored = undefined
      }
      if (this.#isFailing) {
        this.#deps.log('info', `${this.#kind.kind}s: they are shared with other nodes again`)
        this.#storeAll()
      }
      this.#isFailing = false
    } catch (error) {
      for (const share of shares) {
        this.#wanting.add(share)
        this.#unstored?.add(share)
      }
      if (isLocked(error)) await this.#leaveOutLocked(shares)
      else this.#failed(error)
    }
    cancelProbes()
    this.#asking = new Set()
    if (!this.#isWorkLeft) return
    if (this.#wanting.size === this.#locked.size && this.#locked.size > 0) this.#soon(LOCKED_MS)
    else if (this.#waiting > 0) this.#soon(this.#isFailing ? TRY_AGAIN_MS : ASK_AGAIN_MS)
    else this.#soon(this.#isFailing ? POLL_MS : GROUP_MS)
  }

  #nextShares(): readonly NodeShare[] {
    const isFree = (share: NodeShare): boolean => !this.#locked.has(share)
    const wanting = [...this.#wanting]
    return (this.#locked.size === 0 ? wanting : wanting.filter(isFree)).slice(0, AT_ONCE)
  }

  /**
   * A statement has waited too long at a locked row: the rows that are locked now are left out of
   * the next one.
   */
  async #leaveOutLocked(shares: readonly NodeShare[]): Promise<void> {
    try {
      const locked = await this.#rows.locked(shares.map(({ resource }) => resource))
      this.#lookedAt = this.#deps.now()
      const resources = [...locked].slice(0, AT_ONCE - this.#locked.size)
      for (const share of shares) if (resources.includes(share.resource)) this.#locked.add(share)
      if (resources.length === 0) return
      const message = `${this.#kind.kind}s: another transaction has locked them: their calls wait, others go on`
      this.#deps.log('warn', message, { resources: resources.slice(0, MAX_TOLD) })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Those that are locked no more are stored with the others. */
  async #lookAtLocked(): Promise<void> {
    const { now, log } = this.#deps
    if (this.#locked.size === 0 || now() < this.#lookedAt + LOCKED_MS) return
    const shares = [...this.#locked]
    const locked = await this.#rows.locked(shares.map(({ resource }) => resource))
    this.#lookedAt = now()
    for (const share of shares) {
      if (locked.has(share.resource)) share.serverIsThere()
      else this.#locked.delete(share)
    }
    if (this.#locked.size === 0) log('info', `${this.#kind.kind}s: none is locked any more`)
  }

  /** Until it is cancelled: calls wait longer for a server that is there. */
  #probeLater(): Cancel {
    let isOver = false
    let cancel: Cancel = () => undefined
    const later = (): void => {
      cancel = this.#deps.schedule(() => void probe(), LATE_MS)
    }
    const probe = async (): Promise<void> => {
      const isThere = this.#waiting > 0 && (await this.#rows.isServerThere())
      if (isOver) return
      if (isThere) for (const share of this.#active.values()) share.serverIsThere()
      later()
    }
    later()
    return () => {
      isOver = true
      cancel()
    }
  }

  /**
   * After a time in which others may have taken what this node holds, each share is stored again
   * before it is used.
   */
  #mayHold(): boolean {
    const { canHold, run } = this.#deps.members
    const mayHold = canHold()
    if (mayHold && (this.#isStale || this.#run !== run?.())) {
      this.#isStale = false
      this.#run = run?.()
      for (const share of this.#active.values()) {
        share.void()
        share.forgetStored()
      }
      this.#storeAll()
    }
    if (!mayHold) this.#isStale = true
    return mayHold
  }

  #storeAll(): void {
    for (const share of this.#active.values()) this.#wanting.add(share)
    if (this.#wanting.size > 0) this.#soon(GROUP_MS)
  }

  get #isWorkLeft(): boolean {
    return this.#wanting.size > 0 || this.#unstored !== undefined
  }

  /**
   * Others may have this node's shares: nothing is stored and nothing is freed, but nothing is
   * forgotten.
   */
  #putOff(): void {
    if (this.#waiting > 0) for (const share of this.#wanting) share.refuse()
    if (this.#isWorkLeft) this.#soon(UNHELD_MS)
  }

  #failed(error: unknown): void {
    const { kind } = this.#kind
    const message = `${kind}s: what other nodes use is not known: calls keep to what this node holds`
    if (!this.#isFailing) this.#deps.log('error', message, { error })
    this.#isFailing = true
  }

  async #store(shares: readonly NodeShare[]): Promise<void> {
    const { members, now } = this.#deps
    const freed = shares.map(({ resource }) => resource).filter((one) => this.#freed.delete(one))
    const requests = shares.map((share) => share.request())
    const asked: (readonly [string, number])[] = []
    const nodes = Math.max(1, members.size())
    for (const answer of await this.#rows.take(requests, nodes, this.#isAlone, now())) {
      const share = this.#active.get(answer.resource)
      const missing = share?.stored(answer) ?? 0
      if (missing > 0) asked.push([answer.resource, missing])
      if (share?.isWaitedFor === true) this.#wanting.add(share)
    }
    this.#notify(ASK, asked)
    this.#notify(
      FREED,
      freed.map((resource) => [resource, 0] as const),
    )
  }

  // ---- what nodes tell each other --------------------------------------------------------------

  #notify(channel: string, resources: readonly (readonly [string, number])[]): void {
    const { kind } = this.#kind
    const { process, notices } = this.#deps.members
    for (const payload of messages({ kind, process, resources })) notices.notify(channel, payload)
  }

  #onAsked(payload: string): void {
    const { process, resources } = this.#read(payload)
    for (const [resource, amount] of resources)
      if (this.#active.get(resource)?.give(amount, this.#deps.members.process < process) === true)
        this.#freed.add(resource)
  }

  #onFreed(payload: string): void {
    for (const [resource] of this.#read(payload).resources) this.#active.get(resource)?.freed()
  }

  #onReset(payload: string): void {
    for (const [resource] of this.#read(payload).resources) this.#active.get(resource)?.reset()
  }

  /** Nothing, unless another process tells it of what is shared here. */
  #read(payload: string) {
    const notice = readMessage(payload)
    const isOwn = notice?.process === this.#deps.members.process
    return notice?.kind === this.#kind.kind && !isOwn ? notice : noNotice
  }

  // ---- once a second ---------------------------------------------------------------------------

  #poll(): void {
    this.#cancelPoll = this.#deps.schedule(() => this.#poll(), POLL_MS)
    this.#mayHold()
    this.#polls += 1
    if (this.#polls % POLLS_PER_RELEASE === 0) {
      void this.#removeRows()
      // Of what a process asked for that has ended, something may be stored late.
      if (this.#isAlone) this.#unstored ??= new Set()
      this.#soon(GROUP_MS)
    }
    const isRepeated = this.#kind.kind === 'limit' && this.#polls % POLLS_PER_REPETITION === 0
    for (const [resource, share] of this.#active)
      if (!share.poll() && !this.#wanting.has(share) && !this.#asking.has(share))
        this.#active.delete(resource)
      else if (isRepeated) this.#want(share, false)
  }

  /** A failure is tried again later. */
  async #removeRows(): Promise<void> {
    try {
      for (const node of this.#deps.members.gone()) await this.#rows.release(node)
      if (this.#polls % POLLS_PER_SWEEP === 0) await this.#rows.sweep()
    } catch (error) {
      const message = `${this.#kind.kind}s: what a lost node holds cannot be freed yet`
      this.#deps.log('warn', message, { error })
    }
  }
}

const noNotice = { process: '', resources: [] } as const
