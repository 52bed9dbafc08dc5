/** All rates in memory: finds the one of a plan for a number at a time. */
import type { Rate, ExitCodes } from '../../../schema/contracts/charging.ts'
import {
  ANY_INTERNATIONAL,
  codeLength,
  international,
  internationalPrefix,
  withoutPlus,
} from '../../../schema/rules/numbers.ts'
import type { LossTerms } from '../../../schema/rules/loss-protection.ts'
import { costMicros } from './price.ts'

/**
 * Finds the longest prefix by one map look-up per prefix length of the plan, about 15 at most: 0.3
 * µs in a plan of 100,000 rates, without the memory of a trie.
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

  /**
   * The rate with the longest prefix of `number` that is in force at `at` (milliseconds UTC). A
   * leading `+` is ignored in numbers and in prefixes; the empty prefix matches every number.
   */
  find(planId: number, number: string, at: number): Rate | undefined {
    const called = international(number, this.#exitCodes)
    const abroad = codeLength(called, this.#exitCodes)
    return this.#plans.get(planId)?.find(withoutPlus(called), abroad, at)
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
  readonly #byPrefix = new Map<string, PricesOfPrefix>()
  #lengths: readonly number[] = []

  /** Returns the prices that are to be sorted once all are added. */
  add(prefix: string, rate: Rate): PricesOfPrefix {
    const prices = this.#byPrefix.get(prefix) ?? new PricesOfPrefix()
    this.#byPrefix.set(prefix, prices)
    prices.push(rate)
    this.#note(prefix.length)
    return prices
  }

  /** Does not visit other prefixes; a length that is no longer used costs one look-up per call. */
  replace(prefix: string, stored: string, rates: readonly Rate[]): void {
    const prices = this.#byPrefix.get(prefix) ?? new PricesOfPrefix()
    prices.replace(withoutPlus(stored), rates)
    if (prices.isEmpty) this.#byPrefix.delete(prefix)
    else this.#byPrefix.set(prefix, prices)
    this.#note(prefix.length)
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
  find(digits: string, abroad: number | undefined, at: number): Rate | undefined {
    let abroadAt = abroad ?? -1
    for (const length of this.#lengths) {
      if (length <= abroadAt) {
        const rate = this.#byPrefix.get(ANY_INTERNATIONAL)?.inForce(at)
        if (rate !== undefined) return rate
        abroadAt = -1
      }
      if (length > digits.length) continue
      const rate = this.#byPrefix.get(digits.slice(0, length))?.inForce(at)
      if (rate !== undefined) return rate
    }
    return abroadAt === -1 ? undefined : this.#byPrefix.get(ANY_INTERNATIONAL)?.inForce(at)
  }
}

/**
 * The rates of one prefix of a plan, the latest beginning first: sorted once, searched by
 * bisection.
 */
class PricesOfPrefix {
  #rates: Rate[] = []
  /** The prefix as the first of them has it. */
  #spelling = ''
  #hasOneSpelling = true

  get isEmpty(): boolean {
    return this.#rates.length === 0
  }

  /** `sort` has to follow. */
  push(rate: Rate): void {
    const spelling = withoutPlus(rate.tariff.prefix)
    if (this.#rates.length === 0) this.#spelling = spelling
    else if (spelling !== this.#spelling) this.#hasOneSpelling = false
    this.#rates.push(rate)
  }

  /** Costs one comparison for each rate that was in order before. */
  sort(): void {
    if (this.#rates.length > 1) this.#rates.sort(inOrder)
  }

  /** Replaces the rates of one spelling. */
  replace(spelling: string, rates: readonly Rate[]): void {
    const others = this.#rates.filter(({ tariff }) => withoutPlus(tariff.prefix) !== spelling)
    this.#rates = []
    this.#hasOneSpelling = true
    for (const rate of others) this.push(rate)
    for (const rate of rates) this.push(rate)
    this.sort()
  }

  inForce(at: number): Rate | undefined {
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
  for (const seconds of COMPARED_SECONDS) {
    const difference = costMicros(b.tariff, seconds) - costMicros(a.tariff, seconds)
    if (difference !== 0) return difference
  }
  if (a.tariff.prefix === b.tariff.prefix) return 0
  return a.tariff.prefix < b.tariff.prefix ? -1 : 1
}

const isInForce = ({ effectiveFrom, effectiveTo }: Rate, at: number): boolean =>
  (effectiveFrom === null || effectiveFrom <= at) && (effectiveTo === null || at < effectiveTo)
