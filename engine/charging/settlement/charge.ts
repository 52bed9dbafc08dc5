/** Rules of what an ended call costs, and who pays. They change nothing. */
import type { JournalEntry } from '../../../schema/journal/journal-entries.ts'
import type { Tariff } from '../../../schema/contracts/charging.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import { recoveredRecord, unansweredRecord } from './interrupted-calls.ts'
import { type Books, rateOf } from '../authorization/authorize.ts'
import type { Reservation } from '../authorization/reservations.ts'
import type { Customer } from '../customers/customer.ts'
import { costMicros } from '../pricing/price.ts'

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

/** A call without a reservation was authorized while the OCS was away, or is reported late. */
export function chargeOf(record: CallRecord, books: Books): Charge {
  const reservation = books.reservations.find(record.callUuid)
  if (reservation !== undefined) return chargeReserved(reservation, record.billsec, books)
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
  billsec: number,
  { reservations }: Pick<Books, 'reservations'>,
): Charge {
  const { callUuid, payer, tariff, grantedSeconds, amountMicros } = reservation
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

/** Money that this process may not spend yet. */
interface Missing {
  readonly payer: Customer
  /** Added to what is reserved for the call. */
  readonly amountMicros: bigint
}

/**
 * Returns the money to obtain so that a call is charged in full. Undefined: it is now, or nothing
 * more can be obtained.
 */
export function missingFor(
  { callUuid, billsec }: CallRecord,
  { reservations }: Books,
): Missing | undefined {
  const reservation = reservations.find(callUuid)
  if (reservation === undefined || reservation.isEnded) return undefined
  const { payer, tariff } = reservation
  if (payer?.isShared !== true || tariff === null) return undefined
  if (!isCutOff(reservation, billsec)) return undefined
  const beyond = costMicros(tariff, billsec) - reservation.amountMicros
  const amountMicros = BigInt(Math.min(beyond, reservations.leftOfCaps(callUuid)))
  return amountMicros > 0n && amountMicros > payer.spendableMicros
    ? { payer, amountMicros }
    : undefined
}

/**
 * Charges at the rate in force when the call started. Without a customer or a rate it costs
 * nothing.
 */
function chargeUnreserved(
  { customerId, callerNumber, calledNumber, startedAt, billsec }: CallRecord,
  { customers, rates }: Books,
): Charge {
  const payer = customerId === null ? customers.byNumber(callerNumber) : customers.byId(customerId)
  const rate = payer && rateOf(payer, calledNumber, startedAt, rates)
  const tariff = rate?.tariff ?? null
  const price = tariff === null ? 0 : costMicros(tariff, billsec)
  return { payer, tariff, costMicros: price, isOutOfFunds: false }
}

/** The end of a call of the last run, as it is settled. */
export interface RestoredEnd {
  readonly record: CallRecord
  readonly charge: Charge
}

/** A call that the last run cut off ends at its last sign of life, at the price of its start. */
export function chargeRestored(entry: JournalEntry, books: Books): RestoredEnd {
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
