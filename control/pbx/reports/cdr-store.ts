/**
 * Call records of a period, in the order in which the calls began. Everything is read in slices of
 * a few milliseconds: SIP shares the thread, and a report may cover millions of calls.
 */
import type { Selectable } from 'kysely'
import type { CdrTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, first } from '../../../schema/query.ts'

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

/** Rows read at once: about 5 ms with their attempts. */
const SLICE = 500
/** Rows counted at once: they are not copied out. */
const COUNTED_SLICE = 5_000

/** Where the next slice begins: behind this record. */
interface Position {
  readonly start_stamp: number
  readonly id: number
}

/** Lets everything else have its turn between two slices. */
export type Pause = () => Promise<void>

export class CdrStore {
  readonly #store: Store
  readonly #pause: Pause

  constructor(store: Store, pause: Pause) {
    this.#store = store
    this.#pause = pause
  }

  /** All records of the filter, in slices. */
  async *slices(filter: CdrFilter): AsyncGenerator<readonly CdrRow[]> {
    let position = beginningOf(filter)
    for (;;) {
      const rows = all(this.#store, this.#after(filter, position).limit(SLICE))
      const last = rows.at(-1)
      if (last === undefined) return
      yield rows
      if (rows.length < SLICE) return
      position = last
      await this.#pause()
    }
  }

  /** At most `limit` records from `offset` on. */
  async page(filter: CdrFilter, offset: number, limit: number): Promise<readonly CdrRow[]> {
    const rows: CdrRow[] = []
    let skip = offset
    let position = beginningOf(filter)
    while (rows.length < limit) {
      const count = Math.min(SLICE, limit - rows.length)
      const slice = all(this.#store, this.#after(filter, position).limit(count).offset(skip))
      rows.push(...slice)
      const last = slice.at(-1)
      if (last === undefined || slice.length < count) break
      position = last
      skip = 0
      await this.#pause()
    }
    return rows
  }

  /** Over the whole filter, whatever part of it is shown. */
  async totals(filter: CdrFilter): Promise<CdrTotals> {
    let calls = 0
    let billsec = 0
    let position = beginningOf(filter)
    for (;;) {
      const slice = this.#countSlice(filter, position)
      calls += slice.calls
      billsec += slice.billsec
      if (slice.last === undefined) return { calls, billsec }
      position = slice.last
      await this.#pause()
    }
  }

  #countSlice(filter: CdrFilter, position: Position): CdrTotals & { last: Position | undefined } {
    const slice = this.#after(filter, position)
      .clearSelect()
      .select(['cdr.start_stamp', 'cdr.id', 'cdr.billsec'])
      .limit(COUNTED_SLICE)
    const row = first(
      this.#store,
      this.#store.db
        .selectFrom(slice.as('slice'))
        .select(({ fn }) => [
          fn.countAll<number>().as('calls'),
          fn.sum<number | null>('billsec').as('billsec'),
        ]),
    )
    const calls = row?.calls ?? 0
    const isEnd = calls < COUNTED_SLICE
    const last = isEnd
      ? undefined
      : first(
          this.#store,
          this.#after(filter, position)
            .limit(1)
            .offset(calls - 1),
        )
    return { calls, billsec: row?.billsec ?? 0, last }
  }

  #after(filter: CdrFilter, { start_stamp, id }: Position) {
    let query = this.#store.db
      .selectFrom('cdr')
      .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
      .selectAll('cdr')
      .select('tenant.slug as tenant_slug')
      .where('cdr.start_stamp', '<', filter.before)
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('cdr.start_stamp', 'cdr.id'), '>', tuple(start_stamp, id)),
      )
      .orderBy('cdr.start_stamp')
      .orderBy('cdr.id')
    if (filter.tenantId !== null) query = query.where('cdr.tenant_id', '=', filter.tenantId)
    if (filter.disposition !== undefined)
      query = query.where('cdr.disposition', '=', filter.disposition)
    return query
  }
}

/** Ids begin at 1. */
const beginningOf = (filter: CdrFilter): Position => ({ start_stamp: filter.from, id: 0 })
