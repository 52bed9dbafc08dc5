/**
 * Some thousand call records by columns: what filters, orders and totals need of them. A search
 * reads the columns that it names, instead of whole records. Texts that repeat are numbers of a
 * list that the block has.
 */
import type { SelectQueryBuilder } from 'kysely'
import type { Database } from '../../../schema/tables/database.ts'
import { callIdStart } from './call-id-start.ts'
import { type ColumnHead, decodeColumn, encodeColumn } from './column-codec.ts'
import { codeOfNumber } from './number-code.ts'
import { textHash } from './text-hash.ts'

/** Records of a block: the longest piece of work without a pause reads so many. */
export const BLOCK = 8_192

const numberColumns = [
  'id',
  'start_stamp',
  'end_stamp',
  'duration',
  'billsec',
  'cost_micros',
  'carrier_cost_micros',
  'mos_score',
  'post_dial_delay_ms',
  'sip_code',
  'set_id',
  'customer_id',
  'tenant_id',
  'carrier_tenant_id',
] as const
const wordColumns = [
  'disposition',
  'direction',
  'hangup_cause',
  'denial_code',
  'currency',
  'carrier_currency',
  'carrier',
  'node',
  'instance',
  'verification',
  'attestation',
] as const
const phoneColumns = ['caller_id_number', 'destination_number'] as const

export type NumberColumn = (typeof numberColumns)[number]
export type WordColumn = (typeof wordColumns)[number]
export type PhoneColumn = (typeof phoneColumns)[number]
/** Hashes: of the whole Call-ID, and of its beginning. */
export type CallIdColumn = 'call_id' | 'call_id_start'
/** Tags have as many rows and hashes as the block has tags. */
export type BlockColumn =
  NumberColumn | WordColumn | PhoneColumn | CallIdColumn | 'tag_row' | 'tag_hash'

/** The last one that was added: blocks of earlier versions lack it. */
export const newestColumn: BlockColumn = 'call_id_start'

const readColumns = [...numberColumns, ...wordColumns, ...phoneColumns, 'call_id', 'tags'] as const
type Value = string | number | null
export type BlockRow = readonly Value[]

/** Selects the rows of a block. */
export const selectBlockRows = (query: SelectQueryBuilder<Database, 'cdr', object>) =>
  query.select(readColumns.map((column) => `cdr.${column}` as const))

export interface BlockHead {
  readonly count: number
  readonly tags: number
  readonly columns: Readonly<Record<string, ColumnHead>>
  /** Texts by their code; of numbers: those without a code, which have -1, -2 … */
  readonly words: Readonly<Record<string, readonly string[]>>
}

export interface RecordBlock {
  readonly head: BlockHead
  /** Columns that are not the same throughout. */
  readonly bytes: ReadonlyMap<string, Buffer>
}

export function blockOf(rows: readonly BlockRow[]): RecordBlock {
  const columns: Record<string, ColumnHead> = {}
  const words: Record<string, readonly string[]> = {}
  const bytes = new Map<string, Buffer>()
  const keep = (name: BlockColumn, values: Float64Array) => {
    const encoded = encodeColumn(values)
    columns[name] = encoded.head
    if (encoded.head.width > 0) bytes.set(name, encoded.bytes)
  }
  const valuesOf = (index: number, toNumber: (value: Value) => number) =>
    Float64Array.from(rows, (row) => toNumber(row[index] ?? null))
  let index = 0
  for (const name of numberColumns) keep(name, valuesOf(index++, numberOrNone))
  for (const name of wordColumns) {
    const list = new WordList()
    keep(
      name,
      valuesOf(index++, (text) => (text === null ? NaN : list.codeOf(String(text)))),
    )
    words[name] = list.words
  }
  for (const name of phoneColumns) {
    const list = new WordList()
    keep(
      name,
      valuesOf(index++, (text) => codeOfNumber(String(text)) ?? -1 - list.codeOf(String(text))),
    )
    words[name] = list.words
  }
  keep(
    'call_id',
    valuesOf(index, (text) => textHash(String(text))),
  )
  keep(
    'call_id_start',
    valuesOf(index++, (text) => callIdStart(String(text)) ?? NaN),
  )
  const tags = rows.flatMap((row, at) =>
    tagsOf(row[index] ?? null).map((tag) => [at, textHash(tag)] as const),
  )
  keep(
    'tag_row',
    Float64Array.from(tags, ([row]) => row),
  )
  keep(
    'tag_hash',
    Float64Array.from(tags, ([, hash]) => hash),
  )
  return { head: { count: rows.length, tags: tags.length, columns, words }, bytes }
}

const numberOrNone = (value: Value): number => (value === null ? NaN : Number(value))

/** As a filter names a tag: without regard to case. */
export const tagText = (name: string, value: string): string => `${name}\n${value}`.toLowerCase()

/** Only `insertCallRecord` writes tags. */
const tagsOf = (json: Value): readonly string[] =>
  json === null
    ? []
    : Object.entries(JSON.parse(String(json)) as Record<string, string>).map(([name, value]) =>
        tagText(name, value),
      )

class WordList {
  readonly words: string[] = []
  readonly #codes = new Map<string, number>()

  codeOf(word: string): number {
    const known = this.#codes.get(word)
    if (known !== undefined) return known
    const code = this.words.length
    this.#codes.set(word, code)
    this.words.push(word)
    return code
  }
}

/** With less than one row of so many, its numbers are read one by one. */
const FEW = 4

/** The columns of one block at a time as numbers: the next block overwrites them. */
export class BlockNumbers {
  readonly #arrays = new Map<string, Float64Array>()
  readonly #known = new Set<string>()
  #block: RecordBlock | undefined
  #rows: Int32Array | undefined

  /** @param rows no others are looked at. */
  show(block: RecordBlock, rows?: Int32Array): void {
    this.#block = block
    this.#rows = rows !== undefined && rows.length * FEW < block.head.count ? rows : undefined
    this.#known.clear()
  }

  of(name: BlockColumn): Float64Array {
    const { head, bytes } = this.#block ?? none
    const count = name === 'tag_row' || name === 'tag_hash' ? head.tags : head.count
    let array = this.#arrays.get(name)
    if (array === undefined || array.length < count) {
      array = new Float64Array(Math.max(count, BLOCK))
      this.#arrays.set(name, array)
      this.#known.delete(name)
    }
    const column = head.columns[name]
    if (column !== undefined && !this.#known.has(name)) {
      this.#known.add(name)
      decodeColumn(column, bytes.get(name), { count, rows: this.#rows }, array)
    }
    return array
  }
}

const none: RecordBlock = { head: { count: 0, tags: 0, columns: {}, words: {} }, bytes: new Map() }
