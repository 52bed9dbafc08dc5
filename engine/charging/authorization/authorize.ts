/** May this call start, and may it go on? Decides in memory; every answer is a value. */
import type { MoneyLack } from '../../../schema/contracts/call-record.ts'
import { moneyToDecimal } from '../../../schema/columns.ts'
import type {
  AuthorizationRequest,
  OcsRefusal,
  DenialCode,
  Rate,
  Tariff,
} from '../../../schema/contracts/charging.ts'
import type { Reservation, Reservations } from './reservations.ts'
import type { Customer } from '../customers/customer.ts'
import type { Counting, HeldSlots, LimitVerdict } from '../customers/customer-limits.ts'
import { type Customers, isAmong } from '../customers/customers.ts'
import { freeOn, type Meter } from '../spending-caps/meter.ts'
import type { Cappable, SpendingCaps } from '../spending-caps/spending-caps.ts'
import { firstPrices, type TimedPrices, timedPrices } from '../pricing/call-prices.ts'
import { affordableSeconds, costMicros, grantLength, MAX_COST_MICROS } from '../pricing/price.ts'
import { dearestFirst, dearestTariffFirst, type RateDeck } from '../pricing/rate-table.ts'

export type Authorization =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | {
      readonly kind: 'denied'
      readonly code: DenialCode
      readonly payer: Customer | undefined
      readonly ratePrefix: string | null
      /** Absent: it was not refused for money. */
      readonly lack?: MoneyLack
      /** Uuid of the spend guard that denies it. */
      readonly capUuid?: string | undefined
      /** The subject of its sentence (`denialText`). */
      readonly detail?: string | undefined
    }
  /** A call that cannot be decided or billed does not start. */
  | Refused

interface Refused {
  readonly kind: 'overloaded'
  readonly by: OcsRefusal
}

export const refusedBy = (by: OcsRefusal): Refused => ({ kind: 'overloaded', by })

/** How much money a decision counts on. */
export type FundsSource =
  /** The part that this process holds; more may be asked for. */
  | 'ask'
  /** The part that it holds: there is no more. */
  | 'held'
  /** The part that it holds: it is not known whether there is more. */
  | 'unreachable'
  /** All that is needed, whatever there is: nothing is known of it, and the fail mode is `open`. */
  | 'trusted'

/** How much of the caps of a call a decision counts on. */
export type CapsBy =
  /** The part that this process holds; more may be asked for. */
  | 'ask'
  /** The part that it holds: there is no more. */
  | 'held'
  /** The part that it holds: it is not known whether there is more. */
  | 'unreachable'

/**
 * The share of this process in the wallet is too small for a whole grant, or that in a limit for
 * the call: ask, then decide again.
 */
export interface Short {
  readonly kind: 'short'
  readonly payer: Customer
  /** 0: no money is to be obtained. */
  readonly amountMicros: number
  /** Its start counts. False: other instances are to be asked for room. */
  readonly isCounted: boolean
  /** Caps on which so much is to be obtained; absent: enough is held. */
  readonly capped?: { readonly meters: readonly Meter[]; readonly amountMicros: number }
}

/** How much money, and room in the payer's limits, a decision counts on. */
export interface DecidedBy {
  readonly funds: FundsSource
  readonly counting?: Counting
  /** Room for the call, of other instances, too. Absent: they may be asked for it. */
  readonly held?: HeldSlots
  readonly caps?: CapsBy
}

/** The tables that decisions are made on. */
export interface Books {
  readonly customers: Customers
  readonly rates: RateDeck
  readonly reservations: Reservations
  readonly guards: Pick<SpendingCaps, 'of' | 'metersOf' | 'endsCalls' | 'isEnded'>
}

/** More open calls than this are refused: the table has a bound. */
const maxOpenCalls = 200_000

const withoutPayer = {
  payer: undefined,
  tariff: null,
  grantedSeconds: Infinity,
  maxSeconds: Infinity,
  isLastGrant: false,
  isTrusted: false,
} as const

/**
 * Decides a new call and reserves its first grant. A known call uuid gets its reservation again.
 */
export function authorize(
  request: AuthorizationRequest,
  books: Books,
  unknownCaller: 'deny' | 'allow',
  now: number,
  { funds, counting, held, caps = 'ask' }: DecidedBy = { funds: 'ask' },
): Authorization | Short {
  const known = books.reservations.find(request.callUuid)
  if (known !== undefined) return { kind: 'granted', reservation: known }
  const roomFor = (payer: Customer): LimitVerdict => payer.limits.admit(now, held, counting)
  const resources = { roomFor, funds, fundsOf: fundsBy(funds), caps, leftOn: freeOn }
  const decision = decide(request, books, unknownCaller, now, resources)
  return decision.kind === 'granted' ? reserve(request, decision, books, now) : decision
}

const fundsBy = (funds: FundsSource): ((payer: Customer) => bigint) =>
  funds === 'trusted' ? () => BigInt(MAX_COST_MICROS) : ({ spendableMicros }) => spendableMicros

/** The money and the room of one decision. */
interface Resources {
  /** Whether its payer may have one more call, and start it now. */
  readonly roomFor: (payer: Customer) => LimitVerdict
  readonly funds: FundsSource
  readonly fundsOf: (payer: Customer) => bigint
  readonly caps: CapsBy
  /** Cost that its caps allow; Infinity: it counts on none. */
  readonly leftOn: (meters: readonly Meter[]) => number
}

type Grant = Omit<Reservation, 'callUuid' | 'amountMicros' | 'isEnded'>
type Denied = Extract<Authorization, { readonly kind: 'denied' }>
export type AuthorizationDecision =
  | { readonly kind: 'granted'; readonly grant: Grant; readonly meters: readonly Meter[] }
  | Exclude<Authorization, { readonly kind: 'granted' }>

/** Decides a new call of which nothing is reserved or counted, on all that its payer has. */
export const foreseen = (
  request: Question,
  books: Books,
  unknownCaller: 'deny' | 'allow',
  now: number,
): AuthorizationDecision => {
  const decision = decide(request, books, unknownCaller, now, {
    roomFor: (payer) => payer.limits.foresee(now),
    funds: 'held',
    fundsOf: ({ availableMicros }) => availableMicros,
    caps: 'held',
    leftOn: (meters) => Math.min(...meters.map(({ leftMicros }) => leftMicros)),
  })
  return decision.kind === 'short' ? refusedBy('lease_contended') : decision
}

/** Decides a new call. */
function decide(
  request: Question,
  books: Books,
  unknownCaller: 'deny' | 'allow',
  now: number,
  resources: Resources,
): AuthorizationDecision | Short {
  if (books.reservations.size >= maxOpenCalls) return refusedBy('too_many_calls')
  const named = payerOf(request, books.customers)
  const isForeign = named !== undefined && !mayPay(named, request)
  // Nobody may learn who owns the number in From: one of another tenant's customer is like one of
  // nobody.
  if (isForeign && request.customerId !== null) return denied('payer_of_other_tenant', undefined)
  const payer = isForeign ? undefined : named
  if (payer !== undefined) return decidePayer(request, payer, books, now, resources)
  if (unknownCaller === 'deny')
    return denied(request.mayNamePayer === false ? 'no_payer' : 'unknown_caller', undefined)
  const guarded = books.guards.of(request, undefined)
  if (guarded?.kind === 'blocked') return cappedOff(undefined, guarded.capUuid)
  return { kind: 'granted', grant: withoutPayer, meters: noMeters }
}

type Question = Cappable

type PricedQuestion = Pick<Question, 'callee' | 'startedAt' | 'sentAs' | 'routingNumber' | 'isName'>

type PayerQuestion = Pick<Question, 'customerId' | 'caller' | 'payerTenantId' | 'mayNamePayer'>

/** The customer that would be asked to pay; undefined: none is named that may. */
export function namedPayer(request: PayerQuestion, customers: Customers): Customer | undefined {
  const named = payerOf(request, customers)
  return named !== undefined && mayPay(named, request) ? named : undefined
}

function payerOf(
  { customerId, caller, payerTenantId = null, mayNamePayer = true }: PayerQuestion,
  customers: Customers,
): Customer | undefined {
  if (customerId !== null) return customers.byId(customerId)
  return mayNamePayer ? customers.byNumber(caller, payerTenantId) : undefined
}

function mayPay({ terms }: Customer, { customerId, payerTenantId = null }: PayerQuestion): boolean {
  const isOfPlatform = customerId !== null && terms.tenantId === null
  return isOfPlatform || isAmong(terms.tenantId, payerTenantId)
}

function decidePayer(
  request: Question,
  payer: Customer,
  books: Books,
  now: number,
  resources: Resources,
): AuthorizationDecision | Short {
  const { terms } = payer
  if (!terms.isActive) return { ...denied('customer_inactive', payer), detail: nameOf(payer) }
  const guarded = books.guards.of(request, payer)
  if (guarded?.kind === 'blocked') return cappedOff(payer, guarded.capUuid)
  const meters = guarded?.meters ?? noMeters
  const rate = rateOfCall(payer, request, books.rates)
  if (rate === undefined) return { ...denied('no_rate', payer), detail: whyNoRate(payer) }
  if (rate.isBlocked) {
    const { prefix } = rate.tariff
    return { ...denied('destination_blocked', payer, rate.tariff), detail: `prefix ${prefix}` }
  }
  const prices = pricesOfCall(payer, request, rate, books.rates)
  const tariff = prices === undefined ? rate.tariff : dearestOf(firstPrices(prices), rate.tariff)
  const room = resources.roomFor(payer)
  if (room === 'concurrent_limit' || room === 'cps_limit')
    return { ...denied(room, payer, tariff), detail: limitOf(room, payer) }
  if (room === 'unreachable') return refusedBy('limit_unheard')
  const isCounted = room === 'room'
  const maxSeconds = terms.maxCallSeconds > 0 ? terms.maxCallSeconds : Infinity
  const funds = resources.fundsOf(payer)
  const payable = affordableSeconds(tariff, budgetOf(payer, 0, funds, now))
  const left = leftWithin(meters, tariff, 0, resources.leftOn)
  const affordable = Math.min(payable, left)
  const target = Math.min(grantLength(tariff), maxSeconds)
  const isShort = payable < target
  const mayAskMoney = isShort && resources.funds === 'ask' && payer.isShared
  const mayAskCaps = left < target && resources.caps === 'ask'
  if (mayAskMoney || mayAskCaps || !isCounted) {
    const price = costMicros(tariff, target)
    const capped = mayAskCaps ? { capped: { meters, amountMicros: price } } : {}
    return { kind: 'short', payer, amountMicros: mayAskMoney ? price : 0, isCounted, ...capped }
  }
  if (payable < 1 && resources.funds === 'unreachable') return refusedBy('lease_unheard')
  if (left < 1 && resources.caps === 'unreachable') return refusedBy('cap_unheard')
  if (left < 1) return cappedOff(payer, leastOf(meters)?.guard.capUuid, tariff)
  if (affordable < 1) {
    const code = shortage(payer, 0, tariff, funds, now)
    const lack = missingAmount(code, payer, tariff, funds, now)
    return { ...denied(code, payer, tariff), lack, detail: limitOf(code, payer, lack) }
  }
  const grantedSeconds = grant(affordable, target, maxSeconds, tariff)
  const isLastGrant =
    isShort &&
    payable <= left &&
    resources.funds !== 'unreachable' &&
    isShortOfFunds(payer, 0, tariff, funds, now)
  const isTrusted = resources.funds === 'trusted'
  return {
    kind: 'granted',
    grant: {
      payer,
      tariff,
      ...(prices && { prices }),
      grantedSeconds,
      maxSeconds,
      isLastGrant,
      isTrusted,
    },
    meters,
  }
}

/**
 * The payer's rate for a call: of the numbers that gateways may get the most expensive, as it may
 * be sent to each of them. A block of the number that was dialled holds, too, and so does one of
 * the routing number; a plan may price by the latter alone. Undefined: one of them has no price,
 * and neither has the dialled one.
 */
export function rateOfCall(
  payer: Customer,
  { callee, startedAt, sentAs, routingNumber, isName = false }: PricedQuestion,
  rates: RateDeck,
  clock = startedAt,
): Rate | undefined {
  if (isName) return rateOf(payer, '', startedAt, rates, clock)
  const { customerId, tenantId, planId } = payer.terms
  const dialled = rateOf(payer, callee, startedAt, rates, clock)
  const sent = sentAs?.(customerId, tenantId) ?? []
  if (dialled?.isBlocked) return dialled
  if (routingNumber !== undefined) {
    const routed = rateOf(payer, routingNumber, startedAt, rates, clock)
    if (routed?.isBlocked) return routed
    if (planId !== null && rates.isByRoutingNumber(planId)) {
      const others = sent.map((number) => rateOf(payer, number, startedAt, rates, clock))
      return others.find((rate) => rate?.isBlocked) ?? routed
    }
  }
  if (sent.length === 0) return dialled
  const found = sent.map((number) => rateOf(payer, number, startedAt, rates, clock) ?? dialled)
  return found.includes(undefined)
    ? undefined
    : found.filter((rate) => rate !== undefined).toSorted(dearestFirst)[0]
}

/**
 * The payer's rate for a number, in force at `at` (milliseconds UTC). A rate in another currency
 * than the wallet's does not apply.
 *
 * @param clock when the period is asked for.
 */
export function rateOf(
  { terms }: Customer,
  callee: string,
  at: number,
  rates: RateDeck,
  clock = at,
): Rate | undefined {
  if (terms.planId === null) return undefined
  const rate = rates.find(terms.planId, callee, at, { clock, customer: terms.zone })
  const isPayable = terms.currency === null || terms.currency === rate?.tariff.currency
  return isPayable ? rate : undefined
}

/** The prices by the time of the answer; undefined: it is the same at all times. */
export function pricesOfCall(
  payer: Customer,
  request: PricedQuestion,
  rate: Rate,
  rates: RateDeck,
): TimedPrices | undefined {
  const { planId, zone } = payer.terms
  const times = planId === null ? undefined : rates.timesOf(planId, zone)
  if (times === undefined) return undefined
  const rateAt = (clock: number): Rate | undefined => rateOfCall(payer, request, rates, clock)
  return timedPrices(rate, rateAt, times, request.startedAt)
}

const dearestOf = (tariffs: readonly Tariff[], first: Tariff): Tariff =>
  tariffs.toSorted(dearestTariffFirst)[0] ?? first

function reserve(
  asked: AuthorizationRequest,
  { grant: terms, meters }: Extract<AuthorizationDecision, { readonly kind: 'granted' }>,
  { reservations }: Books,
  now: number,
): Authorization {
  const { callUuid } = asked
  const amountMicros = grantCost(terms.tariff, terms.grantedSeconds)
  return {
    kind: 'granted',
    reservation: reservations.open({ ...terms, callUuid, amountMicros, asked }, now, meters),
  }
}

const denied = (
  code: DenialCode,
  payer: Customer | undefined,
  tariff: Tariff | null = null,
): Denied => ({ kind: 'denied', code, payer, ratePrefix: tariff?.prefix ?? null })

const cappedOff = (
  payer: Customer | undefined,
  capUuid: string | undefined,
  tariff: Tariff | null = null,
): Denied => ({
  ...denied('spend_guard', payer, tariff),
  capUuid,
  detail: capUuid && `spend guard ${capUuid}`,
})

const nameOf = ({ terms }: Customer): string => `customer ${terms.customerId}`

/** Names a limit of the payer for the sentence of a denial. */
function limitOf(
  code: 'concurrent_limit' | 'cps_limit' | 'daily_spend_limit' | 'insufficient_funds',
  payer: Customer,
  lack?: MoneyLack,
): string {
  const { maxConcurrentCalls, maxCps, maxDailySpendMicros, currency } = payer.terms
  const money = (micros: number): string => `${moneyToDecimal(micros)} ${currency ?? ''}`.trimEnd()
  switch (code) {
    case 'concurrent_limit':
      return `${nameOf(payer)}, max_concurrent_calls ${maxConcurrentCalls}`
    case 'cps_limit':
      return `${nameOf(payer)}, max_cps ${maxCps}`
    case 'daily_spend_limit':
      return `${nameOf(payer)}, max_daily_spend ${money(maxDailySpendMicros)}`
    case 'insufficient_funds':
    default:
      return lack === undefined || payer.terms.walletId === null
        ? `${nameOf(payer)} has no wallet`
        : `${nameOf(payer)} has ${money(lack.availableMicros)} to spend, and ` +
            `the shortest call takes ${money(lack.requiredMicros)}`
  }
}

const whyNoRate = (payer: Customer): string =>
  payer.terms.planId === null ? `${nameOf(payer)} has no rate plan` : nameOf(payer)

export type ExtensionDecision =
  | { readonly kind: 'granted'; readonly reservation: Reservation }
  | { readonly kind: 'denied'; readonly code: DenialCode }

/**
 * Lets a call go on past `usedSeconds`. Denied: nothing is added, and the call may use up what it
 * has. Safe to repeat: the same request again adds nothing.
 */
export function extend(
  callUuid: string,
  usedSeconds: number,
  { reservations, guards }: Books,
  now: number,
  by: FundsSource = 'ask',
  caps: CapsBy = 'ask',
): ExtensionDecision | Short {
  const reservation = reservations.find(callUuid)
  if (reservation === undefined || reservation.isEnded)
    return { kind: 'denied', code: 'unknown_call' }
  const { payer, grantedSeconds, maxSeconds, amountMicros } = reservation
  const tariff = reservations.priceOf(reservation, usedSeconds, now)
  if (payer !== undefined && !payer.terms.isActive)
    return { kind: 'denied', code: 'customer_inactive' }
  const { asked } = reservation
  // A node that asks over HTTP hears of it by this alone.
  if (asked !== undefined && guards.endsCalls && guards.isEnded(asked, payer))
    return { kind: 'denied', code: 'spend_guard' }
  if (payer === undefined || tariff === null) return { kind: 'granted', reservation }
  const target = usedSeconds + grantLength(tariff)
  if (target <= grantedSeconds) return { kind: 'granted', reservation }
  if (maxSeconds <= grantedSeconds) return { kind: 'denied', code: 'max_call_seconds' }
  const funds = fundsBy(by)(payer)
  const payable = affordableSeconds(tariff, budgetOf(payer, amountMicros, funds, now))
  const meters = asked === undefined ? noMeters : guards.metersOf(asked, payer)
  const left = leftWithin(meters, tariff, amountMicros, freeOn)
  const wanted = Math.min(target, maxSeconds)
  const isShort = payable < wanted
  const mayAskMoney = isShort && by === 'ask' && payer.isShared
  const mayAskCaps = left < wanted && caps === 'ask'
  if (mayAskMoney || mayAskCaps) {
    const more = costMicros(tariff, wanted) - amountMicros
    const capped = mayAskCaps ? { capped: { meters, amountMicros: more } } : {}
    return {
      kind: 'short',
      payer,
      isCounted: true,
      amountMicros: mayAskMoney ? more : 0,
      ...capped,
    }
  }
  const extended = grant(Math.min(payable, left), target, maxSeconds, tariff)
  const isMore = extended > grantedSeconds
  if (!isMore && (by === 'unreachable' || caps === 'unreachable')) return unreachable
  const isLastGrant =
    isShort &&
    payable <= left &&
    by !== 'unreachable' &&
    isShortOfFunds(payer, amountMicros, tariff, funds, now)
  if (!isMore) {
    if (isLastGrant) reservations.exhaust(reservation)
    if (left < payable) return { kind: 'denied', code: 'spend_guard' }
    return { kind: 'denied', code: shortage(payer, amountMicros, tariff, funds, now) }
  }
  const more = { grantedSeconds: extended, amountMicros: grantCost(tariff, extended), isLastGrant }
  const counted = { meters, usedSeconds }
  return { kind: 'granted', reservation: reservations.extend(reservation, more, now, counted) }
}

/** Extends nothing: what is held has run out, or others may have it. */
export const unreachable: ExtensionDecision = { kind: 'denied', code: 'ocs_unreachable' }

/** Seconds since the answer that all of the payer's available money would buy for this call. */
export function longestCall(
  { payer, tariff, amountMicros, maxSeconds }: Omit<Reservation, 'callUuid' | 'isEnded'>,
  now: number,
): number {
  if (payer === undefined || tariff === null) return maxSeconds
  const affordable = affordableSeconds(
    tariff,
    budgetOf(payer, amountMicros, payer.availableMicros, now),
  )
  return Math.min(affordable, maxSeconds)
}

/** A call that counts on no cap. */
const noMeters: readonly Meter[] = []

/** How long a call may last within its caps, which count what it holds beyond `heldMicros`. */
function leftWithin(
  meters: readonly Meter[],
  tariff: Tariff,
  heldMicros: number,
  leftOn: (meters: readonly Meter[]) => number,
): number {
  if (meters.length === 0) return Infinity
  return affordableSeconds(
    tariff,
    Math.min(heldMicros + Math.max(0, leftOn(meters)), MAX_COST_MICROS),
  )
}

/** Returns the meter with the least left. */
const leastOf = (meters: readonly Meter[]): Meter | undefined =>
  meters.toSorted((a, b) => a.freeMicros - b.freeMicros)[0]

/**
 * Whole seconds since the answer; the longest possible at once where more talk costs nothing more.
 */
const grant = (
  affordable: number,
  target: number,
  maxSeconds: number,
  { changes }: Tariff,
): number =>
  affordable === Infinity && changes === undefined
    ? maxSeconds
    : Math.min(affordable, target, maxSeconds)

/**
 * Returns the most that this call may cost; `reservedMicros` is reserved already. A debt counts
 * as an empty wallet: a call that costs nothing is free for debtors too.
 */
function budgetOf(payer: Customer, reservedMicros: number, funds: bigint, now: number): number {
  const today = payer.dailyBudgetMicros(now) ?? funds
  return budgetWith(reservedMicros, today < funds ? today : funds)
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
  funds: bigint,
  now: number,
): 'insufficient_funds' | 'daily_spend_limit' {
  if (payer.money?.isOfDay === true) return 'daily_spend_limit'
  const withFunds = affordableSeconds(tariff, budgetWith(reservedMicros, funds))
  const withBoth = affordableSeconds(tariff, budgetOf(payer, reservedMicros, funds, now))
  return withFunds > withBoth ? 'daily_spend_limit' : 'insufficient_funds'
}

/** Returns the required and the available amount, for the record of the call. */
function missingAmount(
  code: DenialCode,
  payer: Customer,
  tariff: Tariff,
  funds: bigint,
  now: number,
): MoneyLack {
  const today = payer.dailyBudgetMicros(now)
  const available = code === 'daily_spend_limit' && today !== undefined ? today : funds
  return { requiredMicros: costMicros(tariff, 1), availableMicros: Number(available) }
}

const isShortOfFunds = (...asked: Parameters<typeof shortage>): boolean =>
  shortage(...asked) === 'insufficient_funds'

/** A grant is unlimited only where every duration costs the same. */
const grantCost = (tariff: Tariff | null, grantedSeconds: number): number =>
  tariff === null ? 0 : costMicros(tariff, grantedSeconds === Infinity ? 1 : grantedSeconds)
