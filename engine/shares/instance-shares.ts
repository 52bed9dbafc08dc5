/** All shares of one kind that this instance holds. `README.md` has the protocol. */
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { RequestShares, Shares } from '../../schema/contracts/limits.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { InstanceIdentity } from '../../schema/contracts/instances.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { isLocked } from '../../schema/storage/storage.ts'
import { EarlierRuns } from './earlier-runs.ts'
import { LocalRows } from './local-rows.ts'
import { InstanceShare, type ShareHolder, type ShareKind } from './instance-share.ts'
import { ASK, FREED, messages, type Notices, readMessage, RESET } from './share-notices.ts'
import { ShareQueue } from './share-queue.ts'
import { type ShareOwner, ShareRows, type ShareStore, type StoredShare } from './share-rows.ts'
import { Tenure, type TenureProof } from './tenure.ts'

/** This process among the instances that share one database. */
export interface ShareMembers extends ShareOwner, TenureProof {
  /**
   * Whether others have taken what is held here is known in a moment only: the machine may have
   * been asleep.
   */
  readonly mayHaveSlept?: () => boolean
  /** Returns how many instances are alive. */
  readonly size: () => number
  /** Returns instances that cannot come back as they were. */
  readonly gone: () => readonly InstanceIdentity[]
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

export interface InstanceSharesDeps {
  readonly store: Store
  readonly members: ShareMembers
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** A debit of calls, and the share that is left after it. */
export interface SpentShare extends StoredShare {
  readonly resource: string
  readonly spent: number
}

/** Limits of calls: while the database is away, calls go on within the share. */
export const limitShares: ShareKind = { kind: 'limit', aheadSeconds: 1, busyWaitMs: 500 }

/** Limits of requests: a client at its limit costs few statements. */
export const requestShares: ShareKind = {
  kind: 'request',
  aheadSeconds: 5,
  isBursty: true,
  busyWaitMs: 500,
}

/**
 * Money of wallets. The reservations of half of the time without a database are held ahead: most
 * calls give the greater part back.
 */
export const walletShares = (awaySeconds = 10): ShareKind => ({
  kind: 'wallet',
  aheadSeconds: awaySeconds / 2,
  busyWaitMs: 2_000,
})

/** Requests of this time are one statement. */
const GROUP_MS = 2
/** The database is asked again after this time while a call waits, and so are other instances. */
const ASK_AGAIN_MS = 20
/** The database is asked again after this time when it has failed while a call waits. */
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
/** The queue is looked at again after this time while nothing may be held. */
const UNHELD_MS = 100
/** A row that another transaction has locked is looked at again after this time. */
const LOCKED_MS = 100
/** The most shares in one statement. */
const AT_ONCE = 500
/** The most locked resources that the log names. */
const MAX_LOGGED = 10
const MAX_WAITING = 10_000

export class InstanceShares implements Shares, RequestShares {
  readonly #deps: InstanceSharesDeps
  readonly #kind: ShareKind
  readonly #rows: ShareStore
  readonly #work = new OneAtATime(() => this.#exchange())
  readonly #holder: ShareHolder
  readonly #tenure: Tenure
  readonly #queue = new ShareQueue()
  readonly #earlier = new EarlierRuns()
  /** The shares that hold, use or want something. */
  readonly #active = new Map<string, InstanceShare>()
  /** When the locked rows were looked at. */
  #lookedAt = -Infinity
  /** The resources of which a part is to be given back because another instance has asked. */
  readonly #freed = new Set<string>()
  /** The number of calls that wait. */
  #waiting = 0
  #isFailing = false
  #isStopped = false
  #polls = 0
  #soonAt = 0
  #cancelSoon: Cancel | undefined
  #cancelPoll: Cancel
  readonly #cancelNotices: readonly Cancel[]

  constructor(kind: ShareKind, deps: InstanceSharesDeps) {
    const { store, members, now, schedule } = deps
    this.#deps = deps
    this.#kind = kind
    this.#tenure = new Tenure(members, () => this.#storeAll('fenced'))
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

  of(resource: string, used: () => number, onReset = (): void => undefined): InstanceShare {
    return this.#active.get(resource) ?? new InstanceShare(resource, used, onReset, this.#holder)
  }

  forget(resource: string): void {
    const share = this.#active.get(resource)
    this.#active.delete(resource)
    if (share === undefined) return
    this.#queue.forget(share)
    this.#earlier.forget(share)
  }

  reset(resource: string): void {
    this.#notify(RESET, [[resource, 0]])
  }

  get owner(): ShareOwner {
    return this.#deps.members
  }

  /** Whether this instance owns what it holds. */
  get canHold(): boolean {
    return !this.#isStopped && this.#tenure.isHeld()
  }

  /**
   * No other process of this instance has calls any more, and those that go on are counted here:
   * the shares of the others are free when that is stored.
   */
  async alone(): Promise<void> {
    this.#earlier.end([
      ...this.#queue.in('wanted'),
      ...this.#queue.in('askedAgain'),
      ...this.#queue.in('locked'),
    ])
    await this.#work.request()
  }

  /**
   * Others have taken what was held here. Resolves when the database has been asked for it anew.
   */
  async holdAnew(): Promise<void> {
    this.#tenure.isHeld()
    await this.#work.request()
  }

  /** Whether others have taken what is held here is known in a moment only. */
  get mayHaveSlept(): boolean {
    return this.#deps.members.mayHaveSlept?.() === true
  }

  /** Another server may answer than before: its rows count, also where it is behind. */
  readAgain(): void {
    this.#storeAll('serverChanged')
  }

  /**
   * Deducts from the share in the transaction of the caller, which has locked the wallet. The share
   * in memory follows when that has ended.
   */
  async spend(resource: string, spent: number): Promise<void> {
    const left = await this.#rows.spend(resource, spent)
    if (left === undefined) throw new Error(`${this.#kind.kind} ${resource} has no share here`)
    this.#deps.store.statements.afterCommit(() => this.settled([{ ...left, resource, spent }]))
  }

  /**
   * The database has committed debits of calls.
   *
   * @param beyond resources of which calls have spent more than was held; other instances hold
   *   shares of them.
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
   * Gives back what is not used. Calls that go on in another process stay counted until that calls
   * `alone`.
   */
  async stop(): Promise<void> {
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelPoll()
    for (const share of this.#active.values()) share.close()
    this.#cancelSoon?.()
    // Locked rows stay as they are, as do those of a process that ends without a server.
    while (this.#queue.isAnyWanted && !this.#isFailing && this.#tenure.isHeld())
      await this.#work.request()
    this.#isStopped = true
    this.#cancelSoon?.()
    if (!this.#isFailing) await this.#rows.forgetUnused().catch((error) => this.#failed(error))
  }

  // ---- the database is asked -------------------------------------------------------------------

  #want(share: InstanceShare, isUrgent: boolean): void {
    if (this.#isStopped) return share.refuse()
    this.#active.set(share.resource, share)
    this.#queue.step(share, 'want')
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
    if (!this.#tenure.isHeld()) return this.#putOff()
    const { unstored } = this.#earlier
    let shares: readonly InstanceShare[] = []
    const cancelProbes = this.#probeLater()
    try {
      await this.#lookAtLocked()
      shares = this.#queue.in('wanted', AT_ONCE)
      this.#queue.stepAll(shares, 'sent')
      if (shares.length > 0) await this.#store(shares)
      this.#earlier.stored(unstored, shares)
      if (this.#earlier.isDue(unstored) && this.#tenure.isHeld()) {
        await this.#rows.freeOthersOfInstance()
        this.#earlier.freed(unstored)
      }
      if (this.#isFailing) {
        this.#deps.log('info', `${this.#kind.kind}s: they are shared with other instances again`)
        this.#storeAll('want')
      }
      this.#isFailing = false
      this.#queue.stepAll(shares, 'answered')
    } catch (error) {
      this.#queue.stepAll(shares, 'failed')
      // A share that was forgotten meanwhile will never be stored.
      this.#earlier.failed(shares.filter((share) => this.#queue.stateOf(share) !== 'stored'))
      if (isLocked(error)) await this.#leaveOutLocked(shares)
      else this.#failed(error)
    }
    cancelProbes()
    this.#goOn()
  }

  /** Plans the next exchange, if there is work left. */
  #goOn(): void {
    if (!this.#isWorkLeft) return
    if (this.#queue.size('locked') > 0 && !this.#queue.isAnyWanted) this.#soon(LOCKED_MS)
    else if (this.#waiting > 0) this.#soon(this.#isFailing ? TRY_AGAIN_MS : ASK_AGAIN_MS)
    else this.#soon(this.#isFailing ? POLL_MS : GROUP_MS)
  }

  /**
   * A statement has waited too long at a locked row: the rows that are locked now are left out of
   * the next one.
   */
  async #leaveOutLocked(shares: readonly InstanceShare[]): Promise<void> {
    try {
      const locked = await this.#rows.locked(shares.map(({ resource }) => resource))
      this.#lookedAt = this.#deps.now()
      const resources = [...locked].slice(0, AT_ONCE - this.#queue.size('locked'))
      for (const share of shares)
        if (resources.includes(share.resource)) this.#queue.step(share, 'locked')
      if (resources.length === 0) return
      const problem = 'another transaction has locked them: their calls wait, others go on'
      const message = `${this.#kind.kind}s: ${problem}`
      this.#deps.log('warn', message, { resources: resources.slice(0, MAX_LOGGED) })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Shares whose rows are locked no more are stored with the others. */
  async #lookAtLocked(): Promise<void> {
    const { now, log } = this.#deps
    const shares = this.#queue.in('locked')
    if (shares.length === 0 || now() < this.#lookedAt + LOCKED_MS) return
    const locked = await this.#rows.locked(shares.map(({ resource }) => resource))
    this.#lookedAt = now()
    for (const share of shares) {
      if (locked.has(share.resource)) share.waiting.noteServer()
      else this.#queue.step(share, 'unlocked')
    }
    if (this.#queue.size('locked') === 0)
      log('info', `${this.#kind.kind}s: none is locked any more`)
  }

  /** Lets calls wait longer for a server that is there, until it is cancelled. */
  #probeLater(): Cancel {
    let isOver = false
    let cancel: Cancel = () => undefined
    const later = (): void => {
      cancel = this.#deps.schedule(() => void probe(), LATE_MS)
    }
    const probe = async (): Promise<void> => {
      const isThere = this.#waiting > 0 && (await this.#rows.isServerThere())
      if (isOver) return
      if (isThere) for (const share of this.#active.values()) share.waiting.noteServer()
      later()
    }
    later()
    return () => {
      isOver = true
      cancel()
    }
  }

  /** Each share is stored again. */
  #storeAll(event: 'want' | 'fenced' | 'serverChanged'): void {
    this.#queue.stepAll(this.#active.values(), event)
    if (this.#queue.isWorkLeft) this.#soon(GROUP_MS)
  }

  get #isWorkLeft(): boolean {
    return this.#queue.isWorkLeft || this.#earlier.unstored !== undefined
  }

  /**
   * Others may have this instance's shares: nothing is stored and nothing is freed, but nothing is
   * forgotten.
   */
  #putOff(): void {
    if (this.#waiting > 0) for (const share of this.#queue.all()) share.refuse()
    if (this.#isWorkLeft) this.#soon(UNHELD_MS)
  }

  #failed(error: unknown): void {
    const { kind } = this.#kind
    const problem = 'what other instances use is not known: calls keep to what this one holds'
    const message = `${kind}s: ${problem}`
    if (!this.#isFailing) this.#deps.log('error', message, { error })
    this.#isFailing = true
  }

  async #store(shares: readonly InstanceShare[]): Promise<void> {
    const { members, now } = this.#deps
    const freed = shares.map(({ resource }) => resource).filter((one) => this.#freed.delete(one))
    const requests = shares.map((share) => share.request())
    const asked: (readonly [string, number])[] = []
    const instances = Math.max(1, members.size())
    for (const answer of await this.#rows.take(requests, instances, this.#earlier.isOver, now())) {
      const share = this.#active.get(answer.resource)
      const missing = share?.answered(answer) ?? 0
      if (missing > 0) asked.push([answer.resource, missing])
      if (share?.waiting.isEmpty === false) this.#queue.step(share, 'want')
    }
    this.#notify(ASK, asked)
    this.#notify(
      FREED,
      freed.map((resource) => [resource, 0] as const),
    )
  }

  // ---- other instances are asked, and ask ------------------------------------------------------

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

  /** Returns no resources, unless the notice is another process's and of this kind. */
  #read(payload: string) {
    const notice = readMessage(payload)
    const isOwn = notice?.process === this.#deps.members.process
    return notice?.kind === this.#kind.kind && !isOwn ? notice : noNotice
  }

  // ---- once a second ---------------------------------------------------------------------------

  #poll(): void {
    this.#cancelPoll = this.#deps.schedule(() => this.#poll(), POLL_MS)
    this.#tenure.isHeld()
    this.#polls += 1
    if (this.#polls % POLLS_PER_RELEASE === 0) {
      void this.#removeRows()
      this.#earlier.lookAgain()
      this.#soon(GROUP_MS)
    }
    const isRepeated = this.#kind.kind === 'limit' && this.#polls % POLLS_PER_REPETITION === 0
    for (const [resource, share] of this.#active)
      if (!share.poll() && this.#queue.stateOf(share) === 'stored') this.#active.delete(resource)
      else if (isRepeated) this.#want(share, false)
  }

  /** A failure is tried again later. */
  async #removeRows(): Promise<void> {
    try {
      for (const instance of this.#deps.members.gone()) await this.#rows.release(instance)
      if (this.#polls % POLLS_PER_SWEEP === 0) await this.#rows.sweep()
    } catch (error) {
      const message = `${this.#kind.kind}s: what a lost instance holds cannot be freed yet`
      this.#deps.log('warn', message, { error })
    }
  }
}

const noNotice = { process: '', resources: [] } as const
