/** The first lines of a deck, as they are and as they are read, and a mapping for it. */
import { badRequest, type RequestProblem, ApiError } from '../../http/api-error.ts'
import { type CsvRecord, CsvProblem } from '../csv-records.ts'
import { deckFormat, separatorName } from './deck-format.ts'
import { proposedMapping } from './deck-header.ts'
import { deckLines } from './deck-lines.ts'
import { deckMapping, type DeckMapping, type WrittenMapping } from './deck-mapping.ts'
import type { DeckRate } from './deck-rate.ts'
import { HeaderFinder, LineReader } from './deck-reader.ts'

export interface PreviewLine {
  readonly line: number
  readonly cells: readonly string[]
  /** Rates that the line becomes; empty above the header. */
  readonly rates: readonly DeckRate[]
  readonly problems: readonly RequestProblem[]
}

export interface DeckPreview {
  readonly format: 'csv' | 'xlsx'
  readonly encoding: string | null
  readonly separator: string | null
  /** Null: nobody has said one, and none can be proposed. */
  readonly mapping: WrittenMapping | null
  readonly mappingSource: 'request' | 'remembered' | 'proposed' | 'none'
  readonly lines: readonly PreviewLine[]
}

/** Lines that are shown, and that a proposal may look at. */
const MAX_LINES = 50
/** Prefixes of a line that are shown. */
const MAX_PREFIXES = 20

interface PreviewedPlan {
  readonly currency: string
  readonly zone: string
  readonly periods: readonly string[]
  readonly remembered: WrittenMapping | undefined
}

export async function previewDeck(
  table: Uint8Array,
  requested: WrittenMapping | undefined,
  { remembered, ...plan }: PreviewedPlan,
): Promise<DeckPreview> {
  const written = requested ?? remembered
  try {
    const form = written === undefined ? {} : deckMapping.parse(written)
    const format = deckFormat(table, form)
    const records = await firstRecords(table, form)
    const mapping = written ?? proposedMapping(records)
    const lines = mapping === undefined ? records.map(unread) : read(records, mapping, plan)
    return {
      format: format.kind,
      encoding: format.kind === 'csv' ? format.encoding : null,
      separator:
        format.kind === 'csv' ? (separatorName(format.separator) ?? format.separator) : null,
      mapping: mapping ?? null,
      mappingSource: sourceOf(requested, remembered, mapping),
      lines,
    }
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error
    const details = [{ path: `lines.${error.line}`, message: error.message }]
    throw error.line === undefined
      ? badRequest(error.message)
      : badRequest('The deck cannot be read', details)
  }
}

function sourceOf(
  ...mappings: readonly (WrittenMapping | undefined)[]
): DeckPreview['mappingSource'] {
  const sources = ['request', 'remembered', 'proposed'] as const
  return sources[mappings.findIndex((mapping) => mapping !== undefined)] ?? 'none'
}

async function firstRecords(
  table: Uint8Array,
  form: Partial<DeckMapping>,
): Promise<readonly CsvRecord[]> {
  const records: CsvRecord[] = []
  for await (const some of deckLines(table, form, () => Promise.resolve())) {
    records.push(...some.slice(0, MAX_LINES - records.length))
    if (records.length === MAX_LINES) break
  }
  return records
}

const unread = ({ line, cells }: CsvRecord): PreviewLine => ({
  line,
  cells,
  rates: [],
  problems: [],
})

function read(
  records: readonly CsvRecord[],
  written: WrittenMapping,
  { currency, zone, periods }: Omit<PreviewedPlan, 'remembered'>,
): readonly PreviewLine[] {
  const mapping = deckMapping.parse(written)
  const finder = new HeaderFinder(mapping)
  const skipped = new Set(mapping.skip_lines)
  let reader: LineReader | undefined
  return records.map((record) => {
    try {
      if (reader === undefined) {
        const found = finder.find(record)
        if (found === undefined) return unread(record)
        reader = new LineReader(found, { mapping, currency, zone, periods, allowsDefault: false })
        if (found.isHeader) return unread(record)
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { ...unread(record), problems: error.details ?? [] }
    }
    if (skipped.has(record.line)) return unread(record)
    const found = reader.read(record)
    return found.kind === 'problems'
      ? { ...unread(record), problems: found.problems }
      : { ...unread(record), rates: found.rates.slice(0, MAX_PREFIXES) }
  })
}
