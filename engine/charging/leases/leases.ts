/**
 * What this process may spend of wallets that it shares with others. A call is decided on the lease in memory; where
 * that is too small, it waits a moment for more, which others may have to give back.
 *
 * Always: the leases of a wallet are no more than its balance and its credit, and the lease in memory is no more than
 * the stored one. What is given back is not spent from before it is asked to be stored; what is leased is spent after.
 */
import type { Schedule } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/open.ts'
import { type Customer, startOfDay } from '../customers/customer.ts'
import type { Customers } from '../customers/customers.ts'
import type { Lease } from './lease.ts'
import type { LeaseNames } from './lease-names.ts'
import { type LeaseRequest, LeaseRows, type StoredLease } from './lease-rows.ts'
import { WaitingCalls } from './waiting-calls.ts'
import { ASK, FREED, messages, readMessage } from './lease-notices.ts'
import type { Membership } from './membership.ts'

export interface LeasesDeps {
  readonly store: Store
  readonly members: Membership
  readonly customers: Customers
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** Requests of this time are one statement. */
const GROUP_MS = 10
/** Others are asked again, and the free part looked at again, while a call waits. */
const ASK_AGAIN_MS = 50
/** An exchange that takes longer may wait for rows: whether the server is there is asked beside it. */
const LATE_MS = 200
const LOOK_MS = 1_000
/** After a call has waited in vain, new ones of the wallet do not wait for so long. */
const QUIET_MS = 250
/** What lost processes have leased is looked for. */
const LOOKS_PER_RELEASE = 5
/** Of wallets in one statement. */
const AT_ONCE = 1_000

export class Leases {
  readonly names: LeaseNames
  readonly #deps: LeasesDeps
  readonly #rows: LeaseRows
  readonly #work = new OneAtATime(() => this.#exchange())
  readonly #customers = new Map<number, Customer>()
  readonly #waiting: WaitingCalls
  readonly #wanting = new Set<number>()
  readonly #returning = new Map<number, bigint>()
  readonly #freed = new Set<number>()
  /** Wallets of which all is in use: until when, and what their balance was. */
  readonly #quiet = new Map<number, { readonly until: number; readonly balanceMicros: bigint }>()
  /** Wallets of which a limit was lowered. */
  readonly #lowered = new Set<number>()
  /** Another process of this node spends what it has leased. */
  #isBeside: boolean
  #taking: Promise<unknown> = Promise.resolve()
  /** Perhaps given back: the database did not answer. */
  readonly #unsure = new Map<number, bigint>()
  #isFailing = false
  /** Others may have taken what is leased here. */
  #isStale = false
  /** Perhaps more is leased here than is in memory: the database did not answer. */
  #isUnread = false
  #isStopped = false
  #looks = 0
  #cancelGroup: (() => void) | undefined
  #cancelLook: (() => void) | undefined
  readonly #cancelNotices: readonly (() => void)[]

  constructor(deps: LeasesDeps) {
    this.#deps = deps
    const { identity, leaseNames, notices } = deps.members
    this.names = leaseNames
    this.#isBeside = deps.members.isBeside
    const { now, schedule } = deps
    const onVain = (walletId: number): void => this.#beQuiet(walletId)
    this.#waiting = new WaitingCalls({ now, schedule, onVain })
    this.#rows = new LeaseRows(deps.store, leaseNames, identity.epoch)
    this.#cancelNotices = [
      notices.on(ASK, (payload) => this.#onAsked(payload)),
      notices.on(FREED, (payload) => this.#onFreed(payload)),
    ]
  }

  /** Takes over what an earlier process of this node has leased. The customers are loaded. */
  async open(): Promise<void> {
    if (!this.#isBeside) await this.#rows.takeOther()
    this.#note(await this.#rows.takeOver())
    this.#lookLater()
  }

  /** Whether another process of this node leases. */
  set isBeside(isBeside: boolean) {
    this.#isBeside = isBeside
  }

  /** Another one is about to. Resolves when nothing under its name is taken over here any more. */
  beginBeside(): Promise<unknown> {
    this.#isBeside = true
    return this.#taking
  }

  /** The other process has ended: what it has left is leased here. Never rejects. */
  takeOther(): Promise<void> {
    const taking = this.#takeOther()
    this.#taking = Promise.all([this.#taking, taking])
    return taking
  }

  async #takeOther(): Promise<void> {
    if (this.#isBeside) return
    try {
      this.#note(await this.#rows.takeOther())
    } catch (error) {
      const message = 'billing: what the old process has leased cannot be taken over yet'
      this.#deps.log('warn', message, { error })
      // What was taken is idle, and other processes do not get it, until it is in memory.
      this.#isUnread = true
    }
  }

  #note(leases: readonly StoredLease[]): void {
    if (leases.length === 0) return
    const byWallet = new Map<number, Customer>()
    for (const customer of this.#deps.customers.all())
      if (customer.terms.walletId !== null) byWallet.set(customer.terms.walletId, customer)
    for (const lease of leases) {
      const customer = byWallet.get(lease.walletId)
      if (customer?.lease === undefined) continue
      this.#customers.set(lease.walletId, customer)
      customer.lease.stored(lease)
    }
  }

  /** Another server may answer than before: what it has of the leases counts, also where it is behind. */
  readAgain(): void {
    this.#isUnread = true
    this.#soon()
  }

  /** Whether calls may be decided on what is leased here. */
  get isValid(): boolean {
    if (!this.#deps.members.isAlive()) this.#isStale = true
    if (this.#isStale) this.#soon()
    return !this.#isStale
  }

  /**
   * Resolves when so much more may be spent, or when there is no more within `LEASE_WAIT_MS`. The decision is made
   * again then. False: the database did not answer, and may have more; one that answers nothing at all is waited for
   * less long than one whose rows are locked.
   */
  obtain(customer: Customer, amountMicros: bigint): Promise<boolean> {
    const { walletId } = customer.terms
    if (walletId === null) return Promise.resolve(true)
    if (this.#isStopped || this.#waiting.isFull) return Promise.resolve(false)
    this.#customers.set(walletId, customer)
    const told = this.#waiting.add(walletId, amountMicros)
    this.#soon()
    return told
  }

  /** Calls have just waited in vain for money of this customer, and nothing has come since. */
  isQuiet({ terms, balanceMicros }: Customer): boolean {
    const quiet = this.#quiet.get(terms.walletId ?? 0)
    if (quiet === undefined) return false
    return this.#deps.now() < quiet.until && balanceMicros <= quiet.balanceMicros
  }

  #beQuiet(walletId: number): void {
    const balanceMicros = this.#customers.get(walletId)?.balanceMicros ?? 0n
    this.#quiet.set(walletId, { until: this.#deps.now() + QUIET_MS, balanceMicros })
  }

  /** A call has reserved. Asks for more before one has to wait for it. */
  reserved(customer: Customer, amountMicros: number): void {
    const { lease, terms, spendableMicros } = customer
    if (lease === undefined || terms.walletId === null) return
    lease.demandMicros += amountMicros
    if (spendableMicros * 2n >= lease.targetMicros || this.#wanting.has(terms.walletId)) return
    if (this.isQuiet(customer)) return
    this.#customers.set(terms.walletId, customer)
    this.#wanting.add(terms.walletId)
    this.#soon()
  }

  /** A limit of the customer was lowered: what no call holds is leased anew, within what is left. */
  lowered({ terms: { walletId } }: Customer): void {
    if (walletId === null || !this.#customers.has(walletId)) return
    this.#lowered.add(walletId)
    this.#soon()
  }

  /**
   * The database has committed debits of this process. `beyond`: wallets that have paid more than was leased for it;
   * others have leased of the same money.
   */
  settled(stored: readonly StoredLease[], beyond: readonly number[] = []): void {
    for (const lease of stored) this.#customers.get(lease.walletId)?.lease?.stored(lease)
    this.#notify(
      ASK,
      beyond.map((walletId) => [walletId, 0n] as const),
    )
  }

  /** What is deducted in the transaction of the caller, which has locked the wallet, is held in memory until it ends. */
  async take(walletId: number, amountMicros: bigint): Promise<void> {
    const lease = await this.#rows.take({ walletId, amountMicros })
    if (lease === undefined) throw new Error(`wallet ${walletId} has no lease here`)
    this.#deps.store.statements.afterCommit(() => this.settled([lease]))
  }

  /** Gives back what no call holds. */
  async stop(): Promise<void> {
    for (const cancel of this.#cancelNotices) cancel()
    this.#cancelLook?.()
    this.#cancelGroup?.()
    for (const walletId of this.#customers.keys()) this.#giveBackIdle(walletId)
    do await this.#work.request()
    while (this.#returning.size > 0 && !this.#isFailing)
    this.#isStopped = true
    for (const walletId of this.#waiting.walletIds()) this.#waiting.end(walletId)
  }

  // ---- what is exchanged with the database -----------------------------------------------------

  #soon(waitMs = GROUP_MS): void {
    if (this.#cancelGroup !== undefined || this.#isStopped) return
    this.#cancelGroup = this.#deps.schedule(() => {
      this.#cancelGroup = undefined
      void this.#work.request()
    }, waitMs)
  }

  /** Never rejects. */
  async #exchange(): Promise<void> {
    const cancelProbes = this.#probeLater()
    try {
      if (this.#isStale || this.#isUnread) await this.#refresh()
      for (const walletId of this.#lowered) this.#giveBackIdle(walletId)
      this.#lowered.clear()
      await this.#sendReturns()
      await this.#sendRequests()
      if (this.#isFailing) this.#deps.log('info', 'billing: money can be leased again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#deps.log('error', 'billing: no money can be leased', { error })
      this.#isFailing = true
    } finally {
      cancelProbes()
    }
    this.#waiting.tell((walletId) => this.#spendableOf(walletId))
    if (!this.#waiting.isEmpty) this.#soon(ASK_AGAIN_MS)
    else if (this.#returning.size > 0 || this.#wanting.size > 0 || this.#unsure.size > 0)
      this.#soon(this.#isFailing ? LOOK_MS : GROUP_MS)
  }

  /** Until it is cancelled: calls wait longer for a server that is there. */
  #probeLater(): () => void {
    let isOver = false
    let cancel = (): void => undefined
    const later = (): void => {
      cancel = this.#deps.schedule(() => void probe(), LATE_MS)
    }
    const probe = async (): Promise<void> => {
      const isThere = !this.#waiting.isEmpty && (await this.#rows.isServerThere())
      if (isOver) return
      if (isThere) this.#waiting.serverIsThere()
      later()
    }
    later()
    return () => {
      isOver = true
      cancel()
    }
  }

  /** Others may have taken what was leased here, or it is more. */
  async #refresh(): Promise<void> {
    if (!this.#deps.members.isAlive()) return
    const versions = [...this.#customers.values()].map(({ lease }) => lease?.version ?? 0)
    const leases = await this.#rows.takeOver(versions.reduce((a, b) => Math.max(a, b), 0))
    const stored = new Set(leases.map(({ walletId }) => walletId))
    for (const [walletId, { lease }] of this.#customers) if (!stored.has(walletId)) lease?.lost()
    this.#note(leases)
    this.#isUnread = false
    this.#isStale = !this.#deps.members.isAlive()
  }

  async #sendReturns(): Promise<void> {
    const returns = [...this.#returning].slice(0, AT_ONCE)
    if (returns.length === 0) return
    for (const [walletId] of returns) this.#returning.delete(walletId)
    const given = returns.map(([walletId, amountMicros]) => ({ walletId, amountMicros }))
    for (const [walletId, micros] of returns)
      this.#unsure.set(walletId, (this.#unsure.get(walletId) ?? 0n) + micros)
    for (const lease of await this.#rows.giveBack(given))
      this.#leaseOf(lease.walletId)?.stored(lease)
    for (const [walletId, micros] of returns) this.#sure(walletId, micros)
    const freed = given.map(({ walletId }) => walletId).filter((id) => this.#freed.delete(id))
    this.#notify(
      FREED,
      freed.map((walletId) => [walletId, 0n] as const),
    )
  }

  async #sendRequests(): Promise<void> {
    const { members, now } = this.#deps
    if (this.#isStale) return
    const requests = this.#requests()
    if (requests.length === 0) return
    const shares = Math.max(1, members.size())
    const answers = await this.#rows.request(requests, shares, startOfDay(now()))
    const short: (readonly [number, bigint])[] = []
    for (const answer of answers) {
      const lease = this.#leaseOf(answer.walletId)
      if (lease === undefined) continue
      lease.stored(answer)
      // What was sent before this request and has not taken place never will.
      this.#sure(answer.walletId, this.#unsure.get(answer.walletId) ?? 0n)
      lease.isShortOfDay = answer.isShortOfDay
      const missing = this.#needOf(answer.walletId)
      // Otherwise it is needed by calls that have come since, and is asked for next.
      if (!answer.isShort || missing === 0n) continue
      this.#waiting.answered(answer.walletId)
      if (answer.elsewhereMicros > 0n) short.push([answer.walletId, missing])
      else {
        this.#waiting.end(answer.walletId)
        this.#beQuiet(answer.walletId)
      }
    }
    this.#notify(ASK, short)
  }

  #sure(walletId: number, micros: bigint): void {
    const left = (this.#unsure.get(walletId) ?? 0n) - micros
    if (left > 0n) this.#unsure.set(walletId, left)
    else this.#unsure.delete(walletId)
    this.#leaseOf(walletId)?.returned(micros)
  }

  #requests(): readonly LeaseRequest[] {
    const asked = [...this.#unsure.keys(), ...this.#waiting.walletIds(), ...this.#wanting]
    const walletIds = new Set(asked.slice(0, AT_ONCE))
    const requests: LeaseRequest[] = []
    for (const walletId of walletIds) {
      this.#wanting.delete(walletId)
      const customer = this.#customers.get(walletId)
      if (customer?.lease === undefined) continue
      const needMicros = this.#needOf(walletId)
      const { lease, spendableMicros } = customer
      const aheadMicros = lease.targetMicros - (spendableMicros > 0n ? spendableMicros : 0n)
      const wantMicros = needMicros + (aheadMicros > 0n ? aheadMicros : 0n)
      if (wantMicros > 0n || this.#unsure.has(walletId))
        requests.push({ walletId, needMicros, wantMicros })
    }
    return requests
  }

  /** What waiting calls need beyond what may be spent. */
  #needOf(walletId: number): bigint {
    const missing = this.#waiting.needOf(walletId) - this.#spendableOf(walletId)
    return missing > 0n ? missing : 0n
  }

  #spendableOf(walletId: number): bigint {
    return this.#customers.get(walletId)?.spendableMicros ?? 0n
  }

  #leaseOf(walletId: number): Lease | undefined {
    return this.#customers.get(walletId)?.lease
  }

  #giveBack(walletId: number, amountMicros: bigint): void {
    this.#leaseOf(walletId)?.return(amountMicros)
    this.#returning.set(walletId, (this.#returning.get(walletId) ?? 0n) + amountMicros)
  }

  #giveBackIdle(walletId: number): void {
    const spendable = this.#spendableOf(walletId)
    if (spendable > 0n) this.#giveBack(walletId, spendable)
  }

  // ---- what other processes ask ----------------------------------------------------------------

  #notify(channel: string, wallets: readonly (readonly [number, bigint])[]): void {
    const { notices } = this.#deps.members
    for (const payload of messages(this.names.own, wallets)) notices.notify(channel, payload)
  }

  /** Another process needs money that may lie here. Where both need it, the one with the lesser name keeps its part. */
  #onAsked(payload: string): void {
    const { own } = this.names
    const { node, wallets } = readMessage(payload)
    if (node === own) return
    for (const [walletId] of wallets) {
      if (this.#spendableOf(walletId) <= 0n || (this.#needOf(walletId) > 0n && own < node)) continue
      this.#giveBackIdle(walletId)
      this.#freed.add(walletId)
    }
    if (this.#freed.size > 0) this.#now()
  }

  #onFreed(payload: string): void {
    const { node, wallets } = readMessage(payload)
    if (node === this.names.own) return
    for (const [walletId] of wallets) this.#quiet.delete(walletId)
    if (wallets.some(([walletId]) => this.#waiting.has(walletId))) this.#now()
  }

  #now(): void {
    this.#cancelGroup?.()
    this.#cancelGroup = undefined
    void this.#work.request()
  }

  // ---- how much is needed here -----------------------------------------------------------------

  #lookLater(): void {
    this.#cancelLook = this.#deps.schedule(() => {
      this.#lookLater()
      this.#look()
    }, LOOK_MS)
  }

  /** A failure is tried again later. */
  async #releaseGone(): Promise<void> {
    try {
      for (const node of this.#deps.members.gone?.() ?? []) while (await this.#rows.release(node));
    } catch (error) {
      this.#deps.log('warn', 'billing: what a lost node has leased cannot be freed yet', { error })
    }
  }

  #look(): void {
    this.#looks += 1
    if (this.#looks % LOOKS_PER_RELEASE === 0) {
      void this.#releaseGone()
      void this.takeOther()
    }
    for (const [walletId, { until }] of this.#quiet)
      if (until <= this.#deps.now()) this.#quiet.delete(walletId)
    for (const [walletId, customer] of this.#customers) {
      const { lease } = customer
      const surplus = lease?.look(customer.spendableMicros) ?? 0n
      if (surplus > 0n) this.#giveBack(walletId, surplus)
    }
    if (this.#returning.size > 0 || this.#unsure.size > 0 || this.#isUnread) this.#soon()
  }
}
