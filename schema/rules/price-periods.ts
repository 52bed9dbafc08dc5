/** The hours and days of a rate plan at which its prices differ, such as `off-peak`. */
import { DAY_MS } from '../clock.ts'

const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
/** A holiday of the plan counts as no day of the week. */
export const dayNames = [...weekdays, 'holiday'] as const
export type DayName = (typeof dayNames)[number]

/**
 * Hours of some days. Several of one name are one period. Hours that end before they begin, or as
 * they begin, end on the next day, and belong to the day on which they begin.
 */
export interface PricePeriod {
  readonly name: string
  readonly days: readonly DayName[]
  /** `HH:MM`, by the clock of the plan's zone. */
  readonly from: string
  /** `HH:MM`; `24:00`: the end of the day. */
  readonly to: string
}

export const MAX_PERIODS = 8
/** Hours of all periods of a plan. */
export const MAX_PERIOD_HOURS = 24
export const MAX_HOLIDAYS = 400

/** The names of the periods, each once, in their order. */
export const periodNames = (periods: readonly Pick<PricePeriod, 'name'>[]): readonly string[] => [
  ...new Set(periods.map(({ name }) => name)),
]

/** Undefined: the hours of the period are right. */
export function periodProblem({ from, to, days }: PricePeriod): string | undefined {
  if (from === to) return 'begins as it ends: 00:00 to 24:00 is a whole day'
  return new Set(days).size === days.length ? undefined : 'names a day twice'
}

/** A day of one year (`2026-12-25`) or of each (`12-25`). */
export function holidayProblem(text: string): string | undefined {
  const [, year, month = '', day = ''] = /^(?:(\d{4})-)?(\d\d)-(\d\d)$/.exec(text) ?? []
  // A leap year: 29 February may be a holiday of each year.
  const at = Date.UTC(Number(year ?? 2000), Number(month) - 1, Number(day))
  const isReal = !Number.isNaN(at) && new Date(at).toISOString().slice(5, 10) === `${month}-${day}`
  return isReal ? undefined : 'must be a day of the calendar, such as 2026-12-25 or 12-25'
}

/** Minutes since midnight. */
const minutesOf = (text: string): number => {
  const [hours = 0, minutes = 0] = text.split(':').map(Number)
  return hours * 60 + minutes
}

interface Hours {
  readonly name: string
  /** A bit for each name of `dayNames`. */
  readonly days: number
  readonly from: number
  readonly to: number
}

/** Says which periods hold at a local time. */
export class PeriodClock {
  readonly #hours: readonly Hours[]
  readonly #holidays: ReadonlySet<string>
  readonly #names: readonly string[]

  constructor(periods: readonly PricePeriod[], holidays: readonly string[]) {
    this.#hours = periods.map(({ name, days, from, to }) => ({
      name,
      days: days.reduce((bits, day) => bits | (1 << dayNames.indexOf(day)), 0),
      from: minutesOf(from),
      to: minutesOf(to),
    }))
    this.#holidays = new Set(holidays)
    this.#names = periodNames(periods)
  }

  /** Minutes of a day at which a period may begin or end. */
  get edges(): readonly number[] {
    const edges = this.#hours.flatMap(({ from, to }) => [from, to % MINUTES_OF_DAY])
    return [...new Set([0, ...edges])]
  }

  /** @param local milliseconds of a local time, as if it were UTC. */
  namesAt(local: number): readonly string[] {
    const day = Math.floor(local / DAY_MS)
    const minute = Math.floor((local - day * DAY_MS) / MINUTE_MS)
    const [today, yesterday] = [this.#bitOf(day), this.#bitOf(day - 1)]
    const holding = this.#hours.filter(({ days, from, to }) => {
      const isToday = (days & today) !== 0
      if (from < to) return isToday && from <= minute && minute < to
      return (isToday && minute >= from) || ((days & yesterday) !== 0 && minute < to)
    })
    return this.#names.filter((name) => holding.some((hours) => hours.name === name))
  }

  #bitOf(day: number): number {
    if (this.#holidays.size > 0) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
      if (this.#holidays.has(date) || this.#holidays.has(date.slice(5))) return HOLIDAY
    }
    // The first of January 1970 was a Thursday.
    return 1 << ((((day + 3) % 7) + 7) % 7)
  }
}

const MINUTE_MS = 60_000
const MINUTES_OF_DAY = 1_440
const HOLIDAY = 1 << dayNames.indexOf('holiday')
