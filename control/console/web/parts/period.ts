/** A period of a report, as the address of a screen has it: `?period=yesterday&zone=utc`. */
import { DAY_MS, HOUR_MS } from './format.ts'
import { dayStart, momentOf, monthStart } from './zoned-time.ts'

/** Periods that follow the clock. */
export const periods = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  month: 'This month',
  'last-month': 'Last month',
} as const
export type PeriodName = keyof typeof periods

export interface ShownPeriod {
  /** `custom`: from and to are in the address. */
  readonly name: PeriodName | 'custom'
  /** Milliseconds UTC, the first included, the last not. */
  readonly from: number
  readonly before: number
}

type Query = Readonly<Record<string, string>>

const isPeriod = (name: string): name is PeriodName => Object.hasOwn(periods, name)

/** The period of an address at a moment, with the days of a zone. */
export function readPeriod(query: Query, zone: string, present: number): ShownPeriod {
  const { period = '24h', from = '', to = '' } = query
  const begin = readMoment(from, zone)
  if (begin !== undefined) {
    const before = readMoment(to, zone) ?? present
    return { name: 'custom', from: begin, before: Math.max(before, begin) }
  }
  const name = isPeriod(period) ? period : '24h'
  return { name, ...bounds[name](present, zone) }
}

type Bounds = (present: number, zone: string) => Pick<ShownPeriod, 'from' | 'before'>

const last =
  (ms: number): Bounds =>
  (present) => ({ from: present - ms, before: present })

const bounds: Readonly<Record<PeriodName, Bounds>> = {
  '1h': last(HOUR_MS),
  '24h': last(DAY_MS),
  today: (present, zone) => ({ from: dayStart(present, zone), before: present }),
  yesterday: (present, zone) => ({
    from: dayStart(present, zone, -1),
    before: dayStart(present, zone),
  }),
  '7d': last(7 * DAY_MS),
  '30d': last(30 * DAY_MS),
  month: (present, zone) => ({ from: monthStart(present, zone), before: present }),
  'last-month': (present, zone) => ({
    from: monthStart(present, zone, -1),
    before: monthStart(present, zone),
  }),
}

/** An RFC 3339 time, or a date: its first moment in the zone. Undefined: it is neither. */
function readMoment(text: string, zone: string): number | undefined {
  const moment = Date.parse(text)
  if (Number.isNaN(moment)) return undefined
  return /^\d{4}-\d\d-\d\d$/.test(text) ? momentOf(moment, zone) : moment
}
