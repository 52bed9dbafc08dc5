/**
 * The online charging system (OCS) of this process: which calls may start, for how long, and what
 * they cost. Call control asks it through `Charging`, the API and nodes through `OcsPort`.
 *
 * Decisions are made in memory, and memory follows the database: a balance changes after the commit
 * that changed it. Reservations for live calls come on top: the journal has them next to the state
 * of a call, and they are made again before this process answers anyone.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type {
  CallCost,
  CallRecord,
  DialledCall,
  OpenCall,
} from '../../schema/contracts/call-record.ts'
import type { Fenced } from '../../schema/contracts/instances.ts'
import type { ChangedPayers } from '../../schema/contracts/changed-rows.ts'
import { wrongBalancesIn } from '../../schema/migrations/migrate.ts'
import type { Every, Schedule } from '../../schema/clock.ts'
import type {
  AuthorizationRequest,
  Balance,
  PastCallTimes,
  Charging,
  CostSoFar,
  GrantExtension,
  Forecast,
  RecoveredCalls,
  MoneyMove,
  MoneyMoveResult,
  NodeExtension,
  NodeVerdict,
  OcsPort,
  OcsStats,
  Quality,
  Quote,
  Rate,
  ReportAnswer,
  RevokedCall,
  Verdict,
  ExitCodes,
  Tariff,
} from '../../schema/contracts/charging.ts'
import type { Brake, Shares } from '../../schema/contracts/limits.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { EventSink } from '../../schema/contracts/engine.ts'
import type { SavedCallState } from '../../schema/journal/journal-entries.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { LossTerms } from '../../schema/rules/loss-protection.ts'
import { international } from '../../schema/rules/numbers.ts'
import { InstanceShares, type ShareMembers, walletShares } from '../shares/instance-shares.ts'
import { AccountingEvents } from './accounting-events.ts'
import {
  type Books,
  namedPayer,
  pricesOfCall,
  rateOf,
  rateOfCall,
} from './authorization/authorize.ts'
import { tariffAt } from './pricing/call-prices.ts'
import { costSoFar, Reservations } from './authorization/reservations.ts'
import { Decisions } from './authorization/decisions.ts'
import { holdGrant, toSavedGrant } from './authorization/saved-grant.ts'
import { foresee, toNodeVerdict, toVerdict } from './authorization/verdict.ts'
import { CallWriter, type StoredCall } from './call-writer.ts'
import { Customers } from './customers/customers.ts'
import { countUnder, SpendingCaps } from './spending-caps/spending-caps.ts'
import { Ledger } from './ledger/ledger.ts'
import { MoneyMoves } from './ledger/money-moves.ts'
import { MoneySums } from './ledger/posting.ts'
import { quoteOf } from './pricing/price.ts'
import { Rates } from './pricing/rates.ts'
import { orUnstored, unstored } from './settlement/node-reports.ts'
import type { EndRetention } from './kept-ends.ts'
import { LostHoldings } from './lost-holdings.ts'
import { RestoredCalls, toRecovered } from './restored-calls.ts'
import { type SettledCall, Settlement } from './settlement/settlement.ts'
import { WaitingEnds } from './settlement/waiting-ends.ts'

export interface OcsDeps {
  readonly store: Store
  readonly journal: CallJournal
  /** Present where another server may take over without what this one has committed last. */
  readonly keeping?: EndRetention | undefined
  /** Milliseconds by the steady clock (schema/clock.ts): for what is measured. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  readonly every: Every
  /** Callers without a customer are refused, or allowed at no cost. */
  readonly unknownCaller: 'deny' | 'allow'
  /** Prefixes dialled in place of `+`; absent: the installation names none. */
  readonly exitCodes?: ExitCodes | undefined
  /**
   * A call that cannot be decided, because this process is cut off from what others share, is
   * refused or allowed.
   */
  readonly failMode?: 'closed' | 'open'
  /** Takes the events of accounting webhooks; absent: none are written. */
  readonly events?: EventSink
  readonly log: Log
  /** Present where other processes spend from the same wallets. */
  readonly members?: ShareMembers | undefined
  /** How long calls may begin while the database does not answer. */
  readonly awaySeconds?: number | undefined
  /** Present where other processes count against the same limits. */
  readonly shares?: Shares | undefined
}

const housekeepingMs = 1_000

/** Calls of the last run, all of which hold what they need. */
interface RestoredHolds {
  /** Calls to be settled. */
  readonly ended: readonly SettledCall[]
  readonly recovered: RecoveredCalls
}

const nothingRestored: RestoredHolds = {
  ended: [],
  recovered: { recoveredCalls: 0, unansweredCalls: 0, saved: [] },
}

/**
 * Calls get three quarters of the event loop while rates are taken over: a slice takes about a
 * millisecond.
 */
const REST_MS = 3

const betweenSlices = (isServing: boolean): Promise<void> =>
  isServing ? sleep(REST_MS) : nextTurn()

export class Ocs implements Charging, OcsPort {
  readonly ledger: Ledger
  readonly #deps: OcsDeps
  readonly #writer: CallWriter
  readonly #restored: RestoredCalls
  readonly #customers: Customers
  readonly rates: Rates
  readonly exitCodes: ExitCodes | undefined
  readonly #guards: SpendingCaps
  readonly #reservations = new Reservations()
  readonly #events: AccountingEvents
  readonly #settlement: Settlement
  readonly #waiting = new WaitingEnds()
  readonly #lost: LostHoldings
  readonly #moves: MoneyMoves
  /** Shares of wallets that this process holds. Undefined: no other process spends from them. */
  readonly money: InstanceShares | undefined
  readonly #sums = new MoneySums()
  readonly #decisions: Decisions
  /** Calls of the last run, until `start`. */
  #holds: RestoredHolds = nothingRestored
  #cancelHousekeeping: (() => void) | undefined

  /** Loads all that is stored, and reserves again for calls of the last run. */
  static async open(deps: OcsDeps): Promise<Ocs> {
    const ocs = new Ocs(deps)
    await ocs.reload()
    await ocs.#restore()
    // From here on other processes get what this instance held, and no call of it uses.
    await ocs.#holdMoney()
    return ocs
  }

  /** Knows no customer and no rate until `reload`. */
  constructor(deps: OcsDeps) {
    const { store, now, wallNow, schedule, exitCodes, members, shares } = deps
    this.#deps = deps
    this.exitCodes = exitCodes
    const money =
      members && new InstanceShares(walletShares(deps.awaySeconds), { ...deps, members })
    this.money = money
    this.#events = new AccountingEvents(deps.events)
    this.ledger = new Ledger(store)
    this.#writer = this.#createWriter(deps)
    this.#restored = new RestoredCalls(deps.journal, this.#writer)
    this.#customers = new Customers({
      store,
      now,
      shared: { limits: shares, money, now },
    })
    this.rates = new Rates(store, betweenSlices, exitCodes)
    this.#guards = new SpendingCaps({
      store,
      now,
      wallNow,
      schedule,
      exitCodes,
      log: deps.log,
      members,
      onNewCap: () => this.#reservations.countLive((...call) => this.#guards.metersOf(...call)),
    })
    const { failMode = 'closed' } = deps
    const reservations = this.#reservations
    this.#lost = new LostHoldings({ money, reservations, failMode, now, schedule })
    this.#decisions = new Decisions({
      unknownCaller: deps.unknownCaller,
      failMode,
      now,
      canHold: () => this.#canHold,
      caps: this.#guards.caps,
      books: () => this.#books(),
      isOverloaded: () => this.#isOverloaded,
      onNew: (request, authorization) => {
        const event = this.#events.verdict(request, authorization, wallNow())
        if (event !== undefined) this.#writer.announce(event)
      },
    })
    const sums = this.#sums
    this.#settlement = new Settlement({ books: () => this.#books(), sums, now })
    this.#moves = new MoneyMoves({
      store,
      ledger: this.ledger,
      customers: this.#customers,
      sums,
      wallNow,
      events: this.#events,
      sink: deps.events,
      money,
    })
  }

  #createWriter({ store, journal, keeping, schedule, log, ...deps }: OcsDeps): CallWriter {
    return new CallWriter({
      store,
      journal,
      ledger: this.ledger,
      keeping,
      schedule,
      now: deps.now,
      wallNow: deps.wallNow,
      events: this.#events,
      sink: deps.events,
      onFailure: (error, waiting) =>
        log('error', 'billing: records cannot be stored', { error, waiting }),
      onLockedWallets: (ids) => logLocked(ids, log),
      onLostEvents: (count) => log('warn', 'billing: events of calls are lost', { count }),
      owner: deps.members,
      onSettled: (spent, beyond) => this.money?.settled(spent, beyond),
    })
  }

  /**
   * Settles the calls that the last run left open and that cannot go on, then begins housekeeping.
   */
  async start(): Promise<RecoveredCalls> {
    const { ended, recovered } = this.#holds
    this.#holds = nothingRestored
    for (const call of ended) void this.#close(call)
    this.#writer.kept.watch({
      found: (lost) => this.#rewind(lost.length),
      store: (entry) => this.#close(this.#settlement.settleRestored(entry)),
    })
    await this.#writer.flush()
    this.#cancelHousekeeping = this.#deps.every(housekeepingMs, () => this.#housekeep())
    return recovered
  }

  /** Another server may answer than before: memory follows it, also where it is behind. */
  #rewind(count: number): void {
    const message = 'billing: the database server has lost calls: they are stored again'
    if (count > 0) this.#deps.log('warn', message, { count })
    for (const customer of this.#customers.all()) customer.rewind()
    this.money?.readAgain()
  }

  /**
   * Reserves again for calls of the last run: for one that goes on, its grant; for one that is
   * over, its cost, until that is stored.
   */
  async #restore(): Promise<void> {
    const open = await this.#restored.open(this.#deps.now())
    for (const call of open.saved) holdGrant(call, this.#books(), this.#deps.now())
    const ended = open.toClose.map((entry) => this.#settlement.settleRestored(entry))
    for (const { record, charge } of ended) this.#reservations.holdCost(record.callUuid, charge)
    this.#holds = { ended, recovered: toRecovered(open) }
  }

  /**
   * Keeps the money that calls of this process hold, and frees the rest that this instance held.
   */
  async #holdMoney(): Promise<void> {
    if (this.money === undefined) return
    for (const customer of this.#customers.all())
      if (customer.reservedMicros > 0n) customer.money?.noted()
    await this.money.alone()
  }

  async #close(call: SettledCall): Promise<void> {
    await this.#write(call).catch((error: unknown) => {
      const message = 'billing: a call of the last run cannot be stored'
      this.#deps.log('error', message, { error, record: call.record })
    })
  }

  #write(call: SettledCall, safe?: () => void, quality?: Quality): Promise<StoredCall> {
    return this.#writer.write(call, {
      safe,
      quality,
      committed: ({ posting }) => this.#settlement.committed(call, posting),
      refused: () => this.#settlement.refused(call),
    })
  }

  /**
   * Calls `settle` with the call: at once, or when it is known what the call may cost, and the
   * share of the wallet is large enough, or cannot be in time.
   */
  #whenPayable<T>(record: CallRecord, settle: () => Promise<T>): Promise<T> {
    const certain = this.#lost.certain()
    if (certain !== undefined) return this.#waiting.add((decide) => certain.then(decide), settle)
    const missing = this.#canHold ? this.#settlement.missingAmount(record) : undefined
    const share = missing?.payer.money
    if (missing === undefined || share === undefined) return settle()
    return this.#waiting.add(async (decide) => {
      const { end } = await share.obtainAmount(Number(missing.amountMicros))
      end()
      decide()
    }, settle)
  }

  /** False: others may spend what this process holds of wallets. */
  get #canHold(): boolean {
    return this.money?.canHold !== false
  }

  /** Writes what waits. Resolves with what neither the database nor the journal has. */
  async stop(): Promise<readonly unknown[]> {
    this.#cancelHousekeeping?.()
    if (this.#waiting.size > 0) await this.#waiting.finish()
    const unstored = await this.#writer.stop()
    await this.#guards.caps.stop()
    await this.money?.stop()
    return unstored
  }

  // ---- for call control ------------------------------------------------------------------------

  authorize(request: AuthorizationRequest): Promise<Verdict> {
    const authorization = this.#decisions.authorize(request)
    return 'then' in authorization
      ? authorization.then(toVerdict)
      : Promise.resolve(toVerdict(authorization))
  }

  async extend(callUuid: string, usedSeconds: number): Promise<GrantExtension> {
    const answer = await this.#decisions.extend(callUuid, usedSeconds)
    if (answer.kind === 'denied') return answer
    return { kind: 'granted', grantedSeconds: answer.reservation.grantedSeconds }
  }

  begun(call: DialledCall): void {
    this.#deps.journal.begun(call)
  }

  answered(call: OpenCall, state?: string): Promise<boolean> {
    const { callUuid } = call
    const now = this.#deps.now()
    const tariff = this.#reservations.answered(callUuid, now, call.answeredAt)?.tariff ?? null
    const saved = state === undefined ? undefined : this.#withGrant(callUuid, state)
    const written = this.#deps.journal.answered(call, tariff, now, saved)
    const event = this.#events.answered(call)
    if (event === undefined) return written
    return written.then((isWritten) => {
      if (isWritten) this.#writer.announce(event)
      return isWritten
    })
  }

  changed(callUuid: string, state: string, isChange?: true): void {
    this.#deps.journal.changed(callUuid, this.#withGrant(callUuid, state, isChange))
  }

  #withGrant(callUuid: string, text: string, isChange?: true): SavedCallState {
    const reservation = this.#reservations.find(callUuid)
    return { text, isChange, grant: reservation && toSavedGrant(reservation) }
  }

  resume(callUuid: string): boolean {
    const call = this.#restored.take(callUuid)
    if (call === undefined) return false
    const now = this.#deps.now()
    this.#reservations.resume(callUuid, Math.ceil((now - call.state.answeredMs) / 1_000), now)
    return true
  }

  abandon(callUuid: string): void {
    const call = this.#restored.take(callUuid)
    if (call !== undefined) void this.#close(this.#settlement.settleRestored(call))
  }

  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[] {
    this.#deps.journal.alive(callUuids, nowMs)
    return [
      ...revokedAmong(callUuids, nowMs, this.#reservations, this.#guards),
      ...this.#lost.revoked(callUuids),
    ]
  }

  /**
   * Others have taken what this process held for live calls. Resolves when `alive` says which of
   * them end.
   */
  loseHoldings(fenced: Fenced): Promise<void> {
    return this.#lost.lose(fenced)
  }

  running(nowMs: number, sinceMs: number): void {
    this.#deps.journal.running(nowMs, sinceMs)
  }

  async report(
    record: CallRecord,
    safe?: () => void,
    quality?: Quality,
  ): Promise<CallCost | undefined> {
    let cost: CallCost | undefined
    await this.#whenPayable(record, () => {
      const settled = this.#settlement.settle(record)
      const { payer, costMicros, tariff } = settled.charge
      cost = payer && { costMicros, currency: tariff?.currency ?? record.currency }
      return this.#write(settled, safe, quality)
    })
    return cost
  }

  // ---- for nodes that ask over HTTP ------------------------------------------------------------

  async authorizeForNode(request: AuthorizationRequest): Promise<NodeVerdict> {
    return toNodeVerdict(await this.#decisions.authorize(request), this.#deps.now())
  }

  async extendForNode(callUuid: string, usedSeconds: number): Promise<NodeExtension> {
    const answer = await this.#decisions.extend(callUuid, usedSeconds)
    if (answer.kind === 'denied') return answer
    const { grantedSeconds, amountMicros } = answer.reservation
    return { kind: 'granted', grantedSeconds, reservedMicros: amountMicros }
  }

  reportFromNode(given: CallRecord, body: string): Promise<ReportAnswer> {
    const record = { ...given, calledNumber: international(given.calledNumber, this.exitCodes) }
    if (this.#deps.store.storage.problem !== undefined) return Promise.resolve(unstored)
    const report = { body, at: this.#deps.wallNow() }
    const stored = this.#whenPayable(record, () =>
      this.#write(this.#settlement.settleReport(record, report)),
    )
    const answer = stored.then(({ answer: known }) => known ?? unstored)
    return orUnstored(answer, this.#deps.schedule)
  }

  // ---- for the API -----------------------------------------------------------------------------

  /** Returns what `authorize` would answer now. Nothing is reserved, counted or reported. */
  foresee(request: Omit<AuthorizationRequest, 'callUuid'>): Forecast {
    return foresee(request, this.#isOverloaded ? undefined : this.#books(), this.#deps)
  }

  /** The customer that `authorize` would ask to pay; undefined: none is named that may. */
  payerOf(
    request: Parameters<typeof namedPayer>[0],
  ): { readonly id: number; readonly name: string } | undefined {
    const terms = namedPayer(request, this.#customers)?.terms
    return terms && { id: terms.customerId, name: terms.name }
  }

  costSoFar(callUuid: string, seconds: number): CostSoFar {
    return costSoFar(this.#reservations.find(callUuid), seconds)
  }

  move(move: MoneyMove): Promise<MoneyMoveResult> {
    return this.#moves.move(move)
  }

  balanceOf(customerId: number): Balance | undefined {
    return this.#customers.byId(customerId)?.toBalance()
  }

  rateFor(planId: number, number: string, at: number): Rate | undefined {
    return this.rates.table.answeredRate(planId, number, at)
  }

  /** Loss protection of a customer, then of its plan; empty: neither has any. */
  lossTermsOf(customerId: number): readonly LossTerms[] {
    const { lossTerms: own, planId } = this.#customers.byId(customerId)?.terms ?? nothingSaid
    const ofPlan = planId === null ? undefined : this.rates.table.lossTermsOf(planId)
    if (own === undefined && ofPlan === undefined) return nobodySays
    return [own, ofPlan].filter((each) => each !== undefined)
  }

  /** The price of a call that the customer pays, answered at `at`; undefined: none. */
  tariffOf(customerId: number, call: SoldCall, at: number): Tariff | undefined {
    const payer = this.#customers.byId(customerId)
    if (payer === undefined) return undefined
    const { calledNumber: callee, sent, routingNumber } = call
    const asked = { callee, startedAt: at, sentAs: () => sent, routingNumber }
    const rate = rateOfCall(payer, asked, this.rates.table)
    const prices = rate && pricesOfCall(payer, asked, rate, this.rates.table)
    return prices ? tariffAt(prices, at) : rate?.tariff
  }

  /** Whether the plan of a customer blocks a number. */
  isBlockedFor(customerId: number, number: string, at: number): boolean {
    const payer = this.#customers.byId(customerId)
    if (payer === undefined) return false
    return rateOf(payer, number, at, this.rates.table)?.isBlocked === true
  }

  quote(
    planId: number,
    number: string,
    seconds: number,
    at: number,
    customerId?: number | null,
  ): Quote | undefined {
    const zone = this.#customers.byId(customerId)?.terms.zone
    return quoteOf(this.rates.table.answeredRate(planId, number, at, zone), seconds)
  }

  pastQuote(
    planId: number,
    number: string,
    seconds: number,
    times: PastCallTimes,
  ): Quote | undefined {
    const zone = this.#customers.byId(times.customerId)?.terms.zone
    return quoteOf(this.rates.table.pastRate(planId, number, times, zone), seconds)
  }

  readonly reloadCustomers = (changed?: ChangedPayers): Promise<void> =>
    this.#customers.reload(changed)
  readonly reloadRates = (): Promise<void> => this.rates.reload()
  readonly reloadPrefix = (planId: number, prefix: string): Promise<void> =>
    this.rates.reloadPrefix(planId, prefix)
  readonly reloadPlan = (planId: number): Promise<number> => this.rates.reloadPlan(planId)
  readonly reloadTimes = (): Promise<void> => this.rates.reloadTimes()

  readonly callsUnder = (brake: Brake): number =>
    countUnder(brake, this.#reservations.all(), this.exitCodes)
  readonly reloadSpendingCaps = (): Promise<void> => this.#guards.reload()

  /** Takes over customers, rates and spend guards. */
  async reload(): Promise<void> {
    await this.reloadCustomers()
    await this.reloadRates()
    await this.reloadSpendingCaps()
  }

  /**
   * Returns one line per fault in the books: ledgers against balances, and balances against memory.
   */
  async check(): Promise<string[]> {
    return [...(await wrongBalancesIn(this.#deps.store)), ...(await this.#customers.differences())]
  }

  stats(): OcsStats {
    return statsOf({
      customers: this.#customers,
      reservations: this.#reservations,
      sums: this.#sums,
      stored: this.#writer.stats(),
      verdicts: this.#decisions.counts(),
    })
  }

  #books(): Books {
    return {
      customers: this.#customers,
      rates: this.rates.table,
      reservations: this.#reservations,
      guards: this.#guards,
    }
  }

  /** While a server is away, the journal has the records. */
  get #isOverloaded(): boolean {
    const { problem } = this.#deps.store.storage
    const isUnstorable = problem !== undefined && problem.code !== 'server_unavailable'
    return this.#writer.isOverloaded || isUnstorable
  }

  #housekeep(): void {
    const lost = this.#reservations.expire(this.#deps.now())
    if (lost.length > 0) this.#deps.log('warn', 'billing: calls without a report', { calls: lost })
  }
}

const nothingSaid = { lossTerms: undefined, planId: null }
const nobodySays: readonly LossTerms[] = []

/** A call as routing asks for its price. */
interface SoldCall {
  readonly calledNumber: string
  readonly sent: readonly string[]
  readonly routingNumber: string | undefined
}

/** The log names no more wallets. */
const MAX_TOLD_WALLETS = 10

function logLocked(ids: readonly number[], log: Log): void {
  if (ids.length === 0) return log('info', 'billing: no wallet is locked any more')
  const wallets = ids.slice(0, MAX_TOLD_WALLETS)
  log('warn', 'billing: another transaction has locked wallets: their records wait', { wallets })
}

interface Counted {
  readonly customers: Customers
  readonly reservations: Reservations
  readonly sums: MoneySums
  readonly stored: ReturnType<CallWriter['stats']>
  readonly verdicts: OcsStats['verdicts']
}

/** Present figures of charging, and totals since the start. */
function statsOf({ customers, reservations, sums, stored, verdicts }: Counted): OcsStats {
  const { waiting, commits, failures, lostEvents } = stored
  let reservedMicros = 0n
  for (const customer of customers.all()) reservedMicros += customer.reservedMicros
  return {
    openCalls: reservations.size,
    reservedMicros,
    waitingWrites: waiting,
    commits,
    commitFailures: failures,
    lostEvents,
    verdicts,
    moved: sums.list(),
  }
}

/**
 * Returns the calls that must end: their customer is inactive now, or a spend guard ends those that
 * were live when it was set. Each of `callUuids` has given a sign of life at `now`.
 */
function revokedAmong(
  callUuids: readonly string[],
  now: number,
  reservations: Reservations,
  guards: Pick<SpendingCaps, 'endsCalls' | 'isEnded'>,
): readonly RevokedCall[] {
  return callUuids.flatMap((callUuid) => {
    const { payer, asked } = reservations.touch(callUuid, now) ?? {}
    if (payer?.terms.isActive === false) return [{ callUuid, code: 'customer_inactive' }]
    const isEnded = guards.endsCalls && asked !== undefined && guards.isEnded(asked, payer)
    return isEnded ? [{ callUuid, code: 'spend_guard' }] : []
  })
}
