/** May this call start, and may it go on? Decides in memory; every answer is a value. */
import type { Tariff } from '../../../schema/call-journal.ts'
import type { AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import type { DenialCode, Rate } from '../../../schema/contracts/ocs.ts'
import type { Customer } from '../customers/customer.ts'
import { isAmong, type Customers } from '../customers/customers.ts'
import { affordableSeconds, grantLength } from '../pricing/grant.ts'
import { costMicros, MAX_COST_MICROS } from '../pricing/price.ts'
import type { RateTable } from '../pricing/rate-table.ts'
import type { Reservation, Reservations } from './reservations.ts'

export type Authorization =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | {
      readonly kind: 'denied'
      readonly code: DenialCode
      readonly payer: Customer | undefined
      readonly ratePrefix: string | null
    }
  /** The database has not stored records for a while: a call that cannot be billed does not start. */
  | { readonly kind: 'overloaded' }

/** What decisions are made on. */
export interface Books {
  readonly customers: Customers
  readonly rates: RateTable
  readonly reservations: Reservations
}

/** More open calls than this are refused: the table has a bound. */
const maxOpenCalls = 200_000

const withoutPayer = {
  payer: undefined,
  tariff: null,
  grantedSeconds: Infinity,
  maxSeconds: Infinity,
  isLastGrant: false,
} as const

/** Decides a new call and reserves its first grant. A known call uuid gets its reservation again. */
export function authorize(
  request: AuthorizationRequest,
  books: Books,
  unknownCaller: 'deny' | 'allow',
  now: number,
): Authorization {
  const known = books.reservations.find(request.callUuid)
  if (known !== undefined) return { kind: 'granted', reservation: known }
  const admits = (payer: Customer): boolean => payer.admitAttempt(now)
  const decision = decide(request, books, unknownCaller, now, admits)
  return decision.kind === 'granted' ? reserve(request, decision.grant, books, now) : decision
}

type Grant = Omit<Reservation, 'callUuid' | 'amountMicros' | 'isEnded'>
type Denied = Extract<Authorization, { readonly kind: 'denied' }>
export type Decision =
  | { readonly kind: 'granted'; readonly grant: Grant }
  | Exclude<Authorization, { readonly kind: 'granted' }>

/** Decides a new call. `admits`: whether its payer may start one more in this second. */
export function decide(
  request: Asked,
  books: Books,
  unknownCaller: 'deny' | 'allow',
  now: number,
  admits: (payer: Customer) => boolean,
): Decision {
  if (books.reservations.size >= maxOpenCalls) return { kind: 'overloaded' }
  const payer = payerOf(request, books.customers)
  if (payer !== undefined && !mayPay(payer, request))
    return denied('payer_of_other_tenant', undefined)
  if (payer !== undefined) return decidePayer(request, payer, books, now, admits)
  if (unknownCaller === 'deny')
    return denied(request.mayNamePayer === false ? 'no_payer' : 'unknown_caller', undefined)
  return { kind: 'granted', grant: withoutPayer }
}

type Asked = Omit<AuthorizationRequest, 'callUuid'>

function payerOf(
  { customerId, caller, payerTenantId = null, mayNamePayer = true }: Asked,
  customers: Customers,
): Customer | undefined {
  if (customerId !== null) return customers.byId(customerId)
  return mayNamePayer ? customers.byNumber(caller, payerTenantId) : undefined
}

function mayPay({ terms }: Customer, { customerId, payerTenantId = null }: Asked): boolean {
  const isOfPlatform = customerId !== null && terms.tenantId === null
  return isOfPlatform || isAmong(terms.tenantId, payerTenantId)
}

function decidePayer(
  request: Asked,
  payer: Customer,
  books: Books,
  now: number,
  admits: (payer: Customer) => boolean,
): Decision {
  const { terms } = payer
  if (!terms.isActive) return denied('customer_inactive', payer)
  const rate = rateOf(payer, request.callee, request.startedAt, books.rates)
  if (rate === undefined) return denied('no_rate', payer)
  const { tariff } = rate
  if (rate.isBlocked) return denied('destination_blocked', payer, tariff)
  if (terms.maxConcurrentCalls > 0 && payer.openCalls >= terms.maxConcurrentCalls)
    return denied('concurrent_limit', payer, tariff)
  if (!admits(payer)) return denied('cps_limit', payer, tariff)
  const maxSeconds = terms.maxCallSeconds > 0 ? terms.maxCallSeconds : Infinity
  const affordable = affordableSeconds(tariff, budgetOf(payer, 0, now))
  if (affordable < 1) return denied(shortage(payer, 0, tariff, now), payer, tariff)
  const target = Math.min(grantLength(tariff), maxSeconds)
  const grantedSeconds = grant(affordable, target, maxSeconds)
  const isLastGrant = affordable < target && isShortOfFunds(payer, 0, tariff, now)
  return { kind: 'granted', grant: { payer, tariff, grantedSeconds, maxSeconds, isLastGrant } }
}

/**
 * The payer's rate for a number, in force at `at` (milliseconds UTC). A rate in another currency than
 * the wallet's does not apply.
 */
export function rateOf(
  { terms }: Customer,
  callee: string,
  at: number,
  rates: RateTable,
): Rate | undefined {
  if (terms.planId === null) return undefined
  const rate = rates.find(terms.planId, callee, at)
  const isPayable = terms.currency === null || terms.currency === rate?.tariff.currency
  return isPayable ? rate : undefined
}

/** Whole seconds since the answer; the longest possible at once where more talk costs nothing more. */
const grant = (affordable: number, target: number, maxSeconds: number): number =>
  affordable === Infinity ? maxSeconds : Math.min(affordable, target, maxSeconds)

/**
 * What this call may cost in all; `reservedMicros` of it is reserved for it already. A debt counts as an
 * empty wallet: a call that costs nothing is free for debtors too.
 */
function budgetOf(payer: Customer, reservedMicros: number, now: number): number {
  const { availableMicros } = payer
  const today = payer.dailyBudgetMicros(now) ?? availableMicros
  return budgetWith(reservedMicros, today < availableMicros ? today : availableMicros)
}

/** The most that one call may cost is exact as a number. */
function budgetWith(reservedMicros: number, availableMicros: bigint): number {
  const more = availableMicros > 0n ? Number(availableMicros) : 0
  return Math.min(reservedMicros + more, MAX_COST_MICROS)
}

/** Which of the two budgets was too small. */
function shortage(
  payer: Customer,
  reservedMicros: number,
  tariff: Tariff,
  now: number,
): 'insufficient_funds' | 'daily_spend_limit' {
  const withFunds = affordableSeconds(tariff, budgetWith(reservedMicros, payer.availableMicros))
  const withBoth = affordableSeconds(tariff, budgetOf(payer, reservedMicros, now))
  return withFunds > withBoth ? 'daily_spend_limit' : 'insufficient_funds'
}

const isShortOfFunds = (...asked: Parameters<typeof shortage>): boolean =>
  shortage(...asked) === 'insufficient_funds'

function reserve(
  { callUuid }: AuthorizationRequest,
  terms: Grant,
  { reservations }: Books,
  now: number,
): Authorization {
  const amountMicros = grantCost(terms.tariff, terms.grantedSeconds)
  return {
    kind: 'granted',
    reservation: reservations.open({ callUuid, ...terms, amountMicros }, now),
  }
}

/** A grant is unlimited only where every duration costs the same. */
const grantCost = (tariff: Tariff | null, grantedSeconds: number): number =>
  tariff === null ? 0 : costMicros(tariff, grantedSeconds === Infinity ? 1 : grantedSeconds)

const denied = (
  code: DenialCode,
  payer: Customer | undefined,
  tariff: Tariff | null = null,
): Denied => ({ kind: 'denied', code, payer, ratePrefix: tariff?.prefix ?? null })

export type Extension =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | { readonly kind: 'denied'; readonly code: DenialCode }

/**
 * Lets a call go on past `usedSeconds`. Denied: nothing is added, and the call may use up what it has.
 * Safe to repeat: the same request again adds nothing.
 */
export function extend(
  callUuid: string,
  usedSeconds: number,
  { reservations }: Books,
  now: number,
): Extension {
  const reservation = reservations.find(callUuid)
  if (reservation === undefined || reservation.isEnded)
    return { kind: 'denied', code: 'unknown_call' }
  const { payer, tariff, grantedSeconds, maxSeconds, amountMicros } = reservation
  if (payer !== undefined && !payer.terms.isActive)
    return { kind: 'denied', code: 'customer_inactive' }
  if (payer === undefined || tariff === null) return { kind: 'granted', reservation }
  const target = usedSeconds + grantLength(tariff)
  if (target <= grantedSeconds) return { kind: 'granted', reservation }
  if (maxSeconds <= grantedSeconds) return { kind: 'denied', code: 'max_call_seconds' }
  const affordable = affordableSeconds(tariff, budgetOf(payer, amountMicros, now))
  const extended = grant(affordable, target, maxSeconds)
  const isLastGrant =
    affordable < Math.min(target, maxSeconds) && isShortOfFunds(payer, amountMicros, tariff, now)
  if (extended <= grantedSeconds) {
    if (isLastGrant) reservations.exhaust(reservation)
    return { kind: 'denied', code: shortage(payer, amountMicros, tariff, now) }
  }
  const more = { grantedSeconds: extended, amountMicros: grantCost(tariff, extended), isLastGrant }
  return { kind: 'granted', reservation: reservations.extend(reservation, more, now) }
}

/** Seconds since the answer that all of the payer's available money would buy for this call. */
export function longestCall(
  { payer, tariff, amountMicros, maxSeconds }: Omit<Reservation, 'callUuid' | 'isEnded'>,
  now: number,
): number {
  if (payer === undefined || tariff === null) return maxSeconds
  const affordable = affordableSeconds(tariff, budgetOf(payer, amountMicros, now))
  return Math.min(affordable, maxSeconds)
}
