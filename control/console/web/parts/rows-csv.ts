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

/** A cell that a spreadsheet would run as a formula is prefixed; signed numbers are none. */
function cellOf(text: string): string {
  const isFormula = /^\s*(?:[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?![\d.]*$)|[\t\r])/.test(text)
  const shown = isFormula ? `'${text}` : text
  return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}
