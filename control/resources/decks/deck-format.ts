/** Sees whether the bytes of a deck are a workbook or a text, its encoding and its separator. */
import { isUtf8 } from 'node:buffer'
import { type CsvForm, CsvProblem } from '../csv-records.ts'
import type { DeckMapping } from './deck-mapping.ts'

export type DeckFormat = { readonly kind: 'xlsx' } | ({ readonly kind: 'csv' } & CsvForm)

type Wanted = Partial<Pick<DeckMapping, 'encoding' | 'separator'>>

/** Bytes that say which sign separates the cells. */
const SAMPLE_BYTES = 65_536

export function deckFormat(table: Uint8Array, wanted: Wanted): DeckFormat {
  const bytes = Buffer.from(table.buffer, table.byteOffset, table.byteLength)
  if (bytes.length === 0) throw new CsvProblem('The deck is empty')
  if (bytes.subarray(0, 4).equals(zip)) return { kind: 'xlsx' }
  if (bytes.subarray(0, 4).equals(oldWorkbook))
    throw new CsvProblem('The deck is a workbook of the old kind (.xls): save it as .xlsx or CSV')
  if (bytes.subarray(0, 4).equals(pdf))
    throw new CsvProblem('The deck is a PDF: ask the carrier for a spreadsheet or CSV')
  const mark = marks.find(({ bytes: start }) => bytes.subarray(0, start.length).equals(start))
  const encoding = mark?.encoding ?? wanted.encoding ?? encodingOf(bytes)
  const sample = new TextDecoder(encoding).decode(bytes.subarray(0, SAMPLE_BYTES))
  const [, line = '', sign = ''] =
    /^((?:\uFEFF)?"?sep=([,;\t|^~:])"?(?:\r?\n|$))/i.exec(sample) ?? []
  const separator = signOf(wanted.separator) ?? (sign === '' ? separatorOf(sample) : sign)
  const start = (mark?.bytes.length ?? 0) + bytesOf(line, encoding)
  return { kind: 'csv', encoding, separator, start, linesBefore: line === '' ? 0 : 1 }
}

const zip = Buffer.from('PK\u0003\u0004', 'latin1')
const oldWorkbook = Buffer.from([0xd0, 0xcf, 0x11, 0xe0])
const pdf = Buffer.from('%PDF')

/** Byte order marks. */
const marks = [
  { bytes: Buffer.from([0xef, 0xbb, 0xbf]), encoding: 'utf-8' },
  { bytes: Buffer.from([0xff, 0xfe]), encoding: 'utf-16le' },
  { bytes: Buffer.from([0xfe, 0xff]), encoding: 'utf-16be' },
] as const

/** Every byte is a character of Windows-1252, so only what is not UTF-8 is taken for it. */
function encodingOf(bytes: Buffer): NonNullable<DeckMapping['encoding']> {
  // UTF-16 of digits and signs has a zero in every other byte.
  const [even, odd] = [bytes[0] === 0, bytes[1] === 0]
  if (even !== odd) return even ? 'utf-16be' : 'utf-16le'
  return isUtf8(bytes) ? 'utf-8' : 'windows-1252'
}

/** Without the mark, which `TextDecoder` has taken away. */
const bytesOf = (text: string, encoding: string): number =>
  encoding.startsWith('utf-16') ? 2 * text.length : text.length

const signOf = (name: Wanted['separator']): string | undefined => (name === 'tab' ? '\t' : name)

export const separatorName = (sign: string): NonNullable<DeckMapping['separator']> | undefined =>
  sign === '\t' ? 'tab' : [',' as const, ';' as const, '|' as const].find((each) => each === sign)

const signs = ['\t', ';', '|', ','] as const
const SAMPLE_LINES = 50

/** The sign that most lines have equally often; of two such, the one that they have more often. */
function separatorOf(sample: string): string {
  const lines = sample
    .split(/\r?\n/)
    .slice(0, SAMPLE_LINES)
    .filter((line) => line !== '')
    .map((line) => line.replaceAll(/"[^"]*"/g, ''))
  let best = { sign: ',', lines: 0, count: 0 }
  for (const sign of signs) {
    const counts = lines.map((line) => line.split(sign).length - 1).filter((count) => count > 0)
    const usual = mostFrequent(counts)
    const found = { sign, lines: counts.filter((count) => count === usual).length, count: usual }
    if (found.lines > best.lines || (found.lines === best.lines && usual > best.count)) best = found
  }
  return best.sign
}

function mostFrequent(counts: readonly number[]): number {
  const seen = new Map<number, number>()
  for (const count of counts) seen.set(count, (seen.get(count) ?? 0) + 1)
  return [...seen].toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? 0
}
