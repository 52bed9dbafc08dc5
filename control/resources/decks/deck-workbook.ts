/**
 * The rows of a workbook (.xlsx), which is an archive: what it would become in memory is bounded
 * before it is read.
 */
import { inflateRawSync } from 'node:zlib'
import { readSheet } from 'read-excel-file/universal'
import { CsvProblem, type CsvRecord } from '../csv-records.ts'

/** Bytes of the texts of a workbook: 100,000 rows of eight cells have about 50 MB. */
const MAX_TEXT_BYTES = 100_000_000
const MAX_ENTRIES = 1_000
const MAX_ROWS = 100_000
/** The rows and the widest of them make a rectangle of cells. */
const MAX_CELLS = 3_000_000

/** Empty rows are left out, and counted. */
export async function* workbookRecords(
  table: Uint8Array,
  sheet: string | number,
  pause: () => Promise<unknown>,
): AsyncGenerator<readonly CsvRecord[]> {
  refuseLargeArchive(Buffer.from(table.buffer, table.byteOffset, table.byteLength))
  const rows = await readRows(table, sheet)
  for (let start = 0; start < rows.length; start += ROWS_IN_TURN) {
    const some = rows.slice(start, start + ROWS_IN_TURN)
    yield some
      .map((row, index) => ({ line: start + index + 1, cells: row.map(cellText) }))
      .filter(({ cells }) => cells.some((cell) => cell !== ''))
    await pause()
  }
}

const ROWS_IN_TURN = 500

async function readRows(
  table: Uint8Array,
  sheet: string | number,
): Promise<readonly (readonly unknown[])[]> {
  try {
    return await readSheet(new Blob([new Uint8Array(table)]), sheet)
  } catch (error) {
    const name = error instanceof Error ? error.name : ''
    const named = typeof sheet === 'number' ? `number ${sheet}` : JSON.stringify(sheet)
    if (name === 'SheetNotFoundError') throw new CsvProblem(`The workbook has no sheet ${named}`)
    throw new CsvProblem('The workbook cannot be read: save it again, or as CSV')
  }
}

/** A spreadsheet keeps 15 digits of a number. */
const SIGNIFICANT_DIGITS = 15

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'number') return numberText(cell)
  if (cell instanceof Date) return dateText(cell)
  return typeof cell === 'string' || typeof cell === 'boolean' ? String(cell).trim() : ''
}

/** A number with more digits than the spreadsheet keeps stays with its exponent: it is refused. */
function numberText(value: number): string {
  const rounded = Number(value.toPrecision(SIGNIFICANT_DIGITS))
  if (Math.abs(rounded) >= 1e15) return rounded.toExponential()
  const text = String(rounded)
  return text.includes('e') ? rounded.toFixed(20).replace(/0+$/, '') : text
}

/** Dates of a spreadsheet have no zone. */
const dateText = (date: Date): string =>
  Number.isNaN(date.getTime())
    ? 'not a date'
    : date
        .toISOString()
        .replace(/\.\d+Z$/, '')
        .replace('T', ' ')
        .replace(' 00:00:00', '')

/** An archive may be wrong about its sizes, so each text is unpacked once and counted. */
function refuseLargeArchive(bytes: Buffer): void {
  let left = MAX_TEXT_BYTES
  for (const entry of entriesOf(bytes)) {
    if (!/\.xml(?:\.rels)?$/.test(entry.name)) continue
    const text = unpacked(bytes, entry, left)
    if (text.length !== entry.claimedBytes) throw damaged()
    left -= text.length
    // A workbook may keep its sheets in any folder.
    if (text.includes('sheetData')) refuseLargeSheet(text.toString('latin1'))
  }
}

interface Entry {
  readonly name: string
  readonly method: number
  readonly packedBytes: number
  /** The parser takes so much memory for the text. */
  readonly claimedBytes: number
  readonly offset: number
}

const END_OF_DIRECTORY = 0x06054b50
const DIRECTORY_ENTRY = 0x02014b50
const ENDING_BYTES = 22
const ENTRY_BYTES = 46
const LOCAL_BYTES = 30

/** The directory of an archive (APPNOTE.TXT 4.3.12), without those of 4 GB. */
function entriesOf(bytes: Buffer): readonly Entry[] {
  try {
    const end = endOfDirectory(bytes)
    const count = bytes.readUInt16LE(end + 10)
    if (count > MAX_ENTRIES) throw tooLarge()
    const entries: Entry[] = []
    let at = bytes.readUInt32LE(end + 16)
    for (let index = 0; index < count; index += 1) {
      if (bytes.readUInt32LE(at) !== DIRECTORY_ENTRY) throw damaged()
      const isEncrypted = (bytes.readUInt16LE(at + 8) & 1) === 1
      if (isEncrypted) throw new CsvProblem('The workbook has a password: save it without')
      const length = bytes.readUInt16LE(at + 28)
      entries.push({
        name: bytes.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + length),
        method: bytes.readUInt16LE(at + 10),
        packedBytes: bytes.readUInt32LE(at + 20),
        claimedBytes: bytes.readUInt32LE(at + 24),
        offset: bytes.readUInt32LE(at + 42),
      })
      at += ENTRY_BYTES + length + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32)
    }
    return entries
  } catch (error) {
    throw error instanceof RangeError ? damaged() : error
  }
}

function endOfDirectory(bytes: Buffer): number {
  const first = Math.max(0, bytes.length - ENDING_BYTES - 65_535)
  for (let at = bytes.length - ENDING_BYTES; at >= first; at -= 1)
    if (bytes.readUInt32LE(at) === END_OF_DIRECTORY) return at
  throw damaged()
}

function unpacked(bytes: Buffer, { method, packedBytes, offset }: Entry, most: number): Buffer {
  try {
    const start =
      offset + LOCAL_BYTES + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28)
    const packed = bytes.subarray(start, start + packedBytes)
    if (method === 0) {
      if (packed.length > most) throw tooLarge()
      return packed
    }
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, most) })
  } catch (error) {
    if (error instanceof CsvProblem) throw error
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    throw code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge() : damaged()
  }
}

/**
 * One cell far away makes a rectangle of empty ones up to it. Rows and cells are written in one
 * way only: in another, the parser might read a place that was not seen here.
 */
function refuseLargeSheet(xml: string): void {
  let lastRow = 0
  let lastColumn = 0
  let rows = 0
  for (const [, tag = '', attributes = ''] of xml.matchAll(rowOrCell)) {
    if (!plainAttributes.test(attributes)) throw damaged()
    const [written = '', place] = /\br=["'](.*?)["']/.exec(attributes) ?? []
    if (written !== '' && attributes.split(/\br=/, 3).length > 2) throw damaged()
    const [, column = '', row = ''] = /^([A-Z]{0,3})(\d{1,7})$/.exec(place ?? '0') ?? []
    const isPlace = tag === 'row' ? column === '' : place === undefined || column !== ''
    if (row === '' || !isPlace) throw damaged()
    if (tag === 'row') rows += 1
    lastRow = Math.max(lastRow, Number(row))
    lastColumn = Math.max(lastColumn, columnNumber(column))
  }
  lastRow = Math.max(lastRow, rows)
  if (lastRow > MAX_ROWS)
    throw new CsvProblem(`The sheet has more than ${MAX_ROWS} rows: save it as CSV`)
  if (lastRow * lastColumn > MAX_CELLS)
    throw new CsvProblem(`The sheet has more than ${MAX_CELLS} cells: save it as CSV`)
}

const rowOrCell = /<(?:[\w.-]+:)?(row|c)(?=[\s/>])([^>]*)>/g
/** No entities, and each name once before its text in quotation marks. */
const plainAttributes = /^(?:\s+[\w:.-]+=(?:"[^"<&]*"|'[^'<&]*'))*\s*\/?$/

const columnNumber = (letters: string): number =>
  letters.split('').reduce((number, letter) => number * 26 + letter.charCodeAt(0) - 64, 0)

const tooLarge = (): CsvProblem =>
  new CsvProblem('The workbook is too large when it is unpacked: save the sheet as CSV')

const damaged = (): CsvProblem =>
  new CsvProblem('The workbook is damaged: save it again, or as CSV')
