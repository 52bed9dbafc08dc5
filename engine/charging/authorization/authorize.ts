/** May this call be set up, and may it go on? Memory only, and every answer is a value. */
import type { Tariff } from '../../../schema/call-journal.ts'
import type { DenialCode, Rate } from '../../../schema/contracts/ocs.ts'
import { affordableSeconds, grantLength } from '../pricing/grant.ts'
import { costMicros, MAX_COST_MICROS } from '../pricing/price.ts'
import type { RateTable } from '../pricing/rate-table.ts'
import type { Account } from '../customers/customer.ts'
import { isAmong, type Customers } from '../customers/customers.ts'
import type { Reservation, Reservations } from './reservations.ts'

export interface CallQuestion {
  readonly callUuid: string
  readonly caller: string
  readonly callee: string
  readonly customerId: number | null
  /**
   * Set: no customer of another tenant pays, and the caller's number names customers of this tenant (or
   * of these) only. A `customerId` may be one of the platform, which has put it there itself.
   */
  readonly payerTenantId?: number | readonly number[] | null
  /** False: the caller's number names no payer. Default: true. */
  readonly mayNamePayer?: boolean
  /** Milliseconds UTC: the rate in force then is the call's rate to its end. */
  readonly startedAt: number
}

export type Admission =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | {
      readonly kind: 'denied'
      readonly code: DenialCode
      readonly account: Account | undefined
      readonly ratePrefix: string | null
    }
  /** The database has not taken records for a while: what cannot be billed is not started. */
  | { readonly kind: 'overloaded' }

export interface AdmissionBooks {
  readonly customers: Customers
  readonly rates: RateTable
  readonly reservations: Reservations
}

/** More open calls than this are refused: the table has a bound. */
const maxOpenCalls = 200_000

const nobodyPays = {
  account: undefined,
  tariff: null,
  grantedSeconds: Infinity,
  maxSeconds: Infinity,
  isLastGrant: false,
} as const

/** Decides a call and reserves its first grant. A known call uuid gets its reservation again. */
export function admit(
  question: CallQuestion,
  books: AdmissionBooks,
  unknownCaller: 'deny' | 'allow',
  now: number,
): Admission {
  const known = books.reservations.find(question.callUuid)
  if (known !== undefined) return { kind: 'granted', reservation: known }
  if (books.reservations.size >= maxOpenCalls) return { kind: 'overloaded' }
  const account = payerOf(question, books.customers)
  if (account !== undefined && !mayPay(account, question))
    return denied('payer_of_other_tenant', undefined)
  if (account !== undefined) return admitCustomer(question, account, books, now)
  if (unknownCaller === 'deny')
    return denied(question.mayNamePayer === false ? 'no_payer' : 'unknown_caller', undefined)
  return reserve(question, nobodyPays, books, now)
}

function payerOf(
  { customerId, caller, payerTenantId = null, mayNamePayer = true }: CallQuestion,
  customers: Customers,
): Account | undefined {
  if (customerId !== null) return customers.byId(customerId)
  return mayNamePayer ? customers.byNumber(caller, payerTenantId) : undefined
}

function mayPay({ terms }: Account, { customerId, payerTenantId = null }: CallQuestion): boolean {
  const isOfPlatform = customerId !== null && terms.tenantId === null
  return isOfPlatform || isAmong(terms.tenantId, payerTenantId)
}

function admitCustomer(
  question: CallQuestion,
  account: Account,
  books: AdmissionBooks,
  now: number,
): Admission {
  const { terms } = account
  if (!terms.isActive) return denied('customer_inactive', account)
  const rate = rateOf(account, question.callee, question.startedAt, books.rates)
  if (rate === undefined) return denied('no_rate', account)
  const { tariff } = rate
  if (rate.isBlocked) return denied('destination_blocked', account, tariff)
  if (terms.maxConcurrentCalls > 0 && account.openCalls >= terms.maxConcurrentCalls)
    return denied('concurrent_limit', account, tariff)
  if (!account.admitAttempt(now)) return denied('cps_limit', account, tariff)
  const maxSeconds = terms.maxCallSeconds > 0 ? terms.maxCallSeconds : Infinity
  const affordable = affordableSeconds(tariff, budgetOf(account, 0, now))
  if (affordable < 1) return denied(shortage(account, 0, tariff, now), account, tariff)
  const target = Math.min(grantLength(tariff), maxSeconds)
  const grantedSeconds = grant(affordable, target, maxSeconds)
  const isLastGrant = affordable < target && isShort(account, 0, tariff, now)
  return reserve(question, { account, tariff, grantedSeconds, maxSeconds, isLastGrant }, books, now)
}

/**
 * The customer's rate for a number, in force at `at` (milliseconds UTC). A rate in another currency than
 * the wallet's is no price for it.
 */
export function rateOf(
  { terms }: Account,
  callee: string,
  at: number,
  rates: RateTable,
): Rate | undefined {
  if (terms.planId === null) return undefined
  const rate = rates.find(terms.planId, callee, at)
  const isPayable = terms.currency === null || terms.currency === rate?.tariff.currency
  return isPayable ? rate : undefined
}

/** Whole seconds since the answer. Where more talk costs nothing more, nothing has to be asked again. */
const grant = (affordable: number, target: number, maxSeconds: number): number =>
  affordable === Infinity ? maxSeconds : Math.min(affordable, target, maxSeconds)

/**
 * What this call may cost in all, `reservedMicros` of it being reserved for it already. A debt adds
 * nothing and takes nothing: calls that are free of charge are free for debtors too.
 */
function budgetOf(account: Account, reservedMicros: number, now: number): number {
  const { availableMicros } = account
  const today = account.dailyBudgetMicros(now) ?? availableMicros
  return budgetWith(reservedMicros, today < availableMicros ? today : availableMicros)
}

/** What one call may cost at most is exact as a number. */
function budgetWith(reservedMicros: number, availableMicros: bigint): number {
  const more = availableMicros > 0n ? Number(availableMicros) : 0
  return Math.min(reservedMicros + more, MAX_COST_MICROS)
}

/** Which of the two budgets was too small. */
function shortage(
  account: Account,
  reservedMicros: number,
  tariff: Tariff,
  now: number,
): 'insufficient_funds' | 'daily_spend_limit' {
  const withFunds = affordableSeconds(tariff, budgetWith(reservedMicros, account.availableMicros))
  const withBoth = affordableSeconds(tariff, budgetOf(account, reservedMicros, now))
  return withFunds > withBoth ? 'daily_spend_limit' : 'insufficient_funds'
}

const isShort = (...asked: Parameters<typeof shortage>): boolean =>
  shortage(...asked) === 'insufficient_funds'

function reserve(
  { callUuid }: CallQuestion,
  terms: Omit<Reservation, 'callUuid' | 'amountMicros' | 'isEnded'>,
  { reservations }: AdmissionBooks,
  now: number,
): Admission {
  const amountMicros = grantCost(terms.tariff, terms.grantedSeconds)
  return {
    kind: 'granted',
    reservation: reservations.open({ callUuid, ...terms, amountMicros }, now),
  }
}

/** A grant without end is given only where every duration costs the same. */
const grantCost = (tariff: Tariff | null, grantedSeconds: number): number =>
  tariff === null ? 0 : costMicros(tariff, grantedSeconds === Infinity ? 1 : grantedSeconds)

const denied = (
  code: DenialCode,
  account: Account | undefined,
  tariff: Tariff | null = null,
): Admission => ({ kind: 'denied', code, account, ratePrefix: tariff?.prefix ?? null })

export type Prolongation =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | { readonly kind: 'denied'; readonly code: DenialCode }

/**
 * Lets a call go on past `usedSeconds`. Denied: nothing is added, the call may use up what it has. The
 * same question again adds nothing, so a repeated request takes no second helping.
 */
export function prolong(
  callUuid: string,
  usedSeconds: number,
  { reservations }: AdmissionBooks,
  now: number,
): Prolongation {
  const reservation = reservations.find(callUuid)
  if (reservation === undefined || reservation.isEnded)
    return { kind: 'denied', code: 'unknown_call' }
  const { account, tariff, grantedSeconds, maxSeconds, amountMicros } = reservation
  if (account !== undefined && !account.terms.isActive)
    return { kind: 'denied', code: 'customer_inactive' }
  if (account === undefined || tariff === null) return { kind: 'granted', reservation }
  const target = usedSeconds + grantLength(tariff)
  if (target <= grantedSeconds) return { kind: 'granted', reservation }
  if (maxSeconds <= grantedSeconds) return { kind: 'denied', code: 'max_call_seconds' }
  const affordable = affordableSeconds(tariff, budgetOf(account, amountMicros, now))
  const prolonged = grant(affordable, target, maxSeconds)
  const isLastGrant =
    affordable < Math.min(target, maxSeconds) && isShort(account, amountMicros, tariff, now)
  if (prolonged <= grantedSeconds) {
    if (isLastGrant) reservations.exhaust(reservation)
    return { kind: 'denied', code: shortage(account, amountMicros, tariff, now) }
  }
  const more = {
    grantedSeconds: prolonged,
    amountMicros: grantCost(tariff, prolonged),
    isLastGrant,
  }
  return { kind: 'granted', reservation: reservations.extend(reservation, more, now) }
}

/** Seconds since the answer that all of the customer's available money would buy for this call. */
export function longestCall(reservation: Reservation, now: number): number {
  const { account, tariff, amountMicros, maxSeconds } = reservation
  if (account === undefined || tariff === null) return maxSeconds
  const affordable = affordableSeconds(tariff, budgetOf(account, amountMicros, now))
  return Math.min(affordable, maxSeconds)
}
