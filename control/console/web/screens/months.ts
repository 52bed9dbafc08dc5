/** Calendar months in the viewer's zone, as `2026-11`. */

/** The most that are offered: a ledger may be older than this list is useful. */
const MAX_MONTHS = 120

export const monthOf = (at: number): string => {
  const date = new Date(at)
  return nameOf(date.getFullYear(), date.getMonth())
}

/** Newest first, from the month of `first` to that of `last`. */
export function monthsBetween(first: number, last: number): readonly string[] {
  const months: string[] = []
  const from = new Date(first)
  const to = new Date(last)
  const count = (to.getFullYear() - from.getFullYear()) * 12 + to.getMonth() - from.getMonth() + 1
  for (let back = 0; back < Math.min(Math.max(count, 1), MAX_MONTHS); back += 1) {
    const month = new Date(to.getFullYear(), to.getMonth() - back, 1)
    months.push(nameOf(month.getFullYear(), month.getMonth()))
  }
  return months
}

/** ISO times: `from` is inside, `to` is not. Undefined for what is not a month. */
export function periodOf(
  month: string,
): { readonly from: string; readonly to: string } | undefined {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? []
  if (year === undefined) return undefined
  const startOf = (index: number) => new Date(Number(year), index, 1).toISOString()
  return { from: startOf(Number(number) - 1), to: startOf(Number(number)) }
}

const longName = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'long' })

/** `November 2026` */
export const monthText = (month: string): string => {
  const [year, number] = month.split('-').map(Number)
  return longName.format(new Date(year ?? 0, (number ?? 1) - 1, 1))
}

const nameOf = (year: number, month: number): string =>
  `${String(year).padStart(4, '0')}-${String(month + 1).padStart(2, '0')}`
