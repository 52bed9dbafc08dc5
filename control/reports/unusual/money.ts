/** Spending that is unusual for a customer: as a whole, and for one destination. Pure. */
import { moneyText, plural } from '../../http/clean-text.ts'
import { compared, type Limits } from './baseline.ts'

/** 5.00 and 25.00 of a currency. */
const spendLimits: Limits = { floor: 5_000_000, newFloor: 25_000_000, factor: 3 }
/** 2.00 and 5.00. */
const destinationLimits: Limits = { floor: 2_000_000, newFloor: 5_000_000, factor: 5 }
/** A customer without any past: its whole traffic is new. */
const newCustomerLimits: Limits = { ...destinationLimits, newFloor: 25_000_000 }
const MIN_CALLS = 3
/** A price of a call of which many are not usual. */
const PREMIUM_FACTOR = 5
/** The greatest part of an excess that is told as a destination is not told again as spend. */
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

/** What calls of a customer to one prefix cost. */
export interface SpentSum {
  readonly customerId: number
  /** Null: by none, or by one of many that are not kept apart. */
  readonly prefix: string | null
  readonly currency: string | null
  /** Answered ones. */
  readonly calls: number
  readonly costMicros: number
  readonly firstAt: number
  readonly lastAt: number
}

interface Spent {
  calls: number
  costMicros: number
  firstAt: number
  lastAt: number
  /** The cost of each day of the past; empty: of none. */
  past: number[]
}

interface Total extends Spent {
  readonly customerId: number
  readonly currency: string | null
  pastCalls: number
  readonly prefixes: Map<string | null, Spent>
}

/** Compares what is spent in a period with the days before. First all of the period, then the past. */
export class Spending {
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
    // Of the others nothing is told.
    if (spent !== undefined && isDestination(sum.prefix, spent)) this.#addPastOf(spent, day, sum)
  }

  findings(): readonly MoneyFinding[] {
    return [...this.#totals.values()].flat().flatMap(findingsOf)
  }

  #totalOf({ customerId, currency }: SpentSum): Total | undefined {
    return this.#totals.get(customerId)?.find((total) => total.currency === currency)
  }

  #addPastOf(spent: Spent, day: number, { costMicros }: SpentSum): void {
    if (spent.past.length === 0) spent.past = Array.from({ length: this.#days }, () => 0)
    spent.past[day] = (spent.past[day] ?? 0) + costMicros
  }
}

const nothing = (): Spent => ({
  calls: 0,
  costMicros: 0,
  firstAt: Infinity,
  lastAt: -Infinity,
  past: [],
})

function addTo(spent: Spent, { calls, costMicros, firstAt, lastAt }: SpentSum): void {
  spent.calls += calls
  spent.costMicros += costMicros
  spent.firstAt = Math.min(spent.firstAt, firstAt)
  spent.lastAt = Math.max(spent.lastAt, lastAt)
}

const isDestination = (prefix: string | null, { calls, costMicros }: Spent): boolean =>
  prefix !== null && calls >= MIN_CALLS && costMicros >= destinationLimits.floor

function findingsOf(total: Total): readonly MoneyFinding[] {
  const destinations = [...total.prefixes].flatMap(([prefix, spent]) =>
    prefix !== null && isDestination(prefix, spent) ? destinationFinding(prefix, spent, total) : [],
  )
  const spend = spendFinding(total)
  if (spend === undefined) return destinations
  const told = destinations.reduce((sum, { costMicros }) => sum + costMicros, 0)
  return told >= (total.costMicros - meanOf(total.past)) * EXPLAINED
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
    what: `spent ${moneyText(costMicros, currency)} on ${plural(calls, 'call')}, ${usual} in these hours`,
  }
}

function destinationFinding(prefix: string, spent: Spent, total: Total): readonly MoneyFinding[] {
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

const commonOf = ({ customerId, currency }: Total, { costMicros, firstAt, lastAt }: Spent) => ({
  customerId,
  currency,
  costMicros,
  firstAt,
  lastAt,
})

const hasPast = ({ past }: Spent): boolean => past.some((costMicros) => costMicros > 0)

function severityOf({ costMicros }: Spent, mean: number): MoneyFinding['severity'] {
  if (costMicros >= CRITICAL_MICROS && costMicros >= mean * 10) return 'critical'
  return costMicros >= CRITICAL_MICROS ? 'high' : 'medium'
}

/** Against all other calls of the customer. */
function isPremium({ calls, costMicros }: Spent, total: Total): boolean {
  const count = total.pastCalls + total.calls - calls
  const cost = sumOf(total.past) + total.costMicros - costMicros
  return count > 0 && costMicros / calls >= (cost / count) * PREMIUM_FACTOR
}

const sumOf = (costs: readonly number[]): number => costs.reduce((sum, cost) => sum + cost, 0)
const meanOf = (past: readonly number[]): number => sumOf(past) / Math.max(1, past.length)
