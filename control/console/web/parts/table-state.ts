/** Which rows a table shows, in which order, by the query of the address: `?q=4930&sort=-cost`. */

export interface TableColumn<Row> {
  /** Name of the column, also in the address. */
  readonly name: string
  readonly title: string
  /** Sorted and searched by it. */
  readonly value: (row: Row) => string | number | null
  /** Text that is searched, too, and not sorted by: that of a second line. */
  readonly also?: (row: Row) => string | null
}

export interface TableState {
  readonly search: string
  readonly sortBy: string | undefined
  readonly isDescending: boolean
}

export function readTableState(query: Readonly<Record<string, string>>): TableState {
  const { q = '', sort = '' } = query
  const isDescending = sort.startsWith('-')
  const name = isDescending ? sort.slice(1) : sort
  return { search: q, sortBy: name === '' ? undefined : name, isDescending }
}

/** Ascending, descending, then as the server ordered it. */
export function nextSort({ sortBy, isDescending }: TableState, name: string): string | undefined {
  if (sortBy !== name) return name
  return isDescending ? undefined : `-${name}`
}

/** A row is shown when each word of the search is in one of its columns. */
export function arranged<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  { search, sortBy, isDescending }: TableState,
): readonly Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = words.length === 0 ? rows : rows.filter((row) => holds(row, columns, words))
  const column = columns.find(({ name }) => name === sortBy)
  if (column === undefined) return found
  const sign = isDescending ? -1 : 1
  return found
    .map((row) => ({ row, value: column.value(row) }))
    .toSorted((a, b) => compare(a.value, b.value, sign))
    .map(({ row }) => row)
}

function holds<Row>(
  row: Row,
  columns: readonly TableColumn<Row>[],
  words: readonly string[],
): boolean {
  const text = columns
    .map(({ value, also }) => `${value(row) ?? ''}\n${also?.(row) ?? ''}`)
    .join('\n')
    .toLowerCase()
  return words.every((word) => text.includes(word))
}

/** Rows without a value come last in both directions. */
function compare(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b)
  return sign * String(a).localeCompare(String(b), undefined, { numeric: true })
}

/** Rows beyond the visible ones on either side: a fast scroll shows no gap. */
const MARGIN = 8

/** The part of `count` rows of one height that is in sight. */
export function inSight(
  count: number,
  rowHeight: number,
  scrollTop: number,
  height: number,
): { readonly from: number; readonly to: number } {
  const first = Math.floor(scrollTop / rowHeight) - MARGIN
  const last = Math.ceil((scrollTop + height) / rowHeight) + MARGIN
  const to = Math.min(count, Math.max(0, last))
  return { from: Math.max(0, Math.min(first, to)), to }
}
