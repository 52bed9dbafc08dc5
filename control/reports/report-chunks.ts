/**
 * A report as bytes, produced in pieces on demand. Each piece takes a few milliseconds, so that
 * other work can run between them.
 */
import { serialize } from 'node:v8'
import type { SqlValue } from '../../schema/sql/statements.ts'
import { offsetOf, type RequestedPage } from '../http/envelope.ts'
import { carrierSums } from './carrier-sums.ts'
import { at, CdrStore, type CdrValues, type RefusedTotals } from './cdr-store.ts'
import type { RowPosition } from './columns/best-rows.ts'
import { findCalls, type TextSearch } from './columns/find-calls.ts'
import {
  findRecords,
  type FindRequest,
  type FoundRecords,
  type MissingRecords,
  type RecordSort,
} from './columns/find-records.ts'
import { matchingIds } from './columns/record-stream.ts'
import type { RecordScope } from './columns/record-tests.ts'
import { cursorAfter } from './record-cursor.ts'
import { CdrText, csvHeader } from './cdr-text.ts'
import type { CallSources } from './call-filters.ts'
import { margins, type MarginRequest } from './margins.ts'
import { inParts, readAhead } from './read-ahead.ts'
import { rollUp, type RollUpRequest } from './roll-up.ts'
import { search, type SearchRequest } from './search.ts'
import type { SummaryRequest } from './summarize.ts'
import { summaryOf } from './summary.ts'
import { unusualCalls, type UnusualRequest } from './unusual-calls.ts'

export interface ReportRequest {
  readonly filter: RecordScope
  /** `carriers`: the sums of carriers, as JSON; it heeds tenant and period alone. */
  readonly format: 'json' | 'csv' | 'ndjson' | 'carriers'
  /** Lines are in the order of starts. */
  readonly sort: RecordSort
  /** Only JSON has pages; undefined for the first `MAX_RECORDS`. */
  readonly page: PageRequest | undefined
  /** False: totals are not counted. */
  readonly withTotals: boolean
  /** IANA name: the times of a CSV are those of its clock; absent: UTC. */
  readonly zone?: string | undefined
}

/** A numbered page, or the one after a record. */
export type PageRequest =
  RequestedPage | { readonly after: RowPosition | undefined; readonly limit: number }

/** Answered with one JSON text. */
type SumsRequest =
  | { readonly format: 'summary'; readonly summary: SummaryRequest }
  | { readonly format: 'margins'; readonly margins: MarginRequest }
  | { readonly format: 'search'; readonly search: SearchRequest }
  | { readonly format: 'find'; readonly find: FindRequest }
  | { readonly format: 'calls'; readonly calls: TextSearch }
  | { readonly format: 'unusual'; readonly unusual: UnusualRequest }
  | { readonly format: 'roll-up'; readonly rollUp: RollUpRequest }

/** One statement that reads. */
export interface RowsRequest {
  readonly sql: string
  readonly values: readonly SqlValue[]
  readonly how: 'all' | 'get' | 'arrays'
}

export type ThreadRequest =
  ReportRequest | SumsRequest | { readonly format: 'rows'; readonly rows: RowsRequest }

/** Produces reports. */
export interface ReportMaker {
  /** The pieces in order. Call `return` when no more are needed. */
  open(request: ThreadRequest): AsyncGenerator<Uint8Array, void>
  stop(): Promise<void>
}

type Bytes = Uint8Array<ArrayBuffer>

/** Maximum records in JSON without `page` and `limit` (SPECIFICATION.md §4.1). */
const MAX_RECORDS = 10_000
/** Records per piece: about 4 ms, 0.4 MB. */
const SLICE = 500

const nothing: Bytes = new Uint8Array(0)

/** An empty piece: nothing to send yet. */
export async function* reportChunks(
  sources: CallSources,
  request: ThreadRequest,
): AsyncGenerator<Bytes, void, undefined> {
  const { store } = sources
  if (request.format === 'summary') return yield* whole(summaryOf(sources, request.summary))
  if (request.format === 'margins') return yield* whole(margins(sources, request.margins))
  if (request.format === 'search') return yield* whole(search(sources, request.search))
  if (request.format === 'find') return yield* whole(findRecords(sources, request.find))
  if (request.format === 'calls') return yield* whole(findCalls(sources, request.calls))
  if (request.format === 'unusual') return yield* whole(unusualCalls(sources, request.unusual))
  if (request.format === 'roll-up') return yield* whole(rollUp(sources, request.rollUp))
  if (request.format === 'rows') return yield await rowsOf(sources, request.rows)
  if (request.format === 'carriers') return yield* whole(dataOf(carrierSums(store, request.filter)))
  if (request.format === 'json') return yield* jsonChunks(sources, request)
  yield* lineChunks(sources, request, request.format)
}

/** Records as text, with the names of their customers. */
class RecordTexts {
  readonly #cdrs: CdrStore
  readonly #names = new Map<number, string>()
  readonly #asked = new Set<number>()
  readonly text: CdrText

  private constructor(cdrs: CdrStore, slugs: ReadonlyMap<number, string>, zone?: string) {
    this.#cdrs = cdrs
    this.text = new CdrText(slugs, this.#names, zone)
  }

  static async open(cdrs: CdrStore, zone?: string): Promise<RecordTexts> {
    return new RecordTexts(cdrs, await cdrs.slugs(), zone)
  }

  async rows(ids: readonly number[]): Promise<readonly CdrValues[]> {
    const rows = await this.#cdrs.rows(ids)
    const missing = new Set<number>()
    for (const { [at.customer_id]: id } of rows)
      if (id !== null && !this.#asked.has(id)) missing.add(id)
    for (const id of missing) this.#asked.add(id)
    for (const [id, name] of await this.#cdrs.customerNames([...missing])) this.#names.set(id, name)
    return rows
  }
}

/** The whole filter, a record in each line. */
async function* lineChunks(
  sources: CallSources,
  { filter, sort, zone }: ReportRequest,
  format: 'csv' | 'ndjson',
): AsyncGenerator<Bytes, void, undefined> {
  const texts = await RecordTexts.open(
    new CdrStore(sources.store, filter.tenantId),
    format === 'csv' ? zone : undefined,
  )
  const { text } = texts
  const { isShared } = sources.store.statements
  const line =
    format === 'csv' ? (row: CdrValues) => text.csv(row) : (row: CdrValues) => `${text.json(row)}\n`
  const writer = new ByteWriter()
  if (format === 'csv') writer.add(csvHeader)
  for await (const ids of matchingIds(sources, filter, sort.isDescending)) {
    if (ids === undefined) {
      yield nothing
      continue
    }
    const read = (some: readonly number[]) => texts.rows(some)
    for await (const rows of readAhead(inParts(ids, SLICE), read, isShared)) {
      for (const row of rows) writer.add(line(row))
      yield writer.take()
    }
  }
  // An empty report has a header too.
  yield writer.take()
}

/** The values as `v8` serializes them: JSON has no bytes. */
async function rowsOf({ store }: CallSources, { sql, values, how }: RowsRequest): Promise<Bytes> {
  const statement = store.statements.prepare<unknown>(sql)
  return Uint8Array.from(serialize(await statement[how](values)))
}

/** The result of `work`, as JSON. */
async function* whole(
  work: AsyncGenerator<void, unknown, undefined>,
): AsyncGenerator<Bytes, void, undefined> {
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) yield nothing
  const writer = new ByteWriter()
  writer.add(JSON.stringify(step.value))
  yield writer.take()
}

async function* dataOf<T>(
  work: AsyncGenerator<void, T, undefined>,
): AsyncGenerator<void, { readonly success: true; readonly data: T }, undefined> {
  return { success: true, data: yield* work }
}

/** Totals come before the records are read, and are written after them. */
async function* jsonChunks(
  sources: CallSources,
  request: ReportRequest,
): AsyncGenerator<Bytes, void, undefined> {
  const { filter, sort, page, withTotals } = request
  const limit = page?.limit ?? MAX_RECORDS
  const isNumbered = page !== undefined && 'page' in page
  const work = findRecords(sources, {
    scope: filter,
    sort,
    offset: isNumbered ? offsetOf(page) : 0,
    after: page === undefined || isNumbered ? undefined : page.after,
    limit,
    withTotals,
  })
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) yield nothing
  const found = step.value
  const cdrs = new CdrStore(sources.store, filter.tenantId)
  const texts = await RecordTexts.open(cdrs)
  const writer = new ByteWriter()
  const ids = found.rows.map(({ id }) => id)
  let shown = 0
  writer.add('{"records":[')
  for (let from = 0; from < ids.length; from += SLICE) {
    for (const row of await texts.rows(ids.slice(from, from + SLICE)))
      writer.add(shown++ === 0 ? texts.text.json(row) : `,${texts.text.json(row)}`)
    yield writer.take()
  }
  writer.add(`],${endOf(found, request, await cdrs.refused(filter))}`)
  yield writer.take()
}

/** The rest of the object. */
function endOf(
  { rows, hasMore, totals, isComplete, missing }: FoundRecords,
  { page, sort }: ReportRequest,
  refused: RefusedTotals | undefined,
): string {
  const last = rows.at(-1)
  const end = {
    ...(totals && { total_calls: totals.calls, total_billsec: totals.billsec, totals }),
    complete: isComplete,
    ...(missing && { missing: { ...missing, text: textOfMissing(missing) } }),
    ...(refused === undefined ? {} : { total_refused: refused }),
    ...(page === undefined
      ? { ...(hasMore && { truncated: true }) }
      : { next_cursor: hasMore && last !== undefined ? cursorAfter(sort, last) : null }),
    ...(page !== undefined &&
      'page' in page &&
      totals && { meta: { ...page, total: totals.calls } }),
  }
  return JSON.stringify(end).slice(1)
}

function textOfMissing({ records, totals, without_columns: count }: MissingRecords): string {
  const lacks = [
    ...(records === 'some' ? ['records that were not read'] : []),
    ...(totals === 'some' ? ['totals of these'] : []),
    ...(totals === 'carrier_costs' ? ['totals of what carriers took, and margins'] : []),
  ]
  const why =
    count === 0
      ? 'time was up. Ask for a shorter period'
      : `about ${count} records are still being prepared for searches, as after an upgrade. ` +
        'Ask again in some minutes, or for a shorter period'
  return `The answer is without ${lacks.join(', and without ')}: ${why}.`
}

const FIRST_BYTES = 1_048_576
/** Maximum UTF-8 bytes per character of a string. */
const WIDEST = 3

/** Encodes texts as UTF-8 in one reused block of memory. */
class ByteWriter {
  #block = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #length = 0

  add(text: string): void {
    const needed = this.#length + text.length * WIDEST
    if (needed > this.#block.length) this.#grow(needed)
    this.#length += this.#block.write(text, this.#length)
  }

  /** Returns the bytes added since the last call, as a block of their own. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = new Uint8Array(this.#length)
    taken.set(this.#block.subarray(0, this.#length))
    this.#length = 0
    return taken
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#block.length))
    larger.set(this.#block.subarray(0, this.#length))
    this.#block = larger
  }
}
