/** Rows of the API as a table of comma-separated values (RFC 4180). */

/** The fields of all rows, in the order in which they first come, are the columns. */
export function csvOf(rows: readonly object[]): string {
  const records = rows.map((row) => new Map<string, unknown>(Object.entries(row)))
  const names = [...new Set(records.flatMap((record) => [...record.keys()]))]
  const lines = [names, ...records.map((record) => names.map((name) => textOf(record.get(name))))]
  return lines.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('')
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object'))
    return value.join(' ')
  return JSON.stringify(value)
}

/**
 * A text that a spreadsheet would run as a formula is prefixed, also behind what some spreadsheets
 * take as the end of a cell; signed numbers are none.
 */
const formulas =
  /(^|[;\t\r\n])(?=[^\S\t\r\n]*(?:[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?![\d.]*$)|[\t\r]))/g

function cellOf(text: string): string {
  const shown = text.replace(formulas, "$1'")
  return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}
