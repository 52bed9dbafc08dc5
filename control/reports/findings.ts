/**
 * Compares a period with the past, in the same way for every kind: its value against the values of
 * the 14 days before, or of the same hours on them. A value is unusual if it is at least the floor,
 * several times the mean, and clearly above the greatest of those days: a busy Monday after two
 * quiet Sundays is not. Floors are absolute, so that small installations are not noisy. A subject
 * without a past has a greater floor.
 */
import { moneyText, plural } from '../http/clean-text.ts'
import type { CallSum } from './call-sums.ts'

/** Days that a period is compared with. */
export const PAST_DAYS = 14

export interface Limits {
  /** Less than this is never unusual. */
  readonly floor: number
  /** The same for a subject without a past. */
  readonly newFloor: number
  /** How many times the mean. */
  readonly factor: number
}

/** How far above the greatest value of the past. */
const ABOVE_GREATEST = 1.5

interface Judgement {
  readonly isUnusual: boolean
  /** Mean of a day of the past. */
  readonly mean: number
  readonly greatest: number
}

/**
 * @param past one value for each day, in any order; days without a value are 0.
 * @param hasPast whether the subject did anything on those days.
 */
export function compared(
  value: number,
  past: readonly number[],
  hasPast: boolean,
  { floor, newFloor, factor }: Limits,
): Judgement {
  const mean = past.reduce((sum, each) => sum + each, 0) / Math.max(1, past.length)
  const greatest = Math.max(0, ...past)
  const isUnusual = hasPast
    ? value >= floor && value >= mean * factor && value > greatest * ABOVE_GREATEST
    : value >= newFloor
  return { isUnusual, mean, greatest }
}

/** Takes sums of calls of one day. */
export interface DayTaker {
  spent(sum: SpentSum): void
  refused(sum: RefusedSum): void
  carried(sum: CarrierSum): void
}

/** First all of the period, then the past. */
export class Comparison {
  readonly spending = new Spending()
  readonly refusals = new Refusals()
  readonly carriers = new CarrierAnswers()

  readonly now: DayTaker = {
    spent: (sum) => this.spending.addNow(sum),
    refused: (sum) => this.refusals.addNow(sum),
    carried: (sum) => this.carriers.addNow(sum),
  }

  /** Forgets the past, which is of so many days. */
  beginPast(days: number): void {
    this.spending.beginPast(days)
    this.refusals.beginPast(days)
    this.carriers.beginPast()
  }

  /** @param day from 0 on. */
  past(day: number): DayTaker {
    return {
      spent: (sum) => this.spending.addPast(day, sum),
      refused: (sum) => this.refusals.addPast(day, sum),
      carried: (sum) => this.carriers.addPast(sum),
    }
  }
}

/**
 * Only samples of the calls of unknown sources have records; `refused_calls` counts all of them.
 */
export const SAMPLED = 'unknown_source'

/** Gives the sums of calls to `taker`. */
export function takeCalls(sum: CallSum, taker: DayTaker): void {
  const { customerId, carrier, prefix, denial, currency, calls, answered, costMicros } = sum
  const times = { firstAt: sum.firstAt, lastAt: sum.lastAt }
  if (customerId !== null && costMicros !== 0)
    taker.spent({ customerId, prefix, currency, calls: answered, costMicros, ...times })
  const unanswered = calls - answered
  if (denial !== null && unanswered > 0)
    taker.refused({ code: denial, customerId, calls: unanswered, ...times })
  // Calls that the platform refused do not count for a carrier.
  const carried = denial === null ? calls : answered
  if (carrier !== null && carried > 0)
    taker.carried({ carrier, calls: carried, answered, ...times })
}

/** The same of a day, without the calls that `refused_calls` counts. */
export const withoutSampled = (taker: DayTaker): DayTaker => ({
  spent: (sum) => taker.spent(sum),
  refused: (sum) => (sum.code === SAMPLED ? undefined : taker.refused(sum)),
  carried: (sum) => taker.carried(sum),
})

/** Carriers of whose calls far fewer are answered than before. Pure. */
const MIN_CARRIER_CALLS = 20
/** Answered less than this part of what was usual. */
const DROP = 0.5
/** The share has to change by at least these percentage points. */
const MIN_POINTS = 20

export interface CarrierFinding {
  readonly carrier: string
  readonly calls: number
  readonly asrPercent: number
  readonly usualPercent: number
  readonly firstAt: number
  readonly lastAt: number
}

/** Calls through a carrier, without those that the platform refused. */
export interface CarrierSum {
  readonly carrier: string
  readonly calls: number
  readonly answered: number
  readonly firstAt: number
  readonly lastAt: number
}

interface CarrierCounts {
  calls: number
  answered: number
  firstAt: number
  lastAt: number
  pastCalls: number
  pastAnswered: number
}

/** Compares the calls of a period with the days before. First all of the period, then the past. */
class CarrierAnswers {
  readonly #carriers = new Map<string, CarrierCounts>()

  addNow({ carrier, calls, answered, firstAt, lastAt }: CarrierSum): void {
    const known = this.#carriers.get(carrier)
    if (known === undefined) {
      const past = { pastCalls: 0, pastAnswered: 0 }
      this.#carriers.set(carrier, { calls, answered, firstAt, lastAt, ...past })
      return
    }
    known.calls += calls
    known.answered += answered
    known.firstAt = Math.min(known.firstAt, firstAt)
    known.lastAt = Math.max(known.lastAt, lastAt)
  }

  /** Forgets the past. */
  beginPast(): void {
    for (const carried of this.#carriers.values()) {
      carried.pastCalls = 0
      carried.pastAnswered = 0
    }
  }

  addPast({ carrier, calls, answered }: CarrierSum): void {
    const known = this.#carriers.get(carrier)
    if (known === undefined) return
    known.pastCalls += calls
    known.pastAnswered += answered
  }

  findings(): readonly CarrierFinding[] {
    return [...this.#carriers].flatMap(([carrier, carried]) => {
      const { calls, answered, firstAt, lastAt, pastCalls, pastAnswered } = carried
      if (calls < MIN_CARRIER_CALLS || pastCalls < PAST_DAYS) return []
      const asrPercent = Math.round((answered / calls) * 100)
      const usualPercent = Math.round((pastAnswered / pastCalls) * 100)
      const isLow = asrPercent < usualPercent * DROP && usualPercent - asrPercent >= MIN_POINTS
      return isLow ? [{ carrier, calls, asrPercent, usualPercent, firstAt, lastAt }] : []
    })
  }
}

/** A wallet that refuses a few calls is empty, whatever the past was like. */
const MIN_REFUSED = 3
const limits = {
  wallet: { floor: 10, newFloor: 3, factor: 3 },
  rate: { floor: 5, newFloor: 3, factor: 3 },
  // Strangers call every platform.
  unknown_callers: { floor: 10, newFloor: 10, factor: 3 },
  capacity: { floor: 5, newFloor: 3, factor: 3 },
} as const satisfies Record<string, Limits>

const codes = {
  wallet: ['insufficient_funds', 'daily_spend_limit'],
  rate: ['no_rate'],
  unknown_callers: ['unknown_caller', 'unknown_source', 'no_payer'],
  capacity: ['node_limit', 'concurrent_limit', 'cps_limit', 'carrier_limit', 'agent_limit'],
} as const

export interface RefusalFinding {
  readonly kind: keyof typeof codes
  readonly code: string
  readonly customerId: number | null
  readonly calls: number
  /** Per day of the past. */
  readonly mean: number
  readonly firstAt: number
  readonly lastAt: number
}

/** Calls of a customer, or without one, that were refused for one reason. */
export interface RefusedSum {
  readonly code: string
  readonly customerId: number | null
  readonly calls: number
  readonly firstAt: number
  readonly lastAt: number
}

interface RefusalCounts {
  readonly kind: RefusalFinding['kind']
  readonly code: string
  readonly customerId: number | null
  calls: number
  firstAt: number
  lastAt: number
  past: number[]
}

/**
 * Compares the refused calls of a period with the days before. First all of the period, then the
 * past.
 */
class Refusals {
  readonly #refused = new Map<string, RefusalCounts>()

  addNow(sum: RefusedSum): void {
    const { code, customerId, calls, firstAt, lastAt } = sum
    const kind = kindOf(code)
    if (kind === undefined) return
    const known = this.#refused.get(nameOf(sum))
    if (known === undefined) {
      const refused = { kind, code, customerId, calls, firstAt, lastAt, past: [] }
      this.#refused.set(nameOf(sum), refused)
      return
    }
    known.calls += calls
    known.firstAt = Math.min(known.firstAt, firstAt)
    known.lastAt = Math.max(known.lastAt, lastAt)
  }

  /** Forgets the past, which is of so many days. */
  beginPast(days: number): void {
    for (const refused of this.#refused.values())
      refused.past = Array.from({ length: days }, () => 0)
  }

  /** @param day from 0 on. */
  addPast(day: number, sum: RefusedSum): void {
    const known = this.#refused.get(nameOf(sum))
    if (known !== undefined) known.past[day] = (known.past[day] ?? 0) + sum.calls
  }

  findings(): readonly RefusalFinding[] {
    return [...this.#refused.values()].flatMap(({ past, ...refused }) => {
      const { kind, calls } = refused
      if (calls < MIN_REFUSED) return []
      const hasPast = past.some((count) => count > 0)
      const { isUnusual, mean } = compared(calls, past, hasPast, limits[kind])
      return kind === 'wallet' || isUnusual ? [{ ...refused, mean }] : []
    })
  }
}

const nameOf = ({ customerId, code }: RefusedSum): string => `${customerId ?? 0} ${code}`

const kindOf = (code: string): RefusalFinding['kind'] | undefined =>
  (Object.keys(codes) as (keyof typeof codes)[]).find((kind) =>
    (codes[kind] as readonly string[]).includes(code),
  )

/** 5.00 and 25.00 of a currency. */
const spendLimits: Limits = { floor: 5_000_000, newFloor: 25_000_000, factor: 3 }
/** 2.00 and 5.00. */
const destinationLimits: Limits = { floor: 2_000_000, newFloor: 5_000_000, factor: 5 }
/** A customer without any past: its whole traffic is new. */
const newCustomerLimits: Limits = { ...destinationLimits, newFloor: 25_000_000 }
const MIN_DESTINATION_CALLS = 3
/** A price of a call of which many are not usual. */
const PREMIUM_FACTOR = 5
/** When destinations explain this part of an excess, it is not reported as spend, too. */
const EXPLAINED = 0.7
const CRITICAL_MICROS = 10_000_000

export interface MoneyFinding {
  readonly kind: 'spend' | 'destination'
  readonly severity: 'critical' | 'high' | 'medium'
  readonly customerId: number
  /** Null: all of them. */
  readonly prefix: string | null
  readonly currency: string | null
  readonly costMicros: number
  /** A sentence without the name of the customer. */
  readonly what: string
  readonly firstAt: number
  readonly lastAt: number
}

/** The cost of calls of a customer to one prefix. */
export interface SpentSum {
  readonly customerId: number
  /** Null: no prefix, or merged prefixes. */
  readonly prefix: string | null
  readonly currency: string | null
  /** Answered ones. */
  readonly calls: number
  readonly costMicros: number
  readonly firstAt: number
  readonly lastAt: number
}

interface CostCounts {
  calls: number
  costMicros: number
  firstAt: number
  lastAt: number
  /** The cost of each day of the past; empty: of none. */
  past: number[]
}

interface Total extends CostCounts {
  readonly customerId: number
  readonly currency: string | null
  pastCalls: number
  readonly prefixes: Map<string | null, CostCounts>
}

/**
 * Compares the spending of a period with the days before. First all of the period, then the past.
 */
class Spending {
  /** One for each currency. */
  readonly #totals = new Map<number, Total[]>()
  #days = 0

  addNow(sum: SpentSum): void {
    const { customerId, currency, prefix } = sum
    let total = this.#totalOf(sum)
    if (total === undefined) {
      total = { customerId, currency, pastCalls: 0, prefixes: new Map(), ...nothing() }
      const others = this.#totals.get(customerId)
      if (others === undefined) this.#totals.set(customerId, [total])
      else others.push(total)
    }
    addTo(total, sum)
    let spent = total.prefixes.get(prefix)
    if (spent === undefined) total.prefixes.set(prefix, (spent = nothing()))
    addTo(spent, sum)
  }

  /** Forgets the past, which is of so many days. */
  beginPast(days: number): void {
    this.#days = days
    for (const total of [...this.#totals.values()].flat()) {
      total.pastCalls = 0
      for (const spent of [total, ...total.prefixes.values()]) spent.past = []
    }
  }

  /** @param day from 0 on. */
  addPast(day: number, sum: SpentSum): void {
    const total = this.#totalOf(sum)
    if (total === undefined) return
    total.pastCalls += sum.calls
    this.#addPastOf(total, day, sum)
    const spent = total.prefixes.get(sum.prefix)
    // Only destinations are compared with their past.
    if (spent !== undefined && isDestination(sum.prefix, spent)) this.#addPastOf(spent, day, sum)
  }

  findings(): readonly MoneyFinding[] {
    return [...this.#totals.values()].flat().flatMap(findingsOf)
  }

  #totalOf({ customerId, currency }: SpentSum): Total | undefined {
    return this.#totals.get(customerId)?.find((total) => total.currency === currency)
  }

  #addPastOf(spent: CostCounts, day: number, { costMicros }: SpentSum): void {
    if (spent.past.length === 0) spent.past = Array.from({ length: this.#days }, () => 0)
    spent.past[day] = (spent.past[day] ?? 0) + costMicros
  }
}

const nothing = (): CostCounts => ({
  calls: 0,
  costMicros: 0,
  firstAt: Infinity,
  lastAt: -Infinity,
  past: [],
})

function addTo(spent: CostCounts, { calls, costMicros, firstAt, lastAt }: SpentSum): void {
  spent.calls += calls
  spent.costMicros += costMicros
  spent.firstAt = Math.min(spent.firstAt, firstAt)
  spent.lastAt = Math.max(spent.lastAt, lastAt)
}

const isDestination = (prefix: string | null, { calls, costMicros }: CostCounts): boolean =>
  prefix !== null && calls >= MIN_DESTINATION_CALLS && costMicros >= destinationLimits.floor

function findingsOf(total: Total): readonly MoneyFinding[] {
  const destinations = [...total.prefixes].flatMap(([prefix, spent]) =>
    prefix !== null && isDestination(prefix, spent) ? destinationFinding(prefix, spent, total) : [],
  )
  const spend = spendFinding(total)
  if (spend === undefined) return destinations
  const explained = destinations.reduce((sum, { costMicros }) => sum + costMicros, 0)
  return explained >= (total.costMicros - meanOf(total.past)) * EXPLAINED
    ? destinations
    : [spend, ...destinations]
}

function spendFinding(total: Total): MoneyFinding | undefined {
  const { costMicros, calls, past, currency } = total
  const { isUnusual, mean } = compared(costMicros, past, hasPast(total), spendLimits)
  if (!isUnusual) return undefined
  const usual = hasPast(total) ? `usually ${moneyText(mean, currency)}` : 'never before'
  return {
    kind: 'spend',
    severity: severityOf(total, mean),
    prefix: null,
    ...commonOf(total, total),
    what:
      `spent ${moneyText(costMicros, currency)} on ${plural(calls, 'call')}, ${usual} in these ` +
      'hours',
  }
}

function destinationFinding(
  prefix: string,
  spent: CostCounts,
  total: Total,
): readonly MoneyFinding[] {
  const { costMicros, calls, past } = spent
  const { currency } = total
  const limits = hasPast(total) ? destinationLimits : newCustomerLimits
  const { isUnusual, mean } = compared(costMicros, past, hasPast(spent), limits)
  if (!isUnusual) return []
  const usual = hasPast(spent)
    ? `usually ${moneyText(mean, currency)} in these hours`
    : 'never on the days before'
  const share = Math.round((costMicros / Math.max(1, total.costMicros)) * 100)
  const premium = isPremium(spent, total) ? ', far above its usual price of a call' : ''
  return [
    {
      kind: 'destination',
      prefix,
      ...commonOf(total, spent),
      severity: share >= 50 ? severityOf(spent, mean) : 'high',
      what:
        `spent ${moneyText(costMicros, currency)} on ${plural(calls, 'call')} to ${prefix}, ` +
        `${usual}: ${share} % of all that it spent${premium}`,
    },
  ]
}

const commonOf = (
  { customerId, currency }: Total,
  { costMicros, firstAt, lastAt }: CostCounts,
) => ({
  customerId,
  currency,
  costMicros,
  firstAt,
  lastAt,
})

const hasPast = ({ past }: CostCounts): boolean => past.some((costMicros) => costMicros > 0)

function severityOf({ costMicros }: CostCounts, mean: number): MoneyFinding['severity'] {
  if (costMicros >= CRITICAL_MICROS && costMicros >= mean * 10) return 'critical'
  return costMicros >= CRITICAL_MICROS ? 'high' : 'medium'
}

/** Against all other calls of the customer. */
function isPremium({ calls, costMicros }: CostCounts, total: Total): boolean {
  const count = total.pastCalls + total.calls - calls
  const cost = sumOf(total.past) + total.costMicros - costMicros
  return count > 0 && costMicros / calls >= (cost / count) * PREMIUM_FACTOR
}

const sumOf = (costs: readonly number[]): number => costs.reduce((sum, cost) => sum + cost, 0)
const meanOf = (past: readonly number[]): number => sumOf(past) / Math.max(1, past.length)
