/** Which cell of a line is which column, and a proposal for a deck that nobody has mapped yet. */
import type { CsvRecord } from '../csv-records.ts'
import {
  type DeckColumn,
  deckColumns,
  type DeckMapping,
  type WrittenMapping,
} from './deck-mapping.ts'

export type ColumnIndexes = Readonly<Partial<Record<DeckColumn, number>>>

/** Lines above the header, such as a title and the date. */
export const MAX_LINES_ABOVE = 100

export type FoundHeader =
  | { readonly kind: 'header'; readonly indexes: ColumnIndexes }
  /** The headers that the line lacks. */
  | { readonly kind: 'missing'; readonly headers: readonly string[] }
  | { readonly kind: 'twice'; readonly headers: readonly string[] }

const plain = (header: string): string => header.trim().replaceAll(/\s+/g, ' ').toLowerCase()

/** Finds the columns that the mapping names in a line that may be the header. */
export function findColumns({ columns }: DeckMapping, cells: readonly string[]): FoundHeader {
  const headers = cells.map(plain)
  const indexes: Partial<Record<DeckColumn, number>> = {}
  const missing: string[] = []
  const twice: string[] = []
  for (const name of deckColumns) {
    const reference = columns[name]
    if (reference === undefined) continue
    const index = typeof reference === 'number' ? reference - 1 : headers.indexOf(plain(reference))
    if (index === -1) missing.push(String(reference))
    else if (typeof reference === 'string' && headers.lastIndexOf(plain(reference)) !== index)
      twice.push(reference)
    indexes[name] = index
  }
  if (missing.length > 0) return { kind: 'missing', headers: missing }
  return twice.length > 0 ? { kind: 'twice', headers: twice } : { kind: 'header', indexes }
}

/** Headers by which carriers name columns; the first that a deck has is proposed. */
const knownHeaders: Readonly<Record<DeckColumn, RegExp>> = {
  prefix:
    /^(?:prefix(?:es)?|dial(?:ing|ling)? ?codes?|codes?|dialcode|dial ?prefix|destination ?codes?|digits?|vorwahl(?:en)?|pr[eé]fixe?s?|prefijos?|c[oó]digos?|npanxx|npa-?nxx|breakouts?)$/,
  country_code:
    /^(?:country ?(?:dial(?:ing)? )?codes?|cc|country prefix|l[aä]ndervorwahl|country no)$/,
  area_code:
    /^(?:area ?codes?|city ?codes?|ac|ndc|national ?codes?|area|ortsvorwahl|local codes?|area prefix)$/,
  description:
    /^(?:description|destinations?(?: name)?|names?|country(?: name)?|zone|ziel|beschreibung|zielland|destino|pays|location|region|operator|destinazione)$/,
  rate_per_minute:
    /^(?:rates?(?:[ /_]?(?:per)?[ /_]?min(?:ute)?)?|rate_per_minute|prices?(?:[ /_]?(?:per)?[ /_]?min(?:ute)?)?|cost|tarif|tarifa|preis(?:[ /]?min(?:ute)?)?|prix(?:[ /]min)?|new rate|current rate|voice rate|inter(?:state)?(?: rate)?|(?:rate|price|preis|prix|tarifa) ?\(.*\)|.*\b(?:usd|eur|gbp) ?(?:\/|per) ?min.*|precio(?:[ /]min)?)$/,
  connect_fee:
    /^(?:connect(?:ion)?[ _]?(?:fee|charge)|setup(?: fee)?|set-up|surcharge|verbindungsgeb[uü]hr)$/,
  first_increment:
    /^(?:first_increment|(?:first|initial|min(?:imum)?)[ _](?:increment|interval|period|charge|duration)|interval ?1|min(?:imum)? ?(?:sec(?:s|onds)?|time)|1st (?:increment|interval)|initial)$/,
  first_rate_per_minute:
    /^(?:first_rate_per_minute|price ?1|initial (?:rate|price)|1st (?:rate|price))$/,
  increment:
    /^(?:increment|interval ?n|(?:next|further|additional|subsequent|add'l)[ _]?(?:increment|interval|period)|(?:billing )?step|2nd (?:increment|interval)|additional)$/,
  increments:
    /^(?:increments|billing(?:[ _]increments?)?|billing[ _](?:terms?|intervals?)|billed|pulse|min\/inc|rounding|taktung|incr\.?|facturaci[oó]n)$/,
  blocked: /^(?:blocked|blocking|barred|locked|gesperrt)$/,
  period: /^(?:period|time ?period|time ?band|time ?of ?day|peak|tariff ?period|zeitfenster)$/,
  effective_from:
    /^(?:effective_from|effective(?: date| from)?|valid[ _]from|start(?: date)?|date effective|g[uü]ltig ab|activation(?: date)?|from|date(?: d'effet)?|fecha(?: efectiva)?|begin)$/,
  effective_to:
    /^(?:effective_to|valid[ _](?:to|until)|end(?: date)?|expir(?:y|es|ation)(?: date)?|g[uü]ltig bis|until|to)$/,
}

/** Cells of a price with a decimal comma, and with a decimal point. */
const commaPrice = /^\D{0,4}\d*,\d{2,8}\D{0,4}$/
const pointPrice = /^\D{0,4}\d*\.\d{2,8}\D{0,4}$/

/**
 * A mapping for a deck whose header has known names. Undefined: no line of the first has a prefix
 * and a price. It is shown to a person, who decides.
 */
export function proposedMapping(
  records: readonly CsvRecord[],
): (WrittenMapping & { readonly header_line: number }) | undefined {
  for (const [at, { line, cells }] of records.entries()) {
    const headers = cells.map(plain)
    const columns: Partial<Record<DeckColumn, string | number>> = {}
    const taken = new Set<number>()
    for (const name of deckColumns) {
      const index = headers.findIndex(
        (header, position) => !taken.has(position) && knownHeaders[name].test(header),
      )
      if (index === -1) continue
      taken.add(index)
      const header = cells[index]?.trim() ?? ''
      columns[name] =
        headers.filter((each) => each === headers[index]).length > 1 ? index + 1 : header
    }
    const found = withOnePrefix(columns)
    if (found === undefined) continue
    const body = records.slice(at + 1)
    const proposed = withPairs(found, cellsBelow(headers, body))
    const signs = signsOf(proposed, cellsBelow(headers, body))
    return { columns: proposed, header_line: line, ...signs }
  }
  return undefined
}

type Columns = WrittenMapping['columns']

/** A column of codes is that of area codes when the country code has one, too. */
function withOnePrefix(columns: Partial<Record<DeckColumn, string | number>>): Columns | undefined {
  const { prefix, country_code, area_code, rate_per_minute, increments, ...others } = columns
  if (rate_per_minute === undefined) return undefined
  const start = prefix === undefined ? { country_code, area_code } : { prefix }
  if (prefix === undefined && area_code === undefined) return undefined
  const isTwice = others.increment !== undefined || others.first_increment !== undefined
  const proposed = { ...start, rate_per_minute, ...others, ...(!isTwice && { increments }) }
  return Object.fromEntries(
    Object.entries(proposed).filter(([, value]) => value !== undefined),
  ) as Columns
}

/** The cells of a column that are not empty. */
type CellsOf = (reference: string | number | undefined) => readonly string[]

const cellsBelow =
  (headers: readonly string[], body: readonly CsvRecord[]): CellsOf =>
  (reference) => {
    const index =
      typeof reference === 'number' ? reference - 1 : headers.indexOf(plain(reference ?? ''))
    return body.map(({ cells }) => cells[index]?.trim() ?? '').filter((cell) => cell !== '')
  }

/** A column of increments may have both in one cell, such as `30/6`. */
function withPairs(columns: Columns, cellsOf: CellsOf): Columns {
  const { increment, first_increment, ...others } = columns
  if (increment !== undefined && first_increment !== undefined) return columns
  const only = increment ?? first_increment
  const isPair = cellsOf(only).some((cell) => /^\d+\s*[/+:-]\s*\d+$/.test(cell))
  return only !== undefined && isPair ? { ...others, increments: only } : columns
}

function signsOf(
  { rate_per_minute: price, effective_from: start }: Columns,
  cellsOf: CellsOf,
): Pick<WrittenMapping, 'decimal' | 'date_format'> {
  const prices = cellsOf(price)
  const isComma =
    prices.some((cell) => commaPrice.test(cell)) && !prices.some((cell) => pointPrice.test(cell))
  const format = start === undefined ? undefined : dateFormatOf(cellsOf(start))
  return { ...(isComma && { decimal: ',' }), ...(format !== undefined && { date_format: format }) }
}

const dateFormats: readonly (readonly [pattern: RegExp, format: string])[] = [
  [/^\d{4}-\d\d-\d\d(?:[T ].*)?$/, ''],
  [/^\d{1,2}\.\d{1,2}\.\d{4}$/, 'D.M.YYYY'],
  [/^\d{1,2}-[A-Za-z]{3}-\d{4}$/, 'D-MMM-YYYY'],
  [/^\d{1,2}-[A-Za-z]{3}-\d{2}$/, 'D-MMM-YY'],
  [/^\d{1,2} [A-Za-z]{3,9} \d{4}$/, 'D MMM YYYY'],
  [/^\d{8}$/, 'YYYYMMDD'],
  [/^\d{4}\/\d{1,2}\/\d{1,2}$/, 'YYYY/M/D'],
]

/** `01/02/2026` has two readings: it is proposed only where a day is above 12. */
function dateFormatOf(cells: readonly string[]): string | undefined {
  for (const [pattern, format] of dateFormats)
    if (cells.length > 0 && cells.every((cell) => pattern.test(cell)))
      return format === '' ? undefined : format
  const parts = cells.map((cell) => /^(\d{1,2})\/(\d{1,2})\/\d{4}$/.exec(cell))
  if (parts.length === 0 || parts.includes(null)) return undefined
  if (parts.some((match) => Number(match?.[1]) > 12)) return 'D/M/YYYY'
  return parts.some((match) => Number(match?.[2]) > 12) ? 'M/D/YYYY' : undefined
}
