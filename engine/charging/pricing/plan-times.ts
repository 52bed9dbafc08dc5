/** When the prices of a plan change: its periods, by the clock of its zone. */
import { DAY_MS } from '../../../schema/clock.ts'
import type { PriceChangeRule } from '../../../schema/contracts/tariff.ts'
import { PeriodClock, type PricePeriod } from '../../../schema/rules/price-periods.ts'
import { type Zone, zoneOf } from '../../../schema/time-zones.ts'

/** A customer that names a zone, for plans that name none. */
export interface CustomerZone {
  readonly zone: string
  /** Plans of other tenants keep their clock: it is a part of what they sell. */
  readonly tenantId: number | null
}

interface PlanTimesTerms {
  readonly zone: string
  /** The tenant whose customers may have zones of their own; undefined: the plan names its zone. */
  readonly ofTenant?: number | null | undefined
  readonly periods: readonly PricePeriod[]
  readonly holidays: readonly string[]
  readonly priceChange: PriceChangeRule
}

/** From here on these periods hold, the first of the plan first; none: the standard price. */
interface PeriodSpan {
  readonly from: number
  readonly periods: readonly string[]
}

/** Later changes of a call do not count: it is over by then, or keeps its last price. */
export const MAX_AHEAD_MS = 7 * DAY_MS
/** Days that are in memory; a look-up of another time may replace them. */
const MAX_DAYS = 8
/** Zones of customers that are in memory for a plan. */
const MAX_ZONES = 30

export class PlanTimes {
  /** A call's price changes with the period. */
  readonly isChanging: boolean
  readonly #zone: Zone
  readonly #clock: PeriodClock
  /** By the UTC day at which they begin; each reaches `MAX_AHEAD_MS` beyond its day. */
  readonly #spans = new Map<number, readonly PeriodSpan[]>()
  readonly #terms: PlanTimesTerms
  readonly #byZone = new Map<string, PlanTimes>()

  constructor(terms: PlanTimesTerms) {
    this.isChanging = terms.priceChange === 'change'
    this.#zone = zoneOf(terms.zone)
    this.#clock = new PeriodClock(terms.periods, terms.holidays)
    this.#terms = terms
  }

  /** The same by the clock of a customer, where the plan leaves it to them. */
  of(customer: CustomerZone | undefined): PlanTimes {
    if (customer === undefined || customer.tenantId !== this.#terms.ofTenant) return this
    const { zone } = customer
    const known = this.#byZone.get(zone)
    if (known !== undefined) return known
    const times = new PlanTimes({ ...this.#terms, zone, ofTenant: undefined })
    if (this.#byZone.size >= MAX_ZONES) this.#byZone.clear()
    this.#byZone.set(zone, times)
    return times
  }

  /** The periods that hold at `at` (milliseconds UTC). */
  periodsAt(at: number): readonly string[] {
    return this.#spansOf(at).findLast(({ from }) => from <= at)?.periods ?? []
  }

  /** The moments after `at`, until `to` and within `MAX_AHEAD_MS`, at which other periods hold. */
  changesBetween(at: number, to: number): readonly number[] {
    const until = Math.min(to, at + MAX_AHEAD_MS)
    return this.#spansOf(at).flatMap(({ from }) => (from > at && from <= until ? [from] : []))
  }

  #spansOf(at: number): readonly PeriodSpan[] {
    const day = Math.floor(at / DAY_MS)
    const known = this.#spans.get(day)
    if (known !== undefined) return known
    const spans = this.#read(day * DAY_MS, (day + 1) * DAY_MS + MAX_AHEAD_MS)
    if (this.#spans.size >= MAX_DAYS) this.#spans.clear()
    this.#spans.set(day, spans)
    return spans
  }

  #read(from: number, to: number): readonly PeriodSpan[] {
    const spans: PeriodSpan[] = []
    for (const at of this.#candidates(from, to)) {
      const periods = this.#clock.namesAt(at + this.#zone.offsetMs(at))
      const last = spans.at(-1)
      if (last === undefined || !isSame(last.periods, periods)) spans.push({ from: at, periods })
    }
    return spans
  }

  /** Each moment at which the clock shows an edge of a period, or is set. */
  #candidates(from: number, to: number): readonly number[] {
    const offsets = this.#zone.changes(from, to)
    const found = offsets.flatMap(({ from: start, offsetMs }, index) => {
      const end = offsets[index + 1]?.from ?? to
      const edges = [start]
      for (let day = localDay(start, offsetMs); day <= localDay(end, offsetMs); day += 1)
        for (const minute of this.#clock.edges)
          edges.push(day * DAY_MS + minute * 60_000 - offsetMs)
      return edges.filter((at) => at >= start && at < end)
    })
    return found.toSorted((one, other) => one - other)
  }
}

const localDay = (at: number, offsetMs: number): number => Math.floor((at + offsetMs) / DAY_MS)

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((name, index) => name === other[index])
