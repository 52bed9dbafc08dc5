/**
 * A report as bytes, produced in pieces on demand. Each piece takes a few milliseconds, so that
 * other work can run between them.
 */
import { serialize } from 'node:v8'
import type { SqlValue } from '../../schema/sql/statements.ts'
import type { RequestedPage } from '../http/envelope.ts'
import { carrierSums } from './carrier-sums.ts'
import {
  type CdrFilter,
  CdrStore,
  type CdrTotals,
  type CdrValues,
  type RecordPosition,
  type RefusedTotals,
} from './cdr-store.ts'
import { CdrText, csvHeader } from './cdr-text.ts'
import type { CallSources } from './call-filters.ts'
import { margins, type MarginRequest } from './margins.ts'
import { rollUp, type RollUpRequest } from './roll-up.ts'
import { search, type SearchRequest } from './search.ts'
import type { SummaryRequest } from './summarize.ts'
import { summaryOf } from './summary.ts'
import { unusualCalls, type UnusualRequest } from './unusual-calls.ts'

export interface ReportRequest {
  readonly filter: CdrFilter
  /** `carriers`: the sums of carriers, as JSON; it heeds tenant and period alone. */
  readonly format: 'json' | 'csv' | 'ndjson' | 'carriers'
  /** Only JSON has pages; undefined for the first `MAX_RECORDS`. */
  readonly page: RequestedPage | undefined
  /** IANA name: the times of a CSV are those of its clock; absent: UTC. */
  readonly zone?: string | undefined
}

/** Answered with one JSON text. */
type SumsRequest =
  | { readonly format: 'summary'; readonly summary: SummaryRequest }
  | { readonly format: 'margins'; readonly margins: MarginRequest }
  | { readonly format: 'search'; readonly search: SearchRequest }
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
/** The first pieces are smaller, because code and disk may be cold. */
const FIRST_SLICE = 50

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
  if (request.format === 'unusual') return yield* whole(unusualCalls(sources, request.unusual))
  if (request.format === 'roll-up') return yield* whole(rollUp(sources, request.rollUp))
  if (request.format === 'rows') return yield await rowsOf(sources, request.rows)
  const { filter, format, zone } = request
  if (format === 'carriers') {
    yield* whole(dataOf(carrierSums(store, filter)))
    return
  }
  const cdrs = new CdrStore(store, filter)
  const text = new CdrText(await cdrs.slugs(), format === 'csv' ? zone : undefined)
  const writer = new ByteWriter()
  if (format === 'json') {
    yield* jsonChunks(cdrs, text, writer, request.page)
    return
  }
  const line = format === 'csv' ? csvLine(text) : jsonLine(text)
  if (format === 'csv') writer.add(csvHeader)
  for await (const rows of slices(cdrs, cdrs.beginning, Infinity)) {
    for (const row of rows) writer.add(line(row))
    yield writer.take()
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

const csvLine = (text: CdrText) => (row: CdrValues) => text.csv(row)
const jsonLine = (text: CdrText) => (row: CdrValues) => `${text.json(row)}\n`

/** Totals come after the records: a client that waits for them reads all records first. */
async function* jsonChunks(
  cdrs: CdrStore,
  text: CdrText,
  writer: ByteWriter,
  page: RequestedPage | undefined,
): AsyncGenerator<Bytes, void, undefined> {
  const start = yield* positionOf(cdrs, page === undefined ? 0 : (page.page - 1) * page.limit)
  let shown = 0
  writer.add('{"records":[')
  if (start !== undefined)
    for await (const rows of slices(cdrs, start, page?.limit ?? MAX_RECORDS)) {
      for (const row of rows) writer.add(shown++ === 0 ? text.json(row) : `,${text.json(row)}`)
      yield writer.take()
    }
  const totals = yield* totalsOf(cdrs)
  writer.add(`],${endOf(totals, await cdrs.refused(), shown, page)}`)
  yield writer.take()
}

/** The rest of the object. */
function endOf(
  { calls, billsec }: CdrTotals,
  refused: RefusedTotals | undefined,
  shown: number,
  page: RequestedPage | undefined,
): string {
  const totals = {
    total_calls: calls,
    total_billsec: billsec,
    ...(refused === undefined ? {} : { total_refused: refused }),
  }
  const isTruncated = page === undefined && calls > shown
  const end = {
    ...totals,
    ...(isTruncated ? { truncated: true } : {}),
    ...(page === undefined ? {} : { meta: { ...page, total: calls } }),
  }
  return JSON.stringify(end).slice(1)
}

async function* slices(
  cdrs: CdrStore,
  beginning: RecordPosition,
  limit: number,
): AsyncGenerator<CdrValues[], void, undefined> {
  let left = limit
  let slice = FIRST_SLICE
  for await (const { start, end } of cdrs.readable(beginning))
    for (let position = start; ;) {
      const count = Math.min(slice, left)
      const rows = await cdrs.rows({ start: position, end }, count)
      yield rows
      left -= rows.length
      if (left === 0) return
      const last = rows.at(-1)
      if (last === undefined || rows.length < count) break
      position = cdrs.positionOf(last)
      slice = SLICE
    }
}

/** The position after the first `offset` records; undefined when there are fewer. */
async function* positionOf(
  cdrs: CdrStore,
  offset: number,
): AsyncGenerator<Bytes, RecordPosition | undefined, undefined> {
  if (offset === 0) return cdrs.beginning
  let left = offset
  for await (const window of cdrs.countable(cdrs.beginning)) {
    const { calls } = await cdrs.totals(window)
    if (calls >= left) return cdrs.advance(window, left)
    left -= calls
    yield nothing
  }
  return undefined
}

/** Totals over all matching records, whichever part is shown. */
async function* totalsOf(cdrs: CdrStore): AsyncGenerator<Bytes, CdrTotals, undefined> {
  let calls = 0
  let billsec = 0
  for await (const window of cdrs.countable(cdrs.beginning)) {
    const part = await cdrs.totals(window)
    calls += part.calls
    billsec += part.billsec
    yield nothing
  }
  return { calls, billsec }
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
