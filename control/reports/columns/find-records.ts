/** A page of the records that match a filter, in an order, and what all of them come to. */
import type { CallSources } from '../call-filters.ts'
import { BestRows, rowOrder, type RowPosition } from './best-rows.ts'
import { type BlockMatches, scan } from './block-scan.ts'
import type { RecordTimes } from './block-store.ts'
import type { BlockColumn } from './record-block.ts'
import { type RecordPlace, placeOf, recordsIn } from './record-place.ts'
import { totalsOfSums } from '../totals-of-sums.ts'
import { priceColumns, type RecordScope } from './record-tests.ts'
import { type FilterTotals, RecordTotals, totalColumns } from './record-totals.ts'
import { PriceReader } from './seen-prices.ts'

export const sortKeys = [
  'start',
  'end',
  'duration',
  'billsec',
  'cost',
  'mos',
  'pdd',
  'margin',
  'code',
] as const
export type SortKey = (typeof sortKeys)[number]

export interface RecordSort {
  readonly by: SortKey
  readonly isDescending: boolean
}

/** Plain data: it is sent to the thread of reports. */
export interface FindRequest {
  readonly scope: RecordScope
  readonly sort: RecordSort
  /** Records before the first one. */
  readonly offset: number
  readonly limit: number
  /** The last record of the page before. */
  readonly after?: RowPosition | undefined
  readonly withTotals: boolean
}

export interface FoundRecords {
  /** In their order. */
  readonly rows: readonly RowPosition[]
  readonly hasMore: boolean
  /** Undefined: they were not asked for. */
  readonly totals: FilterTotals | undefined
  /** False: something is missing, as `missing` says. */
  readonly isComplete: boolean
  readonly missing?: MissingRecords | undefined
}

/** An answer lacks this, because too many records had no columns yet, or time was up. */
export interface MissingRecords {
  /** `some`: time was up. */
  readonly records: 'none' | 'some'
  /** `carrier_costs`: the totals are those of the daily sums, without costs of carriers. */
  readonly totals: 'none' | 'some' | 'carrier_costs'
  /** About so many have no columns yet. */
  readonly without_columns: number
}

/** A search ends then with what it has. */
const MAX_MS = 10_000

/** More records without a block than can be read in about a second. */
const MANY_OTHERS = 300_000

/** With more records before a page, they are passed over in steps of so many. */
const MAX_KEPT = 100_000

/** Yields between statements. */
export async function* findRecords(
  sources: CallSources,
  request: FindRequest,
  { manyOthers = MANY_OTHERS }: { readonly manyOthers?: number } = {},
): AsyncGenerator<void, FoundRecords, undefined> {
  const until = sources.steadyNow() + MAX_MS
  const place = await placeOf(sources, request.scope)
  const { others } = recordsIn(place.parts, place.scope)
  const isEarly = request.withTotals && others > manyOthers
  const ofSums = isEarly ? yield* totalsOfSums(sources, request.scope) : undefined
  const withTotals = request.withTotals && ofSums === undefined
  const found = yield* findPage(sources, { ...request, withTotals }, place, until)
  if (found.isComplete && ofSums === undefined) return found
  return {
    ...found,
    totals: ofSums ?? found.totals,
    isComplete: false,
    missing: {
      records: found.isComplete ? 'none' : 'some',
      totals: ofSums !== undefined ? 'carrier_costs' : withTotals ? 'some' : 'none',
      without_columns: others,
    },
  }
}

async function* findPage(
  sources: CallSources,
  request: FindRequest,
  place: RecordPlace,
  until: number,
): AsyncGenerator<void, FoundRecords, undefined> {
  let { offset, after } = request
  while (offset + request.limit > MAX_KEPT) {
    const step = { ...request, offset: 0, limit: Math.min(MAX_KEPT, offset), after }
    const passed = yield* findFrom(sources, { ...step, withTotals: false }, place, until)
    offset -= passed.rows.length
    after = passed.rows.at(-1)
    if (!passed.hasMore || after === undefined) break
  }
  return yield* findFrom(sources, { ...request, offset, after }, place, until)
}

const columnsOfSort: Readonly<Record<SortKey, readonly BlockColumn[]>> = {
  start: [],
  end: ['end_stamp'],
  duration: ['duration'],
  billsec: ['billsec'],
  cost: priceColumns.cost,
  mos: ['mos_score'],
  pdd: ['post_dial_delay_ms'],
  margin: priceColumns.margin,
  code: ['sip_code'],
}

async function* findFrom(
  sources: CallSources,
  { sort, offset, limit, after, withTotals }: FindRequest,
  { scope, parts }: RecordPlace,
  until: number,
): AsyncGenerator<void, FoundRecords, undefined> {
  const order = rowOrder(sort.isDescending)
  const best = new BestRows(order, offset + limit + 1)
  const totals = withTotals ? new RecordTotals() : undefined
  const ofPage: BlockColumn[] = ['id', 'start_stamp', ...columnsOfSort[sort.by]]
  const work = scan(sources, {
    scope,
    parts,
    reader: new PriceReader(sources, scope.tenantId),
    wanted: [...new Set([...ofPage, ...(withTotals ? totalColumns : [])])],
    ...(!withTotals &&
      sort.by === 'start' && {
        isWanted: mayBeBetter(best, sort, after),
        isOldestFirst: !sort.isDescending,
      }),
  })
  let isComplete = true
  for await (const found of work) {
    if (found === undefined) {
      yield
      if (sources.steadyNow() < until) continue
      isComplete = false
      break
    }
    totals?.add(found.block.head, found.rows, found.numbers, found.prices)
    addRows(best, found, sort, after === undefined ? undefined : (row) => order(row, after) > 0)
  }
  const rows = best.rows
  return {
    rows: rows.slice(offset, offset + limit),
    hasMore: rows.length > offset + limit,
    totals: totals?.totals,
    isComplete,
  }
}

/** Whether a block may have a record of the page. */
const mayBeBetter =
  (best: BestRows, { isDescending }: RecordSort, after: RowPosition | undefined) =>
  ({ firstStart, lastStart }: RecordTimes): boolean => {
    const { worst } = best
    return isDescending
      ? (after === undefined || firstStart <= after.start) &&
          (worst === undefined || lastStart >= worst.start)
      : (after === undefined || lastStart >= after.start) &&
          (worst === undefined || firstStart <= worst.start)
  }

function addRows(
  best: BestRows,
  { rows, numbers, prices }: BlockMatches,
  { by, isDescending }: RecordSort,
  isBehind: ((row: RowPosition) => boolean) | undefined,
): void {
  const [ids, starts] = [numbers.of('id'), numbers.of('start_stamp')]
  const keys = by === 'cost' || by === 'margin' ? prices.of(by) : numbers.of(columnOf[by])
  let { worst } = best
  for (const at of rows) {
    const value = keys[at] ?? NaN
    // Most rows are worse by their key alone.
    if (
      worst !== undefined &&
      worst.key !== null &&
      (isDescending ? !(value >= worst.key) : !(value <= worst.key))
    )
      continue
    const key = Number.isNaN(value) ? null : value
    const row = { key, start: starts[at] ?? 0, id: ids[at] ?? 0 }
    if (isBehind !== undefined && !isBehind(row)) continue
    best.add(row)
    worst = best.worst
  }
}

const columnOf = {
  start: 'start_stamp',
  end: 'end_stamp',
  duration: 'duration',
  billsec: 'billsec',
  mos: 'mos_score',
  pdd: 'post_dial_delay_ms',
  code: 'sip_code',
} as const satisfies Partial<Record<SortKey, BlockColumn>>
