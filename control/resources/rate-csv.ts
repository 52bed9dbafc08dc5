/** Comma-separated values (RFC 4180). The header line decides whether `,`, `;` or tab separates. */

export interface CsvRecord {
  /** Of the first line of the record; the header is line 1. */
  readonly line: number
  readonly cells: readonly string[]
}

export type CsvStep =
  | { readonly kind: 'record'; readonly record: CsvRecord }
  /** Nothing after it can be parsed. */
  | { readonly kind: 'problem'; readonly line: number; readonly message: string }

/** Parses record by record. Skips empty lines; LF and CRLF end a line. */
export function* parseCsv(text: string): Generator<CsvStep> {
  const separator = separatorOf(text)
  const scan = new RegExp(`"((?:[^"]|"")*)"|([^"\\r\\n${separator}][^\\r\\n${separator}]*)|`, 'y')
  let position = text.startsWith('\uFEFF') ? 1 : 0
  let line = 1
  let record: { line: number; cells: string[] } = { line, cells: [] }
  while (position <= text.length) {
    scan.lastIndex = position
    const [whole = '', quoted, plain = ''] = scan.exec(text) ?? []
    record.cells.push(quoted?.replaceAll('""', '"') ?? plain.trim())
    if (quoted !== undefined) line += countLines(quoted)
    position += whole.length
    const next = text[position]
    if (next === separator) {
      position += 1
      continue
    }
    if (next !== undefined && next !== '\n' && !text.startsWith('\r\n', position)) {
      yield { kind: 'problem', line, message: 'is not valid CSV from here on' }
      return
    }
    if (!isEmpty(record.cells)) yield { kind: 'record', record }
    position += next === '\r' ? 2 : 1
    line += 1
    record = { line, cells: [] }
  }
}

function separatorOf(text: string): string {
  const header = text.slice(0, text.search(/\r?\n|$/))
  return [';', '\t'].find((candidate) => header.includes(candidate)) ?? ','
}

const countLines = (text: string): number => text.split('\n').length - 1

const isEmpty = (cells: readonly string[]): boolean => cells.length === 1 && cells[0] === ''

/** One line, without its line end. */
export const csvLine = (cells: readonly (string | number | null)[]): string =>
  cells.map((cell) => csvCell(cell === null ? '' : String(cell))).join(',')

const csvCell = (text: string): string =>
  /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
