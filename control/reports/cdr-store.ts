/**
 * Call records of a period, ordered by start time. Everything is read in slices of a few
 * milliseconds: a report may cover millions of calls, and no read may block the database for long.
 */
import { type Selectable, type SelectQueryBuilder, sql } from 'kysely'
import type { Database } from '../../schema/tables/database.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first, rawRows } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { carrierColumns, withoutOthersCost } from './carrier-cost-view.ts'
import { type CdrMatch, matches } from './cdr-match.ts'
import { hasOwnPrice, withoutPrice } from './own-prices.ts'
import type { CdrTable, RefusalReason } from '../../schema/tables/calls.ts'

/**
 * The calls of a principal that started in a period. Times in milliseconds UTC; `before` is
 * exclusive.
 */
export interface CdrFilter {
  /** Null for all tenants. */
  readonly tenantId: number | null
  readonly from: number
  readonly before: number
  readonly disposition: CdrTable['disposition'] | undefined
  /** Further filters; undefined for none. */
  readonly match?: CdrMatch | undefined
  /** Order by start time; undefined for oldest first. */
  readonly order?: 'oldest' | 'newest' | undefined
}

export type CdrRow = Omit<Selectable<CdrTable>, 'cost_micros'> & {
  /** Null: the price is the platform's, and a tenant reads. */
  readonly cost_micros: number | null
  readonly tenant_slug: string | null
  /** JSON of a `RecordingView`. */
  readonly recording: string | null
}

export interface CdrTotals {
  readonly calls: number
  readonly billsec: number
}

/**
 * A range of the records in order, after `start` up to and including `end`; undefined `end` for all
 * remaining ones.
 */
export interface RecordRange {
  readonly start: RecordPosition
  readonly end: RecordPosition | undefined
}

/** Records counted per slice: about 2 ms. The index contains everything counted. */
const COUNTED = 5_000
/** Records examined per slice when most may not match: about 4 ms. */
const EXAMINED = 1_000

/** Calls of the period that were refused without a record, by reason. */
export type RefusedTotals = Readonly<Record<RefusalReason, number>>

/** Yields to the event loop between two slices. */
export type Pause = () => Promise<void>

/** A slice starts after this record. */
export interface RecordPosition {
  readonly startStamp: number
  readonly id: number
}

/** The columns of reports, and the index of each in `CdrValues`: 0, 1, 2 … in this order. */
export const at = {
  id: 0,
  start_stamp: 1,
  call_uuid: 2,
  caller_id_number: 3,
  destination_number: 4,
  billsec: 5,
  disposition: 6,
  mos_score: 7,
  cost_micros: 8,
  currency: 9,
  answer_stamp: 10,
  end_stamp: 11,
  duration: 12,
  post_dial_delay_ms: 13,
  sip_code: 14,
  hangup_cause: 15,
  hangup_by: 16,
  denial_code: 17,
  direction: 18,
  set_id: 19,
  node: 20,
  carrier: 21,
  attempts: 22,
  jitter_ms: 23,
  packet_loss_pct: 24,
  customer_id: 25,
  tenant_id: 26,
  call_id: 27,
  is_recovered: 28,
  is_unauthorized_by_ocs: 29,
  mos_source: 30,
  media_quality: 31,
  recording_error: 32,
  denial_text: 33,
  instance: 34,
  tags: 35,
  verification: 36,
  verstat: 37,
  attestation: 38,
  carrier_cost_micros: 39,
  carrier_prefix: 40,
  carrier_currency: 41,
} as const satisfies Partial<Record<keyof CdrTable, number>>

/** Behind them: JSON, of another table. */
export const recordingAt = 42

type Columns = typeof at
const columns = Object.keys(at) as readonly (keyof Columns)[]

const isCarrierColumn = (column: keyof Columns): boolean =>
  carrierColumns.some((each) => each === column)

/** The records as a tenant may see them. */
const ownColumns = columns.map((column) => {
  if (isCarrierColumn(column)) {
    const shown = sql.ref(`cdr.${column}`)
    const isOwn = sql`cdr.carrier_tenant_id = cdr.tenant_id`
    return sql<string | null>`CASE WHEN ${isOwn} THEN ${shown} END`.as(column)
  }
  if (column !== 'cost_micros' && column !== 'currency' && column !== 'denial_text') return column
  const shown = sql.ref(`cdr.${column}`)
  return sql<string | null>`CASE WHEN ${hasOwnPrice} THEN ${shown} END`.as(column)
})

/** A record as an array: reading it takes 4 µs, as an object 10 µs. */
export type CdrValues = {
  readonly [column in keyof Columns as Columns[column]]: CdrRow[column]
} & { readonly [recordingAt]: string | null }

/** Statements on the records of one filter. */
export class CdrStore {
  readonly #store: Pick<Store, 'statements' | 'db'>
  readonly #filter: CdrFilter

  constructor(store: Pick<Store, 'statements' | 'db'>, filter: CdrFilter) {
    this.#store = store
    this.#filter = filter
  }

  /** Before the first record; ids start at 1. */
  get beginning(): RecordPosition {
    const { order, from, before } = this.#filter
    return { startStamp: order === 'newest' ? before : from, id: 0 }
  }

  /** Yields what remains after `start`, in ranges that can be counted at once. */
  async *countable(start: RecordPosition): AsyncGenerator<RecordRange, void, undefined> {
    yield* this.#windows(start, this.#filter.match === undefined ? COUNTED : EXAMINED)
  }

  /** The same in ranges that can be read in slices; a single range when every record matches. */
  async *readable(start: RecordPosition): AsyncGenerator<RecordRange, void, undefined> {
    if (this.#filter.match === undefined) yield { start, end: undefined }
    else yield* this.#windows(start, EXAMINED)
  }

  /** The first `count` records of a range. */
  rows({ start, end }: RecordRange, count: number): Promise<CdrValues[]> {
    const shown = this.#filter.tenantId === null ? columns : ownColumns
    const query = this.#ordered(this.#meant(start, end))
      .select([...shown, recordingOfCall])
      .limit(count)
    return rawRows<CdrValues>(this.#store, query)
  }

  /** The `count`-th record of a range; undefined when it has fewer. */
  async advance({ start, end }: RecordRange, count: number): Promise<RecordPosition | undefined> {
    return count === 0 ? start : this.#nth(this.#meant(start, end), count)
  }

  async totals({ start, end }: RecordRange): Promise<CdrTotals> {
    const query = this.#meant(start, end).select(({ fn }) => [
      fn.countAll<number>().as('calls'),
      fn.sum<number | null>('billsec').as('billsec'),
    ])
    const row = await first(this.#store, query)
    return { calls: row?.calls ?? 0, billsec: row?.billsec ?? 0 }
  }

  /**
   * Counts whole minutes. Undefined when there are none, and with filters: these calls have no
   * other fields, not even a tenant.
   */
  async refused(): Promise<RefusedTotals | undefined> {
    const { tenantId, from, before, disposition, match } = this.#filter
    if (tenantId !== null || disposition !== undefined || match !== undefined) return undefined
    const query = this.#store.db
      .selectFrom('refused_calls')
      .select(({ fn }) => [
        fn.sum<number | null>('calls').filterWhere('reason', '=', 'unknown_source').as('unknown'),
        fn.sum<number | null>('calls').filterWhere('reason', '=', 'overload').as('overload'),
      ])
      .where('minute', '>=', from)
      .where('minute', '<', before)
    const { unknown, overload } = (await first(this.#store, query)) ?? {
      unknown: null,
      overload: null,
    }
    if (unknown === null && overload === null) return undefined
    return { unknown_source: unknown ?? 0, overload: overload ?? 0 }
  }

  positionOf(row: CdrValues): RecordPosition {
    return { startStamp: row[at.start_stamp], id: row[at.id] }
  }

  async slugs(): Promise<ReadonlyMap<number, string>> {
    const query = this.#store.db.selectFrom('tenant').select(['id', 'slug'])
    const tenants = await all(this.#store, query)
    return new Map(tenants.map(({ id, slug }) => [id, slug]))
  }

  async *#windows(
    beginning: RecordPosition,
    size: number,
  ): AsyncGenerator<RecordRange, void, undefined> {
    for (let start: RecordPosition | undefined = beginning; start !== undefined;) {
      const end: RecordPosition | undefined = await this.#nth(this.#behind(start), size)
      yield { start, end }
      start = end
    }
  }

  async #nth(query: CdrQuery, count: number): Promise<RecordPosition | undefined> {
    const nth = this.#ordered(query)
      .select(['start_stamp', 'id'])
      .limit(1)
      .offset(count - 1)
    const row = await first(this.#store, nth)
    return row && { startStamp: row.start_stamp, id: row.id }
  }

  #ordered(query: CdrQuery): CdrQuery {
    const direction = this.#filter.order === 'newest' ? 'desc' : 'asc'
    return query.orderBy('start_stamp', direction).orderBy('id', direction)
  }

  #meant(start: RecordPosition, end: RecordPosition | undefined): CdrQuery {
    const { match } = this.#filter
    const query = this.#behind(start, end)
    return match === undefined ? query : query.where((eb) => matches(eb, match))
  }

  /** Only one upper bound at a time: with two, SQLite would seek by one and read up to it. */
  #behind({ startStamp, id }: RecordPosition, end?: RecordPosition): CdrQuery {
    const { tenantId, from, before, disposition, order } = this.#filter
    const isNewestFirst = order === 'newest'
    let query = this.#store.db
      .selectFrom('cdr')
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('start_stamp', 'id'), isNewestFirst ? '<' : '>', tuple(startStamp, id)),
      )
    if (end !== undefined)
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(
          refTuple('start_stamp', 'id'),
          isNewestFirst ? '>=' : '<=',
          tuple(end.startStamp, end.id),
        ),
      )
    else if (isNewestFirst) query = query.where('start_stamp', '>=', from)
    else query = query.where('start_stamp', '<', before)
    if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
    if (disposition !== undefined) query = query.where('disposition', '=', disposition)
    return query
  }
}

type CdrQuery = SelectQueryBuilder<Database, 'cdr', object>

/** The call records that a principal may see, as reports show them. */
export interface RecordReader {
  readonly store: Store
  readonly principal: Pick<Principal, 'tenantId'>
}

export async function findRecord(uuid: string, reader: RecordReader): Promise<CdrRow | undefined> {
  const row = await first(reader.store, records(reader).where('cdr.call_uuid', '=', uuid))
  return row && seenBy(reader, row)
}

/** Reads in the order of the ids, without records that are gone or hidden from the reader. */
export async function recordsOf(
  ids: readonly number[],
  reader: RecordReader,
): Promise<readonly CdrRow[]> {
  if (ids.length === 0) return []
  const rows = await all(reader.store, records(reader).where('cdr.id', 'in', ids))
  const byId = new Map(rows.map((row) => [row.id, seenBy(reader, row)]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

function records({ store, principal: { tenantId } }: RecordReader) {
  const query = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select(['tenant.slug as tenant_slug', recordingOfCall])
    .select(sql<number>`CASE WHEN ${hasOwnPrice} THEN 1 ELSE 0 END`.as('has_own_price'))
  return tenantId === null ? query : query.where('cdr.tenant_id', '=', tenantId)
}

function seenBy(
  { principal }: RecordReader,
  { has_own_price: isOwn, ...row }: CdrRow & { readonly has_own_price: number },
): CdrRow {
  if (principal.tenantId === null) return row
  const own = withoutOthersCost(row)
  return isOwn === 1 ? own : withoutPrice(own)
}

/**
 * JSON as the API shows it; null: there is none. Hexadecimal digits need no escape, and `||` is the
 * same in every database. Bench: `reports`.
 */
export const recordingOfCall = sql<string | null>`(
  SELECT '{"duration":' || ((duration_ms + 500) / 1000)
    || ',"bytes":' || bytes || ',"sha256":"' || sha256 || '"}'
  FROM recording WHERE recording.call_uuid = cdr.call_uuid
)`.as('recording')

export interface RecordingView {
  /** Seconds. */
  readonly duration: number
  readonly bytes: number
  readonly sha256: string
}
