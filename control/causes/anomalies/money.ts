/** Spending that is unusual for a customer: as a whole, and for one destination. Pure. */
import { compared, type Limits } from './baseline.ts'
import type { CallSum } from './call-sums.ts'
import { moneyText, plural } from './finding.ts'

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

interface Spent {
  readonly customerId: number
  readonly currency: string | null
  calls: number
  costMicros: number
  firstAt: number
  lastAt: number
}

interface Compared {
  readonly now: Spent
  readonly past: readonly Spent[]
}

/** @param past the sums of the same hours of each day before. */
export function moneyFindings(
  now: readonly CallSum[],
  past: readonly (readonly CallSum[])[],
): readonly MoneyFinding[] {
  const totals = comparedBy(now, past, ({ customerId, currency }) => [customerId, currency])
  return [...totals].flatMap(([name, total]) => {
    const ofCustomer = (sum: CallSum): boolean =>
      JSON.stringify([sum.customerId, sum.currency]) === name
    const destinations = destinationFindings(
      now.filter(ofCustomer),
      past.map((day) => day.filter(ofCustomer)),
      total,
    )
    const spend = spendFinding(total)
    if (spend === undefined) return destinations
    const mean = meanOf(total.past)
    const told = destinations.reduce((sum, { costMicros }) => sum + costMicros, 0)
    return told >= (total.now.costMicros - mean) * EXPLAINED
      ? destinations
      : [spend, ...destinations]
  })
}

function spendFinding({ now, past }: Compared): MoneyFinding | undefined {
  const costs = past.map(({ costMicros }) => costMicros)
  const hasPast = past.some(({ calls }) => calls > 0)
  const { isUnusual, mean } = compared(now.costMicros, costs, hasPast, spendLimits)
  if (!isUnusual) return undefined
  const usual = hasPast ? `usually ${moneyText(mean, now.currency)}` : 'never before'
  return {
    ...{ kind: 'spend', severity: severityOf(now, mean), prefix: null, ...now },
    what: `spent ${moneyText(now.costMicros, now.currency)} on ${plural(now.calls, 'call')}, ${usual} in these hours`,
  }
}

function destinationFindings(
  now: readonly CallSum[],
  past: readonly (readonly CallSum[])[],
  total: Compared,
): readonly MoneyFinding[] {
  const hasCustomerPast = total.past.some(({ calls }) => calls > 0)
  const limits = hasCustomerPast ? destinationLimits : newCustomerLimits
  const prefixes = comparedBy(now, past, ({ prefix }) => [prefix])
  return [...prefixes].flatMap(([name, { now: spent, past: before }]) => {
    const [prefix] = JSON.parse(name) as [string | null]
    if (prefix === null || spent.calls < MIN_CALLS) return []
    const hasPast = before.some(({ calls }) => calls > 0)
    const costs = before.map(({ costMicros }) => costMicros)
    const { isUnusual, mean } = compared(spent.costMicros, costs, hasPast, limits)
    if (!isUnusual) return []
    const usual = hasPast
      ? `usually ${moneyText(mean, spent.currency)} in these hours`
      : 'never on the days before'
    const share = Math.round((spent.costMicros / Math.max(1, total.now.costMicros)) * 100)
    const premium = isPremium(spent, total) ? ', far above its usual price of a call' : ''
    return [
      {
        ...spent,
        ...{ kind: 'destination' as const, prefix },
        severity: share >= 50 ? severityOf(spent, mean) : 'high',
        what:
          `spent ${moneyText(spent.costMicros, spent.currency)} on ${plural(spent.calls, 'call')} to ${prefix}, ` +
          `${usual}: ${share} % of all that it spent${premium}`,
      },
    ]
  })
}

function severityOf({ costMicros }: Spent, mean: number): MoneyFinding['severity'] {
  if (costMicros >= CRITICAL_MICROS && costMicros >= mean * 10) return 'critical'
  return costMicros >= CRITICAL_MICROS ? 'high' : 'medium'
}

function isPremium({ calls, costMicros }: Spent, { now, past }: Compared): boolean {
  const others = [...past, { calls: now.calls - calls, costMicros: now.costMicros - costMicros }]
  const count = others.reduce((sum, each) => sum + each.calls, 0)
  const cost = others.reduce((sum, each) => sum + each.costMicros, 0)
  return count > 0 && costMicros / calls >= (cost / count) * PREMIUM_FACTOR
}

const meanOf = (past: readonly Spent[]): number =>
  past.reduce((sum, { costMicros }) => sum + costMicros, 0) / Math.max(1, past.length)

/** Of customers only; those without a call now are left out. */
function comparedBy(
  now: readonly CallSum[],
  past: readonly (readonly CallSum[])[],
  nameOf: (sum: CallSum) => readonly unknown[],
): ReadonlyMap<string, Compared> {
  const present = spentBy(now, nameOf)
  const days = past.map((day) => spentBy(day, nameOf))
  return new Map(
    [...present].map(([name, spent]) => {
      const nothing = { ...spent, calls: 0, costMicros: 0 }
      return [name, { now: spent, past: days.map((day) => day.get(name) ?? nothing) }]
    }),
  )
}

function spentBy(sums: readonly CallSum[], nameOf: (sum: CallSum) => readonly unknown[]) {
  const spent = new Map<string, Spent>()
  for (const sum of sums) {
    const { customerId, currency, calls, costMicros, firstAt, lastAt } = sum
    if (customerId === null || costMicros === 0) continue
    const name = JSON.stringify(nameOf(sum))
    const known = spent.get(name)
    if (known === undefined)
      spent.set(name, { customerId, currency, calls, costMicros, firstAt, lastAt })
    else {
      known.calls += calls
      known.costMicros += costMicros
      known.firstAt = Math.min(known.firstAt, firstAt)
      known.lastAt = Math.max(known.lastAt, lastAt)
    }
  }
  return spent
}
