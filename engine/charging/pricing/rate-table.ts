/** All rates in memory: finds the one of a plan for a number at a time. */
import type { PastCallTimes, Rate, ExitCodes, Tariff } from '../../../schema/contracts/charging.ts'
import {
  ANY_INTERNATIONAL,
  codeLength,
  international,
  internationalPrefix,
  withoutPlus,
} from '../../../schema/rules/numbers.ts'
import { PackedPrices, type PlanOfRates, type PriceRow } from './packed-prices.ts'
import type { LossTerms } from '../../../schema/rules/loss-protection.ts'
import { timedPrices, tariffAt } from './call-prices.ts'
import type { CustomerZone, PlanTimes } from './plan-times.ts'
import { costMicros } from './price.ts'

/** Which period a price is asked for. */
interface PriceClock {
  /** The moment; absent: that of the rate. */
  readonly clock?: number | undefined
  /** The clock of this customer counts; absent: that of the plan. */
  readonly customer?: CustomerZone | undefined
}

/** A price of a plan as it is read. */
export interface ReadPlanPrice extends PriceRow {
  /** As it is stored. */
  readonly prefix: string
  /** Null: it holds whenever no period with a price does. */
  readonly period: string | null
}

/**
 * A plan is packed as it was read; prefixes that have changed since are beside it. A look-up takes
 * about 0.3 µs in a plan of 100,000 rates.
 */
export class RateDeck {
  readonly #plans = new Map<number, Plan>()
  readonly #exitCodes: ExitCodes | undefined
  /** Plans that price by routing numbers. */
  readonly #byRoutingNumber = new Set<number>()
  readonly #lossTerms = new Map<number, LossTerms>()

  /**
   * @param rates of any number of plans, in any order. `exitCodes`: a prefix may begin with one of
   * them.
   */
  constructor(rates: Iterable<Rate> = [], exitCodes?: ExitCodes) {
    this.#exitCodes = exitCodes
    this.add(rates)
  }

  add(rates: Iterable<Rate>): void {
    const touched = new Set<PricesOfPrefix>()
    for (const rate of rates) {
      const plan = this.#plans.get(rate.planId) ?? new Plan()
      this.#plans.set(rate.planId, plan)
      this.#noteWay(rate.planId, rate)
      touched.add(plan.add(this.#keyOf(rate.tariff.prefix), rate))
    }
    for (const prices of touched) prices.sort()
  }

  /** Adds what is read of a plan, in the order of prefixes and starts. */
  addRead(plan: PlanOfRates, rows: readonly ReadPlanPrice[]): void {
    const { planId, isByRoutingNumber } = plan
    const prices = this.#plans.get(planId) ?? new Plan()
    this.#plans.set(planId, prices)
    if (isByRoutingNumber) this.#byRoutingNumber.add(planId)
    prices.addRead(plan, rows, (prefix) => this.#keyOf(prefix))
  }

  /** After the last price is read. */
  endReading(): void {
    for (const plan of this.#plans.values()) plan.endReading()
  }

  /**
   * The rate with the longest prefix of `number` that is in force at `at` (milliseconds UTC). A
   * leading `+` is ignored in numbers and in prefixes; the empty prefix matches every number.
   *
   * @param clock when the period is asked for; dates count at `at`.
   */
  find(
    planId: number,
    number: string,
    at: number,
    { clock = at, customer }: PriceClock = {},
  ): Rate | undefined {
    const called = international(number, this.#exitCodes)
    const abroad = codeLength(called, this.#exitCodes)
    return this.#plans.get(planId)?.find(withoutPlus(called), abroad, at, { clock, customer })
  }

  /** The rate of a call that is answered at `at`, with the prices that follow during it. */
  answeredRate(
    planId: number,
    number: string,
    at: number,
    customer?: CustomerZone,
  ): Rate | undefined {
    const rate = this.find(planId, number, at, { customer })
    if (rate === undefined || this.timesOf(planId)?.isChanging !== true) return rate
    return this.pastRate(planId, number, { at, startedAt: at, answeredAt: at }, customer)
  }

  /** The rate that a call of these times has by the rates in force at `at`. */
  pastRate(
    planId: number,
    number: string,
    { at, startedAt, answeredAt }: PastCallTimes,
    customer?: CustomerZone,
  ): Rate | undefined {
    const rateAt = (clock: number): Rate | undefined =>
      this.find(planId, number, at, { clock, customer })
    const rate = rateAt(startedAt)
    const times = this.timesOf(planId, customer)
    if (rate === undefined || times === undefined) return rate
    return { ...rate, tariff: tariffAt(timedPrices(rate, rateAt, times, startedAt), answeredAt) }
  }

  /** Undefined: the plan has no periods. */
  timesOf(planId: number, customer?: CustomerZone): PlanTimes | undefined {
    return this.#plans.get(planId)?.times?.of(customer)
  }

  /** Takes over the periods of some plans; others keep theirs. */
  setTimes(times: ReadonlyMap<number, PlanTimes>): void {
    for (const [planId, ofPlan] of times) {
      const plan = this.#plans.get(planId) ?? new Plan()
      this.#plans.set(planId, plan)
      plan.times = ofPlan
    }
  }

  /** Replaces all rates of one plan and prefix, as it is stored. */
  replace(planId: number, prefix: string, rates: readonly Rate[]): void {
    const plan = this.#plans.get(planId) ?? new Plan()
    this.#plans.set(planId, plan)
    plan.replace(this.#keyOf(prefix), prefix, rates)
    const [rate] = rates
    if (rate !== undefined) this.#noteWay(planId, rate)
  }

  /** Takes over a plan as it is in another table. */
  takePlan(planId: number, other: RateDeck): void {
    const plan = other.#plans.get(planId)
    if (plan === undefined) this.#plans.delete(planId)
    else this.#plans.set(planId, plan)
    if (other.#byRoutingNumber.has(planId)) this.#byRoutingNumber.add(planId)
    else this.#byRoutingNumber.delete(planId)
    this.setLossTerms(planId, other.lossTermsOf(planId))
  }

  /** Loss protection of calls that are sold by this plan; undefined: there is none. */
  lossTermsOf(planId: number): LossTerms | undefined {
    return this.#lossTerms.get(planId)
  }

  setLossTerms(planId: number, terms: LossTerms | undefined): void {
    if (terms === undefined) this.#lossTerms.delete(planId)
    else this.#lossTerms.set(planId, terms)
  }

  /** Whether calls of this plan to ported numbers are priced by the routing number. */
  isByRoutingNumber(planId: number): boolean {
    return this.#byRoutingNumber.has(planId)
  }

  #noteWay(planId: number, { isByRoutingNumber }: Rate): void {
    if (isByRoutingNumber === true) this.#byRoutingNumber.add(planId)
    else if (this.#byRoutingNumber.size > 0) this.#byRoutingNumber.delete(planId)
  }

  #keyOf(prefix: string): string {
    return internationalPrefix(prefix, this.#exitCodes)
  }
}

class Plan {
  /** Undefined: the plan has no periods. */
  times: PlanTimes | undefined
  /** The plan as it was read; undefined: nothing was. */
  #read: PackedPrices | undefined
  /** Prefixes that are not packed, or have changed since; without a rate: it is removed. */
  readonly #byPrefix = new Map<string, PricesOfPrefix>()
  #lengths: readonly number[] = []

  /** Returns the prices that are to be sorted once all are added. */
  add(prefix: string, rate: Rate): PricesOfPrefix {
    const prices = this.#pricesOf(prefix)
    prices.push(rate)
    this.#note(prefix.length)
    return prices
  }

  addRead(
    plan: PlanOfRates,
    rows: readonly ReadPlanPrice[],
    keyOf: (prefix: string) => string,
  ): void {
    const read = (this.#read ??= new PackedPrices(plan))
    const touched = new Set<PricesOfPrefix>()
    for (const row of rows) {
      const prefix = keyOf(row.prefix)
      const isPlain = prefix === row.prefix && row.period === null
      const isPacked = isPlain && !this.#byPrefix.has(prefix) && read.add(prefix, row)
      if (!isPacked) touched.add(this.add(prefix, rateOf(plan, row)))
    }
    for (const prices of touched) prices.sort()
    for (const length of read.lengths) this.#note(length)
  }

  endReading(): void {
    this.#read?.end()
  }

  /** Does not visit other prefixes; a length that is no longer used costs one look-up per call. */
  replace(prefix: string, stored: string, rates: readonly Rate[]): void {
    const prices = this.#pricesOf(prefix)
    prices.replace(withoutPlus(stored), rates)
    // Those that were read stay there, and what stands beside them hides them.
    const hides = (this.#read?.ratesOf(prefix) ?? []).length > 0
    if (prices.isEmpty && !hides) this.#byPrefix.delete(prefix)
    this.#note(prefix.length)
  }

  /** Makes what was read of a prefix changeable. */
  #pricesOf(prefix: string): PricesOfPrefix {
    const known = this.#byPrefix.get(prefix)
    if (known !== undefined) return known
    const prices = new PricesOfPrefix()
    for (const rate of this.#read?.ratesOf(prefix) ?? []) prices.push(rate)
    prices.sort()
    this.#byPrefix.set(prefix, prices)
    return prices
  }

  /** Longest prefix first. */
  #note(length: number): void {
    if (!this.#lengths.includes(length))
      this.#lengths = [...this.#lengths, length].toSorted((a, b) => b - a)
  }

  /**
   * @param abroad how long a prefix for all numbers abroad is in this one; undefined: it is none of
   * them.
   */
  find(
    digits: string,
    abroad: number | undefined,
    at: number,
    { clock = at, customer }: PriceClock,
  ): Rate | undefined {
    const periods = this.times?.of(customer).periodsAt(clock) ?? noPeriods
    let abroadAt = abroad ?? -1
    const read = this.#read
    let place = read?.longestOf(digits) ?? -1
    for (const length of this.#lengths) {
      if (length <= abroadAt) {
        const rate = this.#byPrefix.get(ANY_INTERNATIONAL)?.inForce(at, periods)
        if (rate !== undefined) return rate
        abroadAt = -1
      }
      if (length > digits.length) continue
      const isRead = read?.lengthOf(place) === length
      const changed =
        this.#byPrefix.size === 0 ? undefined : this.#byPrefix.get(digits.slice(0, length))
      const rate =
        changed === undefined && isRead
          ? read.inForce(place, digits, at)
          : changed?.inForce(at, periods)
      if (rate !== undefined) return rate
      if (isRead) place = read.shorterOf(place)
    }
    if (abroadAt === -1) return undefined
    return this.#byPrefix.get(ANY_INTERNATIONAL)?.inForce(at, periods)
  }
}

const rateOf = (
  { planId, currency, decimals, rounding, isByRoutingNumber }: PlanOfRates,
  row: ReadPlanPrice,
): Rate => ({
  planId,
  tariff: {
    prefix: row.prefix,
    currency,
    connectFeeMicros: row.connectFeeMicros,
    firstIncrementSeconds: row.firstIncrementSeconds,
    firstRatePerMinuteMicros: row.firstRatePerMinuteMicros,
    incrementSeconds: row.incrementSeconds,
    ratePerMinuteMicros: row.ratePerMinuteMicros,
    decimals,
    rounding,
  },
  isBlocked: row.isBlocked,
  ...(isByRoutingNumber && { isByRoutingNumber: true }),
  ...(row.period !== null && { period: row.period }),
  effectiveFrom: row.effectiveFrom,
  effectiveTo: row.effectiveTo,
})

const noPeriods: readonly string[] = []

/**
 * The rates of one prefix of a plan, the latest beginning first: sorted once, searched by
 * bisection.
 */
class PricesOfPrefix {
  #rates: Rate[] = []
  /** The prefix as the first of them has it. */
  #spelling = ''
  #hasOneSpelling = true
  /** Those of a period; undefined: it has none. */
  #byPeriod: Map<string, PricesOfPrefix> | undefined

  get isEmpty(): boolean {
    return this.#rates.length === 0 && this.#byPeriod === undefined
  }

  /** `sort` has to follow. */
  push(rate: Rate): void {
    if (rate.period !== undefined) return this.#ofPeriod(rate.period).#add(rate)
    this.#add(rate)
  }

  #ofPeriod(period: string): PricesOfPrefix {
    this.#byPeriod ??= new Map()
    const prices = this.#byPeriod.get(period) ?? new PricesOfPrefix()
    this.#byPeriod.set(period, prices)
    return prices
  }

  #add(rate: Rate): void {
    const spelling = withoutPlus(rate.tariff.prefix)
    if (this.#rates.length === 0) this.#spelling = spelling
    else if (spelling !== this.#spelling) this.#hasOneSpelling = false
    this.#rates.push(rate)
  }

  /** Costs one comparison for each rate that was in order before. */
  sort(): void {
    if (this.#rates.length > 1) this.#rates.sort(inOrder)
    if (this.#byPeriod !== undefined) for (const prices of this.#byPeriod.values()) prices.sort()
  }

  /** Replaces the rates of one spelling. */
  replace(spelling: string, rates: readonly Rate[]): void {
    const ofPeriods = [...(this.#byPeriod?.values() ?? [])].flatMap((prices) => prices.#rates)
    const others = [...this.#rates, ...ofPeriods].filter(
      ({ tariff }) => withoutPlus(tariff.prefix) !== spelling,
    )
    this.#rates = []
    this.#byPeriod = undefined
    this.#hasOneSpelling = true
    for (const rate of others) this.push(rate)
    for (const rate of rates) this.push(rate)
    this.sort()
  }

  /** @param periods those that hold; the first with a price decides. */
  inForce(at: number, periods: readonly string[]): Rate | undefined {
    if (this.#byPeriod !== undefined)
      for (const period of periods) {
        const rate = this.#byPeriod.get(period)?.inForce(at, noPeriods)
        if (rate !== undefined) return rate
      }
    const rates = this.#rates
    // Most prefixes have one rate.
    const only = rates.length === 1 ? rates[0] : undefined
    if (only !== undefined) return isInForce(only, at) ? only : undefined
    const begun = this.#firstBegun(at)
    if (!this.#hasOneSpelling)
      return dearestSpelling(rates.slice(begun).filter((rate) => isInForce(rate, at)))
    for (let index = begun; index < rates.length; index += 1) {
      const rate = rates[index]
      if (rate !== undefined && isInForce(rate, at)) return rate
    }
    return undefined
  }

  /** The place of the newest rate that has begun. */
  #firstBegun(at: number): number {
    let [low, high] = [0, this.#rates.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const rate = this.#rates[middle]
      if (rate !== undefined && beginning(rate) > at) low = middle + 1
      else high = middle
    }
    return low
  }
}

/**
 * `0044` and `44` are one prefix where `00` is an exit code. Of each spelling the newest rate
 * counts; of those a blocked one holds, else the dearer: a block does not open, and no call gets
 * cheaper, because the setting was made.
 */
function dearestSpelling(rates: readonly Rate[]): Rate | undefined {
  const spellings = new Map<string, Rate>()
  for (const rate of rates) {
    const spelling = withoutPlus(rate.tariff.prefix)
    if (!spellings.has(spelling)) spellings.set(spelling, rate)
  }
  return [...spellings.values()].toSorted(dearestFirst)[0]
}

/**
 * The newest first; of two with one beginning (`44` and `+44`) the dearer, whatever the order in
 * which they are read.
 */
const inOrder = (a: Rate, b: Rate): number => beginning(b) - beginning(a) || dearestFirst(a, b)

/** Finite: the difference of two infinities is no number. */
const beginning = ({ effectiveFrom }: Rate): number => effectiveFrom ?? -Number.MAX_SAFE_INTEGER

/** The shorter and the longer call decide where a minute costs the same. */
const COMPARED_SECONDS = [60, 1, 3_600] as const

export function dearestFirst(a: Rate, b: Rate): number {
  if (a.isBlocked !== b.isBlocked) return a.isBlocked ? -1 : 1
  return dearestTariffFirst(a.tariff, b.tariff)
}

export function dearestTariffFirst(a: Tariff, b: Tariff): number {
  for (const seconds of COMPARED_SECONDS) {
    const difference = costMicros(b, seconds) - costMicros(a, seconds)
    if (difference !== 0) return difference
  }
  if (a.prefix === b.prefix) return 0
  return a.prefix < b.prefix ? -1 : 1
}

const isInForce = ({ effectiveFrom, effectiveTo }: Rate, at: number): boolean =>
  (effectiveFrom === null || effectiveFrom <= at) && (effectiveTo === null || at < effectiveTo)
