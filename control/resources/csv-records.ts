/**
 * Comma-separated values (RFC 4180), read record by record in memory that does not grow with the
 * table, with a turn of the event loop after each part of it.
 */
import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { finished } from 'node:stream/promises'
import { parse, type Parser } from 'csv-parse'

export interface CsvRecord {
  /** Number of the first line of the record; the header is line 1. */
  readonly line: number
  readonly cells: readonly string[]
}

/** Nothing after this line can be read, or nothing at all. */
export class CsvProblem extends Error {
  override readonly name = 'CsvProblem'
  /** Undefined: it concerns the whole table. */
  readonly line: number | undefined

  constructor(message: string, line?: number) {
    super(message)
    this.line = line
  }
}

/** Characters of the cells of one record. */
const MAX_RECORD_LENGTH = 16_384
/** A record that goes on for so many bytes has too many cells, whatever is in them. */
const MAX_RECORD_BYTES = 262_144
const MAX_EMPTY_LINES = 100_000
/** About a millisecond of work. */
const PART_BYTES = 16_384

/** How the bytes of a table are to be read, where they do not say it themselves. */
export interface CsvForm {
  /** By the names of `TextDecoder`. */
  readonly encoding: string
  readonly separator: string
  /** Bytes before the first record, such as a line `sep=;`, and the lines that they are. */
  readonly start: number
  readonly linesBefore: number
}

/** Progress that `csv-parse` reports with each record. */
interface Progress {
  readonly records: number
  readonly empty_lines: number
}

/**
 * The records of each part of the table. Skips empty lines; LF and CRLF end a line. The header says
 * whether `;`, a tab or `,` separates the cells.
 *
 * @param pause gives other work a turn.
 * @throws {CsvProblem} while it is read.
 */
export async function* csvRecords(
  table: Uint8Array,
  pause: () => Promise<unknown>,
  form?: CsvForm,
): AsyncGenerator<readonly CsvRecord[]> {
  const bytes = Buffer.from(table.buffer, table.byteOffset, table.byteLength)
  if (form === undefined) refuseOtherText(bytes)
  const parser = parse({
    bom: true,
    delimiter: form?.separator ?? separatorOf(bytes),
    // Spreadsheets write ="0044" for digits that are no number.
    relax_quotes: form !== undefined,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: MAX_RECORD_LENGTH,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
  })
  let innerLines = form?.linesBefore ?? 0
  const lineOf = ({ records, empty_lines }: Progress): number => records + empty_lines + innerLines
  const raw = partsOf(bytes.subarray(form?.start ?? 0), () => parser.info, pause)
  const parts = form === undefined ? raw : decoded(raw, form.encoding)
  const taken = (): readonly CsvRecord[] => {
    const records: CsvRecord[] = []
    for (let read = next(parser); read !== null; read = next(parser)) {
      const { record: cells, info } = read
      const line = lineOf(info)
      for (const cell of cells) innerLines += linesIn(cell)
      if (cells.length > 1 || cells[0] !== '') records.push({ line, cells })
    }
    return records
  }
  const ended = finished(parser)
  // It is awaited once all is written; until then a failure is seen by what is destroyed.
  ended.catch(() => undefined)
  try {
    for await (const part of parts) {
      parser.write(part)
      yield taken()
      if (parser.errored) throw parser.errored
    }
    parser.end()
    while (!parser.readableEnded && parser.errored === null) {
      yield taken()
      await Promise.race([ended, nextTurn()])
    }
    await ended
  } catch (error) {
    throw problemOf(error, lineOf(parser.info) + 1)
  } finally {
    parser.destroy()
  }
}

interface ParsedRecord {
  readonly record: readonly string[]
  readonly info: Progress
}

/** A part is parsed while it is written: its records are there at once. */
const next = (parser: Parser): ParsedRecord | null => parser.read() as ParsedRecord | null

function refuseOtherText(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new CsvProblem('The table is not UTF-8')
  if (bytes.includes(0)) throw new CsvProblem('The table contains a NUL character')
}

/** The parts as UTF-8. Ends with a problem where they are not in their encoding. */
async function* decoded(parts: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  for await (const part of parts) yield encoded(() => decoder.decode(part, { stream: true }))
  yield encoded(() => decoder.decode())

  function encoded(read: () => string): Buffer {
    let text
    try {
      text = read()
    } catch {
      throw new CsvProblem(`The table is not ${encoding.toUpperCase()}`)
    }
    if (text.includes('\0')) throw new CsvProblem('The table contains a NUL character')
    return Buffer.from(text)
  }
}

/**
 * Parts of the table. Ends with a problem when no record ends, or nothing comes but empty lines.
 */
async function* partsOf(
  bytes: Buffer,
  progress: () => Progress,
  pause: () => Promise<unknown>,
): AsyncGenerator<Buffer> {
  let seen = -1
  let endOfSeen = 0
  for (let start = 0; start < bytes.length; start += PART_BYTES) {
    const { records, empty_lines } = progress()
    if (empty_lines > MAX_EMPTY_LINES)
      throw new CsvProblem(`The table has more than ${MAX_EMPTY_LINES} empty lines`)
    if (records + empty_lines !== seen) {
      seen = records + empty_lines
      endOfSeen = start
    }
    if (start - endOfSeen > MAX_RECORD_BYTES) throw tooLong
    yield bytes.subarray(start, start + PART_BYTES)
    await pause()
  }
}

/** A line that is too long, or quotation marks that do not end. */
const tooLong = new Error('a record is too long')

function problemOf(error: unknown, line: number): unknown {
  if (error instanceof CsvProblem) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (error === tooLong || code === 'CSV_MAX_RECORD_SIZE')
    return new CsvProblem('is too long, or has a quotation mark without an end', line)
  if (/^(?:CSV_|INVALID_OPENING_QUOTE)/.test(code))
    return new CsvProblem('is not valid CSV from here on', line)
  return error
}

function separatorOf(bytes: Buffer): string {
  const end = bytes.indexOf('\n')
  const header = bytes.subarray(0, end === -1 ? undefined : end)
  return [';', '\t'].find((candidate) => header.includes(candidate)) ?? ','
}

const linesIn = (cell: string): number => (cell.includes('\n') ? cell.split('\n').length - 1 : 0)
