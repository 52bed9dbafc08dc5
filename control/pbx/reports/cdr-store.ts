/**
 * Call records of a period, in the order in which the calls began. Everything is read in slices of a
 * few milliseconds: a report may cover millions of calls, and no read may hold the database for long.
 */
import type { Selectable } from 'kysely'
import type { CdrTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, first, rawRows } from '../../../schema/query.ts'

/** The calls of a principal that began in a period. Times in milliseconds UTC; `before` is outside. */
export interface CdrFilter {
  /** Null: all tenants. */
  readonly tenantId: number | null
  readonly from: number
  readonly before: number
  readonly disposition: CdrTable['disposition'] | undefined
}

export type CdrRow = Selectable<CdrTable> & { readonly tenant_slug: string | null }

export interface CdrTotals {
  readonly calls: number
  readonly billsec: number
}

/** Lets everything else have its turn between two slices. */
export type Pause = () => Promise<void>

/** Where a slice begins: behind this record. */
export interface Position {
  readonly startStamp: number
  readonly id: number
}

/** Which columns reports show, and where each stands in `CdrValues`: 0, 1, 2 … in this order. */
export const at = {
  ...({ id: 0, start_stamp: 1, call_uuid: 2, caller_id_number: 3 } as const),
  ...({ destination_number: 4, billsec: 5, disposition: 6, mos_score: 7, cost_micros: 8 } as const),
  ...({ currency: 9, answer_stamp: 10, end_stamp: 11, duration: 12 } as const),
  ...({ post_dial_delay_ms: 13, sip_code: 14, hangup_cause: 15, hangup_by: 16 } as const),
  ...({ denial_code: 17, direction: 18, set_id: 19, node: 20, carrier: 21, attempts: 22 } as const),
  ...({ jitter_ms: 23, packet_loss_pct: 24, customer_id: 25, tenant_id: 26, call_id: 27 } as const),
  ...({ is_recovered: 28, is_unauthorized_by_ocs: 29 } as const),
} satisfies Partial<Record<keyof CdrTable, number>>

type Columns = typeof at
const columns = Object.keys(at) as readonly (keyof Columns)[]

/** A record as an array: reading it takes 4 µs, as an object 10. */
export type CdrValues = {
  readonly [column in keyof Columns as Columns[column]]: Selectable<CdrTable>[column]
}

/** Statements on the records of one filter. */
export class CdrStore {
  readonly #store: Pick<Store, 'sqlite' | 'db'>
  readonly #filter: CdrFilter

  constructor(store: Pick<Store, 'sqlite' | 'db'>, filter: CdrFilter) {
    this.#store = store
    this.#filter = filter
  }

  /** Before the first record; ids begin at 1. */
  get beginning(): Position {
    return { startStamp: this.#filter.from, id: 0 }
  }

  /** At most `count` records behind this one. */
  rows(position: Position, count: number): CdrValues[] {
    const query = this.#after(position).select(columns).limit(count)
    return rawRows<CdrValues>(this.#store, query)
  }

  /** The record that is the `count`-th behind this one; undefined: there are not so many. */
  advance(position: Position, count: number): Position | undefined {
    if (count === 0) return position
    const query = this.#after(position).select(['start_stamp', 'id']).limit(1)
    const row = first(this.#store, query.offset(count - 1))
    return row && { startStamp: row.start_stamp, id: row.id }
  }

  /** Over the records behind `position` up to and including `end`; undefined: all that are left. */
  totals(position: Position, end: Position | undefined): CdrTotals {
    const query = this.#behind(position, end).select(({ fn }) => [
      fn.countAll<number>().as('calls'),
      fn.sum<number | null>('billsec').as('billsec'),
    ])
    const row = first(this.#store, query)
    return { calls: row?.calls ?? 0, billsec: row?.billsec ?? 0 }
  }

  positionOf(row: CdrValues): Position {
    return { startStamp: row[at.start_stamp], id: row[at.id] }
  }

  slugs(): ReadonlyMap<number, string> {
    const tenants = all(this.#store, this.#store.db.selectFrom('tenant').select(['id', 'slug']))
    return new Map(tenants.map(({ id, slug }) => [id, slug]))
  }

  #after(position: Position) {
    return this.#behind(position).orderBy('start_stamp').orderBy('id')
  }

  /** Of two upper bounds SQLite would seek by one and read up to it: there is only one at a time. */
  #behind({ startStamp, id }: Position, end?: Position) {
    const { tenantId, before, disposition } = this.#filter
    let query = this.#store.db
      .selectFrom('cdr')
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('start_stamp', 'id'), '>', tuple(startStamp, id)),
      )
    query =
      end === undefined
        ? query.where('start_stamp', '<', before)
        : query.where(({ eb, refTuple, tuple }) =>
            eb(refTuple('start_stamp', 'id'), '<=', tuple(end.startStamp, end.id)),
          )
    if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
    if (disposition !== undefined) query = query.where('disposition', '=', disposition)
    return query
  }
}
