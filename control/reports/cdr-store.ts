/**
 * Call records by their ids, as reports show them, in slices of a few milliseconds: a report may
 * have millions of calls, and no read may block the database for long.
 */
import { type Selectable, sql } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'
import type { Principal } from '../auth/principal.ts'
import { carrierColumns, withoutOthersCost } from './carrier-cost-view.ts'
import type { RecordScope } from './columns/record-tests.ts'
import { hasOwnPrice, withoutPrice } from './own-prices.ts'
import type { CdrTable, RefusalReason } from '../../schema/tables/calls.ts'

export type CdrRow = Omit<Selectable<CdrTable>, 'cost_micros'> & {
  /** Null: the price is the platform's, and a tenant reads. */
  readonly cost_micros: number | null
  readonly tenant_slug: string | null
  /** Null: there is none, or it is of another tenant than the reader's. */
  readonly customer_name: string | null
  /** JSON of a `RecordingView`. */
  readonly recording: string | null
}

/** Calls of the period that were refused without a record, by reason. */
export type RefusedTotals = Readonly<Record<RefusalReason, number>>

/** Yields to the event loop between two slices. */
export type Pause = () => Promise<void>

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
  rate_prefix: 42,
  rated: 43,
  number_dialled: 44,
} as const satisfies Partial<Record<keyof CdrTable, number>>

/** Behind them: JSON, of another table. */
export const recordingAt = 45

type Columns = typeof at
const columns = Object.keys(at) as readonly (keyof Columns)[]

/** A tenant does not see these of a call that the platform's customer pays. */
const pricedColumns: ReadonlySet<keyof Columns> = new Set([
  'cost_micros',
  'currency',
  'denial_text',
  'rate_prefix',
  'rated',
] as const)

const isCarrierColumn = (column: keyof Columns): boolean =>
  carrierColumns.some((each) => each === column)

/** The records as a tenant may see them. */
const ownColumns = columns.map((column) => {
  if (isCarrierColumn(column)) {
    const shown = sql.ref(`cdr.${column}`)
    const isOwn = sql`cdr.carrier_tenant_id = cdr.tenant_id`
    return sql<string | null>`CASE WHEN ${isOwn} THEN ${shown} END`.as(column)
  }
  if (!pricedColumns.has(column)) return column
  const shown = sql.ref(`cdr.${column}`)
  return sql<string | null>`CASE WHEN ${hasOwnPrice} THEN ${shown} END`.as(column)
})

/** A record as an array: reading it takes 4 µs, as an object 10 µs. */
export type CdrValues = {
  readonly [column in keyof Columns as Columns[column]]: CdrRow[column]
} & { readonly [recordingAt]: string | null }

/** Statements on the records that a reader of one tenant may see; null: of all. */
export class CdrStore {
  readonly #store: Pick<Store, 'statements' | 'db'>
  readonly #tenantId: number | null
  #prepared: { readonly count: number; readonly statement: PreparedStatement<unknown> } | undefined

  constructor(store: Pick<Store, 'statements' | 'db'>, tenantId: number | null) {
    this.#store = store
    this.#tenantId = tenantId
  }

  /** Reads in the order of the ids, without records that are gone. */
  async rows(ids: readonly number[]): Promise<readonly CdrValues[]> {
    if (ids.length === 0) return []
    const statement = this.#statementFor(ids.length)
    const parameters = this.#tenantId === null ? ids : [...ids, this.#tenantId]
    // Its columns are those of `columns`.
    const rows = (await statement.arrays(parameters)) as CdrValues[]
    const byId = new Map(rows.map((row) => [row[at.id], row]))
    return ids.flatMap((id) => {
      const row = byId.get(id)
      return row === undefined ? [] : [row]
    })
  }

  /** Slices of one report have the same length, but for the last of each part. */
  #statementFor(count: number): PreparedStatement<unknown> {
    if (this.#prepared?.count === count) return this.#prepared.statement
    const ids = Array.from({ length: count }, () => 0)
    const { sql: text } = this.#store.db
      .selectFrom('cdr')
      .select([...(this.#tenantId === null ? columns : ownColumns), recordingOfCall])
      .where('id', 'in', ids)
      .$if(this.#tenantId !== null, (own) => own.where('tenant_id', '=', this.#tenantId))
      .compile()
    const statement = this.#store.statements.prepare<unknown>(text)
    this.#prepared = { count, statement }
    return statement
  }

  /**
   * Counts whole minutes. Undefined when there are none, and with filters: these calls have no
   * other fields, not even a tenant.
   */
  async refused({
    tenantId,
    from,
    before,
    match,
  }: RecordScope): Promise<RefusedTotals | undefined> {
    if (tenantId !== null || match !== undefined) return undefined
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

  async slugs(): Promise<ReadonlyMap<number, string>> {
    const query = this.#store.db.selectFrom('tenant').select(['id', 'slug'])
    const tenants = await all(this.#store, query)
    return new Map(tenants.map(({ id, slug }) => [id, slug]))
  }

  /** Names of customers by id. A tenant does not see those of others. */
  async customerNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    if (ids.length === 0) return new Map()
    const query = this.#store.db
      .selectFrom('customer')
      .select(['id', 'name'])
      .where('id', 'in', [...ids])
      .$if(this.#tenantId !== null, (own) => own.where('tenant_id', '=', this.#tenantId))
    return new Map((await all(this.#store, query)).map(({ id, name }) => [id, name]))
  }
}

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
    .select(['tenant.slug as tenant_slug', recordingOfCall, nameOfCustomer(tenantId)])
    .select(sql<number>`CASE WHEN ${hasOwnPrice} THEN 1 ELSE 0 END`.as('has_own_price'))
  return tenantId === null ? query : query.where('cdr.tenant_id', '=', tenantId)
}

const nameOfCustomer = (tenantId: number | null) =>
  sql<string | null>`(
    SELECT name FROM customer WHERE customer.id = cdr.customer_id
    ${tenantId === null ? sql`` : sql`AND customer.tenant_id = ${tenantId}`}
  )`.as('customer_name')

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
