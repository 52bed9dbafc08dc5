/** The rates of a deck: every line is read as the mapping says, or refused with its number. */
import type { RequestProblem } from '../../http/api-error.ts'
import { badRequest } from '../../http/api-error.ts'
import { quoted } from '../../http/clean-text.ts'
import { type CsvRecord, CsvProblem } from '../csv-records.ts'
import { unknownPeriod } from '../plan-periods.ts'
import { type DateRules, readDate } from './deck-dates.ts'
import { type ColumnIndexes, findColumns, MAX_LINES_ABOVE } from './deck-header.ts'
import { deckLines } from './deck-lines.ts'
import type { DeckColumn, DeckMapping } from './deck-mapping.ts'
import { type DeckRate, type DeckTerms, isSameTerms } from './deck-rate.ts'
import { readPrefixes } from './deck-prefixes.ts'
import { readFlag, readIncrements, readPrice, readSeconds } from './deck-prices.ts'
import { type DeckRates, PackedRates } from './packed-rates.ts'

export interface DeckOptions {
  readonly mapping: DeckMapping
  /** Currency of the plan. */
  readonly currency: string
  /** Zone of the plan, for dates without one. */
  readonly zone: string
  /** Names of the plan's periods. */
  readonly periods: readonly string[]
  /** A line may have an empty prefix, and so price every number. */
  readonly allowsDefault: boolean
}

export interface ReadDeck {
  /** In the order of prefixes, periods and starts, each once. */
  readonly rates: DeckRates
  readonly lines: number
  /** Lines that say what another one says, too. */
  readonly repeated: number
  /** Prices that were rounded to six decimals. */
  readonly rounded: number
  /** Prefixes of ranges and lists beyond one of each line. */
  readonly expanded: number
  readonly skipped: number
}

const MAX_DECK_RATES = 600_000
const MAX_REPORTED_PROBLEMS = 100
/** Then the rest of the deck is not read. */
const MAX_WRONG_LINES = 10_000
const LINES_OF_PROGRESS = 10_000

/**
 * Throws 400 with the first hundred problems, each with its line.
 *
 * @param pause gives other work a turn.
 * @param progress learns how many lines are read.
 */
export async function readDeck(
  table: Uint8Array,
  options: DeckOptions,
  pause: () => Promise<unknown>,
  progress: (lines: number) => void = () => undefined,
): Promise<ReadDeck> {
  const { mapping } = options
  const rates = new PackedRates()
  const problems = new Problems()
  let lines = 0
  let skipped = 0
  let reader: LineReader | undefined
  const skip = new Set(mapping.skip_lines)
  try {
    const finder = new HeaderFinder(mapping)
    for await (const records of deckLines(table, mapping, pause))
      for (const record of records) {
        if (reader === undefined) {
          const found = finder.find(record)
          if (found === undefined) continue
          reader = new LineReader(found, options)
          if (found.isHeader) continue
        }
        if (skip.has(record.line)) {
          skipped += 1
          continue
        }
        lines += 1
        const read = reader.read(record)
        if (read.kind === 'problems') problems.add(read.problems)
        else for (const rate of read.rates) rates.push(rate)
        if (rates.length > MAX_DECK_RATES)
          throw badRequest(`The deck has more than ${MAX_DECK_RATES} prefixes`)
        if (problems.lines > MAX_WRONG_LINES)
          throw badRequest(`More than ${MAX_WRONG_LINES} lines are not valid`, problems.found)
        if (lines % LINES_OF_PROGRESS === 0) progress(lines)
      }
    if (reader === undefined) throw finder.missing()
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error
    if (error.line === undefined) throw badRequest(error.message)
    problems.add([{ path: `lines.${error.line}`, message: error.message }])
  }
  const repeated = rates.end((first, twin) => {
    if (isSameTerms(first.terms, twin.terms)) return
    const words = `repeats ${quoted(twin.prefix)} of line ${first.line} with other terms`
    problems.add([{ path: `lines.${twin.line}.prefix`, message: words }])
  })
  problems.throwIfAny()
  if (rates.length === 0) throw badRequest('The deck has no lines')
  const { rounded, expanded } = reader ?? { rounded: 0, expanded: 0 }
  return { rates, lines, repeated, rounded, expanded, skipped }
}

class Problems {
  readonly found: RequestProblem[] = []
  lines = 0

  add(problems: readonly RequestProblem[]): void {
    this.lines += 1
    this.found.push(...problems.slice(0, MAX_REPORTED_PROBLEMS - this.found.length))
  }

  throwIfAny(): void {
    if (this.lines === 0) return
    const words = this.lines === 1 ? '1 line is not valid' : `${this.lines} lines are not valid`
    throw badRequest(words, this.found)
  }
}

export interface FoundColumns {
  readonly indexes: ColumnIndexes
  /** Cells of a line. */
  readonly width: number
  /** The line itself is no rate. */
  readonly isHeader: boolean
}

/** Finds the header, or that there is none. */
export class HeaderFinder {
  readonly #mapping: DeckMapping
  #seen = 0
  /** The headers that the most likely line lacks. */
  #nearest: { readonly line: number; readonly headers: readonly string[] } | undefined

  constructor(mapping: DeckMapping) {
    this.#mapping = mapping
  }

  /** Undefined: the line stands above the header. */
  find({ line, cells }: CsvRecord): FoundColumns | undefined {
    const { header_line: wanted } = this.#mapping
    if (wanted !== undefined && line < wanted) return undefined
    this.#seen += 1
    const found = findColumns(this.#mapping, cells)
    if (found.kind === 'header')
      return { indexes: found.indexes, width: cells.length, isHeader: wanted !== 0 }
    if (found.kind === 'twice')
      throw badRequest('The header of the deck is not valid', [
        {
          path: `lines.${line}`,
          message:
            `has the header ${quoted(found.headers[0] ?? '')} twice: name the column by its ` +
            'number',
        },
      ])
    if (this.#nearest === undefined || found.headers.length < this.#nearest.headers.length)
      this.#nearest = { line, headers: found.headers }
    if (wanted !== undefined || this.#seen >= MAX_LINES_ABOVE) throw this.missing()
    return undefined
  }

  missing(): Error {
    const { line = 1, headers = [] } = this.#nearest ?? {}
    return badRequest('The header of the deck was not found', [
      {
        path: `lines.${line}`,
        message: `has no column ${headers.map(quoted).join(', ') || 'at all'}`,
      },
    ])
  }
}

type ReadLine =
  | { readonly kind: 'rates'; readonly rates: readonly DeckRate[] }
  | { readonly kind: 'problems'; readonly problems: readonly RequestProblem[] }

type ReadTerms = DeckTerms | RequestProblem[]

const MAX_CELL_LENGTH = 4_000
const MAX_DESCRIPTION = 200
/** Terms, and descriptions, in memory at once. */
const MAX_KEPT = 20_000

const termColumns = [
  'rate_per_minute',
  'connect_fee',
  'first_increment',
  'first_rate_per_minute',
  'increment',
  'increments',
  'blocked',
  'period',
  'effective_from',
  'effective_to',
] as const satisfies readonly DeckColumn[]

export class LineReader {
  readonly #columns: FoundColumns
  readonly #options: DeckOptions
  readonly #terms = new Map<string, { readonly terms: DeckTerms; readonly rounded: number }>()
  readonly #descriptions = new Map<string, string>()
  readonly #termCells: readonly number[]
  /** The last cell that a line needs. */
  readonly #last: number
  #roundedOfLine = 0
  rounded = 0
  expanded = 0

  constructor(columns: FoundColumns, options: DeckOptions) {
    this.#columns = columns
    this.#options = options
    this.#last = Math.max(...Object.values(columns.indexes))
    this.#termCells = termColumns.flatMap((name) => columns.indexes[name] ?? [])
  }

  read({ line, cells }: CsvRecord): ReadLine {
    const path = `lines.${line}`
    const problems = this.#shapeProblems(cells, path)
    if (problems !== undefined) return { kind: 'problems', problems }
    const terms = this.#termsOf(cells, path)
    const read = readPrefixes(
      this.#cell(cells, 'prefix') || this.#cell(cells, 'area_code'),
      this.#cell(cells, 'country_code'),
      this.#options.mapping,
    )
    const wrong = Array.isArray(terms) ? terms : []
    const column = this.#columns.indexes.prefix === undefined ? 'area_code' : 'prefix'
    const refuse = (message: string): ReadLine => ({
      kind: 'problems',
      problems: [{ path: `${path}.${column}`, message }, ...wrong],
    })
    if (read.kind === 'problem') return refuse(read.message)
    if (read.kind === 'empty' && !this.#options.allowsDefault) return refuse(emptyPrefix)
    if (Array.isArray(terms)) return { kind: 'problems', problems: terms }
    const prefixes = read.kind === 'empty' ? [''] : read.prefixes
    const description = this.#description(cells)
    this.rounded += this.#roundedOfLine
    this.expanded += prefixes.length - 1
    return {
      kind: 'rates',
      rates: prefixes.map((prefix) => ({ prefix, description, terms, line })),
    }
  }

  #shapeProblems(cells: readonly string[], path: string): readonly RequestProblem[] | undefined {
    if (cells.some((cell) => cell.length > MAX_CELL_LENGTH))
      return [{ path, message: `has a cell of more than ${MAX_CELL_LENGTH} characters` }]
    const total = cells.find(isTotal)
    if (total !== undefined)
      return [
        {
          path,
          message:
            `is a line of totals or averages (${quoted(total)}), not a rate: remove it, or name ` +
            'it in skip_lines',
        },
      ]
    const { width } = this.#columns
    const isShort = cells.length <= this.#last
    const isLong = cells.length > width && cells.slice(width).some((cell) => cell !== '')
    if (isShort || isLong)
      return [
        {
          path,
          message:
            `has ${cells.length} cells, the header has ${width}: a separator inside of a cell ` +
            'needs quotation marks; a line that is no rate is named in skip_lines',
        },
      ]
    return undefined
  }

  #cell(cells: readonly string[], name: DeckColumn): string {
    const index = this.#columns.indexes[name]
    return index === undefined ? '' : (cells[index] ?? '').trim()
  }

  #description(cells: readonly string[]): string | null {
    const cell = this.#cell(cells, 'description')
    const known = this.#descriptions.get(cell)
    if (known !== undefined) return known
    const text = cell
      .replaceAll(controls, ' ')
      .slice(0, MAX_DESCRIPTION)
      .replace(cutCharacter, '')
      // The databases cannot keep half of a character.
      .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    if (text === '') return null
    if (this.#descriptions.size < MAX_KEPT) this.#descriptions.set(cell, text)
    return text
  }

  /** Equal cells are read once. */
  #termsOf(cells: readonly string[], path: string): ReadTerms {
    // No cell contains NUL: such a deck is refused.
    let key = ''
    for (const index of this.#termCells) key += `${cells[index] ?? ''}\0`
    const known = this.#terms.get(key)
    if (known !== undefined) {
      this.#roundedOfLine = known.rounded
      return known.terms
    }
    const read = new TermsReader(this.#options, (name) => this.#cell(cells, name), path)
    const terms = read.terms()
    this.#roundedOfLine = read.rounded
    if (!Array.isArray(terms) && this.#terms.size < MAX_KEPT)
      this.#terms.set(key, { terms, rounded: read.rounded })
    return terms
  }
}

/** Descriptions are shown in logs, and are in no header; control characters are not stored. */
// eslint-disable-next-line no-control-regex -- these are what is replaced
const controls = /[\u0000-\u001f\u007f\u2028\u2029]/g

const cutCharacter = /[\ud800-\udbff]$/

const emptyPrefix =
  'is empty: the rate would price every number. Remove the line, name it in skip_lines, or ' +
  'import with allow_default=true'

const totals: ReadonlySet<string> = new Set([
  ...['total', 'totals', 'grand total', 'subtotal', 'sub-total', 'sum', 'average', 'averages'],
  ...['avg', 'avg.', 'mean', 'median', 'average rate', 'total average', 'weighted average'],
  ...['summe', 'gesamt', 'gesamtsumme', 'durchschnitt', 'mittelwert', 'moyenne', 'somme'],
  ...['promedio', 'suma', 'media', 'totale', 'média', 'gemiddelde', 'итого', 'среднее'],
])

const MAX_TOTAL_LENGTH = 20

const isTotal = (cell: string): boolean =>
  cell.length >= 3 &&
  cell.length <= MAX_TOTAL_LENGTH &&
  // A letter: most cells begin with a digit.
  cell.charCodeAt(0) > 64 &&
  totals.has(cell.replace(/\s*[:=]$/, '').toLowerCase())

/** Reads the terms of one line. */
class TermsReader {
  readonly #options: DeckOptions
  readonly #cell: (name: DeckColumn) => string
  readonly #path: string
  readonly #problems: RequestProblem[] = []
  rounded = 0

  constructor(options: DeckOptions, cell: (name: DeckColumn) => string, path: string) {
    this.#options = options
    this.#cell = cell
    this.#path = path
  }

  terms(): ReadTerms {
    const isBlocked = this.#flag()
    const price = this.#price('rate_per_minute', isBlocked ? 0 : undefined)
    const [first, next] = this.#increments()
    const from = this.#date('effective_from') ?? this.#startOfDeck()
    const to = this.#date('effective_to')
    if (from !== null && to !== null && to <= from)
      this.#wrong('effective_to', 'must be later than effective_from')
    const terms: DeckTerms = {
      rate_per_minute_micros: price,
      connect_fee_micros: this.#price('connect_fee', 0),
      is_blocked: isBlocked ? 1 : 0,
      period: this.#period(),
      first_increment_seconds: first,
      first_rate_per_minute_micros: this.#price('first_rate_per_minute', price),
      increment_seconds: next,
      effective_from_at: from,
      effective_to_at: to,
    }
    return this.#problems.length > 0 ? this.#problems : terms
  }

  #wrong(column: DeckColumn, message: string): void {
    this.#problems.push({ path: `${this.#path}.${column}`, message })
  }

  #flag(): boolean {
    const read = readFlag(this.#cell('blocked'))
    if (read === undefined) this.#wrong('blocked', 'must be yes or no')
    return read ?? false
  }

  #price(
    column: 'rate_per_minute' | 'connect_fee' | 'first_rate_per_minute',
    absent?: number,
  ): number {
    const cell = this.#cell(column)
    if (cell === '' && absent !== undefined) return absent
    const { mapping, currency } = this.#options
    const read = readPrice(cell, { ...mapping, currency })
    if (read.kind === 'price') {
      if (read.isRounded) this.rounded += 1
      return read.micros
    }
    this.#wrong(column, read.message)
    return 0
  }

  #increments(): readonly [first: number, next: number] {
    const both = this.#cell('increments')
    if (both !== '') {
      const read = readIncrements(both)
      if (typeof read !== 'string') return read
      this.#wrong('increments', read)
    }
    return [this.#seconds('first_increment', 0, 0), this.#seconds('increment', 1, 1)]
  }

  #seconds(column: 'first_increment' | 'increment', least: number, absent: number): number {
    const cell = this.#cell(column)
    if (cell === '') return absent
    const read = readSeconds(cell, least)
    if (typeof read === 'number') return read
    this.#wrong(column, read)
    return absent
  }

  /** A cell may have capitals. */
  #period(): string | null {
    const cell = this.#cell('period').toLowerCase()
    if (cell === '') return null
    const problem = unknownPeriod(cell, this.#options.periods)
    if (problem !== undefined) this.#wrong('period', problem)
    return cell
  }

  #startOfDeck(): number | null {
    const { effective_from: from } = this.#options.mapping
    const read = from === undefined ? undefined : readDate(from, this.#dateRules)
    return typeof read === 'number' ? read : null
  }

  get #dateRules(): DateRules {
    const { mapping, zone } = this.#options
    return { date_format: mapping.date_format, time_zone: mapping.time_zone ?? zone }
  }

  #date(column: 'effective_from' | 'effective_to'): number | null {
    const cell = this.#cell(column)
    if (cell === '') return null
    const read = readDate(cell, this.#dateRules)
    if (typeof read === 'number') return read
    this.#wrong(column, read)
    return null
  }
}
