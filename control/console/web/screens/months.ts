/** Calendar months by the clock of a zone, as `2026-11`. */

/** The most that are offered: a ledger may be older than this list is useful. */
const MAX_MONTHS = 120

export function monthOf(at: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: '2-digit' })
  const words = new Map(parts.formatToParts(at).map(({ type, value }) => [type, value]))
  return `${(words.get('year') ?? '').padStart(4, '0')}-${words.get('month') ?? ''}`
}

/** Newest first, from one month to another. */
export function monthsBetween(first: string, last: string): readonly string[] {
  const [from, to] = [indexOf(first), indexOf(last)]
  const count = Math.min(Math.max(to - from + 1, 1), MAX_MONTHS)
  return Array.from({ length: count }, (_, back) => nameOf(to - back))
}

/** Dates: `from` is inside, `to` is not. Undefined for what is not a month. */
export function periodOf(
  month: string,
): { readonly from: string; readonly to: string } | undefined {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) return undefined
  return { from: `${month}-01`, to: `${nameOf(indexOf(month) + 1)}-01` }
}

const longName = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'long' })

/** `November 2026` */
export const monthText = (month: string): string => {
  const [year, number] = month.split('-').map(Number)
  return longName.format(new Date(year ?? 0, (number ?? 1) - 1, 1))
}

/** Months since the year 0. */
const indexOf = (month: string): number => {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return year * 12 + number - 1
}

const nameOf = (index: number): string =>
  `${String(Math.floor(index / 12)).padStart(4, '0')}-${String((index % 12) + 1).padStart(2, '0')}`
