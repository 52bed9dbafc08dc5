/**
 * Decides what an ended call costs, who pays, and what stays reserved until the debit is committed.
 * It changes memory only: `../call-writer.ts` stores what it decides.
 */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Tariff } from '../../../schema/contracts/charging.ts'
import type { JournalEntry } from '../../../schema/journal/journal-entries.ts'
import { type Books, pricesOfCall, rateOf } from '../authorization/authorize.ts'
import type { Reservation } from '../authorization/reservations.ts'
import type { Customer } from '../customers/customer.ts'
import type { MoneySums, Posting } from '../ledger/posting.ts'
import { tariffAt } from '../pricing/call-prices.ts'
import { costMicros } from '../pricing/price.ts'
import { recoveredRecord, unansweredRecord } from './interrupted-calls.ts'

/** An ended call, and what it costs. */
export interface SettledCall {
  readonly record: CallRecord
  readonly charge: Charge
  /** Present: a node has reported it, and gets the answer of the first report again. */
  readonly report?: NodeReport
  /** Present: the body of its report to an external OCS, which waits in the outbox. */
  readonly outgoing?: string
}

export interface NodeReport {
  /** The body that the node has sent; stored when it conflicts. */
  readonly body: string
  /** Milliseconds UTC. */
  readonly at: number
}

export interface Charge {
  /** Undefined: the call is free. */
  readonly payer: Customer | undefined
  readonly tariff: Tariff | null
  readonly costMicros: number
  /** The call used up a grant that the wallet could not extend. */
  readonly isOutOfFunds: boolean
}

export const noCharge: Charge = {
  payer: undefined,
  tariff: null,
  costMicros: 0,
  isOutOfFunds: false,
}

interface SettlementDeps {
  readonly books: () => Books
  readonly sums: MoneySums
  /** Milliseconds by the steady clock: for days. */
  readonly now: () => number
}

export class Settlement {
  readonly #deps: SettlementDeps

  constructor(deps: SettlementDeps) {
    this.#deps = deps
  }

  /** Settles a call that has ended. It holds exactly its cost until that is debited. */
  settle(record: CallRecord): SettledCall {
    const books = this.#deps.books()
    const charge = chargeOf(record, books)
    const { tariff } = charge
    // The period of the answer may price another prefix than that of the start.
    const isOther = tariff?.period !== undefined && tariff.prefix !== record.ratePrefix
    return ended(
      { record: isOther ? { ...record, ratePrefix: tariff.prefix } : record, charge },
      books,
    )
  }

  /** Settles a call that a node reports. Its record says who has paid. */
  settleReport(reported: CallRecord, report: NodeReport): SettledCall {
    const books = this.#deps.books()
    const charge = chargeOf(reported, books)
    const isTrusted = books.reservations.find(reported.callUuid)?.isTrusted === true
    const record: CallRecord = {
      ...reported,
      customerId: charge.payer?.terms.customerId ?? null,
      tenantId: charge.payer?.terms.tenantId ?? null,
      ratePrefix: charge.tariff?.prefix ?? null,
      isUnauthorizedByOcs: reported.isUnauthorizedByOcs || isTrusted,
    }
    return ended({ record, charge, report }, books)
  }

  /** Settles a call that the last run has left, or that a database server has lost. */
  settleRestored(entry: JournalEntry): SettledCall {
    const books = this.#deps.books()
    return ended(chargeRestored(entry, books), books)
  }

  /** Undefined: the call can be charged now, or nothing more can be obtained for it. */
  missingAmount(record: CallRecord): MissingAmount | undefined {
    return missingAmount(record, this.#deps.books())
  }

  /** The call is stored. Memory follows the database after the commit, never before. */
  committed({ record, charge }: SettledCall, posting: Posting | undefined): void {
    const { sums, now, books } = this.#deps
    const { payer, tariff, costMicros: cost } = charge
    if (posting?.kind === 'posted' && payer !== undefined) {
      sums.add({ kind: 'debit', amountMicros: -cost }, tariff ?? payer.terms)
      payer.posted(posting.balanceMicros, posting.entryId)
      payer.addSpending(cost, now())
    }
    books().reservations.release(record.callUuid)
  }

  /** The call can never be stored. */
  refused({ record }: SettledCall): void {
    this.#deps.books().reservations.release(record.callUuid)
  }
}

function ended(call: SettledCall, { reservations }: Books): SettledCall {
  reservations.end(call.record.callUuid, call.charge.costMicros)
  return call
}

/** A call without a reservation was authorized while the OCS was away, or is reported late. */
function chargeOf(record: CallRecord, books: Books): Charge {
  const reservation = books.reservations.find(record.callUuid)
  if (reservation !== undefined) return chargeReserved(reservation, record, books)
  const isFree = record.isFree === true || record.direction === 'internal'
  return isFree ? noCharge : chargeUnreserved(record, books)
}

/**
 * Cutting a call takes a moment: this many seconds past the grant cost no more than the wallet has.
 */
const cutOffSeconds = 2

/**
 * Charges a call that was authorized here, at the price of its start. A duration far beyond the
 * grant (the call should have been cut and was not) is charged in full, even below the credit
 * limit.
 */
function chargeReserved(
  reservation: Reservation,
  { billsec, answeredAt }: Pick<CallRecord, 'billsec' | 'answeredAt'>,
  { reservations }: Pick<Books, 'reservations'>,
): Charge {
  const { callUuid, payer, prices, grantedSeconds, amountMicros } = reservation
  const tariff = prices && answeredAt !== null ? tariffAt(prices, answeredAt) : reservation.tariff
  const isOutOfFunds = reservation.isLastGrant && billsec >= grantedSeconds
  if (tariff === null) return { payer, tariff, costMicros: 0, isOutOfFunds }
  const price = costMicros(tariff, billsec)
  if (payer !== undefined && reservation.isTakenAway && payer.isShared) {
    // Negative: less was obtained anew than is reserved, and this call does without.
    const covered = Math.max(0, amountMicros + Number(payer.spendableMicros))
    return { payer, tariff, costMicros: Math.min(price, covered), isOutOfFunds }
  }
  if (payer === undefined || !isCutOff(reservation, billsec))
    return { payer, tariff, costMicros: price, isOutOfFunds }
  const { spendableMicros } = payer
  const more = spendableMicros > 0n ? Number(spendableMicros) : 0
  const payable = amountMicros + Math.min(more, reservations.leftOfCaps(callUuid))
  return { payer, tariff, costMicros: Math.min(price, payable), isOutOfFunds }
}

function isCutOff({ grantedSeconds, resumedAtSeconds = 0 }: Reservation, billsec: number): boolean {
  const cutOffFrom = Math.max(grantedSeconds, resumedAtSeconds)
  return billsec > grantedSeconds && billsec <= cutOffFrom + cutOffSeconds
}

/** An amount that this process may not spend now. */
export interface MissingAmount {
  readonly payer: Customer
  /** The amount beyond what is reserved for the call. */
  readonly amountMicros: bigint
}

/**
 * Returns the amount to be obtained so that a call is charged in full. Undefined: it is now, or
 * nothing more can be obtained.
 */
function missingAmount(
  { callUuid, billsec, answeredAt }: CallRecord,
  { reservations }: Books,
): MissingAmount | undefined {
  const reservation = reservations.find(callUuid)
  if (reservation === undefined || reservation.isEnded) return undefined
  const { payer, prices } = reservation
  const tariff = prices && answeredAt !== null ? tariffAt(prices, answeredAt) : reservation.tariff
  if (payer?.isShared !== true || tariff === null) return undefined
  if (!isCutOff(reservation, billsec)) return undefined
  const beyond = costMicros(tariff, billsec) - reservation.amountMicros
  const amountMicros = BigInt(Math.min(beyond, reservations.leftOfCaps(callUuid)))
  return amountMicros > 0n && amountMicros > payer.spendableMicros
    ? { payer, amountMicros }
    : undefined
}

/**
 * Charges at the rate in force when the call started, in the period of its answer. Without a
 * customer or a rate it costs nothing.
 */
function chargeUnreserved(
  { customerId, callerNumber, calledNumber, startedAt, answeredAt, billsec }: CallRecord,
  { customers, rates }: Books,
): Charge {
  const payer = customerId === null ? customers.byNumber(callerNumber) : customers.byId(customerId)
  const rate = payer && rateOf(payer, calledNumber, startedAt, rates)
  const question = { caller: callerNumber, callee: calledNumber, customerId, startedAt }
  const prices = rate && pricesOfCall(payer, question, rate, rates)
  const tariff = prices ? tariffAt(prices, answeredAt ?? startedAt) : (rate?.tariff ?? null)
  const price = tariff === null ? 0 : costMicros(tariff, billsec)
  return { payer, tariff, costMicros: price, isOutOfFunds: false }
}

/** A call that the last run cut off ends at its last sign of life, at the price of its start. */
function chargeRestored(entry: JournalEntry, books: Books): SettledCall {
  if (entry.kind === 'ended') {
    const { payerId, tariff, costMicros: cost } = entry.terms
    const payer = books.customers.byId(payerId)
    return { record: entry.record, charge: { ...noCharge, payer, tariff, costMicros: cost } }
  }
  if (entry.kind === 'unanswered') return { record: unansweredRecord(entry), charge: noCharge }
  const record = recoveredRecord(entry)
  const { tariff } = entry
  if (tariff !== null) {
    const payer = books.customers.byId(record.customerId)
    const price = costMicros(tariff, record.billsec)
    return { record, charge: { payer, tariff, costMicros: price, isOutOfFunds: false } }
  }
  // Answered without a price and a payer, it is free: the caller it shows may be a customer's
  // number.
  return { record, charge: record.customerId === null ? noCharge : chargeOf(record, books) }
}
