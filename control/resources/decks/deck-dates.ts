/** Dates of decks, in the format that the user names, or in ISO 8601. */
import { parseTime } from '../../../schema/columns.ts'
import { zoneOf } from '../../../schema/time-zones.ts'

export interface DateRules {
  readonly date_format?: string | undefined
  readonly time_zone: string
}

const months = [
  ...['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september'],
  ...['october', 'november', 'december'],
]
/** A year outside of these is a slip, such as 0026, and would make the price hold at once. */
const FIRST_YEAR = 2000
const LAST_YEAR = 2100

/** Milliseconds UTC, or why the cell is no date. */
export function readDate(
  cell: string,
  { date_format: format, time_zone: zone }: DateRules,
): number | string {
  const text = cell.trim()
  const absolute = parseTime(text)
  if (absolute !== undefined) return inCentury(new Date(absolute).getUTCFullYear()) ?? absolute
  const iso = /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?$/.test(text)
  const parts = iso ? isoParts(text) : format === undefined ? undefined : partsBy(format, text)
  if (parts === undefined)
    return format === undefined
      ? `is not an ISO date: name date_format, such as "DD.MM.YYYY"`
      : `is not a date as ${format}`
  const { year, month, day, hour, minute, second } = parts
  const wrongYear = inCentury(year)
  if (wrongYear !== undefined) return wrongYear
  const local = Date.UTC(year, month - 1, day, hour, minute, second)
  const isReal = new Date(local).getUTCDate() === day && new Date(local).getUTCMonth() === month - 1
  if (!isReal || hour > 23 || minute > 59 || second > 59) return 'is not a day of the calendar'
  return zoneOf(zone).momentOf(local)
}

/** Undefined: the year is one of a deck. */
const inCentury = (year: number): string | undefined =>
  year < FIRST_YEAR || year >= LAST_YEAR
    ? `is not of a year from ${FIRST_YEAR} to ${LAST_YEAR - 1}`
    : undefined

interface DateParts {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

function isoParts(text: string): DateParts {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = text
    .split(/[-T :]/)
    .map(Number)
  return { year, month, day, hour, minute, second }
}

const patterns: Readonly<Record<string, string>> = {
  YYYY: String.raw`(?<year>\d{4})`,
  YY: String.raw`(?<year>\d{2})`,
  MMM: '(?<name>[A-Za-z]{3,9})\\.?',
  MM: String.raw`(?<month>\d{2})`,
  M: String.raw`(?<month>\d{1,2})`,
  DD: String.raw`(?<day>\d{2})`,
  D: String.raw`(?<day>\d{1,2})`,
  HH: String.raw`(?<hour>\d{1,2})`,
  mm: String.raw`(?<minute>\d{2})`,
  ss: String.raw`(?<second>\d{2})`,
}

const tokens = /YYYY|YY|MMM|MM|M|DD|D|HH|mm|ss|[^A-Za-z]|./g

/** Undefined: the format names a day, a month and a year, and nothing twice. */
export function dateFormatProblem(format: string): string | undefined {
  const parts = (format.match(tokens) ?? []).filter((token) => token in patterns)
  const starts = parts.map(([first = '']) => first)
  const isWhole = ['D', 'M', 'Y'].every((part) => starts.includes(part))
  const isOnce = new Set(starts).size === starts.length
  return isWhole && isOnce ? undefined : 'must be such as "DD.MM.YYYY": each part stands once'
}

/** Undefined: the text has another format. */
function partsBy(format: string, text: string): DateParts | undefined {
  const source = format.replaceAll(tokens, (token) => patterns[token] ?? escaped(token))
  const { groups } = new RegExp(`^${source}$`).exec(text) ?? {}
  if (groups === undefined) return undefined
  const { year = '', month, name = '', day, hour, minute, second } = groups
  // `marraskuu` is November in Finnish: only English names, and their beginnings, are read.
  const ofName = months.findIndex((month) => month.startsWith(name.toLowerCase())) + 1
  const numbers = {
    year: Number(year) + (year.length === 2 ? 2_000 : 0),
    month: month === undefined ? ofName : Number(month),
    day: Number(day),
    hour: Number(hour ?? 0),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
  }
  return numbers
}

const escaped = (sign: string): string => sign.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
