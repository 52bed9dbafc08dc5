/**
 * The online charging system (OCS): who may call, how long, and what it cost. Asked by the engine in
 * process (it is the engine's `Charging` port) and by nodes over HTTP (`ocs-routes.ts`).
 *
 * Deciding is memory only. Memory follows the database: a balance changes after the commit that changed
 * it, and reservations are the promises to live calls on top of it. They are not stored: after a crash
 * no call of the process is alive that still needs one.
 */
import { foreignWrites } from '../../schema/foreign-writes.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { recoveredRecord, type JournalEntry, type OpenCall } from '../../schema/call-journal.ts'
import type { CallRecord } from '../../schema/call-record.ts'
import { wrongBalances } from '../../schema/check.ts'
import type { Schedule } from '../../schema/clock.ts'
import { GroupCommit } from '../../schema/group-commit.ts'
import type { Store } from '../../schema/open.ts'
import type { Charging } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type {
  Balance,
  CostSoFar,
  DenialCode,
  MoneyMove,
  MoneyMoved,
  OcsPort,
  OcsStats,
  Quote,
  Rate,
  ReportAnswer,
} from '../../schema/contracts/ocs.ts'
import type { EventSink } from '../../schema/contracts/webhook-events.ts'
import { Customers } from './customers/customers.ts'
import { createLedger, type Ledger } from './ledger/ledger.ts'
import { MoneyMoves } from './ledger/money-moves.ts'
import { MoneySums } from './ledger/money-sums.ts'
import {
  admit,
  type Admission,
  type CallQuestion,
  longestCall,
  prolong,
  type Prolongation,
} from './authorization/authorize.ts'
import { type Charge, chargeReserved, chargeUnreserved, noCharge } from './settlement/charge.ts'
import { orUnstored, ReportedCalls, unstored } from './settlement/node-reports.ts'
import { Reservations } from './authorization/reservations.ts'
import { Settlement } from './settlement/settlement.ts'
import { type Verdict, toVerdict } from './authorization/verdict.ts'
import { BillingEvents } from './accounting-events.ts'
import { costMicros, priceParts } from './pricing/price.ts'
import { Rates } from './pricing/rates.ts'

export interface OcsDeps {
  readonly store: Store
  /** Milliseconds by the steady clock (schema/clock.ts): for what is measured. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  /** Callers without a customer are refused, or let through at no cost. */
  readonly unknownCaller: 'deny' | 'allow'
  /** Where accounting webhooks take their events from; absent: nobody is told. */
  readonly events?: EventSink
  readonly log: Log
}

/** New calls are refused while more writes than this wait for the database. */
const maxWaitingWrites = 10_000
const housekeepingMs = 1_000

export class Ocs implements Charging, OcsPort {
  readonly ledger: Ledger
  readonly #deps: OcsDeps
  readonly #group: GroupCommit
  readonly #customers: Customers
  readonly #reservations = new Reservations()
  readonly #settlement: Settlement
  readonly #reported: ReportedCalls
  readonly #moves: MoneyMoves
  readonly #verdicts = new Map<string, number>()
  readonly #sums = new MoneySums()
  readonly #events: BillingEvents
  readonly #rates: Rates
  #cancelHousekeeping: (() => void) | undefined
  readonly #hasForeignWrites: () => boolean

  constructor(deps: OcsDeps) {
    const { store, now, wallNow, schedule } = deps
    this.#deps = deps
    this.#group = new GroupCommit({
      ...{ store, schedule },
      onFailure: (error, waiting) =>
        deps.log('error', 'billing: records cannot be stored', { error, waiting }),
    })
    // Before anything is read: a commit of another process meanwhile is noticed.
    this.#hasForeignWrites = foreignWrites(store)
    this.#customers = new Customers(store, now())
    this.#rates = new Rates(store)
    const ledger = createLedger(store)
    this.ledger = ledger
    this.#events = new BillingEvents(deps.events, ledger)
    this.#settlement = new Settlement({
      store,
      ledger,
      group: this.#group,
      reservations: this.#reservations,
      sums: this.#sums,
      events: this.#events,
      ...{ now, wallNow },
    })
    this.#reported = new ReportedCalls(store, ledger, this.#settlement)
    this.#moves = new MoneyMoves({
      ...{ store, ledger, customers: this.#customers },
      ...{ sums: this.#sums, events: this.#events },
    })
  }

  /** Bills what the last run left open, then looks after lost calls and changes from outside. */
  start(): { readonly recoveredCalls: number } {
    const left = this.#settlement.leftOpen()
    for (const entry of left) this.#recover(entry)
    this.#group.flush()
    this.#cancelHousekeeping = this.#deps.schedule(() => this.#keepHouse(), housekeepingMs)
    return { recoveredCalls: left.length }
  }

  /** Writes what waits. Answers what the database did not take. */
  stop(): readonly unknown[] {
    this.#cancelHousekeeping?.()
    return this.#group.flush() ? [] : this.#group.unwritten()
  }

  // ---- the engine's port -----------------------------------------------------------------------

  authorize(question: CallQuestion): Promise<Verdict> {
    return Promise.resolve(toVerdict(this.admit(question)))
  }

  extend(
    callUuid: string,
    usedSeconds: number,
  ): Promise<{ kind: 'granted'; grantedSeconds: number } | { kind: 'denied'; code: string }> {
    const answer = this.prolong(callUuid, usedSeconds)
    return Promise.resolve(
      answer.kind === 'denied'
        ? answer
        : { kind: 'granted', grantedSeconds: answer.reservation.grantedSeconds },
    )
  }

  answered(call: OpenCall): Promise<boolean> {
    this.#reservations.touch(call.callUuid, this.#deps.now())
    return this.#settlement.open(call, this.#reservations.find(call.callUuid)?.tariff ?? null)
  }

  /** Answers the calls whose customer was deactivated meanwhile. */
  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[] {
    this.#settlement.alive(callUuids, nowMs)
    const revoked: RevokedCall[] = []
    for (const callUuid of callUuids) {
      const account = this.#reservations.touch(callUuid, nowMs)?.account
      if (account?.terms.isActive === false) revoked.push({ callUuid, code: 'customer_inactive' })
    }
    return revoked
  }

  report(record: CallRecord): Promise<void> {
    return this.#settlement.settle(record, this.#charge(record))
  }

  // ---- the same for nodes that ask over HTTP ---------------------------------------------------

  admit(question: CallQuestion): Admission {
    const isRepeated = this.#reservations.find(question.callUuid) !== undefined
    const admission: Admission =
      this.#group.waiting > maxWaitingWrites || this.#deps.store.storage.problem !== undefined
        ? { kind: 'overloaded' }
        : admit(question, this.#books(), this.#deps.unknownCaller, this.#deps.now())
    if (!isRepeated) this.#tell(question, admission)
    const verdict = admission.kind === 'denied' ? admission.code : admission.kind
    this.#verdicts.set(verdict, (this.#verdicts.get(verdict) ?? 0) + 1)
    return admission
  }

  prolong(callUuid: string, usedSeconds: number): Prolongation {
    return prolong(callUuid, usedSeconds, this.#books(), this.#deps.now())
  }

  /**
   * What a live call would cost if it ended after so many seconds of talk, as its record would say it.
   * Nothing and no currency where nobody pays.
   */
  costSoFar(callUuid: string, seconds: number): CostSoFar {
    const { tariff, grantedSeconds } = this.#reservations.find(callUuid) ?? {}
    if (!tariff || grantedSeconds === undefined) return { costMicros: 0, currency: null }
    const billsec = Math.min(seconds, Math.floor(grantedSeconds))
    return { costMicros: costMicros(tariff, billsec), currency: tariff.currency }
  }

  /** How long the call could last at most, as things stand now. */
  affordableSeconds(callUuid: string): number {
    const reservation = this.#reservations.find(callUuid)
    return reservation === undefined ? 0 : longestCall(reservation, this.#deps.now())
  }

  /**
   * A node's report; `body` is what it sent, kept for audit. Resolves when it is durable; and with
   * `unstored` when that is not possible soon: the node may come again.
   */
  reportFromNode(record: CallRecord, body: string): Promise<ReportAnswer> {
    if (this.#deps.store.storage.problem !== undefined) return Promise.resolve(unstored)
    const charge = this.#charge(record)
    const { account, tariff } = charge
    const paid: CallRecord = {
      ...record,
      customerId: account?.terms.customerId ?? null,
      tenantId: account?.terms.tenantId ?? null,
      ratePrefix: tariff?.prefix ?? null,
    }
    const stored = this.#settlement.queue(paid, charge, () =>
      this.#reported.write(paid, charge, body, this.#deps.wallNow()),
    )
    return orUnstored(stored, this.#deps.schedule)
  }

  // ---- money, customers and rates --------------------------------------------------------------

  /** Moves money now: the next authorize sees it. Safe to repeat by kind and reference. */
  move(move: MoneyMove): MoneyMoved {
    return this.#moves.move(move, this.#deps.wallNow())
  }

  balanceOf(customerId: number): Balance | undefined {
    const account = this.#customers.byId(customerId)
    if (account === undefined) return undefined
    const { balanceMicros, reservedMicros, availableMicros, terms, openCalls } = account
    const { currency, creditLimitMicros } = terms
    return {
      balanceMicros,
      reservedMicros,
      availableMicros,
      creditLimitMicros,
      currency,
      openCalls,
    }
  }

  rateFor(planId: number, number: string, at: number): Rate | undefined {
    return this.#rates.table.find(planId, number, at)
  }

  quote(planId: number, number: string, seconds: number, at: number): Quote | undefined {
    const rate = this.rateFor(planId, number, at)
    if (rate === undefined) return undefined
    const { tariff } = rate
    return { rate, costMicros: costMicros(tariff, seconds), parts: priceParts(tariff, seconds) }
  }

  /** Takes over customers, numbers and balances as they are stored now. Live calls keep their terms. */
  reloadCustomers(): void {
    this.#customers.reload(this.#deps.now())
  }

  /** Takes over the rates as they are stored now, for calls that start from now on. */
  reloadRates(): void {
    this.#rates.reload()
  }

  /** The same for a large table: `pause` lets calls have their turn. Resolves when the rates hold. */
  reloadRatesGently(pause: () => Promise<void>): Promise<void> {
    return this.#rates.reloadGently(pause)
  }

  /** The same for one prefix of a plan, at no cost for the others. */
  reloadPrefix(planId: number, prefix: string): void {
    this.#rates.reloadPrefix(planId, prefix)
  }

  reload(): void {
    this.reloadCustomers()
    this.reloadRates()
  }

  /** One line per fault in the books: ledgers against balances, and these against memory. */
  check(): string[] {
    const stored = new Customers(this.#deps.store, this.#deps.now())
    const forgotten = [...stored.all()].flatMap(({ terms: { customerId }, balanceMicros }) => {
      const remembered = this.#customers.byId(customerId)?.balanceMicros
      return remembered === balanceMicros
        ? []
        : [`customer ${customerId} has ${balanceMicros} micro-units, memory says ${remembered}`]
    })
    return [...wrongBalances(this.#deps.store), ...forgotten]
  }

  /** Present figures, and verdicts since the start by `granted`, `overloaded` or denial code. */
  stats(): OcsStats {
    const { waiting, commits, failures } = this.#group.stats()
    let reservedMicros = 0n
    for (const account of this.#customers.all()) reservedMicros += account.reservedMicros
    return {
      openCalls: this.#reservations.size,
      reservedMicros,
      waitingWrites: waiting,
      commits,
      commitFailures: failures,
      verdicts: Object.fromEntries(this.#verdicts),
      moved: this.#sums.list(),
    }
  }

  // ---- inside ----------------------------------------------------------------------------------

  #books() {
    return {
      customers: this.#customers,
      rates: this.#rates.table,
      reservations: this.#reservations,
    }
  }

  #tell(question: CallQuestion, admission: Admission): void {
    const write = this.#events.verdict(question, admission, this.#deps.wallNow())
    if (write !== undefined) this.#group.add({ run: write })
  }

  #charge(record: CallRecord): Charge {
    const reservation = this.#reservations.find(record.callUuid)
    if (reservation !== undefined) return chargeReserved(reservation, record.billsec)
    if (record.isFree === true || record.direction === 'internal') return noCharge
    const { customerId, callerNumber: caller, calledNumber: callee, startedAt, billsec } = record
    const call = { customerId, caller, callee, startedAt, billsec }
    return chargeUnreserved(call, this.#customers, this.#rates.table)
  }

  /** A call of the last run ends at its last sign of life, at the price of its start. */
  #recover(entry: JournalEntry): void {
    const record = recoveredRecord(entry)
    const { tariff } = entry
    // Without a price and a payer at its answer it is free: what it shows as caller may be a customer's number.
    const unpriced = record.customerId === null ? noCharge : this.#charge(record)
    const charge: Charge =
      tariff === null
        ? unpriced
        : {
            account: this.#customers.byId(record.customerId),
            tariff,
            costMicros: costMicros(tariff, record.billsec),
            isOutOfFunds: false,
          }
    this.#settlement.settle(record, charge).catch((error: unknown) => {
      this.#deps.log('error', 'billing: a call of the last run cannot be stored', { error, record })
    })
  }

  #keepHouse(): void {
    const lost = this.#reservations.expire(this.#deps.now())
    if (lost.length > 0) this.#deps.log('warn', 'billing: calls without a report', { calls: lost })
    this.#followOutsideChanges()
    this.#cancelHousekeeping = this.#deps.schedule(() => this.#keepHouse(), housekeepingMs)
  }

  /** Another process (`tollgate seed`) may write while this one serves. */
  #followOutsideChanges(): void {
    if (!this.#hasForeignWrites()) return
    this.reloadCustomers()
    this.reloadRatesGently(nextTurn).catch((error: unknown) =>
      this.#deps.log('error', 'billing: rates cannot be read', { error }),
    )
  }
}

export interface RevokedCall {
  readonly callUuid: string
  readonly code: DenialCode
}
